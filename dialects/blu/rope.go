package blu

import (
	"fmt"
	"math"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Rope rotates pairs of features by angles proportional to the position.
var Rope = define(ir.OpDef{
	Name:    "rope",
	Summary: "rotary position embedding",
	Description: "x is [..., S, D], D even. Feature i of the first half and feature i of the second half are the coordinates of a point, which is turned by " +
		"s * base^(-2i / D) radians at position s: y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin (halves as in Hugging Face's Llama). " +
		"With `inverse` it is turned back, which is the gradient. (Su et al., RoFormer, arXiv 2104.09864.)",
	Operands: []ir.OperandDef{floatX},
	Attrs: []ir.AttrDef{
		{Name: "base", Kind: ir.F64Kind, Doc: "base of the wavelengths, positive: 10000 in most models"},
		{Name: "inverse", Kind: ir.BoolKind, Doc: "turn the other way"},
	},
	Results: []ir.ResultDef{{Name: "y", Type: kinds.FloatTensor}},
	Traits:  ir.Pure | ir.SameTypes | ir.Differentiable,
	Infer:   inferRope,
	Eval:    eval(evalRope),
})

func inferRope(_ *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x := in.Operands[0]
	if err := wantRank("x", x, 2, "positions and features last"); err != nil {
		return nil, err
	}
	if d := last(x.Shape()); d%2 != 0 {
		return nil, fmt.Errorf("the last axis of x (%s) has %d elements, which can't be paired", ir.ShapeString(x.Shape()), d)
	}
	if base := in.Attrs.FloatOr("base", 0); !(base > 0) || math.IsInf(base, 0) {
		return nil, fmt.Errorf("base is %g, it must be positive", base)
	}
	return []ir.Type{x.Type()}, nil
}

// ropeAngle is the angle, in radians, of pair i of d features at position s.
func ropeAngle(base float64, s, i, d int64) float64 {
	return float64(s) * math.Pow(base, -2*float64(i)/float64(d))
}

func evalRope(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	x, out := in[0], resultTensor(op, 0)
	base, turn := op.Attrs().FloatOr("base", 0), 1.0
	if op.Attrs().Bool("inverse") {
		turn = -1
	}
	d := last(x.Shape)
	positions, half := x.Shape[len(x.Shape)-2], d/2
	for s := range positions {
		for i := range half {
			sin, cos := math.Sincos(turn * ropeAngle(base, s, i, d))
			for at := s*d + i; at < int64(len(x.Data)); at += positions * d {
				x1, x2 := x.Data[at], x.Data[at+half]
				out.Data[at] = x1*cos - x2*sin
				out.Data[at+half] = x2*cos + x1*sin
			}
		}
	}
	return out, nil
}

// decomposeRope puts the cosines and sines into constants [S, D/2], computed in float64: angles of thousands of radians would
// have few digits left in f32.
func decomposeRope(b *Builder, op *ir.Op) []*ir.Value {
	x := op.Operand(0)
	shape, axis := x.Shape(), lastAxis(x)
	x1, x2 := b.wide(b.half(x, 0)), b.wide(b.half(x, 1))
	s, d := shape[axis-1], shape[axis]
	cos, sin := ir.NewTensor(x1.Elem(), s, d/2), ir.NewTensor(x1.Elem(), s, d/2)
	turn := 1.0
	if op.Attrs().Bool("inverse") {
		turn = -1
	}
	for i := range cos.Data {
		sin.Data[i], cos.Data[i] = math.Sincos(turn * ropeAngle(op.Attrs().FloatOr("base", 0), int64(i)/(d/2), int64(i)%(d/2), d))
	}
	table := func(t *ir.Tensor) *ir.Value {
		return b.BroadcastTo(b.Constant(DenseOf(b.Ctx, t)), trailingAxes(2, len(shape)), x1.Shape())
	}
	c, n := table(cos), table(sin)
	half := func(v *ir.Value) *ir.Value { return b.CastTo(v, op.Result(0).Elem()) }
	return []*ir.Value{b.Concat([]*ir.Value{
		half(b.Sub(b.Mul(x1, c), b.Mul(x2, n))),
		half(b.Add(b.Mul(x2, c), b.Mul(x1, n))),
	}, axis)}
}

// half is the first (0) or second (1) half of x along its last axis.
func (b *Builder) half(x *ir.Value, which int64) *ir.Value {
	shape := x.Shape()
	n := len(shape)
	starts, limits, steps := make([]int64, n), slices.Clone(shape), slices.Repeat([]int64{1}, n)
	starts[n-1] = which * shape[n-1] / 2
	limits[n-1] = starts[n-1] + shape[n-1]/2
	return b.Slice(x, starts, limits, steps)
}
