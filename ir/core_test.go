package ir_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/ir"
)

// Every finite half-precision and bfloat16 value reads back as its own bits, and what lies between two of them rounds to the
// nearer one, ties to the even one.
func TestNarrowFloats(t *testing.T) {
	bf16 := func(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) }
	for _, f := range []struct {
		name  string
		bits  func(float64) uint16
		value func(uint16) float64
		inf   uint16
	}{{"f16", ir.F16Bits, ir.F16Value, 0x7c00}, {"bf16", ir.BF16Bits, bf16, 0x7f80}} {
		for b := range f.inf { // positive and finite
			v := f.value(b)
			require.Equal(t, b, f.bits(v), "%s %#x", f.name, b)
			require.Equal(t, b|0x8000, f.bits(-v), "%s -%#x", f.name, b)
			if b+1 == f.inf {
				continue
			}
			middle := v + (f.value(b+1)-v)/2 // exact in float64
			require.Equal(t, b+b&1, f.bits(middle), "%s tie above %#x", f.name, b)
			require.Equal(t, b, f.bits(math.Nextafter(middle, 0)), "%s", f.name)
			require.Equal(t, b+1, f.bits(math.Nextafter(middle, math.Inf(1))), "%s", f.name)
		}
		require.Equal(t, f.inf, f.bits(1e39))
		require.Equal(t, f.inf, f.bits(math.Inf(1)))
		require.Equal(t, f.inf|0x8000, f.bits(math.Inf(-1)))
		require.True(t, math.IsNaN(f.value(f.bits(math.NaN()))))
		require.Equal(t, uint16(0x8000), f.bits(math.Copysign(0, -1)))
	}
}

// Elements of every type survive encoding.
func TestElements(t *testing.T) {
	c := ir.NewContext()
	for _, k := range []ir.FloatKind{ir.F64, ir.F32, ir.F16, ir.BF16} {
		for _, v := range []float64{0, 1, -2.5, math.Inf(1)} {
			raw := ir.EncodeElement(nil, c.Float(k), v)
			require.Len(t, raw, int(ir.ByteSize(c.Float(k))))
			require.Equal(t, v, ir.DecodeElement(c.Float(k), string(raw)))
		}
	}
	for _, typ := range []ir.Type{c.Int(8), c.Int(16), c.Int(32), c.I64(), c.Index(), c.IntSigned(16, ir.Signed)} {
		for _, v := range []int64{0, 1, -1, 127, -128} {
			require.Equal(t, v, ir.DecodeInt(typ, string(ir.EncodeInt(nil, typ, v))), "%s", typ)
		}
	}
	require.Equal(t, int64(255), ir.DecodeInt(c.IntSigned(8, ir.Unsigned), "\xff"))
	require.Equal(t, int64(1), ir.DecodeInt(c.I1(), "\x01"))
	require.Equal(t, int64(math.MinInt64+1), ir.DecodeInt(c.I64(), string(ir.EncodeInt(nil, c.I64(), math.MinInt64+1))), "exact beyond 2^53")
}

// Equal types, attributes and locations are one pointer.
func TestInterning(t *testing.T) {
	c := ir.NewContext()
	f := c.F32()
	require.Same(t, c.Tensor([]int64{2, 3}, f), c.Tensor([]int64{2, 3}, f))
	require.NotSame(t, c.Tensor([]int64{2, 3}, f), c.Tensor([]int64{23}, f))
	require.NotEqual(t, ir.Type(c.Tensor([]int64{2}, f)), ir.Type(c.TensorEncoded([]int64{2}, f, c.Unit())))
	require.Same(t, c.MemRef([]int64{2, 3}, f), c.MemRefWith([]int64{2, 3}, f, c.Strided([]int64{3, 1}, 0), nil), "row-major is no layout")
	require.NotSame(t, c.MemRef([]int64{2, 3}, f), c.MemRefWith([]int64{2, 3}, f, c.Strided([]int64{3, 1}, 1), nil))
	require.Same(t, c.Dict(ir.NamedAttr{Name: "b", Value: c.Int64(1)}, ir.NamedAttr{Name: "a", Value: c.Unit()}),
		c.Dict(ir.NamedAttr{Name: "a", Value: c.Unit()}, ir.NamedAttr{Name: "b", Value: c.Int64(1)}))
	require.NotSame(t, c.FloatAttr(0, f), c.FloatAttr(math.Copysign(0, -1), f))
	require.Same(t, c.FloatAttr(math.NaN(), f), c.FloatAttr(math.NaN(), f))
	require.Same(t, c.FloatAttr(0.1, f), c.FloatAttr(float64(float32(0.1)), f), "rounded to the type")
	require.Same(t, c.Splat(c.Tensor([]int64{3}, f), 2), c.Dense(c.Tensor([]int64{3}, f), []byte{0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0, 64}))
	require.Same(t, c.FileLoc("f", 70, 3), c.FileLoc("f", 70, 3))
	require.NotSame(t, c.FileLoc("f", 70, 3), c.FileLoc("g", 70, 3))
	a, b := c.FileLoc("f", 1, 1), c.FileLoc("f", 2, 1)
	require.Same(t, c.Fused(a, b), c.Fused(a, b, a, c.Unknown()))
	require.Same(t, a, c.Fused(nil, a))
	require.Same(t, c.Unknown(), c.Fused())
}

