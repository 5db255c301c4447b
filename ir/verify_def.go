package ir

import (
	"fmt"

	"blutrain/internal/near"
)

// segmentSizes is the attribute of operations with the trait SegmentedOperand: array<i32: n, ...>, the number of
// operands in each group.
const segmentSizes = "operandSegmentSizes"

// definition checks op against its OpDef. Each step may rely on those before it.
func (v *verifier) definition(op *Op) {
	before := len(v.errs)
	v.attributes(op)
	v.operandGroups(op)
	v.resultGroups(op)
	v.regionCount(op)
	v.traits(op)
	if len(v.errs) == before && op.def.Infer != nil {
		v.inferred(op)
	}
}

func (v *verifier) attributes(op *Op) {
	for i := range op.def.Attrs {
		d := &op.def.Attrs[i]
		a := op.Attr(d.Name)
		switch {
		case a == nil && !d.Optional && d.Default == nil:
			v.errorf(op, "attribute %s is missing", d.Name)
		case a != nil && !d.Kind.Accepts(a):
			v.errorf(op, "attribute %s must be a %s, is %s", d.Name, d.Kind, abbreviated(a))
		case a != nil:
			v.symbolRefs(op, a)
		}
	}
	for _, a := range op.attrs {
		if op.def.attr(a.Name) != nil || isDiscardable(a.Name) || a.Name == segmentSizes && op.Has(SegmentedOperand) {
			continue
		}
		var names []string
		for _, d := range op.def.Attrs {
			names = append(names, d.Name)
		}
		v.errorf(op, "unknown attribute %s%s", a.Name, near.Suggest(a.Name, names))
	}
}

