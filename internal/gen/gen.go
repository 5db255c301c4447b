// Package gen writes what follows from a dialect's table: typed builders and accessors in Go, and a reference page in
// Markdown. It knows operation tables in general and no dialect in particular.
package gen

import (
	"bytes"
	"fmt"
	"go/format"
	"go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"blutrain/ir"
)

// Builders is the Go source with the builder methods and op wrappers of a dialect, for the package that holds its table
// under the names of its operations (layernorm_grad is LayernormGrad).
//
// A method takes operands, then attributes, in the order of the table, then the result types that can't be inferred. An
// optional attribute without a default is an ir.Attr, nil when absent. It returns the only result, or the
// operation where there are none or several, and where regions are to be filled.
func Builders(d *ir.Dialect, pkg string) ([]byte, error) {
	w := &writer{}
	w.line("// Code generated from the table of the %s dialect; DO NOT EDIT.", d.Name)
	w.line("")
	w.line("package %s", pkg)
	w.line("")
	w.line("import %q", "blutrain/ir")
	w.line("")
	w.line("// Builder makes operations of the %s dialect at an insertion point. Operands that don't fit are a programming error", d.Name)
	w.line("// and panic; TryCreate says why instead.")
	w.line("type Builder struct{ *ir.Builder }")
	for _, def := range d.Ops {
		o, err := newOp(def)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", def.FullName(), err)
		}
		o.wrapper(w)
		o.method(w)
	}
	src, err := format.Source(w.Bytes())
	if err != nil {
		return nil, fmt.Errorf("dialect %s: generated source: %w", d.Name, err)
	}
	return src, nil
}

type writer struct{ bytes.Buffer }

func (w *writer) line(text string, args ...any) { fmt.Fprintf(w, text+"\n", args...) }

// op is a definition with the Go names of its parts.
type op struct {
	*ir.OpDef
	goName                   string
	operands, attrs, results []name
}

// name is how a part is called: as an accessor and as an argument.
type name struct{ accessor, arg string }

func newOp(def *ir.OpDef) (*op, error) {
	o := &op{OpDef: def, goName: camel(def.Name)}
	if isBuilders(o.goName) {
		return nil, fmt.Errorf("every builder has a %s already", o.goName)
	}
	accessors, args := map[string]bool{}, map[string]bool{}
	add := func(n, suffix string, to *[]name) error {
		nm := name{camel(n), lowerCamel(n)}
		if shadows(nm.accessor) {
			nm.accessor += suffix
		}
		if token.IsKeyword(nm.arg) || slices.Contains(localNames, nm.arg) {
			nm.arg += suffix
		}
		if accessors[nm.accessor] || args[nm.arg] {
			return fmt.Errorf("two parts are called %s", n)
		}
		accessors[nm.accessor], args[nm.arg] = true, true
		*to = append(*to, nm)
		return nil
	}
	for _, d := range def.Operands {
		if err := add(d.Name, "Value", &o.operands); err != nil {
			return nil, err
		}
	}
	for _, d := range def.Attrs {
		if err := add(d.Name, "Attr", &o.attrs); err != nil {
			return nil, err
		}
	}
	for _, d := range def.Results {
		if err := add(d.Name, "Result", &o.results); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// localNames is what generated methods call things themselves.
var localNames = []string{"b", "ir", "op", "attrs", "operands", "results", "sizes"}

// shadows reports whether an accessor would hide a method of every operation, or the operation itself.
func shadows(accessor string) bool {
	_, ok := reflect.TypeFor[*ir.Op]().MethodByName(accessor)
	return ok || accessor == "Op"
}

// isBuilders reports whether a name is taken by what every builder has.
func isBuilders(name string) bool {
	_, method := reflect.TypeFor[*ir.Builder]().MethodByName(name)
	_, field := reflect.TypeFor[ir.Builder]().FieldByName(name)
	return method || field || name == "Builder"
}

// camel is LayernormGrad for layernorm_grad.
func camel(s string) string {
	var b strings.Builder
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return r == '_' || r == '.' }) {
		b.WriteString(strings.ToUpper(part[:1]) + part[1:])
	}
	return b.String()
}

