package autodiff

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// y[batch, m, n] = sum over k of a[batch, m, k] b[batch, k, n], where m, n and k may be any number of dimensions each:
//
//	da[batch, m, k] = sum over n of dy[batch, m, n] b[batch, k, n]
//	db[batch, n, k] = sum over m of dy[batch, m, n] a[batch, m, k]
//
// and each is permuted to its operand's order of dimensions. dy comes first in both, so that the gradient by a weight
// [n, k] needs no permutation.
func dot(r *reverse, op *ir.Op, dy *ir.Value) []*ir.Value {
	y := blu.DotOp{Op: op}
	a := side{y.Lhs(), y.LhsBatch(), y.LhsContract()}
	b := side{y.Rhs(), y.RhsBatch(), y.RhsContract()}
	batch, m, n := len(a.batch), len(a.free()), len(b.free())
	ds := make([]*ir.Value, 2)
	if r.wants(a.value) {
		ds[0] = r.dotGradient(dy, a, b, span(batch, batch+m), span(batch+m, batch+m+n))
	}
	if r.wants(b.value) {
		ds[1] = r.dotGradient(dy, b, a, span(batch+m, batch+m+n), span(batch, batch+m))
	}
	return ds
}

// side is one operand of a dot with what its dimensions are for.
type side struct {
	value           *ir.Value
	batch, contract []int64
}

// free is the dimensions that remain in the result, ascending.
func (s side) free() []int64 {
	return except(len(s.value.Shape()), slices.Concat(s.batch, s.contract))
}

// dotGradient contracts dy with other to get the cotangent of x. own and others are the dimensions of dy that come from x
// and from other.
func (r *reverse) dotGradient(dy *ir.Value, x, other side, own, others []int64) *ir.Value {
	d := r.Dot(dy, other.value, span(0, len(x.batch)), other.batch, others, other.free())
	// d's dimensions: batch, x's free, and other's contracted in ascending order. Where does each belong in x?
	place := slices.Concat(x.batch, x.free())
	for _, k := range slices.Sorted(slices.Values(other.contract)) {
		place = append(place, x.contract[slices.Index(other.contract, k)])
	}
	return r.permute(d, inverse(place))
}

// span is from, from+1, ..., to-1.
func span(from, to int) []int64 {
	s := make([]int64, to-from)
	for i := range s {
		s[i] = int64(from + i)
	}
	return s
}
