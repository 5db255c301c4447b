package shard

import (
	"fmt"
	"slices"

	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// checkHeads says whether heads can be shared by the ranks, and by how many they could.
func (d *divider) checkHeads(op *ir.Op) error {
	h, hk := op.Operand(0).Shape()[1], op.Operand(1).Shape()[1]
	if h%d.n == 0 && hk%d.n == 0 {
		return nil
	}
	heads := fmt.Sprintf("%d", h)
	if hk != h {
		heads = fmt.Sprintf("%d of queries and %d of keys", h, hk)
	}
	var could []int64
	for n := int64(2); n <= hk; n++ {
		if h%n == 0 && hk%n == 0 {
			could = append(could, n)
		}
	}
	advice := "no number of ranks can share them: use --context ring"
	if len(could) > 0 {
		advice = fmt.Sprintf("cp = %s can, and --context ring takes any number of heads", list(could))
	}
	return op.Errorf("shard: ulysses with cp=%d gives each rank an equal number of heads, and the heads of this attention are %s; %s", d.n, heads, advice)
}

// byHeads is attention by the rank's heads to the whole sequence.
func (a attention) byHeads(q, k, v *ir.Value) merged {
	x := a.toHeads(q, k, v)
	y := a.Attention(x[0], x[1], x[2], a.causal, a.scale)
	// The gradient uses lse by heads: to bring it is a call of its own, which nothing may need.
	return merged{a.toPositions(y.O())[0], a.toPositions(y.Lse())[0]}
}

// gradByHeads is the gradient of byHeads. What it needs of the forward part is there by heads already.
func (a attention) gradByHeads(x queries, k, v *ir.Value) []*ir.Value {
	h := a.toHeads(x.q, k, v, x.o, x.lse, x.do)
	g := a.AttentionGrad(h[0], h[1], h[2], h[3], h[4], h[5], a.causal, a.scale)
	return a.toPositions(g.Results()...)
}

// toHeads makes pieces of the positions, [batch, heads, positions / n, ...], pieces of the heads, [batch, heads / n,
// positions, ...], those that aren't there as such yet.
func (a attention) toHeads(xs ...*ir.Value) []*ir.Value {
	var missing []*ir.Value
	for _, x := range xs {
		if a.headed[x] == nil {
			missing = append(missing, x)
		}
	}
	for i, h := range a.exchange(missing, 1, 2) {
		a.headed[missing[i]] = h
	}
	hs := make([]*ir.Value, len(xs))
	for i, x := range xs {
		hs[i] = a.headed[x]
	}
	return hs
}

// toPositions is the inverse of toHeads.
func (a attention) toPositions(hs ...*ir.Value) []*ir.Value {
	xs := a.exchange(hs, 2, 1)
	for i, x := range xs {
		a.headed[x] = hs[i]
	}
	return xs
}

// exchange gives every rank its part of the axis split, and takes the parts of the axis join that the others have: one
// all-to-all for the values of an element type.
func (a attention) exchange(xs []*ir.Value, split, join int) []*ir.Value {
	ys := make([]*ir.Value, len(xs))
	for i, first := range xs {
		if ys[i] != nil {
			continue
		}
		var places []int
		var bucket []*ir.Value
		for j := i; j < len(xs); j++ {
			if xs[j].Elem() == first.Elem() {
				places, bucket = append(places, j), append(bucket, a.parts(xs[j], split))
			}
		}
		for j, y := range a.comm().AllToAll(bucket, dtms.CP, a.n).Ys() {
			ys[places[j]] = a.joinParts(y, join)
		}
	}
	return ys
}

// parts is a value with an axis cut into n, which come one after another: a new first axis.
func (d *divider) parts(x *ir.Value, axis int) *ir.Value {
	shape := slices.Insert(slices.Clone(x.Shape()), axis, d.n)
	shape[axis+1] /= d.n
	perm := []int64{int64(axis)}
	for i := range shape {
		if i != axis {
			perm = append(perm, int64(i))
		}
	}
	return d.Transpose(d.ReshapeTo(x, shape...), perm)
}

// joinParts joins what the first axis counts along another axis, counted without the first one.
func (d *divider) joinParts(x *ir.Value, axis int) *ir.Value {
	perm := make([]int64, 0, len(x.Shape()))
	for i := 1; i < len(x.Shape()); i++ {
		perm = append(perm, int64(i))
	}
	y := d.Transpose(x, slices.Insert(perm, axis, 0))
	shape := slices.Delete(slices.Clone(y.Shape()), axis, axis+1)
	shape[axis] *= d.n
	return d.ReshapeTo(y, shape...)
}
