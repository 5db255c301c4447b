package ir_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"blutrain/ir"
)

var inf, nan = math.Inf(1), math.NaN()

// Whatever IR is printed, in each form, reads back as IR that prints the same text.
func TestPrintParsePrint(t *testing.T) {
	for seed := range uint64(400) {
		c := ir.NewContext(testDialects()...)
		r := &randomIR{rand.New(rand.NewPCG(seed, 1)), c}
		m := r.module()
		for _, o := range []ir.PrintOptions{{}, {Locations: true, ElideAbove: -1}, {Generic: true, ElideAbove: -1}, {Generic: true, Locations: true}} {
			text := ir.Print(m, o)
			back, err := ir.Parse(c, "again.mlir", text)
			require.NoError(t, err, "seed %d: %s", seed, text)
			again := ir.Print(back, o)
			if d := cmp.Diff(string(text), string(again)); d != "" {
				t.Fatalf("seed %d, %+v: %s\n%s", seed, o, d, text)
			}
			if o.ElideAbove < 0 && o.Locations { // nothing was lost: the other form is the same too
				o.Generic = !o.Generic
				require.Equal(t, string(ir.Print(m, o)), string(ir.Print(back, o)), "seed %d", seed)
			}
		}
	}
}

const example = `builtin.module @m attributes {blu.phase = "input"} {
  func.func private @decl(tensor<4xf32> {blu.input = "x"}, f32) -> (f32 {blu.output = "y"}, f32)
  test.global @"odd name" {type = tensor<?x2xbf16, #test.split<f16, 2 : i64, scale = 5.0e-01 : f32>>}
  func.func @f(%arg0: tensor<4xf32> {blu.state = @"grads/wte"}, %arg1: i1) -> tensor<4xf32> attributes {test.flag} {
    %0:2 = test.op %arg0, %arg1 {axis = 1 : i64, value = dense<[1.0e+00, 2.5e-01]> : tensor<2xf32>} : (tensor<4xf32>, i1) -> (tensor<4xf32>, !test.block<64x?xf32, 3 : i64>)
    %1 = test.loop %0#0 attributes {n = array<i64: 1, 2>} : (tensor<4xf32>) -> tensor<4xf32> (%arg2: index) {
      %2 = test.op %0#1, %arg2 : (!test.block<64x?xf32, 3 : i64>, index) -> memref<4x2xf32, strided<[1, ?], offset: 8>, 3 : i32>
      test.branch %2 [^bb1] : (memref<4x2xf32, strided<[1, ?], offset: 8>, 3 : i32>) -> ()
    ^bb1:
      test.branch
    } {}
    func.return %1 : (tensor<4xf32>) -> ()
  }
}
`

const exampleGeneric = `"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{arg_attrs = [{blu.input = "x"}, {}], function_type = (tensor<4xf32>, f32) -> (f32, f32), res_attrs = [{blu.output = "y"}, {}], sym_name = "decl", sym_visibility = "private"}> ({}) : () -> ()
  "test.global"() {sym_name = "odd name", type = tensor<?x2xbf16, #test.split<f16, 2 : i64, scale = 5.0e-01 : f32>>} : () -> ()
  "func.func"() <{arg_attrs = [{blu.state = @"grads/wte"}, {}], function_type = (tensor<4xf32>, i1) -> tensor<4xf32>, sym_name = "f"}> ({
  ^bb0(%arg0: tensor<4xf32>, %arg1: i1):
    %0:2 = "test.op"(%arg0, %arg1) {axis = 1 : i64, value = dense<[1.0e+00, 2.5e-01]> : tensor<2xf32>} : (tensor<4xf32>, i1) -> (tensor<4xf32>, !test.block<64x?xf32, 3 : i64>)
    %1 = "test.loop"(%0#0) ({
    ^bb0(%arg2: index):
      %2 = "test.op"(%0#1, %arg2) : (!test.block<64x?xf32, 3 : i64>, index) -> memref<4x2xf32, strided<[1, ?], offset: 8>, 3 : i32>
      "test.branch"(%2) [^bb1] : (memref<4x2xf32, strided<[1, ?], offset: 8>, 3 : i32>) -> ()
    ^bb1:
      "test.branch"() : () -> ()
    }, {
    ^bb0:
    }) {n = array<i64: 1, 2>} : (tensor<4xf32>) -> tensor<4xf32>
    "func.return"(%1) : (tensor<4xf32>) -> ()
  }) {test.flag} : () -> ()
}) {blu.phase = "input"} : () -> ()
`