func lowerCamel(s string) string {
	c := camel(s)
	return strings.ToLower(c[:1]) + c[1:]
}

// wrapper writes the type of the operation with accessors for all its parts.
func (o *op) wrapper(w *writer) {
	w.line("")
	w.line("// %sOp is a %s: %s.", o.goName, o.FullName(), o.Summary)
	w.line("type %sOp struct{ *ir.Op }", o.goName)
	for i, d := range o.Operands {
		o.valueAccessor(w, "Operand", o.operands[i].accessor, d.Name, i, arities(o.Operands, func(d ir.OperandDef) ir.Arity { return d.Arity }))
	}
	for i, d := range o.Attrs {
		o.attrAccessor(w, o.attrs[i].accessor, d)
	}
	for i, d := range o.Results {
		o.valueAccessor(w, "Result", o.results[i].accessor, d.Name, i, arities(o.Results, func(d ir.ResultDef) ir.Arity { return d.Arity }))
	}
}

func arities[D any](defs []D, of func(D) ir.Arity) []ir.Arity {
	out := make([]ir.Arity, len(defs))
	for i, d := range defs {
		out[i] = of(d)
	}
	return out
}

// valueAccessor writes the accessor of the i-th operand or result. Up to the first group of variable size its place is
// known, behind it the operation is asked.
func (o *op) valueAccessor(w *writer, kind, accessor, part string, i int, arity []ir.Arity) {
	w.line("")
	w.line("// %s is the %s %q.", accessor, strings.ToLower(kind), part)
	w.line("func (op %sOp) %s() %s {", o.goName, accessor, valueType(arity[i]))
	group := fmt.Sprintf("op.%sGroup(%d)", kind, i)
	switch {
	case arity[i] == ir.Variadic:
		w.line("return %s", group)
	case arity[i] == ir.Optional:
		w.line("if vs := %s; len(vs) > 0 { return vs[0] }", group)
		w.line("return nil")
	case slices.ContainsFunc(arity[:i], func(a ir.Arity) bool { return a != ir.One }):
		w.line("return %s[0]", group)
	default:
		w.line("return op.%s(%d)", kind, i)
	}
	w.line("}")
}

func valueType(a ir.Arity) string {
	if a == ir.Variadic {
		return "[]*ir.Value"
	}
	return "*ir.Value"
}

// kind says how an attribute looks in Go.
type kind struct{ goType, make, read string }

// kinds by attribute: %s stands for the argument, %q for the attribute's name.
var kinds = map[ir.AttrKind]kind{
	ir.AnyAttr:    {"ir.Attr", "%s", "op.Attr(%q)"},
	ir.I64Kind:    {"int64", "b.Ctx.Int64(%s)", "op.Attr(%q).(*ir.IntegerAttr).Value"},
	ir.I32Kind:    {"int32", "b.Ctx.Integer(int64(%s), b.Ctx.I32())", "int32(op.Attr(%q).(*ir.IntegerAttr).Value)"},
	ir.BoolKind:   {"bool", "b.Ctx.Bool(%s)", "op.Attrs().Bool(%q)"},
	ir.F64Kind:    {"float64", "b.Ctx.FloatAttr(%s, b.Ctx.F64())", "op.Attr(%q).(*ir.FloatAttr).Value"},
	ir.StringKind: {"string", "b.Ctx.String(%s)", "op.Attr(%q).(*ir.StringAttr).Value"},
	ir.TypeKind:   {"ir.Type", "b.Ctx.TypeAttr(%s)", "op.Attr(%q).(*ir.TypeAttr).Type"},
	ir.SymbolKind: {"string", "b.Ctx.Symbol(%s)", "op.Attr(%q).(*ir.SymbolRefAttr).Root()"},
	ir.I64sKind:   {"[]int64", "b.Ctx.I64s(%s...)", "op.Attr(%q).(*ir.DenseArrayAttr).Ints"},
	ir.ArrayKind:  {"*ir.ArrayAttr", "%s", "op.Attr(%q).(*ir.ArrayAttr)"},
	ir.DictKind:   {"*ir.DictAttr", "%s", "op.Attr(%q).(*ir.DictAttr)"},
	ir.UnitKind:   {"bool", "", "op.Attrs().Bool(%q)"},
	ir.DenseKind:  {"ir.Attr", "%s", "op.Attr(%q)"},
}

