package binary

import (
	"math"
	"slices"

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
	found, known := map[string]map[string]int64{}, indexing{map[*ir.Value]int64{}, map[*ir.Value]interval{}}
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

// indexing is what was found of values: one that an operation takes twice is looked at once.
type indexing struct {
	below map[*ir.Value]int64    // by indexed
	of    map[*ir.Value]interval // by integers
}

// indexed is the fewest things that something chooses among by a value's elements, as they are or the others that they are chosen among (the
// greater of two); 0 where nothing does.
func (x indexing) indexed(v *ir.Value) (fewest int64) {
	if n, ok := x.below[v]; ok {
		return n
	}
	defer func() { x.below[v] = fewest }()
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
		case op.Is(blu.Add), op.Is(blu.Sub), op.Is(blu.Mul):
			if n = x.indexed(op.Result(0)); n > 0 {
				n = x.operandBelow(op, u.Index(), n)
			}
		}
		if n > 0 && (fewest == 0 || n < fewest) {
			fewest = n
		}
	}
	return fewest
}

// operandBelow is how many values from 0 on one operand of a sum, difference or product of integers may have, so that the result is from 0
// to n - 1 whatever the other is; 0 where that isn't known, or is none.
func (x indexing) operandBelow(op *ir.Op, operand int, n int64) int64 {
	other := x.integers(op.Operand(1 - operand))
	switch {
	case !other.known:
	case op.Is(blu.Add) && other.least >= 0:
		return max(0, n-other.most)
	case op.Is(blu.Mul) && other.least >= 0 && other.most > 0:
		return (n-1)/other.most + 1
	case op.Is(blu.Sub) && operand == 0 && other.most <= 0:
		return max(0, n+other.least)
	case op.Is(blu.Sub) && operand == 1 && other.most < n:
		return max(0, other.least+1)
	}
	return 0
}

// interval is the least and the greatest of integers, if they are known.
type interval struct {
	least, most int64
	known       bool
}

// integers is that of a tensor's elements, where they are constants, counts or sums of those.
func (x indexing) integers(v *ir.Value) (i interval) {
	if i, ok := x.of[v]; ok {
		return i
	}
	defer func() { x.of[v] = i }()
	op := v.Op()
	if op == nil || ir.IsFloat(v.Elem()) || ir.NumElements(v.Shape()) == 0 {
		return i
	}
	switch op.Def() {
	case blu.Iota:
		axis, _ := op.Attrs().Int("axis")
		return interval{0, v.Shape()[axis] - 1, true}
	case blu.Reshape, blu.Transpose, blu.Slice, blu.Broadcast:
		return x.integers(op.Operand(0))
	case blu.Cast: // of what is no integer, nothing is known
		if a := x.integers(op.Operand(0)); a.known && within(a, v.Elem()) {
			return a
		}
	case blu.Add:
		a, b := x.integers(op.Operand(0)), x.integers(op.Operand(1))
		if sum := (interval{a.least + b.least, a.most + b.most, true}); a.known && b.known && inRange(a) && inRange(b) && within(sum, v.Elem()) {
			return sum
		}
	case blu.Constant:
		if d, ok := op.Attr("value").(*ir.DenseAttr); ok {
			return elements(d)
		}
	}
	if isTruth(v.Elem()) {
		return interval{0, 1, true}
	}
	return i
}

func isTruth(elem ir.Type) bool { t, ok := elem.(*ir.IntegerType); return ok && t.Width == 1 }

// within reports whether a type has all of some integers: others wrap around, and all but 0 and 1 become 1 as truth values.
func within(i interval, elem ir.Type) bool {
	if isTruth(elem) {
		return i.least >= 0 && i.most <= 1
	}
	bits := 8 * ir.ByteSize(elem)
	if t, ok := elem.(*ir.IntegerType); ok && t.Sign == ir.Unsigned {
		return i.least >= 0 && (bits == 64 || i.most < 1<<bits)
	}
	return i.least >= -1<<(bits-1) && i.most <= 1<<(bits-1)-1
}

// inRange reports whether integers are few enough bits that sums of two are none that wrap around.
func inRange(i interval) bool { return i.least > -1<<30 && i.most < 1<<30 }

// elements is the interval of a constant's elements.
func elements(d *ir.DenseAttr) interval {
	i := interval{math.MaxInt64, math.MinInt64, true}
	elem := ir.Elem(d.Type)
	for raw := range slices.Chunk([]byte(d.Raw), int(ir.ByteSize(elem))) {
		n := ir.DecodeInt(elem, string(raw))
		i.least, i.most = min(i.least, n), max(i.most, n)
	}
	return i
}
