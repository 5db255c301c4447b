package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/ir"
)

var f32Type = ir.Constraint{Doc: "32-bit float", OK: func(t ir.Type) bool { return t.String() == "f32" }}

// strictDialect has operations with every kind of rule.
func strictDialect() *ir.Dialect {
	define := func(d ir.OpDef) *ir.OpDef { return ir.Define("strict", d) }
	return &ir.Dialect{
		Name: "strict",
		Ops: []*ir.OpDef{
			define(ir.OpDef{Name: "add", Operands: []ir.OperandDef{{Name: "x", Type: f32Type}, {Name: "y", Type: f32Type}},
				Results: []ir.ResultDef{{Name: "z", Type: f32Type}}, Traits: ir.Pure | ir.SameTypes}),
			define(ir.OpDef{Name: "same", Operands: []ir.OperandDef{{Name: "xs", Type: anyType, Arity: ir.Variadic}}, Traits: ir.SameTypes}),
			define(ir.OpDef{Name: "optional", Operands: []ir.OperandDef{{Name: "x", Type: anyType}, {Name: "y", Type: anyType, Arity: ir.Optional}}}),
			define(ir.OpDef{Name: "groups", Operands: []ir.OperandDef{{Name: "xs", Type: anyType, Arity: ir.Variadic}, {Name: "y", Type: anyType, Arity: ir.Optional}}, Traits: ir.SegmentedOperand}),
			define(ir.OpDef{Name: "attrs", Attrs: []ir.AttrDef{{Name: "axis", Kind: ir.I64Kind}, {Name: "eps", Kind: ir.F64Kind, Optional: true}, {Name: "to", Kind: ir.SymbolKind, Optional: true}}}),
			define(ir.OpDef{Name: "one_block", Regions: []ir.RegionDef{{Name: "body"}}}),
			define(ir.OpDef{Name: "isolated", Regions: []ir.RegionDef{{Name: "body"}}, Traits: ir.Isolated | ir.NoTerminator}),
			define(ir.OpDef{Name: "infer", Operands: []ir.OperandDef{{Name: "x", Type: anyType}}, Results: []ir.ResultDef{{Name: "y", Type: anyType}},
				Infer: func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
					if in.Operands[0].Type() == c.I1() {
						return nil, fmt.Errorf("no truth values")
					}
					return []ir.Type{in.Operands[0].Type()}, nil
				}}),
			define(ir.OpDef{Name: "checked", Operands: []ir.OperandDef{{Name: "x", Type: f32Type}}, Verify: func(op *ir.Op) error { return fmt.Errorf("never right") }}),
			define(ir.OpDef{Name: "end", Traits: ir.Terminator}),
			define(ir.OpDef{Name: "jump", Traits: ir.Terminator}),
		},
		Types: []ir.TypeDef{{Name: "even", Verify: func(t *ir.DialectType) error {
			if len(t.Params)%2 != 0 {
				return fmt.Errorf("odd number of parameters")
			}
			return nil
		}}},
		Attrs: []ir.AttributeDef{{Name: "known"}},
	}
}

