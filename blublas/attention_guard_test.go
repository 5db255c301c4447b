package blublas

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// planesAttention is attention by planes of float16, of two heads that share keys.
func planesAttention(batch, positions int) Attention {
	a := Attention{Batch: batch, Heads: 2, KeyHeads: 1, Queries: positions, Keys: positions, Features: 64, Causal: true, Scale: 0.125, Precision: FP16x3, Target: ptx.SM90A,
		Block: AttentionBlock{Tiles: 1, Columns: 64, Stages: 2, PerSM: 1, Consumers: 1, Held: true}}
	q, kv, qkv := packed(1, 2, positions, 64), packed(2, 1, positions, 64), packed(3, 2, positions, 64)
	a.Q, a.O, a.DO, a.DQ, a.K, a.V, a.DK, a.DV = qkv, q, q, qkv, kv, kv, kv, kv
	return a
}

// multiplied multiplies numbers of a tensor.
func (t *tensor) multiplied(b, h, s, f int, by float64) {
	at := t.at(b, h, s, f)
	x := float64(math.Float32frombits(binary.LittleEndian.Uint32(t.buffer.Data[at:])))
	t.buffer.Write(at, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x*by))))
}

// What planes don't hold is found, of the key head that it belongs to, and computed by three tf32 products instead; heads
// that they do hold are computed by planes. Both are as good as float32.
func TestAttentionGuard(t *testing.T) {
	row := func(of func(e *emulatedAttention) *tensor, h, s int, by float64) func(e *emulatedAttention) {
		return func(e *emulatedAttention) {
			for f := range 64 {
				of(e).multiplied(0, h, s, f, by)
			}
		}
	}
	column := func(of func(e *emulatedAttention) *tensor, f int, by float64) func(e *emulatedAttention) {
		return func(e *emulatedAttention) {
			for s := range 70 {
				of(e).multiplied(0, 0, s, f, by)
			}
		}
	}
	q := func(e *emulatedAttention) *tensor { return e.q }
	k := func(e *emulatedAttention) *tensor { return e.k }
	v := func(e *emulatedAttention) *tensor { return e.v }
	do := func(e *emulatedAttention) *tensor { return e.do }
	for _, c := range []struct {
		name   string
		change func(e *emulatedAttention)
		unfit  bool
		finite bool
	}{
		{"normal numbers", func(*emulatedAttention) {}, false, true},
		{"a row a thousand times less", row(do, 1, 30, 0x1p-10), false, true},
		{"a row a million times less", row(do, 1, 30, 0x1p-20), true, true},
		{"a row of zeros", row(do, 0, 30, 0), false, true},
		{"a column a million times less", column(v, 9, 0x1p-20), true, true},
		{"a column a million times more", column(q, 9, 0x1p20), true, false},
		{"an infinite number", row(k, 0, 69, math.Inf(1)), true, false},
		{"all as small as denormal numbers", func(e *emulatedAttention) {
			for f := range 64 {
				column(v, f, 0x1p-130)(e)
			}
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := planesAttention(2, 70)
			e := a.prepare(rand.New(rand.NewPCG(3, 4)))
			c.change(e)
			want := a.exact(e.q.read(t), e.k.read(t), e.v.read(t), e.do.read(t))
			other := a
			other.Precision, other.Guard, other.Block = TF32x3, WhenSet, AttentionBlock{Warps: 2, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}
			a.Guard = WhenClear
			planes, tf32 := a.kernels(t), other.kernels(t)
			for i, kernel := range planes {
				require.NoError(t, e.launch(kernel), kernel.Name)
				if i >= 2 {
					require.NoError(t, e.launch(tf32[i-2]), kernel.Name)
				}
			}
			words := e.scratch["unfit"].Data
			require.Equal(t, c.unfit, binary.LittleEndian.Uint32(words) != 0)
			require.Zero(t, binary.LittleEndian.Uint32(words[4:]), "the second sequence is as it was")
			if !c.finite {
				return
			}
			for _, x := range []struct {
				name      string
				got, want []float64
			}{{"o", e.o.read(t), want.o}, {"dq", e.dq.read(t), want.dq}, {"dk", e.dk.read(t), want.dk}, {"dv", e.dv.read(t), want.dv}} {
				require.Less(t, apart(x.got, x.want), 6e-7, x.name)
			}
		})
	}
}

