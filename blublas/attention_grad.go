package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// GradQueries makes the kernel of the queries' gradients. It also writes delta, the sum of o * do for each query, which GradKeys
// reads. Parameters: q, k, v, o, lse, do, dq, delta and, with Sums, sums; lse and delta are f32, [batch, heads, queries].
func (a Attention) GradQueries(at *ir.Builder, d Device) (*Kernel, error) {
	if err := a.check(AttentionGradQueries, d); err != nil {
		return nil, err
	}
	if a.Block.Consumers > 0 {
		return a.gradQueriesHopper(at, d), nil
	}
	k, w := a.start(at, d, "attention_grad_queries", a.Queries, a.Heads, a.summed("q", "k", "v", "o", "lse", "do", "dq", "delta")...)
	w.body(w.gradQueries)
	return k, nil
}

// gradQueries computes its queries' gradients.
func (w *attention) gradQueries() {
	a := w.Attention
	b := w.b
	rows, keys := a.panel(a.Block.rows()), a.panel(a.Block.Columns)
	head := w.keyHead()
	key, value := w.base("k", a.K, head), w.base("v", a.V, head)
	w.bring(rows, w.base("q", a.Q, w.head), a.Q.Row, w.first, a.Queries, w.shared)
	w.bring(rows, w.base("do", a.DO, w.head), a.DO.Row, w.first, a.Queries, b.AddI(w.shared, rows.bytes()))
	b.Do(ptx.CopyCommit, nil)

	unmasked, end := w.keyBlocks()
	ring := columns{w, end, func(block, stage *ir.Value) {
		from := b.MulI(block, a.Block.Columns)
		w.bring(keys, key, a.K.Row, from, a.Keys, stage)
		w.bring(keys, value, a.V.Row, from, a.Keys, b.AddI(stage, keys.bytes()))
	}}
	offset := ring.prime(b.I32(0))
	lse, delta := w.rowNumbers(), w.deltas()
	w.rowsLanded()
	operands := func() (queries, grads [][]fragment) {
		return w.rowOperands(w.shared), w.rowOperands(b.AddI(w.shared, rows.bytes()))
	}
	var queries, grads [][]fragment
	keep := a.Precision != TF32x3 // its two parts of each operand don't fit beside the sums: they are made for each block of keys
	if keep {
		queries, grads = operands()
	}

	step := func(masked bool) func(block, stage *ir.Value, carried []*ir.Value) []*ir.Value {
		return func(block, stage *ir.Value, sum []*ir.Value) []*ir.Value {
			queries, grads := queries, grads
			if !keep {
				queries, grads = operands()
			}
			scores := w.product(queries, stage, a.Block.Columns)
			if masked {
				w.mask(scores, b.MulI(block, a.Block.Columns), math.Inf(-1))
			}
			dp := w.product(grads, b.AddI(stage, keys.bytes()), a.Block.Columns)
			perTile := a.Block.Columns / 8
			ds := make([]*ir.Value, len(scores))
			for i, x := range scores {
				row := i / perTile * 2
				p, g := b.Scalars(x), b.Scalars(dp[i])
				for e := range p {
					p[e] = w.exponential(p[e], lse[row+e/2])
					p[e] = b.Binary(ptx.Mul, p[e], b.Binary(ptx.Sub, g[e], delta[row+e/2]))
				}
				ds[i] = b.Vector(p...)
			}
			return w.gather(ds, stage, a.Block.Columns, sum)
		}
	}
	offset, sum := ring.each(b.I32(0), unmasked, offset, w.zeros(a.Features), step(false))
	_, sum = ring.each(unmasked, end, offset, sum, step(true))
	scale := func(int, bool) *ir.Value { return b.F32(a.Scale) }
	w.storeRows(w.base("dq", a.DQ, w.head), a.DQ.Row, sum, scale)
	w.sumRows(a.Sums.Q, sum, scale)
}

// statistics is where the numbers of a head's queries start in a tensor [batch, heads, queries] of f32.
func (w *attention) statistics(param string, head *ir.Value) *ir.Value {
	return w.Attention.statistics(w.b, param, w.batch, head, w.args[param])
}

// rowNumbers reads -lse (in the unit of exponents) of a thread's rows, by tile, then row.
func (w *attention) rowNumbers() (lse []*ir.Value) {
	b := w.b
	lses := w.statistics("lse", w.head)
	for t := range w.Block.Tiles {
		for _, later := range []bool{false, true} {
			row := w.row(t, later)
			inside := w.inside(row)
			l := b.Load(b.MulWide(b.Select(inside, row, b.I32(0)), 4, lses), b.Ctx.F32(), 1, ptx.Access{Space: "global", If: inside})
			lse = append(lse, w.inExponents(l))
		}
	}
	return lse
}

// inExponents is -lse in the unit of exponents. A row that sees no key has lse -inf, and weights 0 by the mask; its number is 0, so that nothing
// is infinity less infinity.
func (w *attention) inExponents(lse *ir.Value) *ir.Value {
	b := w.b
	return b.Binary(ptx.Mul, b.Select(b.Compare("eq", lse, b.F32(math.Inf(-1))), b.F32(0), lse), b.F32(-w.unit()))
}

