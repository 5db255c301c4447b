package blublas

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
)

// tensor is a [batch, heads, positions, features] tensor of f32 or bf16 in emulated memory, with other rows between its
// heads' rows, as in the joint product of queries, keys and values.
type tensor struct {
	buffer            *emulate.Buffer
	strides           Strides
	size              int
	batch, heads, pos int
	features          int
}

// packed is the strides of [batch, positions, parts, heads, features], of which a tensor is one part.
func packed(parts, heads, positions, features int) Strides {
	return Strides{Batch: positions * parts * heads * features, Head: features, Row: parts * heads * features}
}

func newTensor(m *emulate.Memory, size, batch, heads, positions, features, parts int) *tensor {
	t := &tensor{strides: packed(parts, heads, positions, features), size: size, batch: batch, heads: heads, pos: positions, features: features}
	t.buffer = m.Alloc(batch * t.strides.Batch * size)
	return t
}

func (t *tensor) at(b, h, s, f int) int {
	return (b*t.strides.Batch + h*t.strides.Head + s*t.strides.Row + f) * t.size
}

// fill writes random numbers and returns them as they are stored.
func (t *tensor) fill(random *rand.Rand) []float64 {
	var all []float64
	for b := range t.batch {
		for h := range t.heads {
			for s := range t.pos {
				for f := range t.features {
					x := float32(random.NormFloat64())
					bits := math.Float32bits(x)
					if t.size == 2 {
						bits &= 0xFFFF0000
						t.buffer.Write(t.at(b, h, s, f), binary.LittleEndian.AppendUint16(nil, uint16(bits>>16)))
					} else {
						t.buffer.Write(t.at(b, h, s, f), binary.LittleEndian.AppendUint32(nil, bits))
					}
					all = append(all, float64(math.Float32frombits(bits)))
				}
			}
		}
	}
	return all
}

func (t *tensor) read(tt *testing.T) []float64 {
	var all []float64
	for b := range t.batch {
		for h := range t.heads {
			for s := range t.pos {
				for f := range t.features {
					at := t.at(b, h, s, f)
					require.True(tt, t.buffer.Written(at), "element %d %d %d %d was not written", b, h, s, f)
					if t.size == 2 {
						all = append(all, float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.buffer.Data[at:]))<<16)))
					} else {
						all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(t.buffer.Data[at:]))))
					}
				}
			}
		}
	}
	return all
}

// gapped is logarithms of sums of heads with a gap between them.
func gapped(a Attention) Strides {
	pitch := a.Queries + 3
	return Strides{Batch: a.Heads * pitch, Head: pitch, Row: 1}
}

// sums is the logarithms of sums without what lies between them.
func (e *emulatedAttention) sums(a Attention) []float64 {
	all := readFloats(e.logSums)
	if a.LSE == (Strides{}) {
		return all
	}
	var dense []float64
	for i := range a.Batch * a.Heads {
		at := i/a.Heads*a.LSE.Batch + i%a.Heads*a.LSE.Head
		dense = append(dense, all[at:at+a.Queries]...)
	}
	return dense
}

func readFloats(b *emulate.Buffer) []float64 {
	xs := make([]float64, len(b.Data)/4)
	for i := range xs {
		xs[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b.Data[4*i:])))
	}
	return xs
}

// exact is attention and its gradients in float64.
type exact struct{ o, lse, dq, dk, dv []float64 }