func TestForms(t *testing.T) {
	c := ir.NewContext(testDialects()...)
	m, err := ir.Parse(c, "m.mlir", []byte(example))
	require.NoError(t, err)
	require.Equal(t, example, string(ir.Print(m, ir.PrintOptions{})))
	require.Equal(t, exampleGeneric, string(ir.Print(m, ir.PrintOptions{Generic: true})))
	m, err = ir.Parse(c, "m.mlir", []byte(exampleGeneric))
	require.NoError(t, err)
	require.Equal(t, example, string(ir.Print(m, ir.PrintOptions{})))
}

func TestElide(t *testing.T) {
	c := ir.NewContext(testDialects()...)
	src := "test.op {v = [dense<\"0x" + strings.Repeat("0001", 100) + "\"> : tensor<200xi8>], w = dense<1 : tensor<200xi8>}"
	src = strings.Replace(src, "dense<1 :", "dense<1> :", 1)
	m, err := ir.Parse(c, "m.mlir", []byte(src))
	require.NoError(t, err)
	require.Contains(t, string(ir.Print(m, ir.PrintOptions{})), "v = [dense_resource<__elided__> : tensor<200xi8>], w = dense<1> : tensor<200xi8>")
	require.Contains(t, string(ir.Print(m, ir.PrintOptions{ElideAbove: 200})), `dense<"0x0001`)
	require.Contains(t, string(ir.Print(m, ir.PrintOptions{ElideAbove: -1})), `dense<"0x0001`)
}