// optional reports whether the attribute may be absent without meaning anything.
func optional(d ir.AttrDef) bool {
	return d.Optional && d.Default == nil && d.Kind != ir.UnitKind && d.Kind != ir.AnyAttr && d.Kind != ir.DenseKind
}

// attrAccessor writes the accessor of an attribute. An optional one without default also tells whether it is there.
func (o *op) attrAccessor(w *writer, accessor string, d ir.AttrDef) {
	k := kinds[d.Kind]
	w.line("")
	w.line("// %s is the attribute %q%s.", accessor, d.Name, docOf(d.Doc))
	if optional(d) {
		w.line("func (op %sOp) %s() (value %s, ok bool) {", o.goName, accessor, k.goType)
		w.line("if op.Attr(%q) == nil { return value, false }", d.Name)
		w.line("return %s, true", fmt.Sprintf(k.read, d.Name))
		w.line("}")
		return
	}
	w.line("func (op %sOp) %s() %s {", o.goName, accessor, k.goType)
	if d.Default != nil {
		w.line("if op.Attr(%q) == nil { return %s }", d.Name, literal(d.Default))
	}
	w.line("return %s", fmt.Sprintf(k.read, d.Name))
	w.line("}")
}

func docOf(doc string) string {
	if doc == "" {
		return ""
	}
	return ": " + doc
}

// literal is a default as a Go expression.
func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []int64:
		return fmt.Sprintf("%#v", v)
	}
	return fmt.Sprint(v)
}

// method writes the builder's method.
func (o *op) method(w *writer) {
	given := o.givenResults()
	w.line("")
	w.line("// %s makes a %s: %s.", o.goName, o.FullName(), o.Summary)
	w.line("func (b *Builder) %s(%s) %s {", o.goName, o.params(), o.returnType())
	operands := o.operandsExpr(w)
	attrs := o.attrsExpr(w)
	switch {
	case given:
		w.line("op := b.CreateState(%s, ir.OpState{Operands: %s, Attrs: %s, Results: %s, Regions: %d})", o.goName, operands, attrs, o.resultsExpr(w), len(o.Regions))
	case o.Infer == nil:
		w.line("op := b.CreateState(%s, ir.OpState{Operands: %s, Attrs: %s, Regions: %d})", o.goName, operands, attrs, len(o.Regions))
	default:
		w.line("op := b.Create(%s, %s, %s...)", o.goName, operands, attrs)
	}
	if o.returnsOp() {
		w.line("return %sOp{op}", o.goName)
	} else {
		w.line("return op.Result(0)")
	}
	w.line("}")
}

// params is the parameter list of the builder's method, neighbours of one type grouped.
func (o *op) params() string {
	var names, types []string
	add := func(name, typ string) { names, types = append(names, name), append(types, typ) }
	for i, d := range o.Operands {
		add(o.operands[i].arg, valueType(d.Arity))
	}
	for i, d := range o.Attrs {
		if optional(d) {
			add(o.attrs[i].arg, "ir.Attr")
		} else {
			add(o.attrs[i].arg, kinds[d.Kind].goType)
		}
	}
	for i, d := range o.Results {
		switch {
		case !o.givenResults():
		case d.Arity == ir.Variadic:
			add(o.results[i].arg+"Types", "[]ir.Type")
		default:
			add(o.results[i].arg+"Type", "ir.Type")
		}
	}
	var list strings.Builder
	for i, n := range names {
		list.WriteString(n)
		if i+1 == len(names) || types[i+1] != types[i] {
			list.WriteString(" " + types[i])
		}
		if i+1 < len(names) {
			list.WriteString(", ")
		}
	}
	return list.String()
}

// givenResults reports whether the caller says the result types.
func (o *op) givenResults() bool { return o.Infer == nil && len(o.Results) > 0 }

// returnsOp reports whether the method returns the operation rather than its only result.
func (o *op) returnsOp() bool {
	return len(o.Results) != 1 || len(o.Regions) > 0 || o.Results[0].Arity != ir.One
}

