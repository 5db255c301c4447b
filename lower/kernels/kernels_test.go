package kernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/builtin"
	"blutrain/dialects/fn"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// tiny has blocks so small that everything is cut, clipped and gone over in pieces.
func tiny() Target {
	t := CPU()
	t.BlockElems, t.RowElems, t.ColumnElems, t.Panels, t.PanelRows, t.ScatterCols = 12, 6, 3, 2, 2, 2
	t.LogitsElems, t.ClassifierRows, t.OnlineSums = 20, 4, true
	t.GemmRows, t.GemmCols, t.Queries, t.Keys, t.AttentionSumRows = 3, 4, 3, 2, 2
	t.Beside = []string{""}
	return t
}

// program is a function to be lowered, and values for its arguments.
type program struct {
	c      *ir.Context
	module *ir.Op
	args   []ir.Datum
	loose  float64 // tolerance of results, where constants were rounded
}

// build makes a program; body gets the arguments and gives the results.
func build(args []*ir.Tensor, body func(b *blu.Builder, args []*ir.Value) []*ir.Value) *program {
	c := ir.NewContext(dialects.All()...)
	p := &program{c: c, module: builtin.NewModule(c, "m", nil)}
	var types []ir.Type
	for _, a := range args {
		t := *a
		if a.Elem == nil {
			t.Elem = c.F32()
		} else {
			t.Elem = adopt(c, a.Elem)
		}
		types = append(types, c.Tensor(t.Shape, t.Elem))
		p.args = append(p.args, &t)
	}
	f := c.NewOp(fn.Func, ir.OpState{Regions: 1, Attrs: []ir.NamedAttr{{Name: "sym_name", Value: c.String("f")}}})
	p.module.Body().Append(f)
	block := f.Region(0).AddBlock(types...)
	b := blu.On(ir.NewBuilder(c, block))
	results := body(b, block.Args())
	b.CreateState(fn.Return, ir.OpState{Operands: results})
	var out []ir.Type
	for _, r := range results {
		out = append(out, r.Type())
	}
	f.SetAttr("function_type", c.TypeAttr(c.Func(types, out)))
	return p
}

// adopt is a type of another context in this one.
func adopt(c *ir.Context, t ir.Type) ir.Type {
	n, err := ir.ParseType(c, t.String())
	if err != nil {
		panic(err)
	}
	return n
}

func (p *program) call() ([]ir.Datum, error) {
	in := &ir.Interp{Ctx: p.c, Module: p.module}
	return in.Call("f", p.args...)
}

// check lowers a program and compares what it computes before and after, and every kernel with the function it implements.
func (p *program) check(t *testing.T, target Target) {
	t.Helper()
	require.NoError(t, ir.Verify(p.c, p.module))
	before := string(ir.Print(p.module, ir.PrintOptions{ElideAbove: -1}))
	want, err := p.call()
	require.NoError(t, err, before)
	require.NoError(t, Run(p.c, p.module, target), before)
	after := func() string {
		return before + "\n" + string(ir.Print(p.module, ir.PrintOptions{ElideAbove: -1}))
	}
	if err := ir.Verify(p.c, p.module); err != nil {
		t.Fatalf("%v\n%s", err, after())
	}
	p.checkForm(t)
	in := &ir.Interp{Ctx: p.c, Module: p.module}
	refs := &ir.Interp{Ctx: p.c, Module: ir.LookupSymbol(p.module, ReferenceModule)}
	launched := map[*ir.Op]bool{}
	in.Before = func(op *ir.Op, args []ir.Datum) error {
		if !op.Is(tile.Launch) {
			return nil
		}
		k := in.Symbol(op.Attrs().Sym("kernel"))
		launched[k] = true
		got, err := tile.Run(&ir.Interp{Ctx: p.c, Module: p.module}, k, args)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", ir.SymName(k), err)
		}
		if err := checkShared(p.c, p.module, k, args, got); err != nil {
			return err
		}
		want, err := refs.Call(ir.SymName(k), args...)
		if err != nil {
			return fmt.Errorf("reference of %s: %w", ir.SymName(k), err)
		}
		for i := range want {
			if d := difference(want[i], got[i]); d != "" {
				return fmt.Errorf("kernel %s and its reference differ in result %d: %s", ir.SymName(k), i, d)
			}
		}
		return nil
	}
	got, err := in.Call("f", p.args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, after())
	}
	for i := range want {
		if d := differenceBy(want[i], got[i], max(p.loose, 1e-10)); d != "" {
			t.Fatalf("result %d: %s\n%s", i, d, after())
		}
	}
	for op := range p.module.Body().Ops() {
		require.False(t, op.Is(tile.Kernel) && !launched[op], "kernel %s is never launched", ir.SymName(op))
	}
}

