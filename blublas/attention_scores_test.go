package blublas

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// coarsened multiplies a tensor's numbers and leaves them what bfloat16 holds, which every precision multiplies exactly.
func (t *tensor) coarsened(by float64) {
	for b := range t.batch {
		for h := range t.heads {
			for s := range t.pos {
				for f := range t.features {
					at := t.at(b, h, s, f)
					if t.size == 2 {
						x := math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.buffer.Data[at:]))<<16) * float32(by)
						t.buffer.Write(at, binary.LittleEndian.AppendUint16(nil, uint16(math.Float32bits(x)>>16)))
						continue
					}
					x := math.Float32frombits(binary.LittleEndian.Uint32(t.buffer.Data[at:])) * float32(by)
					t.buffer.Write(at, binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)&0xFFFF0000))
				}
			}
		}
	}
}

// Scores of any size that float32 holds have the weights of the softmax: from some size on that of the greatest is 1.
func TestAttentionOfGreatScores(t *testing.T) {
	roundoff := map[Precision]float64{BF16: 0x1p-9, TF32: 0x1p-11, FP16: 0x1p-11, TF32x3: 0x1p-21, FP16x3: 0x1p-21, FP32Strict: 0x1p-22}
	kinds := map[string]bool{}
	for i, a := range append(attentions(), simtAttentions()...) {
		kind := fmt.Sprint(a.Precision, a.Block.Consumers > 0, a.Block.Ahead, a.Causal)
		if a.Batch > 1 || kinds[kind] { // the smaller ones
			continue
		}
		kinds[kind] = true
		for _, factor := range []float64{1, 1e4, 1e7, 1e8, 1e9, 1e10, 1e12, 1e16} {
			t.Run(fmt.Sprintf("%s/%d/%g", a.Precision, i, factor), func(t *testing.T) {
				t.Parallel()
				e := a.prepare(rand.New(rand.NewPCG(uint64(i), 9)))
				e.q.coarsened(factor)
				for _, x := range []*tensor{e.k, e.v, e.do} {
					x.coarsened(1)
				}
				want := a.exact(e.q.read(t), e.k.read(t), e.v.read(t), e.do.read(t))
				if a.Precision == FP32Strict {
					require.NoError(t, e.simtLaunch(a, a.simtKernels(t)[:1]))
				} else {
					kernels := a.kernels(t)
					for _, kernel := range kernels[:len(kernels)-2] {
						require.NoError(t, e.launch(kernel), kernel.Name)
					}
				}
				bound := 4 * roundoff[a.Precision]
				if factor == 1e4 { // scores are too great for their rounding not to be seen, and too small for one of them to have all the weight
					bound += 0x1p-8
				}
				for _, x := range []struct {
					name      string
					got, want []float64
				}{{"o", e.o.read(t), want.o}, {"lse", e.sums(a), want.lse}} {
					worst, largest := farthest(t, x.name, x.got, x.want)
					require.LessOrEqual(t, worst, bound*largest, x.name)
				}
			})
		}
	}
}

// Operands whose products are too small for float32, but for a scale that brings them back.
func TestAttentionOfSmallOperands(t *testing.T) {
	for i, a := range attentions() {
		if !a.scaled() || a.Batch > 1 {
			continue
		}
		t.Run(fmt.Sprintf("%s/%d", a.Precision, i), func(t *testing.T) {
			t.Parallel()
			a.Scale *= 1e38
			e := a.prepare(rand.New(rand.NewPCG(uint64(i), 9)))
			for _, x := range []*tensor{e.q, e.k} {
				x.coarsened(1e-19)
			}
			want := a.exact(e.q.read(t), e.k.read(t), e.v.read(t), e.do.read(t))
			kernels := a.kernels(t)
			for _, kernel := range kernels[:len(kernels)-2] {
				require.NoError(t, e.launch(kernel), kernel.Name)
			}
			require.Less(t, apart(e.o.read(t), want.o), 0x1p-9)
		})
	}
}
