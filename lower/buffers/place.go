package buffers

import (
	"slices"

	"blutrain/ir"
)

// place is where a value lives: a strided window of a root. Strides and offset are in elements.
type place struct {
	root    *root
	shape   []int64
	strides []int64
	offset  int64
}

// whole is the row-major place that covers a root.
func whole(r *root, shape []int64) *place {
	return &place{root: r, shape: shape, strides: ir.RowMajor(shape)}
}

// same reports whether two places are the same elements in the same order. How far elements of a dimension of one are apart
// doesn't matter.
func (p *place) same(q *place) bool {
	if p.root != q.root || p.offset != q.offset || !slices.Equal(p.shape, q.shape) {
		return false
	}
	for i, n := range p.shape {
		if n > 1 && p.strides[i] != q.strides[i] {
			return false
		}
	}
	return true
}

// transpose is the view whose dimension i is dimension perm[i] of p.
func (p *place) transpose(perm []int64) *place {
	q := &place{root: p.root, offset: p.offset}
	for _, d := range perm {
		q.shape = append(q.shape, p.shape[d])
		q.strides = append(q.strides, p.strides[d])
	}
	return q
}

// slice is the view of the elements from starts to limits, every steps-th.
func (p *place) slice(starts, limits, steps []int64) *place {
	q := &place{root: p.root, offset: p.offset}
	for i := range p.shape {
		step := int64(1)
		if len(steps) > 0 {
			step = steps[i]
		}
		q.offset += starts[i] * p.strides[i]
		q.shape = append(q.shape, max(0, (limits[i]-starts[i]+step-1)/step))
		q.strides = append(q.strides, p.strides[i]*step)
	}
	return q
}

// broadcast is the view in which dimension i of p is dimension axes[i] of the shape, the others and stretched ones repeat.
func (p *place) broadcast(axes, shape []int64) *place {
	q := &place{root: p.root, offset: p.offset, shape: slices.Clone(shape), strides: make([]int64, len(shape))}
	for i, a := range axes {
		if p.shape[i] == shape[a] {
			q.strides[a] = p.strides[i]
		}
	}
	return q
}

// reshape is the view of the same elements in row-major order under another shape; ok is false when no strides give it.
func (p *place) reshape(shape []int64) (q *place, ok bool) {
	q = &place{root: p.root, offset: p.offset, shape: slices.Clone(shape), strides: make([]int64, len(shape))}
	if ir.NumElements(shape) == 0 {
		return q, true
	}
	old, strides := dropUnits(p.shape, p.strides)
	// Match runs of old and new dimensions with equal products; within a run the old dimensions must be contiguous.
	i, j := 0, 0
	for j < len(shape) {
		if shape[j] == 1 {
			j++
			continue
		}
		nj := j
		on, nn := old[i], shape[j]
		i, j = i+1, j+1
		for on != nn {
			if on < nn {
				if strides[i-1] != strides[i]*old[i] {
					return nil, false
				}
				on *= old[i]
				i++
			} else {
				nn *= shape[j]
				j++
			}
		}
		stride := strides[i-1]
		for k := j - 1; k >= nj; k-- {
			q.strides[k] = stride
			stride *= shape[k]
		}
	}
	return q, true
}

func dropUnits(shape, strides []int64) (s, t []int64) {
	for i, d := range shape {
		if d != 1 {
			s, t = append(s, d), append(t, strides[i])
		}
	}
	return s, t
}

// inversePerm undoes a permutation.
func inversePerm(perm []int64) []int64 {
	inv := make([]int64, len(perm))
	for i, d := range perm {
		inv[d] = int64(i)
	}
	return inv
}

// viewOf is the place of a view operation's result, given its operand's; ok is false when no strides express it.
func viewOf(op *ir.Op, p *place) (q *place, ok bool) {
	a := op.Attrs()
	shape := op.Result(0).Shape()
	switch op.Name() {
	case "blu.transpose":
		return p.transpose(a.Ints("perm")), true
	case "blu.slice":
		return p.slice(a.Ints("starts"), a.Ints("limits"), a.Ints("steps")), true
	case "blu.broadcast":
		return p.broadcast(a.Ints("axes"), shape), true
	case "blu.reshape":
		return p.reshape(shape)
	case "blu.stop_gradient":
		return p, true
	}
	return nil, false
}

// operandPlace is where a view operation's operand must live for its result to live at q; ok is false when the operation
// does not determine it, as a slice does not.
func operandPlace(op *ir.Op, q *place) (p *place, ok bool) {
	switch op.Name() {
	case "blu.transpose":
		return q.transpose(inversePerm(op.Attrs().Ints("perm"))), true
	case "blu.reshape":
		return q.reshape(op.Operand(0).Shape())
	case "blu.stop_gradient":
		return q, true
	}
	return nil, false
}

// isView reports whether op only looks at its operand another way.
func isView(op *ir.Op) bool {
	switch op.Name() {
	case "blu.transpose", "blu.slice", "blu.broadcast", "blu.reshape", "blu.stop_gradient":
		return true
	}
	return false
}
