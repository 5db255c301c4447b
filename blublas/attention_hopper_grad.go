package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// gradQueriesHopper makes GradQueries' kernel for warpgroups. Parameters: tensor maps of q, do, o, k and v, lse, delta, dq; or
// tensor maps of the planes of q, do, k and v, lse, delta, o, do, dq and the planes' scales. Staged, dq has a tensor map.
func (a Attention) gradQueriesHopper(at *ir.Builder, d Device) *Kernel {
	pointers := []string{"lse", "delta"}
	if a.scaled() {
		pointers = append(pointers, "o", "do")
	}
	k, w := a.startHopper(at, AttentionGradQueries, d, "attention_grad_queries", a.summed(pointers...)...)
	w.build(w.gradQueriesTile)
	return k
}

// gradQueriesTile computes this consumer's rows of a tile.
func (w *groups) gradQueriesTile(ring, rows slot) slot {
	b := w.b
	g := &queryGrads{groups: w, head: w.keyHead(), scale: b.F32(w.scale()), gradScale: b.F32(1)}
	if !w.readsOutputs() {
		g.delta = w.deltas()
	}
	w.wait(rowsFull, rows)
	g.queries, g.grads = w.left(rows, 0), w.left(rows, 1)
	if w.readsOutputs() {
		grads := g.grads
		if !w.Block.Held {
			grads = w.held(rows, 1)
		}
		g.delta = w.deltasOf(grads, w.held(rows, 2))
	}
	g.lse = w.rowNumbers(rows)
	w.releaseHeld(rows)
	if w.scaled() {
		g.scale, g.gradScale = b.Binary(ptx.Mul, w.scaleOf("q", w.head, w.myRow()), g.scale), w.scaleOf("do", w.head, w.myRow())
	}
	_, all := w.columnBlocks(b.I32(0), w.rows.rows)
	unmasked, end := w.columnBlocks(b.MulI(w.mine, 64), 64)
	w.turn()
	out := append(ring.values(), b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", w.Features/2).Result(0))
	out = b.For(b.I32(0), unmasked, b.I32(1), true, out, g.step(false))
	out = b.For(unmasked, end, b.I32(1), true, out, g.step(true))
	w.releaseRows(rows)
	ring = w.skip(end, all, slot{out[0], out[1]})
	w.pass()
	sums, factor := w.quarters(out[2]), func(int, bool) *ir.Value { return b.F32(w.Scale) }
	w.storeResults(rows, result{"dq", w.DQ, sums, factor})
	w.sumRows(w.Sums.Q, sums, factor)
	return ring
}

// readsOutputs is whether the queries' gradients have o brought as rows, to make deltas of. Of planes they read o and do as they are.
func (w *groups) readsOutputs() bool { return w.kind == AttentionGradQueries && !w.scaled() }

// deltasOf is the sums of o * do of a thread's rows, of both as operands in registers. They are written, too.
func (w *groups) deltasOf(grads, outputs factor) (delta []*ir.Value) {
	b := w.b
	sums := []*ir.Value{b.F32(0), b.F32(0)}
	for step := range w.Features / 16 {
		xs, ys := b.Scalars(outputs(0, step)), b.Scalars(grads(0, step))
		for i := range xs {
			x, y := w.pair(xs[i]), w.pair(ys[i])
			for e := range x {
				sums[i%2] = b.FMA(x[e], y[e], sums[i%2])
			}
		}
	}
	for i, later := range []bool{false, true} {
		delta = append(delta, w.storeDelta(w.row(0, later), sums[i]))
	}
	return delta
}

// rowNumbersAt is where the numbers of a slot's rows are.
func (w *groups) rowNumbersAt(rows slot) *ir.Value {
	b := w.b
	return b.AddI(b.Add(w.shared, b.MulI(rows.index, 4*w.rows.rows)), w.numbers())
}

// rowNumbers reads what a producer wrote of a thread's rows.
func (w *groups) rowNumbers(rows slot) (lse []*ir.Value) {
	b := w.b
	from := b.Add(w.rowNumbersAt(rows), b.MulI(b.Add(w.warpRow, w.group), 4))
	for later := range 2 {
		lse = append(lse, b.Load(from, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: 32 * later}))
	}
	return lse
}

// queryGrads is a tile of queries' gradients: what its steps have in common.
type queryGrads struct {
	*groups
	queries, grads   factor
	head             *ir.Value // of keys
	scale, gradScale *ir.Value // of scores, and of gradients of weights, but for those of planes of columns
	lse, delta       []*ir.Value
}