// FileLoc finds places in whatever order they were made.
func TestFileLocs(t *testing.T) {
	c := ir.NewContext()
	r := rand.New(rand.NewPCG(1, 1))
	made := map[[2]int]*ir.Location{}
	for range 5000 {
		line, col := r.IntN(300)+1, r.IntN(20)+1
		l := c.FileLoc("f", line, col)
		require.Equal(t, [2]int{line, col}, [2]int{l.Line, l.Col})
		if old := made[[2]int{line, col}]; old != nil {
			require.Same(t, old, l)
		}
		made[[2]int{line, col}] = l
	}
}

func parseBody(t *testing.T, src string) (*ir.Context, []*ir.Op) {
	t.Helper()
	c := ir.NewContext(testDialects()...)
	m, err := ir.Parse(c, "core.mlir", []byte(src))
	require.NoError(t, err)
	var ops []*ir.Op
	for op := range m.Body().Ops() {
		ops = append(ops, op)
	}
	return c, ops
}

func TestUses(t *testing.T) {
	c, ops := parseBody(t, "%a = test.op : () -> f32\n%b = test.op : () -> f32\ntest.op %a, %a, %b : (f32, f32, f32) -> ()\ntest.op %a : (f32) -> ()")
	a, b, user := ops[0].Result(0), ops[1].Result(0), ops[2]
	require.Equal(t, 3, a.NumUses())
	require.True(t, b.HasOneUse())
	a.ReplaceUsesIf(b, func(u *ir.Use) bool { return u.Owner() == user && u.Index() == 1 })
	require.Equal(t, []*ir.Value{a, b, b}, user.Operands())
	a.ReplaceAllUsesWith(b)
	require.True(t, a.Unused())
	require.Equal(t, 4, b.NumUses())
	require.PanicsWithValue(t, "ir: erasing test.op, whose results are still used", ops[1].Erase)
	user.SetOperands([]*ir.Value{a})
	require.Equal(t, 1, b.NumUses())
	ops[3].Erase()
	ops[1].Erase()
	require.NoError(t, ir.Verify(c, user.Parent()))
}

func TestEraseDropsWhatIsInside(t *testing.T) {
	c, ops := parseBody(t, "%a = test.op : () -> f32\ntest.loop : () -> () {\n  %b = test.op %a : (f32) -> f32\n  test.op %b, %a : (f32, f32) -> ()\n} {}")
	ops[1].Erase()
	require.True(t, ops[0].Result(0).Unused())
	require.NoError(t, ir.Verify(c, ops[0].Parent()))
}

func TestBlockArguments(t *testing.T) {
	c, ops := parseBody(t, "func.func @f(%x: f32, %y: f64, %z: i1) {\n  test.op %z : (i1) -> ()\n  func.return\n}")
	body := ops[0].Body()
	body.EraseArg(1)
	require.Equal(t, 1, body.Arg(1).Index())
	require.PanicsWithValue(t, "ir: erasing a block argument that is still used", func() { body.EraseArg(1) })
	v := body.InsertArg(0, c.Index(), nil)
	require.Equal(t, []int{0, 1, 2}, []int{v.Index(), body.Arg(1).Index(), body.Arg(2).Index()})
	require.Equal(t, c.Unknown(), v.Loc())
}

// A clone prints as the original does, and shares nothing with it but values from outside.
func TestClone(t *testing.T) {
	for seed := range uint64(60) {
		c := ir.NewContext(testDialects()...)
		r := &randomIR{rand.New(rand.NewPCG(seed, 3)), c}
		m := r.module()
		text := string(ir.Print(m, ir.PrintOptions{Locations: true}))
		n := m.Clone(c, map[*ir.Value]*ir.Value{})
		require.Equal(t, text, string(ir.Print(n, ir.PrintOptions{Locations: true})), "seed %d", seed)
		for op := range m.Body().Ops() {
			op.Erase()
		}
		require.Equal(t, text, string(ir.Print(n, ir.PrintOptions{Locations: true})), "seed %d", seed)
	}
}

