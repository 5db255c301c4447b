package kernels

import "slices"

// An atom is a factor of the iteration space of a group. A dimension of a tensor in the group is a product of atoms, outer
// ones first; a dimension of one element has none. Views between the group's operations only regroup, permute, add and drop
// atoms, so that every operation of the group can run at the same point of the space.
type atom int

// dims is, for each dimension of a tensor, its atoms.
type dims [][]atom

// domain is the atoms of one group. An atom may be split in two later; lists that hold it then mean its parts.
type domain struct {
	size  []int64
	parts [][]atom // nil, or outer and inner part
}

func (d *domain) fresh(n int64) atom {
	d.size = append(d.size, n)
	d.parts = append(d.parts, nil)
	return atom(len(d.size) - 1)
}

// freshDims gives every dimension of a shape an atom of its own.
func (d *domain) freshDims(shape []int64) dims {
	ds := make(dims, len(shape))
	for i, n := range shape {
		if n != 1 {
			ds[i] = []atom{d.fresh(n)}
		}
	}
	return ds
}

// leaves replaces atoms that were split by their parts.
func (d *domain) leaves(list []atom) []atom {
	whole := true
	for _, a := range list {
		whole = whole && d.parts[a] == nil
	}
	if whole {
		return list
	}
	var out []atom
	for _, a := range list {
		if d.parts[a] == nil {
			out = append(out, a)
		} else {
			out = append(out, d.leaves(d.parts[a])...)
		}
	}
	return out
}

// flat is the leaves of all dimensions in order.
func (d *domain) flat(ds dims) []atom {
	var out []atom
	for _, list := range ds {
		out = append(out, d.leaves(list)...)
	}
	return out
}

// same reports whether two tensors run over the same atoms in each dimension.
func (d *domain) same(a, b dims) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !slices.Equal(a[i], b[i]) && !slices.Equal(d.leaves(a[i]), d.leaves(b[i])) {
			return false
		}
	}
	return true
}

// regroup distributes the atoms of a tensor over another shape of as many elements, splitting atoms where it must; ok is
// false when a dimension would need part of an atom that is no factor of it.
func (d *domain) regroup(from dims, shape []int64) (to dims, ok bool) {
	left := d.flat(from)
	to = make(dims, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		rest := shape[i]
		for rest > 1 {
			if len(left) == 0 {
				return nil, false
			}
			a := left[len(left)-1]
			n := d.size[a]
			left = left[:len(left)-1]
			switch {
			case rest%n == 0:
				to[i] = append(to[i], a)
				rest /= n
			case n%rest == 0:
				outer, inner := d.fresh(n/rest), d.fresh(rest)
				d.parts[a] = []atom{outer, inner}
				to[i] = append(to[i], inner)
				left = append(slices.Clip(left), outer)
				rest = 1
			default:
				return nil, false
			}
		}
		slices.Reverse(to[i])
	}
	return to, len(left) == 0
}