func (a Attention) exact(q, k, v, do []float64) exact {
	d, group := a.Features, a.Heads/a.KeyHeads
	e := exact{o: make([]float64, len(q)), lse: make([]float64, a.Batch*a.Heads*a.Queries), dq: make([]float64, len(q)),
		dk: make([]float64, len(k)), dv: make([]float64, len(v))}
	dot := func(x, y []float64) (sum float64) {
		for i := range x {
			sum += x[i] * y[i]
		}
		return sum
	}
	for bh := range a.Batch * a.Heads {
		keyHead := bh/a.Heads*a.KeyHeads + bh%a.Heads/group
		for s := range a.Queries {
			row := (bh*a.Queries + s) * d
			p := make([]float64, a.Keys)
			seen := a.Keys
			if a.Causal {
				seen = min(a.Keys, max(0, s+a.Keys-a.Queries+1))
			}
			sum, top := 0.0, math.Inf(-1)
			at := func(t int) int { return (keyHead*a.Keys + t) * d }
			for t := range seen {
				p[t] = a.Scale * dot(q[row:row+d], k[at(t):at(t)+d])
				top = max(top, p[t])
			}
			for t := range seen {
				p[t] = math.Exp(p[t] - top)
				sum += p[t]
			}
			e.lse[bh*a.Queries+s] = top + math.Log(sum)
			for t := range seen {
				p[t] /= sum
				for f := range d {
					e.o[row+f] += p[t] * v[at(t)+f]
				}
			}
			delta := dot(e.o[row:row+d], do[row:row+d])
			for t := range seen {
				ds := p[t] * (dot(do[row:row+d], v[at(t):at(t)+d]) - delta) * a.Scale
				for f := range d {
					e.dv[at(t)+f] += p[t] * do[row+f]
					e.dq[row+f] += ds * k[at(t)+f]
					e.dk[at(t)+f] += ds * q[row+f]
				}
			}
		}
	}
	return e
}

