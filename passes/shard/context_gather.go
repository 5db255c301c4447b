package shard

import (
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// pool is the keys and values of all ranks, gathered at once; gradients of them are added up at once, too.
type pool struct {
	attention
	k, v   *ir.Value   // of all ranks, a first axis
	dk, dv []*ir.Value // of steps 1 to n-1
}

func (a attention) pool(k, v *ir.Value) *pool {
	k, v = a.gatherKeys(k, v)
	return &pool{attention: a, k: k, v: v}
}

// gatherKeys is keys and values of all ranks. The gradient uses those that the forward part gathered.
func (a attention) gatherKeys(k, v *ir.Value) (*ir.Value, *ir.Value) {
	for _, g := range a.gathered[k] {
		if g.v == v {
			return g.all[0], g.all[1]
		}
	}
	all := a.allRanks(k, v)
	a.gathered[k] = append(a.gathered[k], gathered{v, all})
	return all[0], all[1]
}

// gathered is what was gathered of keys and these values.
type gathered struct {
	v   *ir.Value
	all []*ir.Value
}

// keys takes those of rank r-i modulo n.
func (p *pool) keys(i int64) (k, v *ir.Value) {
	one := p.Ctx.Tensor([]int64{1}, p.Ctx.I32())
	at := p.modulo(p.Sub(p.Fill(p.rank, []int64{1}), p.Splat(one, float64(i))))
	take := func(all *ir.Value) *ir.Value { return p.ReshapeTo(p.Gather(all, at), all.Shape()[1:]...) }
	return take(p.k), take(p.v)
}

// modulo is numbers, which are at least -n, modulo n.
func (d *divider) modulo(x *ir.Value) *ir.Value {
	negative := d.Compare(x, d.SplatLike(x, 0), "lt")
	return d.Select(negative, d.Add(x, d.SplatLike(x, float64(d.n))), x)
}

func (p *pool) add(_ int64, dk, dv *ir.Value) { p.dk, p.dv = append(p.dk, dk), append(p.dv, dv) }

// own adds up what all ranks have for this one's keys. What step i has is for rank r-i, so rank j's is that of step r-j
// modulo n, of which 0 is the rank's own and counted elsewhere.
func (p *pool) own() (dk, dv *ir.Value) {
	ranks := p.Ctx.Tensor([]int64{p.n}, p.Ctx.I32())
	step := p.modulo(p.Sub(p.Fill(p.rank, []int64{p.n}), p.Iota(0, ranks)))
	inOrder := func(ofSteps []*ir.Value) *ir.Value {
		shape := append([]int64{1}, ofSteps[0].Shape()...)
		all := []*ir.Value{p.Splat(p.Ctx.Tensor(shape, ofSteps[0].Elem()), 0)}
		for _, x := range ofSteps {
			all = append(all, p.ReshapeTo(x, shape...))
		}
		return p.Gather(p.Concat(all, 0), step)
	}
	sums := p.comm().ReduceScatter([]*ir.Value{inOrder(p.dk), inOrder(p.dv)}, dtms.CP, p.n)
	return sums.Result(0), sums.Result(1)
}

// ofAll is attention without a mask to all keys, gathered; their order does not matter.
func (a attention) ofAll(q, k, v *ir.Value) merged {
	k, v = a.gatherKeys(k, v)
	return a.block(q, a.joinParts(k, 2), a.joinParts(v, 2), false)
}

// gradOfAll is the gradient of ofAll.
func (a attention) gradOfAll(x queries, k, v *ir.Value) []*ir.Value {
	k, v = a.gatherKeys(k, v)
	dq, dk, dv := a.grad(x, a.joinParts(k, 2), a.joinParts(v, 2), false)
	sums := a.comm().ReduceScatter([]*ir.Value{a.parts(dk, 2), a.parts(dv, 2)}, dtms.CP, a.n)
	return []*ir.Value{dq, sums.Result(0), sums.Result(1)}
}