// The order of operations is right after any moves.
func TestOrder(t *testing.T) {
	src := ""
	for range 12 {
		src += "test.op\n"
	}
	c, ops := parseBody(t, src)
	block := ops[0].Block()
	r := rand.New(rand.NewPCG(5, 5))
	for range 500 {
		x, y := ops[r.IntN(len(ops))], ops[r.IntN(len(ops))]
		switch {
		case r.IntN(3) == 0:
			x.MoveToEnd(block)
		case x != y:
			x.MoveBefore(y)
			require.Equal(t, y, x.Next())
			require.Equal(t, x, y.Prev())
		}
		place := map[*ir.Op]int{}
		for op := range block.Ops() {
			place[op] = len(place)
		}
		require.Len(t, place, len(ops))
		require.Equal(t, place[x] < place[y], x.IsBefore(y))
	}
	require.NoError(t, ir.Verify(c, ops[0].Parent()))
	var forward, backward []*ir.Op
	for op := range block.Ops() {
		forward = append(forward, op)
	}
	for op := range block.OpsReversed() {
		backward = append([]*ir.Op{op}, backward...)
	}
	require.Equal(t, len(forward), len(backward))
	for i := range forward {
		require.Same(t, forward[i], backward[i])
	}
}

func TestSetAttr(t *testing.T) {
	c, ops := parseBody(t, "test.op {b.x, d.x = 1}\ntest.op")
	op := ops[0]
	before := op.Attrs()
	op.SetAttr("c.x", c.Int64(2))
	op.SetAttr("b.x", nil)
	op.SetAttr("d.x", c.Int64(3))
	op.SetAttr("nothing", nil)
	require.Equal(t, "test.op {c.x = 2 : i64, d.x = 3 : i64}", op.String())
	require.Len(t, before, 2, "lists that were handed out don't change")
	require.Equal(t, int64(3), op.Attrs().IntOr("d.x", 0))
	require.Equal(t, int64(7), op.Attrs().IntOr("e.x", 7))
}

func TestMoveBlocks(t *testing.T) {
	c, ops := parseBody(t, "test.loop : () -> () {\n  test.branch [^a]\n^a:\n  test.branch\n} {\n  test.op\n}")
	from, to := ops[0].Region(0), ops[0].Region(1)
	to.First().First().Erase()
	require.Len(t, to.Blocks(), 1)
	to.TakeBlocks(from)
	require.Empty(t, from.Blocks())
	require.Len(t, to.Blocks(), 3)
	require.Same(t, to, to.Blocks()[2].Region())
	require.Error(t, ir.Verify(c, ops[0].Parent()), "a region of one block has three")
}

func TestInterp(t *testing.T) {
	double := ir.Define("eval", ir.OpDef{Name: "double", Operands: []ir.OperandDef{{Name: "x", Type: anyType}}, Results: []ir.ResultDef{{Name: "y", Type: anyType}},
		Eval: func(_ *ir.Frame, _ *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
			x := in[0].(*ir.Tensor)
			return []ir.Datum{&ir.Tensor{Elem: x.Elem, Data: []float64{2 * x.Data[0]}}}, nil
		}})
	c := ir.NewContext(append(testDialects(), &ir.Dialect{Name: "eval", Ops: []*ir.OpDef{double}})...)
	m, err := ir.Parse(c, "eval.mlir", []byte("func.func @f(%x: f32) -> f32 {\n  %y = eval.double %x : (f32) -> f32\n  func.return %y : (f32) -> ()\n}\nfunc.func @g() {\n  test.op\n  func.return\n}"))
	require.NoError(t, err)
	seen := 0
	in := &ir.Interp{Ctx: c, Module: m, After: func(*ir.Op, []ir.Datum) error { seen++; return nil }}
	out, err := in.Call("f", &ir.Tensor{Elem: c.F32(), Data: []float64{21}})
	require.NoError(t, err)
	require.Equal(t, 42.0, out[0].(*ir.Tensor).Data[0])
	require.Equal(t, 1, seen)
	_, err = in.Call("g")
	require.EqualError(t, err, "eval.mlir:6:3: error: test.op has no reference evaluation")
	_, err = in.Call("h")
	require.EqualError(t, err, `no function "h"`)
	_, err = in.Call("f")
	require.EqualError(t, err, "0 arguments for a block of 1")
}

func TestParseAlone(t *testing.T) {
	c := ir.NewContext()
	a, err := ir.ParseAttr(c, `{a = [1, "x"], b = #d.e<f32, n = 2.5>}`)
	require.NoError(t, err)
	require.Equal(t, `{a = [1 : i64, "x"], b = #d.e<f32, n = 2.5e+00 : f64>}`, a.String())
	typ, err := ir.ParseType(c, "memref<2x?xf32, strided<[?, 1], offset: 3>>")
	require.NoError(t, err)
	require.Equal(t, "memref<2x?xf32, strided<[?, 1], offset: 3>>", typ.String())
	_, err = ir.ParseAttr(c, "1 2")
	require.ErrorContains(t, err, `expected the end, found "2"`)
	_, err = ir.ParseType(c, "f33")
	require.ErrorContains(t, err, `expected a type, found "f33"`)
}