// attentions is one of every kind: sizes that are no multiples of blocks, other numbers of keys than queries, shared keys.
func attentions() []Attention {
	var all []Attention
	add := func(p Precision, target string, a Attention, block AttentionBlock) {
		a.Precision, a.Target, a.Block = p, target, block
		a = a.placed()
		if len(all)%2 == 0 {
			a.LSE = gapped(a)
		}
		if q, k := a.Heads*a.Features, a.KeyHeads*a.Features; len(all)%3 > 0 {
			a.Sums = ColumnSums{Pitch: q + 2*k, Q: k, K: k + q} // values, queries, keys
		}
		all = append(all, a)
	}
	small := AttentionBlock{Warps: 2, Tiles: 1, Columns: 16, Stages: 2, PerSM: 1}
	for _, p := range []Precision{BF16, TF32, TF32x3} {
		add(p, ptx.SM80, Attention{Batch: 2, Heads: 2, KeyHeads: 2, Queries: 70, Keys: 70, Features: 64, Causal: true, Scale: 0.125}, small)
		add(p, ptx.SM90A, Attention{Batch: 1, Heads: 4, KeyHeads: 2, Queries: 40, Keys: 53, Features: 32, Causal: true, Scale: 0.2},
			AttentionBlock{Warps: 1, Tiles: 2, Columns: 32, Stages: 3, PerSM: 1})
		add(p, ptx.SM89, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 33, Keys: 17, Features: 48, Scale: 0.3},
			AttentionBlock{Warps: 2, Tiles: 1, Columns: 32, Stages: 1, PerSM: 1})
		add(p, ptx.SM80, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 37, Keys: 20, Features: 80, Causal: true, Scale: 0.1}, small)
	}
	add(BF16, ptx.SM80, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 64, Keys: 64, Features: 128, Causal: true, Scale: 0.1},
		AttentionBlock{Warps: 4, Tiles: 1, Columns: 64, Stages: 2, PerSM: 1})
	group := func(consumers, columns, stages int, held bool) AttentionBlock {
		return AttentionBlock{Tiles: 1, Columns: columns, Stages: stages, PerSM: 1, Consumers: consumers, Held: held}
	}
	// Two heads of an odd number of tiles, dealt out in pairs; tiles of one key head that are dealt out alone; rows in shared
	// memory; columns and features that are no multiples of 64; queries that see no key.
	add(BF16, ptx.SM90A, Attention{Batch: 2, Heads: 2, KeyHeads: 2, Queries: 150, Keys: 150, Features: 64, Causal: true, Scale: 0.125}, group(1, 64, 2, true))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 4, KeyHeads: 2, Queries: 140, Keys: 200, Features: 64, Causal: true, Scale: 0.125}, group(2, 64, 3, false))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 130, Features: 32, Scale: 0.2}, group(2, 128, 2, false))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 100, Keys: 70, Features: 80, Causal: true, Scale: 0.1}, group(1, 48, 2, true))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 200, Keys: 200, Features: 128, Causal: true, Scale: 0.1}, group(3, 32, 2, false))
	part := group(1, 64, 2, false)
	part.HeldPart = true
	add(FP16x3, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 70, Keys: 90, Features: 64, Causal: true, Scale: 0.125}, part)
	ahead := group(1, 64, 2, true)
	ahead.Ahead = true
	for _, p := range []Precision{BF16, FP16, FP16x3} {
		add(p, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: 150, Keys: 100, Features: 64, Causal: true, Scale: 0.125}, ahead)
	}
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 300, Features: 64, Scale: 0.125}, ahead)
	turns := func(b AttentionBlock, consumers int) AttentionBlock {
		b.Turns, b.Consumers = true, consumers
		return b
	}
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 300, Keys: 300, Features: 64, Causal: true, Scale: 0.125}, turns(ahead, 2))
	add(FP16x3, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: 150, Keys: 260, Features: 32, Causal: true, Scale: 0.125}, turns(part, 2))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 200, Keys: 130, Features: 32, Causal: true, Scale: 0.125}, turns(ahead, 3))
	staged := func(b AttentionBlock) AttentionBlock {
		b.Staged = true
		return b
	}
	// Staged: the same in pairs; queries that see no key; shared keys, of which a last box has few rows; more features than a box has.
	add(BF16, ptx.SM90A, Attention{Batch: 2, Heads: 2, KeyHeads: 2, Queries: 150, Keys: 150, Features: 64, Causal: true, Scale: 0.125}, staged(group(1, 64, 2, true)))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 200, Keys: 130, Features: 64, Causal: true, Scale: 0.125}, staged(turns(ahead, 3)))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 4, KeyHeads: 2, Queries: 135, Keys: 200, Features: 64, Causal: true, Scale: 0.125}, staged(turns(ahead, 2)))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 85, Features: 128, Scale: 0.1}, staged(group(1, 32, 2, true)))
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 2, Queries: 128, Keys: 64, Features: 64, Scale: 0.1}, staged(group(1, 48, 2, true)))
	add(FP16, ptx.SM90A, Attention{Batch: 1, Heads: 4, KeyHeads: 2, Queries: 70, Keys: 130, Features: 64, Causal: true, Scale: 0.125}, group(2, 64, 2, true))
	add(FP16, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 90, Keys: 70, Features: 128, Scale: 0.1}, group(1, 64, 2, false))
	add(FP16x3, ptx.SM90A, Attention{Batch: 2, Heads: 2, KeyHeads: 2, Queries: 150, Keys: 150, Features: 64, Causal: true, Scale: 0.125}, group(1, 64, 2, true))
	add(FP16x3, ptx.SM90A, Attention{Batch: 1, Heads: 4, KeyHeads: 2, Queries: 140, Keys: 200, Features: 64, Causal: true, Scale: 0.125}, group(2, 64, 2, false))
	add(FP16x3, ptx.SM90A, Attention{Batch: 1, Heads: 2, KeyHeads: 1, Queries: 70, Keys: 45, Features: 48, Scale: 0.2}, group(2, 64, 2, false))
	add(FP16x3, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 65, Keys: 20, Features: 128, Scale: 0.1}, group(1, 64, 2, false))
	add(FP16x3, ptx.SM90A, Attention{Batch: 1, Heads: 1, KeyHeads: 1, Queries: 20, Keys: 65, Features: 16, Causal: true, Scale: 0.3}, group(1, 64, 2, true))
	// Tiles of the last heads dealt out by themselves, to two multiprocessors.
	add(BF16, ptx.SM90A, Attention{Batch: 1, Heads: 5, KeyHeads: 5, Queries: 128, Keys: 128, Features: 64, Causal: true, Scale: 0.125}, staged(group(1, 64, 2, true)))
	add(BF16, ptx.SM90A, Attention{Batch: 5, Heads: 1, KeyHeads: 1, Queries: 256, Keys: 256, Features: 64, Causal: true, Scale: 0.125}, staged(turns(group(2, 64, 2, true), 2)))
	return all
}

// emulatedAttention is the tensors of one, in memory.
type emulatedAttention struct {
	memory          *emulate.Memory
	q, k, v, o, do  *tensor
	dq, dk, dv      *tensor
	logSums, deltas *emulate.Buffer
	columnSums      *emulate.Buffer
	scratch         map[string]*emulate.Buffer // planes and what belongs to them
	seed            uint64                     // of the order in which warps run
	want            exact
}

