package blu

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// inferFunc computes result types of operands that fit the table's constraints.
type inferFunc = func(c *ir.Context, in ir.InferInput) ([]ir.Type, error)

// define completes an entry of the dialect's table. Infer is only asked about operands and attributes that fit the table,
// and Fold gets constant folding as its last resort.
func define(def ir.OpDef) *ir.OpDef {
	if infer := def.Infer; infer != nil {
		def.Infer = func(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
			if err := checkOperands(def.Operands, in.Operands); err != nil {
				return nil, err
			}
			if err := checkAttrs(def.Attrs, in.Attrs); err != nil {
				return nil, err
			}
			types, err := infer(c, in)
			if err != nil {
				return nil, err
			}
			return types, checkResults(def.Results, types)
		}
	}
	def.Fold = withConstantFolding(def)
	return ir.Define("blu", def)
}

// checkOperands holds operands to their constraints; a variadic operand is the only one of its operation.
func checkOperands(defs []ir.OperandDef, operands []*ir.Value) error {
	variadic := len(defs) == 1 && defs[0].Arity == ir.Variadic
	if !variadic && len(operands) != len(defs) {
		return fmt.Errorf("%d operands are needed, not %d", len(defs), len(operands))
	}
	for i, v := range operands {
		d := defs[min(i, len(defs)-1)]
		if !d.Type.OK(v.Type()) {
			name := d.Name
			if variadic {
				name = fmt.Sprintf("operand %d", i)
			}
			return fmt.Errorf("%s is a %s, expected: %s", name, v.Type(), d.Type.Doc)
		}
	}
	return nil
}

func checkAttrs(defs []ir.AttrDef, attrs ir.Attrs) error {
	for _, d := range defs {
		a := attrs.Get(d.Name)
		switch {
		case a == nil && !d.Optional:
			return fmt.Errorf("attribute %q is missing", d.Name)
		case a != nil && !d.Kind.Accepts(a):
			return fmt.Errorf("attribute %q is %s, expected: %s", d.Name, a, d.Kind)
		}
	}
	return nil
}

func checkResults(defs []ir.ResultDef, types []ir.Type) error {
	for i, t := range types {
		if !defs[i].Type.OK(t) {
			return fmt.Errorf("result %s would be a %s: expected is a %s of a size that can be addressed", defs[i].Name, t, defs[i].Type.Doc)
		}
	}
	return nil
}

// sameAsFirst gives one result of the first operand's type.
func sameAsFirst(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	return []ir.Type{in.Operands[0].Type()}, nil
}

// sameTypes gives one result of the type that all operands must have.
func sameTypes(names ...string) inferFunc {
	return func(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
		first := in.Operands[0]
		for i, v := range in.Operands[1:] {
			if err := equalTypes(names[0], first, names[i+1], v); err != nil {
				return nil, err
			}
		}
		return []ir.Type{first.Type()}, nil
	}
}

// equalTypes says how the types of two operands differ: in shape first, for that is what people get wrong.
func equalTypes(aName string, a *ir.Value, bName string, b *ir.Value) error {
	if err := equalShapes(aName, a.Shape(), bName, b.Shape()); err != nil {
		return err
	}
	if a.Elem() != b.Elem() {
		return fmt.Errorf("%s has elements of type %s, %s of type %s: cast one of them", aName, a.Elem(), bName, b.Elem())
	}
	if a.Type() != b.Type() { // encodings
		return fmt.Errorf("%s is a %s, %s a %s", aName, a.Type(), bName, b.Type())
	}
	return nil
}

func equalShapes(aName string, a []int64, bName string, b []int64) error {
	if slices.Equal(a, b) {
		return nil
	}
	if len(a) != len(b) {
		return fmt.Errorf("%s is %s (rank %d), %s is %s (rank %d): shapes must be equal", aName, ir.ShapeString(a), len(a), bName, ir.ShapeString(b), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			return fmt.Errorf("%s is %s, %s is %s: axis %d has %d and %d elements", aName, ir.ShapeString(a), bName, ir.ShapeString(b), i, a[i], b[i])
		}
	}
	return nil
}

// wantShape says that an operand has another shape than the others ask for.
func wantShape(name string, v *ir.Value, want []int64, because string) error {
	if slices.Equal(v.Shape(), want) {
		return nil
	}
	return fmt.Errorf("%s is %s, expected %s: %s", name, ir.ShapeString(v.Shape()), ir.ShapeString(want), because)
}

func wantElem(name string, v *ir.Value, want ir.Type) error {
	if v.Elem() == want {
		return nil
	}
	return fmt.Errorf("%s has elements of type %s, expected %s", name, v.Elem(), want)
}

// wantRank says that an operand needs at least that many axes.
func wantRank(name string, v *ir.Value, least int, axes string) error {
	if len(v.Shape()) >= least {
		return nil
	}
	return fmt.Errorf("%s is %s: it needs at least %d axes (%s)", name, ir.ShapeString(v.Shape()), least, axes)
}

func axisInRange(axis int64, name string, shape []int64) error {
	if axis >= 0 && axis < int64(len(shape)) {
		return nil
	}
	return fmt.Errorf("there is no axis %d: %s is %s (rank %d)", axis, name, ir.ShapeString(shape), len(shape))
}

// axesOf checks a list of different axes of a shape.
func axesOf(what string, axes []int64, name string, shape []int64) error {
	for i, a := range axes {
		if err := axisInRange(a, name, shape); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if slices.Contains(axes[:i], a) {
			return fmt.Errorf("%s: axis %d is named twice", what, a)
		}
	}
	return nil
}

// without is the shape with some axes dropped.
func without(shape, axes []int64) []int64 {
	var rest []int64
	for i, d := range shape {
		if !slices.Contains(axes, int64(i)) {
			rest = append(rest, d)
		}
	}
	return rest
}

// statType is the element type in which statistics of tensors of elem are kept: f64 for f64, f32 for all others.
func statType(c *ir.Context, elem ir.Type) ir.Type {
	if f, ok := elem.(*ir.FloatType); ok && f.Kind == ir.F64 {
		return elem
	}
	return c.F32()
}

// concatShapes joins shapes into a fresh one.
func concatShapes(shapes ...[]int64) []int64 { return slices.Concat(shapes...) }

// oneOf checks a string attribute against what it may be.
func oneOf(attrs ir.Attrs, name string, allowed ...string) error {
	if s := attrs.Str(name); !slices.Contains(allowed, s) {
		return fmt.Errorf("%s is %q, expected one of %q", name, s, allowed)
	}
	return nil
}

func last(shape []int64) int64 { return shape[len(shape)-1] }

// firstError runs checks that each rely on the ones before.
func firstError(err error, then ...func() error) error {
	for _, check := range then {
		if err != nil {
			return err
		}
		err = check()
	}
	return err
}
