package ir

// numbering hands out the numbers that values print with: %arg0, %arg1, ... for the arguments of entry blocks, %0,
// %1, ... for everything else. It counts from zero in every isolated operation, and a nested region goes on from where
// the whole region around it ends, so that no name hides another. The numbers are kept in the values.
type numbering struct {
	value, arg int32
	ops        *int // counts the operations
}

// numberFor numbers everything that printing op can mention: what is inside it and, unless it stands alone, the scope
// around it. It reports how many operations that is.
func numberFor(op *Op) int {
	root := op
	if !op.Has(Isolated) || len(op.operands)+len(op.results) > 0 {
		for p := op.Parent(); p != nil; p = p.Parent() {
			root = p
			if p.Has(Isolated) {
				break
			}
		}
	}
	ops := 0
	n := numbering{ops: &ops}
	n.results(root)
	n.regions(root)
	return ops
}

func (n *numbering) results(op *Op) {
	*n.ops++
	if len(op.results) > 0 {
		op.results[0].num = n.value
		n.value++
	}
}

func (n *numbering) regions(op *Op) {
	for _, r := range op.Regions() {
		inner := *n
		if op.Has(Isolated) {
			inner = numbering{ops: n.ops}
		}
		inner.region(r)
	}
}

func (n *numbering) region(r *Region) {
	for i, b := range r.blocks {
		b.num = int32(i)
		for _, a := range b.args {
			if i == 0 {
				n.arg++
				a.num = -n.arg
			} else {
				a.num = n.value
				n.value++
			}
		}
		for op := b.first; op != nil; op = op.next {
			n.results(op)
		}
	}
	for _, b := range r.blocks {
		for op := b.first; op != nil; op = op.next {
			if op.nested != nil {
				n.regions(op)
			}
		}
	}
}
