package blu

import (
	"fmt"
	"math"

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
