package binary

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// indices finds, of each function's inputs of integers, how many things they choose among: rows of a table, classes. Functions are those
// before they were cut into kernels.
func indices(module *ir.Op) (map[string]map[string]int64, error) {
	source := module
	if step := nested(module, Step); step != nil {
		source = step
	}
	found, known := map[string]map[string]int64{}, indexing{}
	for f := range source.Body().Ops() {
		if !f.Is(fn.Func) || f.Body() == nil {
			continue
		}
		args, err := portsOf(f, "arg_attrs", f.Body().Args())
		if err != nil {
			return nil, err
		}
		of := map[string]int64{}
		for _, p := range args {
			if p.space == "input" && !ir.IsFloat(ir.Elem(p.typ)) {
				of[p.name] = known.indexed(p.value)
			}
		}
		found[ir.SymName(f)] = of
	}
	return found, nil
}

// indexing is what indexed found of values: one that an operation takes twice is looked at once.
type indexing map[*ir.Value]int64

// indexed is the fewest things that something chooses among by a value's elements, as they are or the others that they are chosen among (the
// greater of two); 0 where nothing does.
func (x indexing) indexed(v *ir.Value) (fewest int64) {
	if n, ok := x[v]; ok {
		return n
	}
	defer func() { x[v] = fewest }()
	for u := range v.Uses() {
		op, n := u.Owner(), int64(0)
		switch {
		case op.Is(blu.Gather) && u.Index() == 1:
			n = op.Operand(0).Shape()[0]
		case op.Is(blu.ScatterAdd):
			n = op.Result(0).Shape()[0]
		case op.Is(blu.CrossEntropy), op.Is(blu.CrossEntropyGrad):
			shape := op.Operand(0).Shape()
			n = shape[len(shape)-1]
		case op.Has(ir.View), op.Is(blu.Broadcast), op.Is(blu.Concat), op.Is(blu.Pad), op.Is(blu.Max), op.Is(blu.Min), op.Is(blu.Select) && u.Index() > 0,
			op.Is(blu.Cast) && !ir.IsFloat(op.Result(0).Elem()):
			n = x.indexed(op.Result(0))
		}
		if n > 0 && (fewest == 0 || n < fewest) {
			fewest = n
		}
	}
	return fewest
}