func (o *op) returnType() string {
	if o.returnsOp() {
		return o.goName + "Op"
	}
	return "*ir.Value"
}

// operandsExpr is the list of operand values; groups of variable size need statements, and segments an attribute.
func (o *op) operandsExpr(w *writer) string {
	if len(o.Operands) == 0 {
		return "nil"
	}
	if len(o.Operands) == 1 && o.Operands[0].Arity == ir.Variadic {
		return o.operands[0].arg
	}
	simple := true
	var args []string
	for i, d := range o.Operands {
		simple = simple && d.Arity == ir.One
		args = append(args, o.operands[i].arg)
	}
	if simple {
		return "[]*ir.Value{" + strings.Join(args, ", ") + "}"
	}
	w.line("var operands []*ir.Value")
	segmented := o.Traits&ir.SegmentedOperand != 0
	if segmented {
		w.line("var sizes []int64")
	}
	for i, d := range o.Operands {
		w.line("%s", map[ir.Arity]string{
			ir.One:      fmt.Sprintf("operands = append(operands, %s)", args[i]),
			ir.Optional: fmt.Sprintf("if %s != nil { operands = append(operands, %s) }", args[i], args[i]),
			ir.Variadic: fmt.Sprintf("operands = append(operands, %s...)", args[i]),
		}[d.Arity])
		if segmented {
			w.line("sizes = append(sizes, int64(len(operands))%s)", sumOfPrevious(i))
		}
	}
	return "operands"
}

// sumOfPrevious subtracts the sizes of the groups before the i-th.
func sumOfPrevious(i int) string {
	s := ""
	for k := range i {
		s += fmt.Sprintf(" - sizes[%d]", k)
	}
	return s
}

// attrsExpr is the list of attributes; optional ones need statements.
func (o *op) attrsExpr(w *writer) string {
	segmented := o.Traits&ir.SegmentedOperand != 0
	if len(o.Attrs) == 0 && !segmented {
		return "nil"
	}
	w.line("attrs := []ir.NamedAttr{")
	for i, d := range o.Attrs {
		if !optional(d) && d.Kind != ir.UnitKind && !mayBeNil(d) {
			w.line("{Name: %q, Value: %s},", d.Name, fmt.Sprintf(kinds[d.Kind].make, o.attrs[i].arg))
		}
	}
	if segmented {
		w.line("{Name: \"operandSegmentSizes\", Value: b.Ctx.DenseInts(b.Ctx.I32(), sizes...)},")
	}
	w.line("}")
	for i, d := range o.Attrs {
		switch {
		case d.Kind == ir.UnitKind:
			w.line("if %s { attrs = append(attrs, ir.NamedAttr{Name: %q, Value: b.Ctx.Unit()}) }", o.attrs[i].arg, d.Name)
		case optional(d) || mayBeNil(d):
			w.line("if %s != nil { attrs = append(attrs, ir.NamedAttr{Name: %q, Value: %s}) }", o.attrs[i].arg, d.Name, o.attrs[i].arg)
		}
	}
	return "attrs"
}

func mayBeNil(d ir.AttrDef) bool {
	return d.Optional && (d.Kind == ir.AnyAttr || d.Kind == ir.DenseKind)
}

// resultsExpr is the list of given result types.
func (o *op) resultsExpr(w *writer) string {
	simple := true
	var types []string
	for i, d := range o.Results {
		simple = simple && d.Arity == ir.One
		types = append(types, o.results[i].arg+"Type")
	}
	if simple {
		return "[]ir.Type{" + strings.Join(types, ", ") + "}"
	}
	if len(o.Results) == 1 && o.Results[0].Arity == ir.Variadic {
		return types[0] + "s"
	}
	w.line("var results []ir.Type")
	for i, d := range o.Results {
		w.line("%s", map[ir.Arity]string{
			ir.One:      fmt.Sprintf("results = append(results, %s)", types[i]),
			ir.Optional: fmt.Sprintf("if %s != nil { results = append(results, %s) }", types[i], types[i]),
			ir.Variadic: fmt.Sprintf("results = append(results, %ss...)", types[i]),
		}[d.Arity])
	}
	return "results"
}