func TestVerify(t *testing.T) {
	values := "%f = test.op : () -> f32\n%d = test.op : () -> f64\n"
	for _, tc := range []struct {
		name, src string
		want      []string
	}{
		{"right", values + "%x = strict.add %f, %f {my.note} : (f32, f32) -> f32", nil},
		{"constraint", values + "%x = strict.add %f, %d : (f32, f64) -> f32", []string{
			"3:6: error: strict.add: operand 1 (y) must be a 32-bit float, is f64",
			"3:6: error: strict.add: operand 1 has type f64; all operands and results must have one type, here f32"}},
		{"arity", values + "%x = strict.add %f : (f32) -> f32", []string{"3:6: error: strict.add: expected 2 operands, found 1"}},
		{"results", values + "strict.add %f, %f : (f32, f32) -> ()", []string{"3:1: error: strict.add: expected 1 results, found 0"}},
		{"no operands", values + "strict.attrs %f {axis = 1} : (f32) -> ()", []string{"3:1: error: strict.attrs: expected no operands, found 1"}},
		{"optional", values + "strict.optional %f, %f, %f : (f32, f32, f32) -> ()", []string{"3:1: error: strict.optional: expected 1 or 2 operands, found 3"}},
		{"optional left out", values + "strict.optional %f : (f32) -> ()", nil},
		{"groups", values + "strict.groups %f, %d {operandSegmentSizes = array<i32: 1, 1>} : (f32, f64) -> ()", nil},
		{"groups count", values + "strict.groups %f, %d {operandSegmentSizes = array<i32: 2, 1>} : (f32, f64) -> ()",
			[]string{"3:1: error: strict.groups: operandSegmentSizes counts 3 operands, there are 2"}},
		{"groups missing", values + "strict.groups %f : (f32) -> ()",
			[]string{"3:1: error: strict.groups: attribute operandSegmentSizes must be array<i32: ...> with 2 numbers, one for each group of operands"}},
		{"groups optional", values + "strict.groups %f, %f {operandSegmentSizes = array<i32: 0, 2>} : (f32, f32) -> ()",
			[]string{"3:1: error: strict.groups: operandSegmentSizes says 2 for operand y"}},
		{"missing attribute", "strict.attrs", []string{"1:1: error: strict.attrs: attribute axis is missing"}},
		{"attribute kind", "strict.attrs {axis = 1.0}", []string{"1:1: error: strict.attrs: attribute axis must be a 64-bit integer, is 1.0e+00 : f64"}},
		{"unknown attribute", "strict.attrs {axis = 1, epsilon = 1.0, eps_ = 1}", []string{
			"1:1: error: strict.attrs: unknown attribute eps_; did you mean eps", "1:1: error: strict.attrs: unknown attribute epsilon"}},
		{"symbol", "test.global @g {type = f32}\nstrict.attrs {axis = 1, to = @g}", nil},
		{"no symbol", "test.global @gg {type = f32}\nstrict.attrs {axis = 1, to = @g}", []string{"2:1: error: strict.attrs: there is no symbol @g; did you mean gg?"}},
		{"outer symbol", "test.global @g {type = f32}\nbuiltin.module {\n  strict.attrs {axis = 1, to = @g}\n}", nil},
		{"nested symbol", "builtin.module @m {\n  test.global @g {type = f32}\n}\nstrict.attrs {axis = 1, to = @m::@g}\nstrict.attrs {axis = 1, to = @m::@h}",
			[]string{"5:1: error: strict.attrs: there is no @m::@h: no such symbol in @m"}},
		{"symbol twice", "test.global @g {type = f32}\ntest.global @g {type = f32}", []string{"2:1: error: test.global: symbol @g is defined twice"}},
		{"terminator missing", "strict.one_block {\n  test.op\n}", []string{"2:3: error: test.op: is the last of its block, where strict.one_block needs a terminator"}},
		{"terminator of empty", "strict.one_block {\n^a:\n}", []string{"1:1: error: strict.one_block: a block without a terminator: it is empty"}},
		{"terminator early", "strict.one_block {\n  strict.end\n  strict.end\n}", []string{"2:3: error: strict.end: is a terminator, but not the last of its block"}},
		{"blocks", `"strict.one_block"() ({}) : () -> ()`, []string{"1:1: error: strict.one_block: region 0 (body) must have one block, has 0"}},
		{"successor", "test.loop : () -> () {\n  test.op [^a]\n^a:\n} {}", []string{"2:3: error: test.op: has successors but is no terminator"}},
		{"isolated", "%f = test.op : () -> f32\n\"test.loop\"() ({\n  test.op %f : (f32) -> ()\n}, {\n^a:\n}) : () -> ()", nil},
		{"before definition", "test.op %f : (f32) -> ()\n%f = test.op : () -> f32", []string{"1:1: error: test.op: operand 0, %0, is used before it is defined, or where it may not have been"}},
		{"own result", "%f = test.op %f : (f32) -> f32", []string{"1:6: error: test.op: operand 0, %0, is used before it is defined, or where it may not have been"}},
		{"not dominated", "test.loop : () -> () {\n  test.branch [^a, ^b]\n^a:\n  %x = test.op : () -> f32\n  test.branch [^c]\n^b:\n  test.branch [^c]\n^c:\n  test.op %x : (f32) -> ()\n} {\n^x:\n}",
			[]string{"9:3: error: test.op: operand 0, %0, is used before it is defined, or where it may not have been"}},
		{"dominated out of order", "test.loop : () -> () {\n  test.branch [^a]\n^b:\n  test.op %x : (f32) -> ()\n  test.branch\n^a:\n  %x = test.op : () -> f32\n  test.branch [^b]\n} {\n^x:\n}", nil},
		{"loop dominates", "test.loop : () -> () {\n  %x = test.op : () -> f32\n  test.branch [^a]\n^a:\n  test.op %x : (f32) -> ()\n  test.branch [^a, ^b]\n^b:\n  test.op %x : (f32) -> ()\n} {\n^x:\n}", nil},
		{"unreachable", "test.loop : () -> () {\n  test.branch\n^a:\n  test.op %x : (f32) -> ()\n  test.branch\n^b:\n  %x = test.op : () -> f32\n  test.branch\n} {\n^x:\n}", nil},
		{"infer", values + "%x = strict.infer %f : (f32) -> f64", []string{"3:6: error: strict.infer: result 0 has type f64, its operands and attributes give f32"}},
		{"infer fails", "%b = test.op : () -> i1\n%x = strict.infer %b : (i1) -> i1", []string{"2:6: error: strict.infer: no truth values"}},
		{"own check", values + "strict.checked %f : (f32) -> ()", []string{"3:1: error: strict.checked: never right"}},
		{"own check last", values + "strict.checked %d : (f64) -> ()", []string{"3:1: error: strict.checked: operand 0 (x) must be a 32-bit float, is f64"}},
		{"dialect type", "test.op : () -> (!strict.evn, tensor<2x!strict.even<1 : i64>>)", []string{
			"1:1: error: test.op: dialect strict has no type evn; did you mean even?",
			"1:1: error: test.op: !strict.even<1 : i64>: odd number of parameters"}},
		{"dialect attribute", "test.op {test.a = [#strict.known], test.b = {x = #strict.unknown<f32>}, test.c = #none.x}", []string{
			"1:1: error: test.op: attribute test.b: dialect strict has no attribute unknown; did you mean known?",
			"1:1: error: test.op: attribute test.c: unknown dialect none of attribute #none.x"}},
		{"function", `"func.func"() <{sym_name = "f", function_type = (f32) -> ()}> ({` + "\n^a(%x: f64):\n  func.return\n}) : () -> ()",
			[]string{"1:1: error: func.func: input 0 has type f32, the body's argument f64"}},
		{"all errors", "strict.attrs\nstrict.attrs\nfunc.func @f() {\n  strict.attrs\n  func.return\n}", []string{"1:1", "2:1", "4:3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ir.NewContext(append(testDialects(), strictDialect())...)
			m, err := ir.Parse(c, "f.mlir", []byte(tc.src))
			require.NoError(t, err)
			err = ir.Verify(c, m)
			if len(tc.want) == 0 {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			got := strings.Split(err.Error(), "\n")
			require.Len(t, got, len(tc.want), "%v", err)
			for i, w := range tc.want {
				require.Contains(t, got[i], w)
			}
		})
	}
}

// A value from outside of an isolated operation can't be written, but can be built.
func TestVerifyIsolation(t *testing.T) {
	c := ir.NewContext(append(testDialects(), strictDialect())...)
	m, err := ir.Parse(c, "f.mlir", []byte("%f = test.op : () -> f32\nstrict.isolated {\n  test.op\n}"))
	require.NoError(t, err)
	outside, isolated := m.Body().First(), m.Body().Last()
	isolated.Body().First().SetOperands([]*ir.Value{outside.Result(0)})
	require.ErrorContains(t, ir.Verify(c, m),
		"3:3: error: test.op: operand 0 comes from outside of strict.isolated, whose regions may not use values from outside")
}

// Operations that were unlinked but still use or define something are found.
func TestVerifyDetached(t *testing.T) {
	c := ir.NewContext(testDialects()...)
	m, err := ir.Parse(c, "f.mlir", []byte("%f = test.op : () -> f32\ntest.op %f : (f32) -> ()"))
	require.NoError(t, err)
	def, user := m.Body().First(), m.Body().Last()
	user.Remove()
	require.ErrorContains(t, ir.Verify(c, m), "result 0 is used by test.op, which is in no block")
	m.Body().Append(user)
	require.NoError(t, ir.Verify(c, m))
	def.Remove()
	require.ErrorContains(t, ir.Verify(c, m), "operand 0 is a result of test.op, which is in no block")
}

func TestDiagnostics(t *testing.T) {
	c := ir.NewContext()
	inner, mid, outer := c.FileLoc("a.blu", 1, 2), c.FileLoc("a.blu", 10, 3), c.FileLoc("a.blu", 20, 4)
	loc := c.CallSite(inner, c.CallSite(mid, outer))
	err := (&ir.Error{Loc: loc, Msg: "bad"}).WithNote(c.FileLoc("b.blu", 5, 6), "declared here")
	l := ir.Diagnostics(fmt.Errorf("pass cse: %w", err))
	require.Len(t, l, 1)
	require.Equal(t, "a.blu:1:2: error: pass cse: bad\na.blu:10:3: note: called from here\na.blu:20:4: note: called from here\nb.blu:5:6: note: declared here", l[0].String())
	l = ir.Diagnostics(ir.Errors{err, err})
	require.Len(t, l, 2)
	require.Equal(t, "error: no place", ir.Diagnostics(fmt.Errorf("no place"))[0].String())
	require.Empty(t, ir.Diagnostics(nil))
}

func TestGroups(t *testing.T) {
	c := ir.NewContext(append(testDialects(), strictDialect())...)
	m, err := ir.Parse(c, "f.mlir", []byte("%f:3 = test.op : () -> (f32, f32, f32)\nstrict.groups %f#0, %f#1, %f#2 {operandSegmentSizes = array<i32: 2, 1>} : (f32, f32, f32) -> ()"))
	require.NoError(t, err)
	op := m.Body().Last()
	require.Equal(t, op.Operands()[:2], op.OperandGroup(0))
	require.Equal(t, op.Operands()[2:], op.OperandGroup(1))
	require.Len(t, m.Body().First().ResultGroup(0), 3)
}
