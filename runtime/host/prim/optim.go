package prim

// AdamW is what one step of AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019) takes besides the
// parameters: with the step's number t, learning rate lr and weight decay w,
//
//	Keep1 = beta1, Take1 = 1 - beta1, Keep2 = beta2, Take2 = 1 - beta2
//	Root = 1/sqrt(1 - beta2^t), Step = lr / (1 - beta1^t), Decay = lr w
type AdamW struct {
	GradScale                  float32 // what gradients are multiplied by first: clipping, 1/count
	Keep1, Take1, Keep2, Take2 float32
	Root, Eps, Step            float32
	Decays                     bool // else Decay has no part in it
	Decay                      float32
}

// AdamW computes new parameters and moments from parameters p, moments m and v and gradients g:
//
//	g' = GradScale g;  m' = Keep1 m + Take1 g';  v' = Keep2 v + Take2 g'^2
//	p' = p - Decay p - Step m' / (Root sqrt(v') + Eps)
//
// It gives the bits of k.Binary and k.FMA in this order; each new block may be any of the old ones.
func (k *Kernels) AdamW(newP, newM, newV, p, m, v, g []float32, h *AdamW) {
	n := len(newP)
	if n == 0 {
		return
	}
	newM, newV, p, m, v, g = newM[:n], newV[:n], p[:n], m[:n], v[:n], g[:n]
	if h.Decays {
		k.ops.adamWDecay(&newP[0], &newM[0], &newV[0], &p[0], &m[0], &v[0], &g[0],
			h.GradScale, h.Keep1, h.Take1, h.Keep2, h.Take2, h.Root, h.Eps, h.Step, h.Decay, n)
		return
	}
	k.ops.adamW(&newP[0], &newM[0], &newV[0], &p[0], &m[0], &v[0], &g[0],
		h.GradScale, h.Keep1, h.Take1, h.Keep2, h.Take2, h.Root, h.Eps, h.Step, n)
}