// step takes a block of keys.
func (g *queryGrads) step(masked bool) func(i *ir.Value, carried []*ir.Value) []*ir.Value {
	b := g.b
	return func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		ring, sum := slot{carried[0], carried[1]}, carried[2]
		column := b.MulI(i, g.Block.Columns)
		scale, gradScale, keyScale := g.scale, g.gradScale, b.F32(1)
		if g.scaled() {
			keyScale = g.scaleOf("k", g.head, column)
			scale, gradScale = b.Binary(ptx.Mul, scale, keyScale), b.Binary(ptx.Mul, gradScale, g.scaleOf("v", g.head, column))
		}
		g.wait(full, ring)
		keys, values, sums := g.scores(ring, 0), g.scores(ring, 1), g.sums(ring, 0)
		b.Do(ptx.WGMMAFence, nil)
		both := g.begun(g.contract(g.queries, keys), g.contract(g.grads, values))
		scores := g.quarters(both[0])
		if masked {
			g.mask(scores, column, math.Inf(-1))
		}
		var ds []*ir.Value
		for j, x := range scores {
			for e := range 4 {
				p := g.power(b.Extract(x, e), scale, g.lse[e/2])
				ds = append(ds, b.Binary(ptx.Mul, p, g.less(b.Extract(both[1], 4*j+e), gradScale, g.delta[e/2])))
			}
		}
		if g.scaled() {
			left, down := g.scaledOperands(ds)
			g.turn()
			sum = g.addScaled(left, down, sums, keyScale, sum)
		} else {
			left := g.operands(ds)
			g.turn()
			b.Do(ptx.WGMMAFence, nil)
			sum = g.complete(g.multiply(left, sums, g.Block.Columns/16, sum, b.True(), true))[0]
		}
		g.release(empty, ring)
		return append(g.after(ring, g.Block.Stages).values(), sum)
	}
}

// less is the gradient of a weight, which planes have at a scale, less the sum over its row of what weights and gradients
// make together.
func (w *groups) less(x, scale, delta *ir.Value) *ir.Value {
	if !w.scaled() {
		return w.b.Binary(ptx.Sub, x, delta)
	}
	return w.b.FMA(x, scale, w.b.Unary(ptx.Neg, delta))
}

// begun waits for products, of which the next consumer may begin its own.
func (w *groups) begun(acc ...*ir.Value) []*ir.Value {
	b := w.b
	b.Do(ptx.WGMMACommit, nil)
	w.pass()
	return b.Do(ptx.WGMMAWait, acc, "pending", 0).Results()
}

// addScaled is sum + left right, of which left's rows are too great by factors, and right, planes, by one.
func (w *groups) addScaled(left factor, down [2]*ir.Value, right factor, scale, sum *ir.Value) *ir.Value {
	b, n := w.b, w.Features/2
	b.Do(ptx.WGMMAFence, nil)
	acc := w.complete(w.multiply(left, right, w.Block.Columns/16, b.Undef(n), b.False(), true))[0]
	for i := range down {
		down[i] = b.Binary(ptx.Mul, down[i], scale)
	}
	return b.FMA(acc, w.byRow(n, down), sum)
}

// gradKeysHopper makes GradKeys' kernel for warpgroups. Parameters: tensor maps of k, v, q and do, or of their planes, lse,
// delta, dk, dv; with planes their scales. Staged, dk and dv have tensor maps.
func (a Attention) gradKeysHopper(at *ir.Builder, d Device) *Kernel {
	k, w := a.startHopper(at, AttentionGradKeys, d, "attention_grad_keys", a.summed("lse", "delta")...)
	w.build(w.gradKeysTile)
	return k
}

