package blu

import (
	"math"

	"blutrain/ir"
)

// heads is the sizes of an attention, and how its tensors are laid out: rows of positions for each batch and head.
type heads struct {
	b, h, hk, s, t, d, e int
	causal               bool
	scale                float64
}

func headsOf(op *ir.Op, q, k, v *ir.Tensor) heads {
	n := func(t *ir.Tensor, axis int) int { return int(t.Shape[axis]) }
	return heads{b: n(q, 0), h: n(q, 1), hk: n(k, 1), s: n(q, 2), t: n(k, 2), d: n(q, 3), e: n(v, 3),
		causal: op.Attrs().Bool("causal"), scale: op.Attrs().FloatOr("scale", 1)}
}

// keyHead is which of all key heads query head i of all query heads reads.
func (a heads) keyHead(i int) int {
	group := a.h / a.hk
	return i/a.h*a.hk + i%a.h/group
}

// seen is how many keys query s sees, counted from the first.
func (a heads) seen(s int) int {
	if !a.causal {
		return a.t
	}
	return min(max(s+a.t-a.s+1, 0), a.t)
}

// head is the rows of one head: n positions of width w.
func head(data []float64, i, n, w int) []float64 { return data[i*n*w : (i+1)*n*w] }

func evalAttention(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	a := headsOf(op, in[0], in[1], in[2])
	o, lse := resultTensor(op, 0), resultTensor(op, 1)
	scores := make([]float64, a.t)
	for i := range a.b * a.h {
		j := a.keyHead(i)
		q, k, v := head(in[0].Data, i, a.s, a.d), head(in[1].Data, j, a.t, a.d), head(in[2].Data, j, a.t, a.e)
		out := head(o.Data, i, a.s, a.e)
		for s := range a.s {
			row := scores[:a.seen(s)]
			for t := range row {
				row[t] = a.scale * dotProduct(q[s*a.d:(s+1)*a.d], k[t*a.d:(t+1)*a.d])
			}
			lse.Data[i*a.s+s] = logSumExp(row)
			sum := expShifted(row)
			for t, p := range row {
				if sum != 0 { // else every score is -inf: nothing is attended to
					axpy(out[s*a.e:(s+1)*a.e], p/sum, v[t*a.e:(t+1)*a.e])
				}
			}
		}
	}
	return []*ir.Tensor{o, lse}, nil
}

func evalAttentionGrad(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
	a := headsOf(op, in[0], in[1], in[2])
	dq, dk, dv := resultTensor(op, 0), resultTensor(op, 1), resultTensor(op, 2)
	for i := range a.b * a.h {
		j := a.keyHead(i)
		q, k, v := head(in[0].Data, i, a.s, a.d), head(in[1].Data, j, a.t, a.d), head(in[2].Data, j, a.t, a.e)
		o, do := head(in[3].Data, i, a.s, a.e), head(in[5].Data, i, a.s, a.e)
		gq, gk, gv := head(dq.Data, i, a.s, a.d), head(dk.Data, j, a.t, a.d), head(dv.Data, j, a.t, a.e)
		for s := range a.s {
			lse := in[4].Data[i*a.s+s]
			qs, dos := q[s*a.d:(s+1)*a.d], do[s*a.e:(s+1)*a.e]
			delta := dotProduct(dos, o[s*a.e:(s+1)*a.e])
			for t := range a.seen(s) {
				kt, vt := k[t*a.d:(t+1)*a.d], v[t*a.e:(t+1)*a.e]
				p := probability(a.scale*dotProduct(qs, kt), lse)
				ds := p * (dotProduct(dos, vt) - delta) * a.scale
				axpy(gv[t*a.e:(t+1)*a.e], p, dos)
				axpy(gq[s*a.d:(s+1)*a.d], ds, kt)
				axpy(gk[t*a.d:(t+1)*a.d], ds, qs)
			}
		}
	}
	return []*ir.Tensor{dq, dk, dv}, nil
}

// probability is exp(score - lse), 0 in a row without any weight.
func probability(score, lse float64) float64 {
	if math.IsInf(lse, -1) {
		return 0
	}
	return math.Exp(score - lse)
}

// axpy adds a times x to y.
func axpy(y []float64, a float64, x []float64) {
	for i, v := range x {
		y[i] += a * v
	}
}
