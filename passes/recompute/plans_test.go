package recompute

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/autodiff"
	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/ir/rewrite"
	"blutrain/passes/internal/evaluate"
)

// random writes a function of a few matrices at random, and its gradient @f.vjp into the same module.
func random(t *testing.T, seed uint64) (*ir.Context, *ir.Op) {
	rng := rand.New(rand.NewPCG(seed, 7))
	c := dialects.NewContext()
	module := ir.NewBuilder(c, nil).CreateState(c.LookupOp("builtin.module"), ir.OpState{Regions: 1})
	module.Region(0).AddBlock()
	const n = 12
	matrix, vector := c.Tensor([]int64{n, n}, c.F64()), c.Tensor([]int64{n}, c.F64())
	inputs := []ir.Type{matrix, matrix, matrix, vector}
	f := ir.NewBuilder(c, module.Body()).CreateState(fn.Func, ir.OpState{Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: c.String("f")}, {Name: "function_type", Value: c.TypeAttr(c.Func(inputs, []ir.Type{matrix}))},
	}})
	body := f.Region(0).AddBlock(inputs...)
	b := blu.On(ir.NewBuilder(c, body))
	values := []*ir.Value{body.Arg(0), body.Arg(1), body.Arg(2)}
	row := body.Arg(3)
	for range 10 + rng.IntN(15) {
		x, y := values[rng.IntN(len(values))], values[len(values)-1-rng.IntN(min(3, len(values)))]
		switch rng.IntN(10) {
		case 0, 1:
			x = b.Dot(x, y, nil, nil, []int64{1}, []int64{int64(rng.IntN(2))})
			x = b.Mul(x, b.SplatLike(x, 1.0/n))
		case 2:
			x = b.Add(x, y)
		case 3:
			x = b.Mul(x, b.Sigmoid(y))
		case 4:
			x = b.Tanh(y)
		case 5:
			x = b.Gelu(y, "tanh")
		case 6:
			x = b.Transpose(y, []int64{1, 0})
		case 7:
			x = b.Softmax(y, 1)
		case 8:
			x = b.Layernorm(y, row, row, 1e-5).Y()
		case 9:
			parts := b.Concat([]*ir.Value{x, y}, 0)
			x = b.Slice(parts, []int64{3, 0}, []int64{3 + n, n}, []int64{1, 1})
		}
		values = append(values, x)
	}
	b.CreateState(fn.Return, ir.OpState{Operands: []*ir.Value{values[len(values)-1]}})
	g, err := autodiff.VJP(c, module, f, "f.vjp", []int{0, 1, 2, 3})
	require.NoError(t, err)
	module.Body().Append(g)
	rewrite.MergeEqual(module, nil)
	rewrite.EraseDead(module)
	require.NoError(t, ir.Verify(c, module))
	return c, module
}

// Whatever items are recomputed, the results are the same bit for bit, and the estimate of the plan is that of the function
// it becomes.
func TestAnyPlanIsRight(t *testing.T) {
	planned, copies := 0, 0
	for seed := range uint64(150) {
		c, m := random(t, seed)
		want := evaluate.Function(t, c, m, "f.vjp", seed, 1, nil)
		rng := rand.New(rand.NewPCG(seed, 8))
		for trial := range 3 {
			c, m := random(t, seed)
			f := ir.LookupSymbol(m, "f.vjp")
			g, ok := newGraph(f, TargetFor("cpu", ""))
			require.True(t, ok)
			ch := newChooser(g)
			var items []int
			for i := range ch.items {
				if trial == 0 || rng.IntN(2) == 0 {
					items = append(items, i)
				}
			}
			if len(items) == 0 {
				continue
			}
			planned++
			plan := ch.try(items)
			copies += ch.apply(c, plan)
			require.NoError(t, ir.Verify(c, m), "seed %d", seed)
			require.Equal(t, want, evaluate.Function(t, c, m, "f.vjp", seed, 1, nil), "seed %d", seed)
			after, _ := newGraph(f, TargetFor("cpu", ""))
			require.Equal(t, plan.usage.peak, newMeter(after).measure(make([]bool, len(after.ops))).peak, "seed %d items %v", seed, items)
		}
	}
	require.Greater(t, planned, 200)
	require.Greater(t, copies, 1000)
}