// deltas sums o * do of a thread's rows, by tile, then row. They are written, too. The loads of both rows of a tile are under way before any is waited
// for.
func (w *attention) deltas() (delta []*ir.Value) {
	b, size := w.b, w.size()
	o, do := w.base("o", w.O, w.head), w.base("do", w.DO, w.head)
	for t := range w.Block.Tiles {
		var rows [2]*ir.Value
		var outputs, grads [2][]*ir.Value
		for i, later := range []bool{false, true} {
			rows[i] = w.row(t, later)
			inside := w.inside(rows[i])
			row := b.Select(inside, rows[i], b.I32(0))
			at := func(base *ir.Value, pitch int) *ir.Value {
				return b.MulWide(b.Add(b.MulI(row, pitch*size), b.MulI(w.quad, 16)), 1, base)
			}
			from, fromGrad := at(o, w.O.Row), at(do, w.DO.Row)
			for column := 0; column < w.Features*size; column += 64 {
				there := inside
				if column+64 > w.Features*size {
					there = b.And(inside, b.Compare("lo", w.quad, b.I32((w.Features*size-column)/16)))
				}
				outputs[i] = append(outputs[i], w.loadWords(from, column, there)...)
				grads[i] = append(grads[i], w.loadWords(fromGrad, column, there)...)
			}
		}
		for i, row := range rows {
			sum := b.F32(0)
			for j := range outputs[i] {
				x, y := w.pair(outputs[i][j]), w.pair(grads[i][j])
				for e := range x {
					sum = b.FMA(x[e], y[e], sum)
				}
			}
			delta = append(delta, w.storeDelta(row, sum))
		}
	}
	return delta
}

// storeDelta adds up what the lanes of a row have of its delta, and writes it.
func (w *attention) storeDelta(row, sum *ir.Value) *ir.Value {
	b := w.b
	sum = w.quads(sum, ptx.Add)
	inside := w.inside(row)
	at := b.MulWide(b.Select(inside, row, b.I32(0)), 4, w.statistics("delta", w.head))
	b.Store(at, sum, ptx.Access{Space: "global", If: b.And(inside, b.Compare("eq", w.quad, b.I32(0)))})
	return sum
}

// loadWords reads 16 bytes of global memory: words of an f32 or of two bf16.
func (w *attention) loadWords(at *ir.Value, offset int, there *ir.Value) []*ir.Value {
	t := ir.Type(w.b.Ctx.I32())
	if w.size() == 4 {
		t = w.b.Ctx.F32()
	}
	return w.b.Scalars(w.b.Load(at, t, 4, ptx.Access{Space: "global", Offset: offset, If: there}))
}

// pair is what a word holds, as f32.
func (w *attention) pair(word *ir.Value) []*ir.Value {
	if w.size() == 4 {
		return []*ir.Value{word}
	}
	low, high := w.b.Split(word, w.b.Ctx.Int(16))
	return []*ir.Value{widen(w.b, ir.BF16, low), widen(w.b, ir.BF16, high)}
}

// GradKeys makes the kernel of the keys' and values' gradients: its rows are keys, its columns the queries that see them, of
// every head that shares the keys, in order. Parameters: q, k, v, lse, do, delta, dk, dv and, with Sums, sums.
func (a Attention) GradKeys(at *ir.Builder, d Device) (*Kernel, error) {
	if err := a.check(AttentionGradKeys, d); err != nil {
		return nil, err
	}
	if a.Block.Consumers > 0 {
		return a.gradKeysHopper(at, d), nil
	}
	k, w := a.start(at, d, "attention_grad_keys", a.Keys, a.KeyHeads, a.summed("q", "k", "v", "lse", "do", "delta", "dk", "dv")...)
	w.body(w.gradKeys)
	return k, nil
}

