package autodiff

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

func errorAt(v *ir.Value, format string, args ...any) error {
	if v.Op() != nil {
		return v.Op().Errorf(format, args...)
	}
	return &ir.Error{Loc: v.Loc(), Msg: fmt.Sprintf(format, args...)}
}

// throughInteger says that a gradient asked for at loc would have to pass through cut, which makes integers of floats.
func throughInteger(loc *ir.Location, cut *ir.Op) error {
	e := cut.Errorf("no gradient can pass through %s: it gives %s (stop_gradient says that none is wanted)", inWords(cut), whole(cut.Result(0)))
	if loc.Source() != nil && loc != cut.Loc() {
		e.Notes = append(e.Notes, ir.Note{Loc: loc, Msg: "the gradient is asked for here"})
	}
	return e
}

// inWords names what makes integers of floats as a person would.
func inWords(op *ir.Op) string {
	switch {
	case op.Is(blu.Compare):
		return "a comparison"
	case op.Is(blu.Cast):
		return "a cast to " + op.Result(0).Elem().String()
	}
	return op.Def().Name
}

// whole says what the elements of an integer tensor are.
func whole(v *ir.Value) string {
	if t, ok := v.Elem().(*ir.IntegerType); ok && t.Width == 1 {
		return "truth values"
	}
	return "whole numbers"
}

// severs finds, on the ways from v to the outputs, the first operation that makes integers of floats; nil when no way
// leads there, or only such as stop_gradient ends.
func severs(v *ir.Value, outputs []*ir.Value) *ir.Op {
	useful := map[*ir.Value]bool{} // reaches an output
	for _, o := range outputs {
		useful[o] = true
	}
	block := v.Block()
	for op := range block.OpsReversed() {
		if op.Is(blu.StopGradient) {
			continue
		}
		for _, res := range op.Results() {
			if useful[res] {
				for _, in := range op.Operands() {
					useful[in] = true
				}
			}
		}
	}
	reached := map[*ir.Value]bool{v: true}
	for op := range block.Ops() {
		if op.Is(blu.StopGradient) {
			continue
		}
		for _, in := range op.Operands() {
			if !reached[in] {
				continue
			}
			for _, res := range op.Results() {
				if useful[res] && !ir.IsFloat(res.Type()) {
					return op
				}
				reached[res] = reached[res] || useful[res]
			}
		}
	}
	return nil
}