// checkShared runs a kernel with each output in the place of each input that it may take, and expects the same bits.
func checkShared(c *ir.Context, module, kernel *ir.Op, args, want []ir.Datum) error {
	ins, outs := tile.Refs(kernel)
	for i := range ins {
		for o := range outs {
			if !share.Allowed(kernel, i, len(ins)+o) {
				continue
			}
			got, err := tile.RunShared(&ir.Interp{Ctx: c, Module: module}, kernel, args, [][2]int{{i, o}})
			if err != nil {
				return err
			}
			for k := range want {
				if d := differenceBy(want[k], got[k], 0); d != "" {
					return fmt.Errorf("kernel %s with output %d in the place of input %d: %s", ir.SymName(kernel), o, i, d)
				}
			}
		}
	}
	return nil
}

// checkForm holds the function to what the phase may leave in it.
func (p *program) checkForm(t *testing.T) {
	f := ir.LookupSymbol(p.module, "f")
	for op := range f.Body().Ops() {
		switch {
		case op.Is(tile.Launch), op.Is(blu.Constant), op.Is(fn.Return), isView(op):
		default:
			t.Fatalf("%s is left in the function", op.Name())
		}
	}
}

// difference says how two tensors differ by more than rounding, or nothing.
func difference(want, got ir.Datum) string { return differenceBy(want, got, 1e-10) }

func differenceBy(want, got ir.Datum, tolerance float64) string {
	w, g := want.(*ir.Tensor), got.(*ir.Tensor)
	if len(w.Data) != len(g.Data) {
		return fmt.Sprintf("%d elements, not %d", len(g.Data), len(w.Data))
	}
	scale := 1e-300
	for _, v := range w.Data {
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			scale = max(scale, math.Abs(v))
		}
	}
	for i, v := range w.Data {
		x := g.Data[i]
		if v == x || math.IsNaN(v) && math.IsNaN(x) {
			continue
		}
		if !(math.Abs(v-x) <= tolerance*max(scale, 1)) {
			return fmt.Sprintf("element %d of %v is %g, not %g", i, w.Shape, x, v)
		}
	}
	return ""
}

func normal(r *rand.Rand, shape ...int64) *ir.Tensor {
	t := ir.NewTensor(nil, shape...)
	for i := range t.Data {
		t.Data[i] = r.NormFloat64()
	}
	return t
}

func integers(c *ir.Context, r *rand.Rand, n int, shape ...int64) *ir.Tensor {
	t := ir.NewTensor(c.I32(), shape...)
	for i := range t.Data {
		t.Data[i] = float64(r.IntN(n))
	}
	return t
}

func targets() map[string]Target {
	all := map[string]Target{"cpu": CPU(), "tiny": tiny()}
	for name, t := range all { // evaluated in float64, so that nothing is rounded
		t.Float64, t.Float64Products, t.Int64 = true, true, true
		all[name] = t
	}
	return all
}

// each runs a program for every target, made anew each time.
func each(t *testing.T, make func() *program) {
	t.Helper()
	for name, target := range targets() {
		t.Run(name, func(t *testing.T) { make().check(t, target) })
	}
}

func TestElementwise(t *testing.T) {
	each(t, func() *program {
		r := rand.New(rand.NewPCG(1, 1))
		return build([]*ir.Tensor{normal(r, 5, 7), normal(r, 7)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			x := b.Add(a[0], b.BroadcastTo(a[1], []int64{1}, []int64{5, 7}))
			return []*ir.Value{b.Exp(x), b.Mul(x, x)}
		})
	})
}

func TestSoftmax(t *testing.T) {
	for axis := range int64(3) {
		each(t, func() *program {
			r := rand.New(rand.NewPCG(1, 2))
			return build([]*ir.Tensor{normal(r, 5, 7, 9)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
				return []*ir.Value{b.Softmax(a[0], axis), b.LogSoftmax(a[0], axis)}
			})
		})
	}
}

func TestNorms(t *testing.T) {
	each(t, func() *program {
		r := rand.New(rand.NewPCG(1, 3))
		return build([]*ir.Tensor{normal(r, 2, 5, 8), normal(r, 8), normal(r, 8), normal(r, 2, 5, 8)}, func(b *blu.Builder, a []*ir.Value) []*ir.Value {
			ln := b.Layernorm(a[0], a[1], a[2], 1e-5)
			g := b.LayernormGrad(a[0], a[1], ln.Result(1), ln.Result(2), a[3])
			rn := b.Rmsnorm(a[0], a[1], 1e-5)
			rg := b.RmsnormGrad(a[0], a[1], rn.Result(1), a[3])
			return append(append(ln.Results(), g.Results()...), append(rn.Results(), rg.Results()...)...)
		})
	})
}