// placed is attention of the tensors that prepare makes.
func (a Attention) placed() Attention {
	q, kv, qkv := packed(1, a.Heads, a.Queries, a.Features), packed(2, a.KeyHeads, a.Keys, a.Features), packed(3, a.Heads, a.Queries, a.Features)
	a.Q, a.O, a.DO, a.DQ, a.K, a.V, a.DK, a.DV = qkv, q, q, qkv, kv, kv, kv, kv
	return a
}

func (a Attention) prepare(random *rand.Rand) *emulatedAttention {
	e := &emulatedAttention{memory: &emulate.Memory{}}
	of := func(heads, positions, parts int) *tensor {
		return newTensor(e.memory, a.size(), a.Batch, heads, positions, a.Features, parts)
	}
	e.q, e.k, e.v = of(a.Heads, a.Queries, 3), of(a.KeyHeads, a.Keys, 2), of(a.KeyHeads, a.Keys, 2)
	e.o, e.do = of(a.Heads, a.Queries, 1), of(a.Heads, a.Queries, 1)
	e.dq, e.dk, e.dv = of(a.Heads, a.Queries, 3), of(a.KeyHeads, a.Keys, 2), of(a.KeyHeads, a.Keys, 2)
	rows := a.Batch * a.Heads * a.Queries
	e.logSums, e.deltas = e.memory.Alloc(4*max(rows, a.Batch*a.LSE.Batch)), e.memory.Alloc(4*rows)
	e.columnSums = e.memory.Alloc(4 * max(1, a.Batch*ceil(max(a.Queries, a.Keys), AttentionSumRows)*a.Sums.Pitch))
	e.scratch = map[string]*emulate.Buffer{}
	for _, name := range a.split().Tensors {
		e.scratch[name+".planes"], e.scratch[name+".scales"] = e.memory.Alloc(int(a.split().PlaneBytes(name))), e.memory.Alloc(int(a.split().ScaleBytes(name)))
	}
	e.scratch["flags"], e.scratch["unfit"] = e.memory.Alloc(4*a.split().Flags()), e.memory.Alloc(int(a.split().UnfitBytes()))
	e.want = a.exact(e.q.fill(random), e.k.fill(random), e.v.fill(random), e.do.fill(random))
	return e
}

func (a Attention) split() AttentionSplit {
	return AttentionSplit{Attention: a, Tensors: []string{"q", "k", "v", "do"}}
}

// kernels builds the three kernels, and before them those that make planes.
func (a Attention) kernels(t *testing.T) []*Kernel { return a.kernelsFor(t, small(ptx.SM90A)) }

func (a Attention) kernelsFor(t *testing.T, d Device) []*Kernel {
	c := ir.NewContext(ptx.Dialect)
	var all []*Kernel
	if a.scaled() {
		k, err := a.split().Build(ir.NewBuilder(c, nil))
		require.NoError(t, err)
		require.NoError(t, ir.Verify(c, k.Op))
		unfit := a.split().BuildUnfit(ir.NewBuilder(c, nil))
		require.NoError(t, ir.Verify(c, unfit.Op))
		all = append(all, k, unfit)
	}
	for _, build := range []func(*ir.Builder, Device) (*Kernel, error){a.Forward, a.GradQueries, a.GradKeys} {
		kernel, err := build(ir.NewBuilder(c, nil), d)
		require.NoError(t, err)
		require.NoError(t, ir.Verify(c, kernel.Op))
		all = append(all, kernel)
	}
	return all
}

// launch runs one of them.
func (e *emulatedAttention) launch(kernel *Kernel) error {
	addresses := map[string]uint64{"q": e.q.buffer.Base, "k": e.k.buffer.Base, "v": e.v.buffer.Base, "o": e.o.buffer.Base, "do": e.do.buffer.Base, "dq": e.dq.buffer.Base,
		"dk": e.dk.buffer.Base, "dv": e.dv.buffer.Base, "lse": e.logSums.Base, "delta": e.deltas.Base, "sums": e.columnSums.Base}
	for name, b := range e.scratch {
		addresses[name] = b.Base
	}
	var params []any
	for _, p := range kernel.Params {
		at, ok := addresses[p.Name]
		if !ok {
			return fmt.Errorf("no place for %s", p.Name)
		}
		if p.Map == nil {
			params = append(params, at)
			continue
		}
		dims, strides, box := p.Map.Layout()
		params = append(params, &emulate.TensorMap{Element: p.Map.Element, Base: at, Dims: dims, Strides: strides, Box: box, Swizzle: 128})
	}
	program, err := emulate.Compile(kernel.Op)
	if err != nil {
		return err
	}
	program.Seed = e.seed
	return program.Launch(e.memory, kernel.Grid, params...)
}

