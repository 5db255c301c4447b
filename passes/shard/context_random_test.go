package shard_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/passes/internal/evaluate"
	"blutrain/passes/shard"
)

// program makes random functions of an input [B, S, C], tokens [B, S] and parameters: a sum of tanh of all values.
type program struct {
	*blu.Builder
	*rand.Rand
	values []*ir.Value // of float32
	tokens *ir.Value
}

const (
	randomB, randomS, randomC = 2, 12, 4
	randomMost                = 3000 // elements of a value
)

// randomModule is a module with a function eval of that many random operations.
func randomModule(seed uint64, ops int) (*ir.Context, *ir.Op) {
	c := dialects.NewContext()
	module := ir.NewBuilder(c, nil).CreateState(c.LookupOp("builtin.module"), ir.OpState{Regions: 1, Attrs: []ir.NamedAttr{{Name: "blu.train",
		Value: c.Dict(ir.NamedAttr{Name: "batch", Value: c.Dict(ir.NamedAttr{Name: "S", Value: c.Int64(randomS)})})}}})
	body := module.Region(0).AddBlock()
	f := ir.NewBuilder(c, body).CreateState(fn.Func, ir.OpState{Regions: 1})
	ins := []ir.Type{c.Tensor([]int64{randomB, randomS, randomC}, c.F32()), c.Tensor([]int64{randomB, randomS}, c.I32()), c.Tensor([]int64{randomS, randomC}, c.F32())}
	entry := f.Region(0).AddBlock(ins...)
	p := &program{blu.On(ir.NewBuilder(c, entry)), rand.New(rand.NewPCG(seed, 0)), []*ir.Value{entry.Arg(0), entry.Arg(2)}, entry.Arg(1)}
	for made := 0; made < ops; {
		if v := p.operation(p.values[p.IntN(len(p.values))]); v != nil && ir.NumElements(v.Shape()) <= randomMost {
			p.values = append(p.values, v)
			made++
		}
	}
	sum := p.Splat(c.Tensor(nil, c.F32()), 0)
	for _, v := range p.values {
		sum = p.Add(sum, p.ReduceSum(p.Tanh(v), axesOf(v)))
	}
	ir.NewBuilder(c, entry).CreateState(fn.Return, ir.OpState{Operands: []*ir.Value{sum}})
	input := func(kind, name string) ir.Attr { return c.Dict(ir.NamedAttr{Name: kind, Value: c.String(name)}) }
	f.SetAttr("sym_name", c.String("eval"))
	f.SetAttr("function_type", c.TypeAttr(c.Func(ins, []ir.Type{sum.Type()})))
	f.SetAttr("arg_attrs", c.Array(input(blu.InputAttr, "x"), input(blu.InputAttr, "tokens"), input(blu.InputAttr, "w")))
	f.SetAttr("res_attrs", c.Array(input(blu.OutputAttr, "loss_sum")))
	return c, module
}

func axesOf(v *ir.Value) []int64 {
	axes := make([]int64, len(v.Shape()))
	for i := range axes {
		axes[i] = int64(i)
	}
	return axes
}

