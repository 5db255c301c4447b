package kernels

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// checkTypes refuses, at its place in the source, what the target's kernels can't compute with.
func (l *lowerer) checkTypes(f *ir.Op) error {
	for op := range f.Body().Ops() {
		if op.Has(ir.View) || op.Has(ir.Terminator) || op.Is(blu.Constant) || op.Is(blu.Concat) || op.Def().DialectName() != "blu" {
			continue
		}
		for _, v := range append(op.Operands(), op.Results()...) {
			if remedy := l.refused(op, v.Elem()); remedy != "" {
				return op.Errorf("target %s does not compute with %s here: %s", l.target.Name, v.Elem(), remedy)
			}
		}
	}
	return nil
}

// refused says what to do about elements that an operation can't have on the target, or nothing.
func (l *lowerer) refused(op *ir.Op, elem ir.Type) string {
	switch elem {
	case ir.Type(l.c.F64()):
		product := op.Is(blu.Dot) || op.Is(blu.Attention) || op.Is(blu.AttentionGrad)
		if !l.target.Float64 || product && !l.target.Float64Products {
			return "cast to f32, or compile with --target ref"
		}
	case ir.Type(l.c.I64()):
		switch op.Def() {
		case blu.Cast, blu.Gather, blu.ScatterAdd, blu.CrossEntropy, blu.CrossEntropyGrad, blu.RandomNormal, blu.RandomUniform:
			return ""
		}
		if !l.target.Int64 {
			return "cast to i32, or compile with --target ref"
		}
	}
	return ""
}