// gradKeysTile computes this consumer's rows of a tile, which are keys.
func (w *groups) gradKeysTile(ring, rows slot) slot {
	b, n := w.b, w.Features/2
	w.wait(rowsFull, rows)
	g := &keyGrads{groups: w, keys: w.left(rows, 0), values: w.left(rows, 1), scale: b.F32(w.scale()), gradScale: b.F32(1)}
	w.releaseHeld(rows)
	if w.scaled() {
		g.scale, g.gradScale = b.Binary(ptx.Mul, w.scaleOf("k", w.head, w.myRow()), g.scale), w.scaleOf("v", w.head, w.myRow())
	}
	all, _, _ := w.queryBlocks(b.I32(0), w.rows.rows)
	from, unmasked, end := w.queryBlocks(b.MulI(w.mine, 64), 64)
	w.turn()
	zeros := func() *ir.Value { return b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", n).Result(0) }
	out := w.eachHead(append(ring.values(), zeros(), zeros()), func(head *ir.Value, carried []*ir.Value) []*ir.Value {
		skipped := w.skip(all, from, slot{carried[0], carried[1]})
		carried = b.For(from, unmasked, b.I32(1), true, append(skipped.values(), carried[2:]...), g.step(head, true))
		return b.For(unmasked, end, b.I32(1), true, carried, g.step(head, false))
	})
	w.releaseRows(rows)
	w.pass()
	dk, dv := w.quarters(out[2]), w.quarters(out[3])
	factor := func(int, bool) *ir.Value { return b.F32(w.Scale) }
	w.storeResults(rows, result{"dk", w.DK, dk, factor}, result{"dv", w.DV, dv, nil})
	w.sumRows(w.Sums.K, dk, factor)
	w.sumRows(w.Sums.V, dv, nil)
	return slot{out[0], out[1]}
}

// keyGrads is a tile of keys' gradients: what its steps have in common.
type keyGrads struct {
	*groups
	keys, values     factor
	scale, gradScale *ir.Value // of scores, and of gradients of weights, but for those of planes of columns
}

// step takes a block of queries of a head: its weights and their gradients, then what they add to the sums.
func (g *keyGrads) step(head *ir.Value, masked bool) func(i *ir.Value, carried []*ir.Value) []*ir.Value {
	b := g.b
	return func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		ring, dk, dv := slot{carried[0], carried[1]}, carried[2], carried[3]
		query := b.MulI(i, g.Block.Columns)
		scale, gradScale := g.scale, g.gradScale
		var ofQueries, ofGrads *ir.Value
		if g.scaled() {
			ofQueries, ofGrads = g.scaleOf("q", head, query), g.scaleOf("do", head, query)
			scale, gradScale = b.Binary(ptx.Mul, scale, ofQueries), b.Binary(ptx.Mul, gradScale, ofGrads)
		}
		g.wait(full, ring)
		queries, grads, querySums, gradSums := g.scores(ring, 0), g.scores(ring, 1), g.sums(ring, 0), g.sums(ring, 1)
		b.Do(ptx.WGMMAFence, nil)
		scores := g.contract(g.keys, queries)
		both := g.begun(scores, g.weightGrads(ring, grads))
		p, ds := g.columnWeights(ring, query, both[0], both[1], scale, gradScale, masked)
		if g.scaled() { // one after the other: both operands and both accumulators don't fit
			left, down := g.scaledOperands(p)
			g.turn()
			dv = g.addScaled(left, down, gradSums, ofGrads, dv)
			left, down = g.scaledOperands(ds)
			dk = g.addScaled(left, down, querySums, ofQueries, dk)
		} else {
			weights, weightGrads, steps := g.operands(p), g.operands(ds), g.Block.Columns/16
			g.turn()
			b.Do(ptx.WGMMAFence, nil)
			sums := g.complete(g.multiply(weights, gradSums, steps, dv, b.True(), true), g.multiply(weightGrads, querySums, steps, dk, b.True(), true))
			dv, dk = sums[0], sums[1]
		}
		b.Do(ptx.WarpSync, nil) // all lanes have read their numbers
		g.release(empty, ring)
		return append(g.after(ring, g.Block.Stages).values(), dk, dv)
	}
}

// weightGrads begins the product of values and gradients of outputs, less delta where it starts with that: it is loaded while the product before it is
// under way.
func (g *keyGrads) weightGrads(ring slot, grads factor) *ir.Value {
	if !g.startsWithDeltas() {
		return g.contract(g.values, grads)
	}
	b, n := g.b, g.Block.Columns
	from := b.Add(b.AddI(g.shared, g.numbers()+4*n), b.Add(b.MulI(ring.index, g.numberBytes()), b.MulI(g.quad, 16)))
	var less []*ir.Value
	for j := range n / 8 {
		less = append(less, b.Scalars(b.Load(from, b.Ctx.F32(), 4, ptx.Access{Space: "shared", Offset: 64 * j}))...)
	}
	acc := b.Unary(ptx.Copy, b.Vector(less...))
	b.Do(ptx.WGMMAFence, nil)
	return g.multiply(g.values, grads, g.Features/16, acc, b.True(), false)
}

// columnWeights is the weights of a block of queries, transposed, and the gradients of their scores, of the products that
// they are made of.
func (w *groups) columnWeights(ring slot, query, scores, grads, scale, gradScale *ir.Value, masked bool) (p, ds []*ir.Value) {
	b, n := w.b, w.Block.Columns
	numbers := b.Add(b.AddI(w.shared, w.numbers()), b.Add(b.MulI(ring.index, w.numberBytes()), b.MulI(w.quad, 8)))
	column := b.Add(query, b.MulI(w.quad, 2)) // this thread's first query
	var limits [2]*ir.Value                   // queries before them don't see the key
	for i, later := range []bool{false, true} {
		if masked {
			limits[i] = b.Sub(b.AddI(w.row(0, later), -w.offset()), column)
		}
	}
	for j := range n / 8 {
		lse := b.Scalars(b.Load(numbers, b.Ctx.F32(), 2, ptx.Access{Space: "shared", Offset: 32 * j}))
		var delta []*ir.Value
		if !w.startsWithDeltas() {
			delta = b.Scalars(b.Load(numbers, b.Ctx.F32(), 2, ptx.Access{Space: "shared", Offset: 4*n + 32*j}))
		}
		for e := range 4 {
			x := w.power(b.Extract(scores, 4*j+e), scale, lse[e%2])
			if masked {
				x = b.Select(b.Compare("le", limits[e/2], b.I32(8*j+e%2)), x, b.F32(0))
			}
			p = append(p, x)
			grad := b.Extract(grads, 4*j+e)
			if delta != nil {
				grad = w.less(grad, gradScale, delta[e%2])
			}
			ds = append(ds, b.Binary(ptx.Mul, x, grad))
		}
	}
	return p, ds
}
