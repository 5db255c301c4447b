package prim

import "math"

// AdamW holds the hyperparameters of one step of AdamW (Loshchilov and Hutter,
// "Decoupled weight decay regularization", 2019).
type AdamW struct {
	LR, Beta1, Beta2, Eps, WeightDecay float64
	Step                               int     // counts from 1
	GradScale                          float64 // what gradients are multiplied by first: clipping, 1/count
}

// AdamW updates parameters p and moments m and v from gradients g:
//
//	g' = GradScale g;  m += (1-Beta1)(g' - m);  v += (1-Beta2)(g'^2 - v)
//	p = p - LR WeightDecay p - LR mHat / (sqrt(vHat) + Eps)
//
// with mHat = m/(1-Beta1^Step), vHat = v/(1-Beta2^Step).
func (k *Kernels) AdamW(p, m, v, g []float32, h *AdamW) {
	n := len(p)
	if n == 0 {
		return
	}
	m, v, g = m[:n], v[:n], g[:n]
	correct1 := 1 - math.Pow(h.Beta1, float64(h.Step))
	correct2 := 1 - math.Pow(h.Beta2, float64(h.Step))
	k.ops.adamW(&p[0], &m[0], &v[0], &g[0], float32(h.GradScale), float32(1-h.Beta1), float32(1-h.Beta2),
		float32(1/math.Sqrt(correct2)), float32(h.Eps), float32(h.LR/correct1), float32(1-h.LR*h.WeightDecay), n)
}
