package tile

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// Elementwise is the operations that compute each element from the same element of their operands. Each is the operation
// of the blu dialect with that name, on blocks; its meaning is taken from there.
var Elementwise = elementwise(
	blu.Neg, blu.Abs, blu.Exp, blu.Log, blu.Sqrt, blu.Rsqrt, blu.Tanh, blu.Erf, blu.Sigmoid, blu.Sin, blu.Cos, blu.Sign, blu.Floor, blu.Not,
	blu.Add, blu.Sub, blu.Mul, blu.Div, blu.Pow, blu.Max, blu.Min, blu.And, blu.Or,
	blu.Compare, blu.Select, blu.Cast,
	blu.Gelu, blu.GeluGrad, blu.Silu, blu.SiluGrad,
)

// ElementwiseOp is the elementwise operation of that name, without dialect, or nil.
func ElementwiseOp(name string) *ir.OpDef {
	for _, d := range Elementwise {
		if d.Name == name {
			return d
		}
	}
	return nil
}

func elementwise(defs ...*ir.OpDef) []*ir.OpDef {
	out := make([]*ir.OpDef, len(defs))
	for i, d := range defs {
		out[i] = elementwiseOf(d)
	}
	return out
}

func elementwiseOf(d *ir.OpDef) *ir.OpDef {
	def := ir.OpDef{
		Name: d.Name, Summary: d.Summary,
		Description: "blu." + d.Name + " on blocks: " + d.Description,
		Attrs:       d.Attrs,
		Traits:      d.Traits &^ (ir.Differentiable | ir.SameTypes),
		Verify:      func(op *ir.Op) error { return verifyElementwise(op, d) },
		Eval:        evalElementwise(d.Eval),
	}
	for _, o := range d.Operands {
		def.Operands = append(def.Operands, ir.OperandDef{Name: o.Name, Type: onBlocks(o.Type), Doc: o.Doc})
	}
	for _, r := range d.Results {
		def.Results = append(def.Results, ir.ResultDef{Name: r.Name, Type: onBlocks(r.Type), Doc: r.Doc})
	}
	if d != blu.Cast {
		def.Infer = func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) { return inferElementwise(c, d, in) }
	}
	return define(def)
}

// onBlocks is a constraint on tensors as one on blocks with those elements.
func onBlocks(t ir.Constraint) ir.Constraint {
	return ir.Constraint{Doc: "block as a " + t.Doc, OK: func(b ir.Type) bool {
		return IsBlock(b) && t.OK(&ir.TensorType{Elem: ir.Elem(b)})
	}}
}

// common is the extents of an elementwise result: in each dimension all operands have the same or 1.
func common(operands []*ir.Value) (rows, cols int64, err error) {
	rows, cols = 1, 1
	for i, v := range operands {
		r, c := extents(v)
		if r != 1 && rows != 1 && r != rows || c != 1 && cols != 1 && c != cols {
			return 0, 0, fmt.Errorf("operand %d is %dx%d, those before it are %dx%d: extents must be equal or 1", i, r, c, rows, cols)
		}
		rows, cols = max(rows, r), max(cols, c)
	}
	return rows, cols, nil
}

func inferElementwise(c *ir.Context, d *ir.OpDef, in ir.InferInput) ([]ir.Type, error) {
	if len(in.Operands) != len(d.Operands) {
		return nil, fmt.Errorf("%d operands given, %d expected", len(in.Operands), len(d.Operands))
	}
	for i, v := range in.Operands {
		if !IsBlock(v.Type()) {
			return nil, fmt.Errorf("operand %d is no block but %s", i, v.Type())
		}
	}
	rows, cols, err := common(in.Operands)
	if err != nil {
		return nil, err
	}
	elem := in.Operands[0].Elem()
	switch d {
	case blu.Compare:
		elem = c.I1()
	case blu.Select:
		elem = in.Operands[1].Elem()
	}
	return []ir.Type{Block(c, rows, cols, elem)}, nil
}

// verifyElementwise holds the element types of operands together and the result to the common extents.
func verifyElementwise(op *ir.Op, d *ir.OpDef) error {
	first := 0
	if d == blu.Select {
		first = 1
	}
	for i := first + 1; i < op.NumOperands(); i++ {
		if op.Operand(i).Elem() != op.Operand(first).Elem() {
			return op.Errorf("%s: operand %d has elements of type %s, operand %d of type %s", op.Name(), first, op.Operand(first).Elem(), i, op.Operand(i).Elem())
		}
	}
	rows, cols, err := common(op.Operands())
	if err != nil {
		return op.Errorf("%s: %v", op.Name(), err)
	}
	return wantExtents(op, "the result", op.Result(0), rows, cols)
}