// gradKeys computes the gradients of its keys and their values.
func (w *attention) gradKeys() {
	a := w.Attention
	b := w.b
	rows, queries := a.panel(a.Block.rows()), a.panel(a.Block.Columns)
	w.bring(rows, w.base("k", a.K, w.head), a.K.Row, w.first, a.Keys, w.shared)
	w.bring(rows, w.base("v", a.V, w.head), a.V.Row, w.first, a.Keys, b.AddI(w.shared, rows.bytes()))
	b.Do(ptx.CopyCommit, nil)

	// Blocks of queries from the first that sees the block's first key, once for each head.
	from, perHead := b.I32(0), b.I32(ceil(a.Queries, a.Block.Columns))
	if a.Causal {
		from = b.DivI(b.Binary(ptx.Max, b.AddI(w.first, -w.offset()), b.I32(0)), a.Block.Columns)
		from = b.Min(from, perHead)
	}
	count := b.Sub(perHead, from)
	place := func(block *ir.Value) (head, query *ir.Value) { // of the number of a block among those of all heads
		group := w.Heads / w.KeyHeads
		if group == 1 {
			return w.head, b.MulI(b.Add(from, block), a.Block.Columns)
		}
		h := b.Binary(ptx.Div, block, b.Binary(ptx.Max, count, b.I32(1)))
		return b.Add(b.MulI(w.head, group), h), b.MulI(b.Add(from, b.Sub(block, b.Mul(h, count))), a.Block.Columns)
	}
	ring := columns{w, b.MulI(count, w.Heads/w.KeyHeads), func(block, stage *ir.Value) {
		head, query := place(block)
		w.bring(queries, w.base("q", a.Q, head), a.Q.Row, query, a.Queries, stage)
		w.bring(queries, w.base("do", a.DO, head), a.DO.Row, query, a.Queries, b.AddI(stage, queries.bytes()))
		w.bringNumbers(head, query, b.AddI(stage, 2*queries.bytes()))
	}}
	offset := ring.prime(b.I32(0))
	w.rowsLanded()

	sums := append(w.zeros(a.Features), w.zeros(a.Features)...)
	half := len(sums) / 2
	_, sums = ring.each(b.I32(0), ring.end, offset, sums, func(block, stage *ir.Value, sums []*ir.Value) []*ir.Value {
		_, query := place(block)
		keys, values := w.rowOperands(w.shared), w.rowOperands(b.AddI(w.shared, rows.bytes()))
		p, ds := w.weights(keys, values, query, stage)
		dv := w.gather(p, b.AddI(stage, queries.bytes()), a.Block.Columns, sums[half:])
		dk := w.gather(ds, stage, a.Block.Columns, sums[:half])
		return append(dk, dv...)
	})
	scale := func(x float64) func(int, bool) *ir.Value { return func(int, bool) *ir.Value { return b.F32(x) } }
	w.storeRows(w.base("dk", a.DK, w.head), a.DK.Row, sums[:half], scale(a.Scale))
	w.storeRows(w.base("dv", a.DV, w.head), a.DV.Row, sums[half:], scale(1))
	w.sumRows(a.Sums.K, sums[:half], scale(a.Scale))
	w.sumRows(a.Sums.V, sums[half:], scale(1))
}

// bringNumbers starts copying lse and delta of a block of queries: after its panels.
func (w *attention) bringNumbers(head, query, to *ir.Value) {
	b, n, threads := w.b, w.Block.Columns, 32*w.Block.Warps
	for done := 0; done < n; done += threads {
		index := b.AddI(w.tid, done)
		b.If(b.Compare("lo", index, b.I32(n)), false, func() {
			at := b.Add(query, index)
			inside := b.Compare("lo", at, b.I32(w.Queries))
			count := b.Select(inside, b.I32(4), b.I32(0))
			at = b.Select(inside, at, b.I32(0))
			for i, param := range []string{"lse", "delta"} {
				b.Do(ptx.CopyAsync, []*ir.Value{b.Add(to, b.MulI(index, 4)), b.MulWide(at, 4, w.statistics(param, head)), count}, "bytes", 4, "offset", 4*n*i)
			}
		}, nil)
	}
}

// weights is the weights of a block of queries, transposed, and the gradients of their scores: rows are keys.
func (w *attention) weights(keys, values [][]fragment, query, stage *ir.Value) (p, ds []*ir.Value) {
	b, n := w.b, w.Block.Columns
	panel := w.panel(n).bytes()
	p = w.product(keys, stage, n)
	dp := w.product(values, b.AddI(stage, panel), n)
	numbers := b.Add(b.AddI(stage, 2*panel), b.MulI(w.quad, 8))
	column := b.Add(query, b.MulI(w.quad, 2)) // this thread's first query
	perTile := n / 8
	ds = make([]*ir.Value, len(p))
	for j := range perTile {
		lse := b.Scalars(b.Load(numbers, b.Ctx.F32(), 2, ptx.Access{Space: "shared", Offset: 32 * j}))
		delta := b.Scalars(b.Load(numbers, b.Ctx.F32(), 2, ptx.Access{Space: "shared", Offset: 4*n + 32*j}))
		for e := range lse {
			lse[e] = b.Binary(ptx.Mul, lse[e], b.F32(-w.unit()))
		}
		for t := range w.Block.Tiles {
			i := t*perTile + j
			x, g := b.Scalars(p[i]), b.Scalars(dp[i])
			for e := range x {
				x[e] = w.exponential(x[e], lse[e%2])
				x[e] = b.Select(w.seen(t, e >= 2, b.AddI(column, 8*j+e%2)), x[e], b.F32(0))
				g[e] = b.Binary(ptx.Mul, x[e], b.Binary(ptx.Sub, g[e], delta[e%2]))
			}
			p[i], ds[i] = b.Vector(x...), b.Vector(g...)
		}
	}
	return p, ds
}

// seen says whether a query sees the key of a thread's row. Keys beyond the last are rows that nobody stores.
func (w *attention) seen(tile int, later bool, query *ir.Value) *ir.Value {
	b := w.b
	in := b.Compare("lt", query, b.I32(w.Queries))
	if w.Causal {
		in = b.And(in, b.Compare("ge", b.AddI(query, w.offset()), w.row(tile, later)))
	}
	return in
}