// Text without locations gets its own.
func TestOwnLocations(t *testing.T) {
	c := ir.NewContext(testDialects()...)
	m, err := ir.Parse(c, "own.mlir", []byte("// comment\n  %a = test.op : () -> f32\n  %b = \"test.op\"(%a) : (f32) -> i1 loc(\"x.blu\":7:8)\n"))
	require.NoError(t, err)
	require.Equal(t, "\"own.mlir\":2:8", m.Body().First().Loc().String())
	require.Equal(t, "\"x.blu\":7:8", m.Body().Last().Loc().String())
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"unknown op", "test.opp", "1:1: error: unknown operation test.opp; did you mean test.op"},
		{"unknown dialect", "tst.op", "1:1: error: unknown dialect tst of operation tst.op; did you mean test?"},
		{"no operation", "%x = 5", `1:6: error: expected an operation, found "5"`},
		{"undefined", "test.op %x : (f32) -> ()", "1:9: error: %x is used but never defined"},
		{"undefined in function", "%x = test.op : () -> f32\nfunc.func @f() {\n  test.op %x : (f32) -> ()\n}", "3:11: error: %x is used but never defined"},
		{"out of scope", "test.loop : () -> () { %x = test.op : () -> f32 } {}\ntest.op %x : (f32) -> ()", "2:9: error: %x is used but never defined"},
		{"twice", "%x = test.op : () -> f32\n%x = test.op : () -> f32", "2:1: error: %x is defined twice"},
		{"type of use", "%x = test.op : () -> f32\ntest.op %x : (f64) -> ()", "2:9: error: %x has type f32, the signature says f64"},
		{"type of forward use", "test.op %x : (f64) -> ()\n%x = test.op : () -> f32", "1:9: error: %x is used with type f64 but defined with type f32"},
		{"result number of forward use", "test.op %x#2 : (f32) -> ()\n%x:2 = test.op : () -> (f32, f32)", "1:9: error: %x has 2 results: there is no #2"},
		{"result number", "%x:2 = test.op : () -> (f32, f32)\ntest.op %x#2 : (f32) -> ()", "2:9: error: %x has 2 results: there is no #2"},
		{"result count", "%x:2 = test.op : () -> f32", "1:1: error: test.op has 1 results, 2 are named"},
		{"operand count", "%x = test.op : () -> f32\ntest.op %x : (f32, f32) -> ()", "2:14: error: the signature of test.op has 2 operand types for 1 operands"},
		{"signature", "test.op {a = 1} () -> ()", `1:17: error: expected an operation, found "("`},
		{"duplicate attribute", "test.op {a = 1, a = 2}", "1:17: error: attribute a is given twice"},
		{"duplicate name", "func.func @f() attributes {sym_name = \"g\"}", "1:28: error: attribute sym_name is given twice"},
		{"attribute", "test.op {a = }", `1:14: error: expected an attribute, found "}"`},
		{"type", "test.op : () -> tensr<4xf32>", `1:17: error: expected a type, found "tensr"`},
		{"wide", "test.op : () -> i65", "1:17: error: integer type i65 is wider than 64 bits"},
		{"dim", "test.op : () -> tensor<99999999999999999999xf32>", "1:24: error: dimension is too large: 99999999999999999999"},
		{"int range", "test.op {a = 256 : i8}", "1:14: error: 256 is out of the range of type i8"},
		{"negative unsigned", "test.op {a = -1 : ui8}", "1:14: error: -1 is out of the range of type ui8"},
		{"float range", "test.op {a = 1.0e300 : f32}", "1:14: error: 1.0e300 is out of the range of type f32"},
		{"float for int", "test.op {a = 1.5 : i32}", "1:14: error: 1.5 is not an integer, as type i32 wants"},
		{"int for float", "test.op {a = 1 : f32}", "1:14: error: expected a decimal point in a number of type f32, found 1"},
		{"row", "test.op {a = dense<[[1, 2], [3]]> : tensor<2x2xi8>}", "1:29: error: expected 2 entries in this row of tensor<2x2xi8>, found 1"},
		{"long row", "test.op {a = dense<[1, 2, 3]> : tensor<2xi8>}", "1:20: error: expected 2 entries in this row of tensor<2xi8>, found more"},
		{"hex", "test.op {a = dense<\"0x0102\"> : tensor<3xi8>}", "1:20: error: expected 3 bytes, one for each element or for all, found 2"},
		{"huge constant", "test.op {a = dense<1> : tensor<9999999999x9999999999xi8>}", "1:25: error: a constant has known dimensions and at most 2^40 elements, not the shape of tensor<9999999999x9999999999xi8>"},
		{"string", "test.op {a = \"x", "1:14: error: string without end"},
		{"escape", `test.op {a = "\q"}`, `1:15: error: unknown escape: expected \", \\, \n, \t or two hexadecimal digits`},
		{"end", "func.func @f() {\n  test.op\n", "3:1: error: expected an operation or '}', found the end of the file"},
		{"columns count characters", "test.op {a = \"éé\", b = %}", `1:24: error: expected an attribute, found "%"`},
		{"label", "test.loop : () -> () {\n^a:\n  test.branch [^b]\n} {}", "3:16: error: ^b is used but never defined"},
		{"label twice", "test.loop : () -> () {\n^a:\n test.op\n^a:\n} {}", "4:1: error: ^a is defined twice"},
		{"jump to entry", "test.loop : () -> () {\n^a:\n  test.branch [^a]\n} {}", "2:1: error: ^a is the first block of its region, which nothing can jump to"},
		{"unnamed arguments", "func.func @f(f32) {\n}", "1:19: error: func.func @f has a body but its arguments have no names"},
		{"location", "test.op loc(5)", `1:13: error: expected a location`},
		{"layout", "test.op : () -> memref<4xf32, strided<[1, 2]>>", "1:31: error: strided layout has 2 strides, the memref 1 dimensions"},
		{"dialect type", "test.op : () -> !block<4>", `1:18: error: expected the name of a dialect's type, as in tile.block, found "block"`},
		{"vector", "test.op : () -> vector<?xf32>", "1:17: error: dimension 0 of a vector must be a number"},
		{"deep", "test.op {a = " + strings.Repeat("[", 300), "1:270: error: nested deeper than 256 levels"},
		{"deep regions", strings.Repeat("test.loop : () -> () {", 300), "nested deeper than 256 levels"},
		{"deep types", "test.op : () -> " + strings.Repeat("tensor<", 300), "nested deeper than 256 levels"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := ir.Parse(ir.NewContext(testDialects()...), "f.mlir", []byte(tc.src))
			require.Error(t, err)
			require.IsType(t, &ir.Error{}, err)
			require.Contains(t, err.Error(), tc.want)
		})
	}
}

func TestUnregistered(t *testing.T) {
	src := "\"builtin.module\"() ({\n  %0 = \"foo.bar\"() {a} : () -> !foo.t<\"x\">\n}) : () -> ()\n"
	c := ir.NewContext(testDialects()...)
	_, err := ir.Parse(c, "f.mlir", []byte(src))
	require.ErrorContains(t, err, "2:8: error: unknown dialect foo")
	c.AllowUnregistered = true
	m, err := ir.Parse(c, "f.mlir", []byte(src))
	require.NoError(t, err)
	require.Equal(t, "builtin.module {\n  %0 = \"foo.bar\"() {a} : () -> !foo.t<\"x\">\n}\n", string(ir.Print(m, ir.PrintOptions{})))
	_, err = ir.Parse(c, "f.mlir", []byte("foo.bar"))
	require.ErrorContains(t, err, "can only be read in the generic form")
}

