package dialects_test

import (
	"math"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// The tables register together: no operation twice, every name known.
func TestAll(t *testing.T) {
	c := dialects.NewContext()
	for _, d := range dialects.All() {
		require.NotEmpty(t, d.Summary, d.Name)
		for _, def := range d.Ops {
			require.Same(t, def, c.LookupOp(def.FullName()))
			require.NotEmpty(t, def.Summary, def.FullName())
		}
	}
}

const program = `
func.func private @fib(%n: index) -> i64 {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %a = arith.constant {value = 0 : i64} : () -> i64
  %b = arith.constant {value = 1 : i64} : () -> i64
  %r:2 = scf.for %zero, %n, %one, %a, %b : (index, index, index, i64, i64) -> (i64, i64) (%i: index, %x: i64, %y: i64) {
    %s = arith.addi %x, %y : (i64, i64) -> i64
    scf.yield %y, %s : (i64, i64) -> ()
  }
  func.return %r#0 : (i64) -> ()
}
func.func @main(%n: index, %x: f32) -> (i64, f32) {
  %f = func.call %n {callee = @fib} : (index) -> i64
  %zero = arith.constant {value = 0.0 : f32} : () -> f32
  %neg = arith.cmpf %x, %zero {predicate = 4 : i64} : (f32, f32) -> i1
  %abs = scf.if %neg : (i1) -> f32 {
    %m = arith.negf %x : (f32) -> f32
    scf.yield %m : (f32) -> ()
  } {
    scf.yield %x : (f32) -> ()
  }
  func.return %f, %abs : (i64, f32) -> ()
}
`

func parse(t *testing.T, c *ir.Context, src string) *ir.Op {
	t.Helper()
	m, err := ir.Parse(c, "test.mlir", []byte(src))
	require.NoError(t, err)
	return m
}

func number(c *ir.Context, typ ir.Type, v float64) *ir.Tensor {
	return &ir.Tensor{Elem: typ, Data: []float64{v}}
}

func TestEvaluate(t *testing.T) {
	c := dialects.NewContext()
	m := parse(t, c, program)
	require.NoError(t, ir.Verify(c, m))
	in := &ir.Interp{Ctx: c, Module: m}
	out, err := in.Call("main", number(c, c.Index(), 10), number(c, c.F32(), -2.5))
	require.NoError(t, err)
	require.Equal(t, 55.0, out[0].(*ir.Tensor).Data[0])
	require.Equal(t, 2.5, out[1].(*ir.Tensor).Data[0])
}

// Each integer operation against values worked out by hand, evaluated and folded.
func TestIntegers(t *testing.T) {
	for _, tc := range []struct {
		op, typ    string
		x, y, want int64
	}{
		{"addi", "i8", 127, 1, -128}, {"addi", "i64", 1 << 40, 1, 1<<40 + 1}, {"addi", "i1", 1, 1, 0},
		{"subi", "i8", -128, 1, 127}, {"muli", "i16", 300, 300, 24464},
		{"divsi", "i32", -7, 2, -3}, {"divsi", "i32", 7, -2, -3}, {"remsi", "i32", -7, 2, -1}, {"remsi", "i32", 7, -2, 1},
		{"ceildivsi", "index", 7, 2, 4}, {"ceildivsi", "index", -7, 2, -3}, {"ceildivsi", "index", 6, 2, 3},
		{"floordivsi", "i32", -7, 2, -4}, {"floordivsi", "i32", 7, 2, 3}, {"floordivsi", "i32", 7, -2, -4}, {"floordivsi", "i32", -6, 2, -3},
		{"minsi", "i32", -1, 1, -1}, {"maxsi", "i32", -1, 1, 1}, {"andi", "i8", 12, 10, 8}, {"ori", "i8", 12, 10, 14}, {"xori", "i8", 12, 10, 6},
	} {
		t.Run(tc.op, func(t *testing.T) {
			c := dialects.NewContext()
			typ, err := ir.ParseType(c, tc.typ)
			require.NoError(t, err)
			b := ir.NewBuilder(c, nil)
			def := c.LookupOp("arith." + tc.op)
			x := b.Create(c.LookupOp("arith.constant"), nil, ir.NamedAttr{Name: "value", Value: c.Integer(tc.x, typ)})
			y := b.Create(c.LookupOp("arith.constant"), nil, ir.NamedAttr{Name: "value", Value: c.Integer(tc.y, typ)})
			op := b.Create(def, []*ir.Value{x.Result(0), y.Result(0)})
			out, err := def.Eval(nil, op, []ir.Datum{number(c, typ, float64(tc.x)), number(c, typ, float64(tc.y))})
			require.NoError(t, err)
			require.Equal(t, float64(tc.want), out[0].(*ir.Tensor).Data[0])
			folded := def.Fold(c, op, []ir.Attr{x.Attr("value"), y.Attr("value")})
			require.Equal(t, []ir.FoldResult{{Attr: c.Integer(tc.want, typ)}}, folded)
		})
	}
}

func TestDivisionByZero(t *testing.T) {
	c := dialects.NewContext()
	def := c.LookupOp("arith.divsi")
	_, err := def.Eval(nil, nil, []ir.Datum{number(c, c.I32(), 1), number(c, c.I32(), 0)})
	require.ErrorContains(t, err, "division by zero")
	require.Nil(t, def.Fold(c, nil, []ir.Attr{c.Integer(1, c.I32()), c.Integer(0, c.I32())}))
}

func TestFloats(t *testing.T) {
	c := dialects.NewContext()
	nan := math.NaN()
	for _, tc := range []struct {
		op         string
		pred       int64
		x, y, want float64
	}{
		{"maximumf", 0, 1, nan, nan}, {"minimumf", 0, nan, 1, nan}, {"divf", 0, 1, 0, math.Inf(1)}, {"subf", 0, 1, 3, -2}, {"mulf", 0, 3, 4, 12},
		{"cmpf", 1, nan, nan, 0}, {"cmpf", 13, nan, 1, 1}, {"cmpf", 6, nan, 1, 0}, {"cmpf", 6, 2, 1, 1}, {"cmpf", 4, 1, 2, 1}, {"cmpf", 3, 2, 2, 1},
	} {
		b := ir.NewBuilder(c, nil)
		def := c.LookupOp("arith." + tc.op)
		x := b.Create(c.LookupOp("arith.constant"), nil, ir.NamedAttr{Name: "value", Value: c.FloatAttr(0, c.F32())}).Result(0)
		op := b.Create(def, []*ir.Value{x, x}, ir.NamedAttr{Name: "predicate", Value: c.Int64(tc.pred)})
		out, err := def.Eval(nil, op, []ir.Datum{number(c, c.F32(), tc.x), number(c, c.F32(), tc.y)})
		require.NoError(t, err)
		got := out[0].(*ir.Tensor).Data[0]
		require.True(t, got == tc.want || math.IsNaN(got) && math.IsNaN(tc.want), "%s %v %v = %v", tc.op, tc.x, tc.y, got)
	}
}

func TestVerify(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"declaration", "func.func @f()", "1:1: error: function @f has no body and isn't private"},
		{"call count", "func.func private @f()\nfunc.func @g(%x: f32) {\n  func.call %x {callee = @f} : (f32) -> ()\n  func.return\n}", "3:3: error: func.call: @f takes 0 arguments, here are 1"},
		{"call result", "func.func private @f() -> f32\nfunc.func @g() {\n  func.call {callee = @f} : () -> f64\n  func.return\n}", "3:3: error: func.call: result 0 of @f has type f32, here it is f64"},
		{"return", "func.func @g() -> f32 {\n  func.return\n}", "2:3: error: func.return: returns (), function @g has result types (f32)"},
		{"for", "func.func @g(%i: index, %x: f32) {\n  scf.for %i, %i, %i, %x : (index, index, index, f32) -> f64 (%j: index, %y: f32) {\n    scf.yield %y : (f32) -> ()\n  }\n  func.return\n}",
			"2:3: error: scf.for: carried value 0 has type f32 before the loop, f32 in the body, f64 after it"},
		{"yield", "func.func @g(%i: index, %x: f32) {\n  scf.for %i, %i, %i, %x : (index, index, index, f32) -> f32 (%j: index, %y: f32) {\n    scf.yield\n  }\n  func.return\n}",
			"3:5: error: scf.yield: gives 0 values, scf.for has 1 results"},
		{"if", "func.func @g(%c: i1) {\n  %x = scf.if %c : (i1) -> f32 {\n    scf.yield\n  } {}\n  func.return\n}", "3:5: error: scf.yield: gives 0 values, scf.if has 1 results"},
		{"predicate", "func.func @g(%c: i32) {\n  arith.cmpi %c, %c {predicate = 9 : i64} : (i32, i32) -> i1\n  func.return\n}", "2:3: error: arith.cmpi: unknown predicate 9"},
		{"types", "func.func @g(%c: i32, %f: f32) {\n  arith.addi %c, %f : (i32, f32) -> i32\n  func.return\n}", "2:3: error: arith.addi: operand 1 (rhs) must be a signless integer or index"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := dialects.NewContext()
			require.ErrorContains(t, ir.Verify(c, parse(t, c, tc.src)), tc.want)
		})
	}
}

// Upstream's tools read and verify what we print.
func TestUpstream(t *testing.T) {
	tool, err := exec.LookPath("mlir-opt-22")
	if err != nil {
		t.Skip("mlir-opt-22 is not installed")
	}
	c := dialects.NewContext()
	m := parse(t, c, program)
	cmd := exec.Command(tool, "--allow-unregistered-dialect")
	cmd.Stdin = strings.NewReader(string(ir.Print(m, ir.PrintOptions{Generic: true, Locations: true})))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "func.func @main")
	require.Contains(t, string(out), "scf.for")
	require.Contains(t, string(out), "arith.cmpf olt")
}