// operation is a random one on v, nil where the one that was drawn does not fit.
func (p *program) operation(v *ir.Value) *ir.Value {
	shape := v.Shape()
	rank := len(shape)
	if rank == 0 {
		return nil
	}
	axis := p.IntN(rank)
	a := int64(axis)
	last := shape[rank-1]
	ones := slices.Repeat([]int64{1}, rank)
	switch p.IntN(27) {
	case 0:
		return p.Neg(v)
	case 1:
		return p.Tanh(v)
	case 2, 3:
		if w := p.like(v); w != nil {
			return []func(x, y *ir.Value) *ir.Value{p.Add, p.Sub, p.Mul, p.Max}[p.IntN(4)](v, w)
		}
	case 4:
		if w := p.like(v); w != nil {
			return p.Select(p.Compare(v, p.SplatLike(v, 0.1), "gt"), v, w)
		}
	case 5: // merge two axes
		if axis+1 < rank {
			to := slices.Delete(slices.Clone(shape), axis+1, axis+2)
			to[axis] *= shape[axis+1]
			return p.ReshapeTo(v, to...)
		}
	case 6: // split an axis
		for _, n := range p.Perm(7) {
			if n := int64(n); n > 1 && shape[axis]%n == 0 && rank < 5 {
				to := slices.Insert(slices.Clone(shape), axis, n)
				to[axis+1] /= n
				return p.ReshapeTo(v, to...)
			}
		}
	case 7, 8:
		perm := make([]int64, rank)
		for i, k := range p.Perm(rank) {
			perm[i] = int64(k)
		}
		return p.Transpose(v, perm)
	case 9:
		to := slices.Insert(slices.Clone(shape), axis, 2)
		return p.Along(v, a, to)
	case 10:
		return p.ReduceSum(v, []int64{a})
	case 11:
		if p.IntN(2) == 0 {
			return p.ReduceMin(v, []int64{a})
		}
		return p.ReduceMax(v, []int64{a})
	case 12:
		if shape[axis] > 1 {
			limits := slices.Clone(shape)
			starts := make([]int64, rank)
			starts[axis] = int64(p.IntN(int(shape[axis])))
			return p.Slice(v, starts, limits, ones)
		}
	case 13:
		low, high := make([]int64, rank), make([]int64, rank)
		low[axis], high[axis] = 1, int64(p.IntN(2))
		return p.Pad(v, low, high, float64(p.IntN(2)))
	case 14:
		if w := p.like(v); w != nil {
			return p.Concat([]*ir.Value{v, w, v}, a)
		}
	case 15, 16:
		return p.product(v, axis)
	case 17:
		if p.IntN(2) == 0 {
			return p.Softmax(v, a)
		}
		return p.LogSoftmax(v, a)
	case 18:
		g := p.Splat(p.Ctx.Tensor([]int64{last}, p.Ctx.F32()), 0.7)
		if p.IntN(2) == 0 {
			return p.Layernorm(v, g, g, 0.1).Result(p.IntN(3))
		}
		return p.Rmsnorm(v, g, 0.1).Result(p.IntN(2))
	case 19: // of numbers that sums in another order do not change
		numbers := p.CastTo(p.Iota(int64(p.IntN(rank)), p.Ctx.Tensor(shape, p.Ctx.I32())), p.Ctx.F32())
		return p.CastTo(p.Argmax(p.Add(p.Mul(v, p.SplatLike(v, 0)), p.Sin(numbers)), a), p.Ctx.F32())
	case 20:
		if shape[0] >= classes {
			return p.Gather(v, p.tokens)
		}
		if slices.Equal(shape[:min(2, rank)], p.tokens.Shape()) {
			return p.ScatterAdd(v, p.tokens, classes)
		}
	case 21:
		if rank >= 2 && last%2 == 0 {
			return p.Rope(v, 100, p.IntN(2) == 0)
		}
	case 22:
		if rank == 4 {
			causal := p.IntN(2) == 0
			at := p.Attention(v, p.Tanh(v), p.Neg(v), causal, 0.5)
			if p.IntN(2) == 0 {
				return at.O()
			}
			g := p.AttentionGrad(v, p.Tanh(v), p.Neg(v), at.O(), at.Lse(), p.Neg(at.O()), causal, 0.5)
			return g.Result(p.IntN(3))
		}
	case 23: // rows in an order that is the same for all ranks
		rows := p.Iota(0, p.Ctx.Tensor([]int64{shape[0]}, p.Ctx.I32()))
		if p.IntN(2) == 0 {
			return p.Gather(v, p.ReshapeTo(rows, shape[0], 1))
		}
		return p.ScatterAdd(v, rows, shape[0]+1)
	case 24:
		return p.Add(p.Pad(p.ReduceSum(v, []int64{a}), slices.Repeat([]int64{1}, rank-1), slices.Repeat([]int64{0}, rank-1), float64(p.IntN(2))), p.Splat(p.padded(shape, axis), 1))
	case 25:
		return p.Fill(p.SumSquares([]*ir.Value{v, p.values[0], p.values[1]}), []int64{2})
	case 26:
		seed := p.Splat(p.Ctx.Tensor(nil, p.Ctx.I64()), 3)
		return p.Mul(v, p.RandomUniform(seed, int64(p.IntN(5)), v.Type()))
	}
	return nil
}

