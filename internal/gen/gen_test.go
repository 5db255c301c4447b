package gen

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

var anyType = ir.Constraint{Doc: "any type", OK: func(ir.Type) bool { return true }}

// awkward has a part of every kind, and names that Go or the generated code wants for itself.
func awkward() *ir.Dialect {
	one := func(name string) ir.OperandDef { return ir.OperandDef{Name: name, Type: anyType} }
	some := func(name string, a ir.Arity) ir.OperandDef { return ir.OperandDef{Name: name, Type: anyType, Arity: a} }
	attrs := []ir.AttrDef{{Name: "type", Kind: ir.TypeKind}, {Name: "name", Kind: ir.StringKind, Default: "x", Optional: true}}
	for k := ir.AnyAttr; k <= ir.DenseKind; k++ {
		attrs = append(attrs, ir.AttrDef{Name: "must_" + string(rune('a'+k)), Kind: k}, ir.AttrDef{Name: "may_" + string(rune('a'+k)), Kind: k, Optional: true})
	}
	return &ir.Dialect{Name: "odd", Summary: "what is hard to generate", Ops: []*ir.OpDef{
		ir.Define("odd", ir.OpDef{Name: "names", Summary: "words that are taken", Operands: []ir.OperandDef{one("b"), one("func"), one("op"), one("result")}}),
		ir.Define("odd", ir.OpDef{Name: "attrs", Summary: "attributes", Attrs: attrs, Results: []ir.ResultDef{{Name: "y", Type: anyType}}}),
		ir.Define("odd", ir.OpDef{Name: "middle", Summary: "a group in the middle", Operands: []ir.OperandDef{one("x"), some("ys", ir.Variadic), one("z")},
			Results: []ir.ResultDef{{Name: "u", Type: anyType}, {Name: "vs", Type: anyType, Arity: ir.Variadic}}}),
		ir.Define("odd", ir.OpDef{Name: "segments", Summary: "several groups", Traits: ir.SegmentedOperand,
			Operands: []ir.OperandDef{some("xs", ir.Variadic), some("y", ir.Optional), one("z"), some("ws", ir.Variadic)}, Regions: []ir.RegionDef{{Name: "body"}}}),
	}}
}

// The generated source is valid Go against the package it is for.
func TestBuildersAreGo(t *testing.T) {
	d := awkward()
	src, err := Builders(d, "odd")
	require.NoError(t, err)
	table := "package odd\nimport \"blutrain/ir\"\nvar Names, Attrs, Middle, Segments *ir.OpDef\n"
	fset := token.NewFileSet()
	var files []*ast.File
	for name, text := range map[string]string{"odd_gen.go": string(src), "table.go": table} {
		f, err := parser.ParseFile(fset, name, text, 0)
		require.NoError(t, err)
		files = append(files, f)
	}
	_, err = (&types.Config{Importer: importer.ForCompiler(fset, "source", nil)}).Check("odd", fset, files, nil)
	require.NoError(t, err)
	for _, want := range []string{
		"func (b *Builder) Names(bValue, funcValue, opValue, result *ir.Value) NamesOp {",
		"func (op NamesOp) ResultValue() *ir.Value {",
		"func (b *Builder) Middle(x *ir.Value, ys []*ir.Value, z *ir.Value, uType ir.Type, vsTypes []ir.Type) MiddleOp {",
		"func (op SegmentsOp) Y() *ir.Value {",
		`{Name: "operandSegmentSizes", Value: b.Ctx.DenseInts(b.Ctx.I32(), sizes...)},`,
	} {
		require.Contains(t, string(src), want)
	}
}

func TestClashingNames(t *testing.T) {
	d := &ir.Dialect{Name: "odd", Ops: []*ir.OpDef{ir.Define("odd", ir.OpDef{Name: "twice",
		Operands: []ir.OperandDef{{Name: "x", Type: anyType}}, Results: []ir.ResultDef{{Name: "x", Type: anyType}}})}}
	_, err := Builders(d, "odd")
	require.EqualError(t, err, "odd.twice: two parts are called x")
	d.Ops = []*ir.OpDef{ir.Define("odd", ir.OpDef{Name: "insert"})}
	_, err = Builders(d, "odd")
	require.EqualError(t, err, "odd.insert: every builder has a Insert already")
}

func TestDocs(t *testing.T) {
	page := string(Docs(awkward()))
	for _, want := range []string{"# The `odd` dialect", "- [`odd.middle`](#oddmiddle): a group in the middle", "| operand | `ys` | any type, any number |  |",
		"| attribute | `name` | string, default x |  |", "| region | `body` | one block |  |"} {
		require.Contains(t, page, want)
	}
	require.Equal(t, len(awkward().Ops), strings.Count(page, "\n### "))
}