// Whatever warps run first, the results are the same to the bit.
func TestAttentionAnyOrder(t *testing.T) {
	for _, c := range []struct {
		precision     Precision
		turns, staged bool
	}{{BF16, false, false}, {BF16, true, false}, {BF16, true, true}, {FP16x3, false, false}, {FP16x3, true, false}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			t.Parallel()
			var want [][]byte
			for seed := range uint64(3) {
				a := planesAttention(1, 200)
				a.Precision, a.Block.Consumers, a.Block.Turns, a.Block.Ahead, a.Block.Staged = c.precision, 2, c.turns, c.turns, c.staged
				e := a.prepare(rand.New(rand.NewPCG(3, 4)))
				e.seed = seed
				for _, kernel := range a.kernels(t) {
					require.NoError(t, e.launch(kernel), kernel.Name)
				}
				got := [][]byte{e.o.buffer.Data, e.logSums.Data, e.dq.buffer.Data, e.dk.buffer.Data, e.dv.buffer.Data}
				if want == nil {
					want = got
				}
				require.Equal(t, want, got, "seed %d", seed)
			}
		})
	}
}

// Every tile is some block's, and of pairs that are dealt out together all have the same to do.
func TestAttentionTiles(t *testing.T) {
	for _, s := range []struct{ extent, heads, batch, sms int }{{150, 2, 2, 2}, {1024, 12, 16, 132}, {64, 1, 1, 132}, {1100, 3, 1, 4}} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			a := Attention{Batch: s.batch, Causal: true}
			d := H200
			d.SMs = s.sms
			all := a.tiling(s.extent, s.heads, 64, d, false)
			n := ceil(s.extent, 64)
			if all.folded {
				require.Equal(t, ceil(n, 2)*s.heads*s.batch, all.items)
				require.GreaterOrEqual(t, all.items, 2*s.sms)
			} else {
				require.Equal(t, n*s.heads*s.batch, all.items)
			}
		})
	}
}

// Of the last pairs as many are dealt out as single tiles as even out what blocks have to do: GPT-2's at two batch sizes; a number that is even; heads
// whose pairs are no part of what is left; odd numbers of tiles.
func TestAttentionTilesAlone(t *testing.T) {
	for _, s := range []struct{ extent, heads, batch, alone int }{{1024, 12, 16, 108}, {1024, 12, 64, 168}, {1024, 12, 11, 0}, {8192, 12, 2, 0}, {1152, 12, 16, 0}} {
		a := Attention{Batch: s.batch, Causal: true}
		require.Equal(t, s.alone, a.tiling(s.extent, s.heads, 128, H200, false).alone, "%+v", s)
	}
}

// What can't be built is said.
func TestAttentionOfGroupsChecks(t *testing.T) {
	build := func(change func(a *Attention)) error {
		a := planesAttention(1, 70)
		change(&a)
		_, err := a.Forward(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), H200)
		return err
	}
	require.NoError(t, build(func(*Attention) {}))
	for want, change := range map[string]func(a *Attention){
		"needs sm_90a, not sm_80":         func(a *Attention) { a.Target = ptx.SM80 },
		"there are bf16, fp16 and fp16x3": func(a *Attention) { a.Precision = TF32 },
		"32 columns; scales are those":    func(a *Attention) { a.Block.Columns = 32 },
		"40 columns; a multiple of 16":    func(a *Attention) { a.Precision, a.Block.Columns = BF16, 40 },
		"80 bytes":                        func(a *Attention) { a.Features = 20 },
		"of shared memory, a block has":   func(a *Attention) { a.Block.Stages = 16 },
		"a block of {Warps:0 Tiles:1 Col": func(a *Attention) { a.Block.Consumers = 4 },
	} {
		require.ErrorContains(t, build(change), want)
	}
}