// requireSums requires that sums of columns, if there are any, are those of what was stored but for its rounding, and the order of float32's.
func (e *emulatedAttention) requireSums(t *testing.T, a Attention) {
	if a.Sums.Pitch == 0 {
		return
	}
	for _, g := range []struct {
		name   string
		x      *tensor
		column int
	}{{"dq", e.dq, a.Sums.Q}, {"dk", e.dk, a.Sums.K}, {"dv", e.dv, a.Sums.V}} {
		x := g.x.read(t)
		panels := ceil(g.x.pos, AttentionSumRows)
		want, largest := make([]float64, a.Batch*panels*g.x.heads*a.Features), 0.0
		index := func(b, panel, h, f int) int { return ((b*panels+panel)*g.x.heads+h)*a.Features + f }
		for i, v := range x {
			f, s, h := i%a.Features, i/a.Features%g.x.pos, i/a.Features/g.x.pos
			want[index(h/g.x.heads, s/AttentionSumRows, h%g.x.heads, f)] += v
			largest = math.Max(largest, math.Abs(v))
		}
		tolerance := 16 * 0x1p-22 * largest
		if g.x.size == 2 {
			tolerance = 16 * 0x1p-9 * largest
		}
		for i, w := range want {
			row, column := i/(g.x.heads*a.Features), i%(g.x.heads*a.Features)
			at := 4 * (row*a.Sums.Pitch + g.column + column)
			require.True(t, e.columnSums.Written(at), "%s: sum %d of column %d was not written", g.name, row, column)
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(e.columnSums.Data[at:])))
			require.InDelta(t, w, got, tolerance, "%s: sum %d of column %d", g.name, row, column)
		}
	}
}

// run evaluates the three kernels.
func (a Attention) run(t *testing.T, random *rand.Rand) (got, want exact, delta []float64) {
	e := a.prepare(random)
	for _, kernel := range a.kernels(t) {
		require.NoError(t, e.launch(kernel), kernel.Name)
	}
	e.requireSums(t, a)
	return exact{e.o.read(t), e.sums(a), e.dq.read(t), e.dk.read(t), e.dv.read(t)}, e.want, readFloats(e.deltas)
}

// Outputs and gradients differ from float64's by no more than roundings explain: relative to a tensor's largest number, four
// of an operand of a product (a score's two, a weight, what it weights). The two parts of tf32x3 hold 21 bits together, those of fp16x3 at
// least as many.
func TestAttention(t *testing.T) {
	roundoff := map[Precision]float64{BF16: 0x1p-9, TF32: 0x1p-11, FP16: 0x1p-11, TF32x3: 0x1p-21, FP16x3: 0x1p-21}
	for i, a := range attentions() {
		t.Run(fmt.Sprintf("%s/%d", a.Precision, i), func(t *testing.T) {
			t.Parallel()
			got, want, _ := a.run(t, rand.New(rand.NewPCG(uint64(i), 7)))
			for _, x := range []struct {
				name      string
				got, want []float64
			}{{"o", got.o, want.o}, {"lse", got.lse, want.lse}, {"dq", got.dq, want.dq}, {"dk", got.dk, want.dk}, {"dv", got.dv, want.dv}} {
				var largest, worst float64
				for i := range x.want {
					if math.IsInf(x.want[i], -1) { // a query that sees no key
						require.Equal(t, x.want[i], x.got[i], x.name)
						continue
					}
					largest = math.Max(largest, math.Abs(x.want[i]))
					worst = math.Max(worst, math.Abs(x.got[i]-x.want[i]))
					require.False(t, math.IsNaN(x.got[i]), "%s[%d]", x.name, i)
				}
				require.LessOrEqual(t, worst, 4*roundoff[a.Precision]*largest, x.name)
				t.Logf("%s: %.2g of the bound", x.name, worst/(4*roundoff[a.Precision]*largest))
			}
		})
	}
}
