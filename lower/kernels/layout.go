package kernels

import (
	"cmp"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// layouts guesses the strides that values will have in memory, so that kernels get shapes that need no copy. A wrong guess
// costs a copy, not the right result.
type layouts struct {
	index   map[*ir.Op]int
	strides map[*ir.Value][]int64
	wanted  map[*ir.Value][]int64
}

func newLayouts(fn *ir.Op) *layouts {
	l := &layouts{index: map[*ir.Op]int{}, strides: map[*ir.Value][]int64{}, wanted: map[*ir.Value][]int64{}}
	n := 0
	for op := range fn.Body().Ops() {
		l.index[op] = n
		n++
	}
	return l
}

// of is the strides of a value, in elements.
func (l *layouts) of(v *ir.Value) []int64 {
	if s, ok := l.strides[v]; ok {
		return s
	}
	s := l.compute(v)
	l.strides[v] = s
	return s
}

func (l *layouts) compute(v *ir.Value) []int64 {
	op := v.Op()
	if op == nil {
		return ir.RowMajor(v.Shape())
	}
	a := op.Attrs()
	switch op.Def() {
	case blu.Transpose:
		return permuted(l.of(op.Operand(0)), a.Ints("perm"))
	case blu.Slice:
		s := slices.Clone(l.of(op.Operand(0)))
		for i, step := range a.Ints("steps") {
			s[i] *= step
		}
		return s
	case blu.Broadcast:
		x := op.Operand(0)
		s := make([]int64, len(v.Shape()))
		for i, axis := range a.Ints("axes") {
			if x.Shape()[i] == v.Shape()[axis] {
				s[axis] = l.of(x)[i]
			}
		}
		return s
	case blu.Reshape:
		if s, ok := reshaped(op.Operand(0).Shape(), l.of(op.Operand(0)), v.Shape()); ok {
			return s
		}
		return ir.RowMajor(v.Shape())
	}
	if s := l.want(v); s != nil {
		return s
	}
	return ir.RowMajor(v.Shape())
}

// want is the strides that the users of a computed value would like it to have: those of a slice of a concatenation, or
// such that a reshape of its transpose needs no copy. It is nil when nobody minds.
func (l *layouts) want(v *ir.Value) []int64 {
	if s, ok := l.wanted[v]; ok {
		return s
	}
	l.wanted[v] = nil
	var users []*ir.Op
	for u := range v.Uses() {
		users = append(users, u.Owner())
	}
	slices.SortFunc(users, func(a, b *ir.Op) int { return cmp.Compare(l.index[a], l.index[b]) })
	for _, op := range users {
		if s := l.wantedBy(op, v); s != nil {
			l.wanted[v] = s
			return s
		}
	}
	return nil
}

func (l *layouts) wantedBy(op *ir.Op, v *ir.Value) []int64 {
	switch op.Def() {
	case blu.Concat:
		return l.of(op.Result(0))
	case blu.Transpose:
		inverse := inversePerm(op.Attrs().Ints("perm"))
		if s := l.want(op.Result(0)); s != nil {
			return permuted(s, inverse)
		}
		if reshapedWithCopy(op) {
			return permuted(ir.RowMajor(op.Result(0).Shape()), inverse)
		}
	case blu.Reshape:
		if s := l.want(op.Result(0)); s != nil {
			if t, ok := reshaped(op.Result(0).Shape(), s, v.Shape()); ok {
				return t
			}
		}
	}
	return nil
}

// reshapedWithCopy reports whether a reshape of the transposed value would need a copy if the operand lay row-major.
func reshapedWithCopy(transpose *ir.Op) bool {
	x, t := transpose.Operand(0), transpose.Result(0)
	natural := permuted(ir.RowMajor(x.Shape()), transpose.Attrs().Ints("perm"))
	for u := range t.Uses() {
		if r := u.Owner(); r.Is(blu.Reshape) {
			if _, ok := reshaped(t.Shape(), natural, r.Result(0).Shape()); !ok {
				return true
			}
		}
	}
	return false
}

// reshaped is the strides of the same elements in row-major order under another shape; ok is false when there are none.
func reshaped(shape, strides, to []int64) (out []int64, ok bool) {
	var n, s []int64 // without unit dimensions
	for i, d := range shape {
		if d != 1 {
			n, s = append(n, d), append(s, strides[i])
		}
	}
	out = make([]int64, len(to))
	i := len(n) - 1
	left, stride := int64(1), int64(0) // what remains of dimension i+1, and its stride
	for j := len(to) - 1; j >= 0; j-- {
		rest := to[j]
		if rest == 1 {
			continue
		}
		for {
			if left == 1 {
				if i < 0 {
					return nil, false
				}
				left, stride = n[i], s[i]
				i--
			}
			if out[j] == 0 && rest == to[j] {
				out[j] = stride
			}
			if left%rest == 0 {
				left /= rest
				stride *= rest
				break
			}
			if rest%left != 0 || i < 0 || s[i] != stride*left {
				return nil, false
			}
			rest /= left
			left = 1
		}
	}
	return out, true
}

func permuted(s, perm []int64) []int64 {
	out := make([]int64, len(perm))
	for i, p := range perm {
		out[i] = s[p]
	}
	return out
}

func inversePerm(perm []int64) []int64 {
	inv := make([]int64, len(perm))
	for i, p := range perm {
		inv[p] = int64(i)
	}
	return inv
}