// layers is a perceptron whose layers have different widths, and its gradient: few enough items to try all plans.
func layers(t *testing.T, widths []int64) (*ir.Context, *ir.Op) {
	c := dialects.NewContext()
	module := ir.NewBuilder(c, nil).CreateState(c.LookupOp("builtin.module"), ir.OpState{Regions: 1})
	module.Region(0).AddBlock()
	inputs := []ir.Type{c.Tensor([]int64{64, widths[0]}, c.F32())}
	for i := 1; i < len(widths); i++ {
		inputs = append(inputs, c.Tensor([]int64{widths[i-1], widths[i]}, c.F32()))
	}
	out := c.Tensor([]int64{64, widths[len(widths)-1]}, c.F32())
	f := ir.NewBuilder(c, module.Body()).CreateState(fn.Func, ir.OpState{Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: c.String("f")}, {Name: "function_type", Value: c.TypeAttr(c.Func(inputs, []ir.Type{out}))},
	}})
	body := f.Region(0).AddBlock(inputs...)
	b := blu.On(ir.NewBuilder(c, body))
	x := body.Arg(0)
	var wrt []int
	for i := 1; i < len(widths); i++ {
		x = b.Gelu(b.Dot(x, body.Arg(i), nil, nil, []int64{1}, []int64{0}), "tanh")
		wrt = append(wrt, i)
	}
	b.CreateState(fn.Return, ir.OpState{Operands: []*ir.Value{x}})
	g, err := autodiff.VJP(c, module, f, "f.vjp", wrt)
	require.NoError(t, err)
	module.Body().Append(g)
	return c, g
}

// A budget that some choice of items meets is met. Where there is time to try them all, the best is found, and else one near it; of those
// that recompute no more than auto, once that fits.
func TestBudgetAgainstEveryPlan(t *testing.T) {
	for _, widths := range [][]int64{{32, 64, 64, 64, 64, 64, 64}, {16, 256, 32, 128, 64, 32, 16}, {128, 32, 256, 32, 256, 32, 256}} {
		_, f := layers(t, widths)
		g, _ := newGraph(f, TargetFor("cpu", ""))
		ch := newChooser(g)
		n := len(ch.items)
		require.LessOrEqual(t, n, 12)
		require.GreaterOrEqual(t, n, 8)
		auto, inAuto := ch.auto(), 0
		for _, i := range auto.items {
			inAuto |= 1 << i
		}
		all := make([]usage, 1<<n)
		least := ch.base.peak
		for set := range all {
			var items []int
			for i := range n {
				if set>>i&1 != 0 {
					items = append(items, i)
				}
			}
			all[set] = ch.try(items).usage
			least = min(least, all[set].peak)
		}
		require.Less(t, least, ch.base.peak)
		for _, search := range []struct {
			trials          int
			lowest, allowed float64 // of the least peak that any choice has, of the least cost
		}{{1 << n, 1, 1}, {1<<n - 1, 1.06, 1.1}, {60, 1.25, 1.5}} {
			ch.trials = search.trials
			slowest := math.Inf(1)
			for limit := int64(search.lowest * float64(least)); limit < ch.base.peak; limit += (ch.base.peak-least)/10 + 1 {
				best := usage{cost: math.Inf(1)}
				for set, u := range all {
					if u.peak <= limit && u.cost < best.cost && (auto.peak > limit || set&^inAuto == 0) {
						best = u
					}
				}
				found, ok := ch.within(limit)
				require.True(t, ok, "%v: limit %d, possible with %v", widths, limit, best)
				require.LessOrEqual(t, found.peak, limit)
				require.LessOrEqual(t, found.cost-ch.base.cost, search.allowed*(best.cost-ch.base.cost)+1e-12, "%v: limit %d, %d trials", widths, limit, search.trials)
				if auto.peak > limit {
					require.LessOrEqual(t, found.cost, slowest, "%v: limit %d: more memory, more time", widths, limit)
					slowest = found.cost
				}
			}
			_, ok := ch.within(least - 1)
			require.False(t, ok)
		}
	}
}