// abbreviated is an attribute's text, cut where it is long.
func abbreviated(a Attr) string {
	s := a.String()
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// symbolRefs checks the references in an inherent attribute.
func (v *verifier) symbolRefs(op *Op, a Attr) {
	switch a := a.(type) {
	case *SymbolRefAttr:
		v.symbol(op, a)
	case *ArrayAttr:
		for _, e := range a.Elems {
			v.symbolRefs(op, e)
		}
	case *DictAttr:
		for _, e := range a.Entries {
			v.symbolRefs(op, e.Value)
		}
	}
}

// OperandGroup is the operands that the i-th entry of the definition's Operands stands for: one for One, up to one for
// Optional, any number for Variadic. It is nil where the operation doesn't fit its definition.
func (op *Op) OperandGroup(i int) []*Value {
	first, n, err := op.operandRange(i)
	if err != nil {
		return nil
	}
	return op.Operands()[first : first+n]
}

// operandRange is the place of a group among the operands.
func (op *Op) operandRange(group int) (first, n int, err error) {
	defs := op.def.Operands
	arities := make([]Arity, len(defs))
	for i := range defs {
		arities[i] = defs[i].Arity
	}
	if !op.Has(SegmentedOperand) {
		sizes, err := groupSizes(arities, len(op.operands), "operands")
		if err != nil {
			return 0, 0, err
		}
		return place(sizes, group)
	}
	a, ok := op.Attr(segmentSizes).(*DenseArrayAttr)
	if !ok || len(a.Ints) != len(defs) {
		return 0, 0, fmt.Errorf("attribute %s must be array<i32: ...> with %d numbers, one for each group of operands", segmentSizes, len(defs))
	}
	sizes := make([]int, len(defs))
	total := int64(0)
	for i, n := range a.Ints {
		if n < 0 || arities[i] != Variadic && n > 1 || arities[i] == One && n != 1 {
			return 0, 0, fmt.Errorf("%s says %d for operand %s", segmentSizes, n, defs[i].Name)
		}
		sizes[i] = int(n)
		total += n
	}
	if total != int64(len(op.operands)) {
		return 0, 0, fmt.Errorf("%s counts %d operands, there are %d", segmentSizes, total, len(op.operands))
	}
	return place(sizes, group)
}

func place(sizes []int, group int) (first, n int, err error) {
	for _, s := range sizes[:group] {
		first += s
	}
	return first, sizes[group], nil
}

// groupSizes shares out n values among groups of which at most one is not One.
func groupSizes(arities []Arity, n int, what string) ([]int, error) {
	sizes := make([]int, len(arities))
	open := -1
	for i, a := range arities {
		if a == One {
			sizes[i] = 1
		} else {
			open = i
		}
	}
	rest := n - len(arities)
	if open >= 0 {
		rest++
		if rest >= 0 && (arities[open] == Variadic || rest <= 1) {
			sizes[open] = rest
			return sizes, nil
		}
	} else if rest == 0 {
		return sizes, nil
	}
	return nil, fmt.Errorf("expected %s, found %d", counted(arities, open, what), n)
}

// counted is "2 operands", "2 or 3 operands" or "at least 2 operands".
func counted(arities []Arity, open int, what string) string {
	n := len(arities)
	switch {
	case open < 0:
		return fmt.Sprintf("%d %s", n, what)
	case arities[open] == Optional:
		return fmt.Sprintf("%d or %d %s", n-1, n, what)
	}
	return fmt.Sprintf("at least %d %s", n-1, what)
}

func (v *verifier) operandGroups(op *Op) {
	if len(op.def.Operands) == 0 {
		if len(op.operands) > 0 {
			v.errorf(op, "expected no operands, found %d", len(op.operands))
		}
		return
	}
	for g, d := range op.def.Operands {
		first, n, err := op.operandRange(g)
		if err != nil {
			v.errorf(op, "%v", err)
			return
		}
		for i := first; i < first+n; i++ {
			v.constraint(op, fmt.Sprintf("operand %d (%s)", i, d.Name), d.Type, op.operands[i].value.typ)
		}
	}
}

func (v *verifier) resultGroups(op *Op) {
	defs := op.def.Results
	arities := make([]Arity, len(defs))
	for i := range defs {
		arities[i] = defs[i].Arity
	}
	sizes, err := groupSizes(arities, len(op.results), "results")
	if err != nil {
		v.errorf(op, "%v", err)
		return
	}
	i := 0
	for g, n := range sizes {
		for range n {
			v.constraint(op, fmt.Sprintf("result %d (%s)", i, defs[g].Name), defs[g].Type, op.results[i].typ)
			i++
		}
	}
}

// ResultGroup is the results that the i-th entry of the definition's Results stands for.
func (op *Op) ResultGroup(i int) []*Value {
	arities := make([]Arity, len(op.def.Results))
	for j := range arities {
		arities[j] = op.def.Results[j].Arity
	}
	sizes, err := groupSizes(arities, len(op.results), "results")
	if err != nil {
		return nil
	}
	first, n, _ := place(sizes, i)
	return op.Results()[first : first+n]
}

func (v *verifier) constraint(op *Op, what string, c Constraint, t Type) {
	if c.OK != nil && !c.OK(t) {
		v.errorf(op, "%s must be a %s, is %s", what, c.Doc, t)
	}
}

func (v *verifier) regionCount(op *Op) {
	defs := op.def.Regions
	if len(op.Regions()) != len(defs) {
		v.errorf(op, "expected %d regions, found %d", len(defs), len(op.Regions()))
		return
	}
	for i, d := range defs {
		if n := len(op.Region(i).blocks); d.Arity == One && n != 1 {
			v.errorf(op, "region %d (%s) must have one block, has %d", i, d.Name, n)
		}
	}
}

func (v *verifier) traits(op *Op) {
	if op.Has(SameTypes) {
		v.sameTypes(op)
	}
	if op.Has(FunctionLike) {
		v.function(op)
	}
}

func (v *verifier) sameTypes(op *Op) {
	var first Type
	check := func(what string, i int, t Type) bool {
		if first == nil {
			first = t
		}
		if t != first {
			v.errorf(op, "%s %d has type %s; all operands and results must have one type, here %s", what, i, t, first)
		}
		return t == first
	}
	for i := range op.operands {
		if !check("operand", i, op.operands[i].value.typ) {
			return
		}
	}
	for i := range op.results {
		if !check("result", i, op.results[i].typ) {
			return
		}
	}
}

// function checks that the type of a function-like operation is that of its body.
func (v *verifier) function(op *Op) {
	t := FuncType(op)
	if t == nil {
		v.errorf(op, "attribute function_type must be a function type")
		return
	}
	v.dictionaries(op, "arg_attrs", len(t.Inputs))
	v.dictionaries(op, "res_attrs", len(t.Results))
	body := op.Body()
	if body == nil {
		return
	}
	if len(body.args) != len(t.Inputs) {
		v.errorf(op, "the type has %d inputs, the body %d arguments", len(t.Inputs), len(body.args))
		return
	}
	for i, a := range body.args {
		if a.typ != t.Inputs[i] {
			v.errorf(op, "input %d has type %s, the body's argument %s", i, t.Inputs[i], a.typ)
		}
	}
}

func (v *verifier) dictionaries(op *Op, name string, n int) {
	if a := op.Attr(name); a != nil && !dictionaries(a, n) {
		v.errorf(op, "attribute %s must be an array of %d dictionaries", name, n)
	}
}

// inferred holds the results to what the definition infers.
func (v *verifier) inferred(op *Op) {
	want, err := op.def.Infer(v.ctx, InferInput{op.Operands(), op.attrs})
	if err != nil {
		v.errorf(op, "%v", err)
		return
	}
	if len(want) != len(op.results) {
		v.errorf(op, "expected %d results, found %d", len(want), len(op.results))
		return
	}
	for i, t := range want {
		if op.results[i].typ != t {
			v.errorf(op, "result %d has type %s, its operands and attributes give %s", i, op.results[i].typ, t)
		}
	}
}