// padded is the type of a sum along an axis with one more element at the start of every axis.
func (p *program) padded(shape []int64, axis int) ir.Type {
	to := slices.Delete(slices.Clone(shape), axis, axis+1)
	for i := range to {
		to[i]++
	}
	return p.Ctx.Tensor(to, p.Ctx.F32())
}

// like is a value of the type of v, a constant or a number of the position where there is none.
func (p *program) like(v *ir.Value) *ir.Value {
	for _, i := range p.Perm(len(p.values)) {
		if w := p.values[i]; w != v && w.Type() == v.Type() && p.IntN(4) > 0 {
			return w
		}
	}
	return p.CastTo(p.Iota(int64(p.IntN(len(v.Shape()))), p.Ctx.Tensor(v.Shape(), p.Ctx.I32())), p.Ctx.F32())
}

// product is a dot of v with a value that has an axis as long as one of v; sometimes two axes are paired.
func (p *program) product(v *ir.Value, axis int) *ir.Value {
	shape := v.Shape()
	for _, i := range p.Perm(len(p.values)) {
		w := p.values[i]
		for _, k := range p.Perm(len(w.Shape())) {
			if w.Shape()[k] != shape[axis] {
				continue
			}
			lhs, rhs := []int64{int64(axis)}, []int64{int64(k)}
			if len(shape) > 1 && len(w.Shape()) > 1 && shape[0] == w.Shape()[0] && axis > 0 && k > 0 && p.IntN(2) == 0 {
				return p.scaled(p.Dot(v, w, []int64{0}, []int64{0}, lhs, rhs))
			}
			if ir.NumElements(shape)*ir.NumElements(w.Shape())/shape[axis]/shape[axis] <= randomMost && len(shape)+len(w.Shape()) < 8 {
				return p.scaled(p.Dot(v, w, nil, nil, lhs, rhs))
			}
		}
	}
	return nil
}

func (p *program) scaled(v *ir.Value) *ir.Value { return p.Mul(v, p.SplatLike(v, 0.2)) }

// Random programs are right on two and three ranks, in float64 to 1e-9: most of their operations have rules.
func TestContextRandomPrograms(t *testing.T) {
	programs := uint64(300)
	if testing.Short() {
		programs = 60
	}
	gathered, all := 0, 0
	for seed := range programs {
		ops := 3 + int(seed%14)
		c, module := randomModule(seed, ops)
		require.NoError(t, ir.Verify(c, module))
		rng := rand.New(rand.NewPCG(seed, 1))
		inputs := map[string]*ir.Tensor{"x": ir.NewTensor(nil, randomB, randomS, randomC), "tokens": ir.NewTensor(nil, randomB, randomS), "w": ir.NewTensor(nil, randomS, randomC)}
		for i := range inputs["x"].Data {
			inputs["x"].Data[i] = rng.NormFloat64()
		}
		for i := range inputs["w"].Data {
			inputs["w"].Data[i] = rng.NormFloat64()
		}
		for i := range inputs["tokens"].Data {
			inputs["tokens"].Data[i] = float64(rng.IntN(classes))
		}
		want, err := evaluate.NewProgram(c, module, nil).Call("eval", inputs, nil)
		require.NoError(t, err)
		for _, context := range []string{"ring", "gather"} {
			n := 2 + int(seed%2)
			c, module := randomModule(seed, ops)
			require.NoError(t, shard.Run(c, module, dtms.Mesh{DP: 1, CP: n, Context: context}, shard.Watch{
				Visit: func(*ir.Op) {}, Remark: func(*ir.Location, string) { gathered++ }}), "seed %d", seed)
			require.NoError(t, ir.Verify(c, module), "seed %d", seed)
			all += ops
			require.NoError(t, dtms.Evaluate(1, n, func(r *dtms.Rank) error {
				got, err := evaluate.NewProgram(c, module, r).Call("eval", inputs, nil)
				if err == nil && difference(got["loss_sum"].Data, want["loss_sum"].Data) > 1e-9 {
					err = fmt.Errorf("%v, not %v", got["loss_sum"].Data, want["loss_sum"].Data)
				}
				return err
			}), "seed %d, %d operations, %s, cp=%d", seed, ops, context, n)
		}
	}
	t.Logf("%d operations, %d remarks", all, gathered)
	require.Less(t, gathered*3, all)
}