func TestValueName(t *testing.T) {
	c := ir.NewContext(testDialects()...)
	m, err := ir.Parse(c, "m.mlir", []byte(example))
	require.NoError(t, err)
	f := m.Body().Last()
	require.Equal(t, "%arg1", ir.ValueName(f.Body().Arg(1)))
	require.Equal(t, "%0#1", ir.ValueName(f.Body().First().Result(1)))
	require.Equal(t, "%0#1", ir.Names(f)(f.Body().First().Result(1)))
	loop := f.Body().First().Next()
	require.Equal(t, "%arg2", ir.ValueName(loop.Body().Arg(0)))
	require.Equal(t, "%2", ir.ValueName(loop.Body().First().Result(0)))
	require.Equal(t, "func.return %1 : (tensor<4xf32>) -> ()", f.Body().Last().String())
}

// bigModule is n operations in functions of a thousand, like a program.
func bigModule(n int) []byte {
	var b strings.Builder
	b.WriteString("builtin.module {\n")
	for f := range n / 1000 {
		fmt.Fprintf(&b, "  func.func @f%d(%%arg0: tensor<16x64xf32> loc(unknown), %%arg1: tensor<16x64xf32> loc(unknown)) -> tensor<16x64xf32> {\n", f)
		for i := range 999 {
			x, y := "%arg0", "%arg1"
			if i > 1 {
				x, y = fmt.Sprint("%", i-1), fmt.Sprint("%", i/2)
			}
			fmt.Fprintf(&b, "    %%%d = test.op %s, %s {axis = %d : i64} : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32> loc(\"gpt2.blu\":%d:%d)\n", i, x, y, i%3, 1000*f+i+1, i%80)
		}
		b.WriteString("    func.return %998 : (tensor<16x64xf32>) -> () loc(unknown)\n  } loc(unknown)\n")
	}
	b.WriteString("} loc(unknown)\n")
	return []byte(b.String())
}

// An operation with its result, operands, attribute and location takes at most 600 bytes.
func TestBytesPerOp(t *testing.T) {
	const n = 100_000
	src := bigModule(n)
	heap := func() int64 {
		var s runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&s)
		return int64(s.HeapAlloc)
	}
	before := heap()
	c := ir.NewContext(testDialects()...)
	m, err := ir.Parse(c, "big.mlir", src)
	require.NoError(t, err)
	perOp := (heap() - before) / n
	t.Logf("%d bytes an operation", perOp)
	require.LessOrEqual(t, perOp, int64(600))
	require.Equal(t, string(src), string(ir.Print(m, ir.PrintOptions{Locations: true})))
}

func BenchmarkParseMillion(b *testing.B) {
	src := bigModule(1_000_000)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		_, err := ir.Parse(ir.NewContext(testDialects()...), "big.mlir", src)
		require.NoError(b, err)
	}
}

func BenchmarkPrintMillion(b *testing.B) {
	src := bigModule(1_000_000)
	m, err := ir.Parse(ir.NewContext(testDialects()...), "big.mlir", src)
	require.NoError(b, err)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		require.Len(b, ir.Print(m, ir.PrintOptions{Locations: true}), len(src))
	}
}

func FuzzParse(f *testing.F) {
	f.Add(example)
	f.Add(exampleGeneric)
	for seed := range uint64(20) {
		r := &randomIR{rand.New(rand.NewPCG(seed, 2)), ir.NewContext(testDialects()...)}
		f.Add(string(ir.Print(r.module(), ir.PrintOptions{Locations: true})))
	}
	f.Fuzz(func(t *testing.T, src string) {
		c := ir.NewContext(testDialects()...)
		c.AllowUnregistered = true
		m, err := ir.Parse(c, "f.mlir", []byte(src))
		if err != nil {
			return
		}
		text := ir.Print(m, ir.PrintOptions{Locations: true, ElideAbove: -1})
		back, err := ir.Parse(c, "g.mlir", text)
		require.NoError(t, err, "%s", text)
		require.Equal(t, string(text), string(ir.Print(back, ir.PrintOptions{Locations: true, ElideAbove: -1})))
	})
}
