package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// The gradients on float32 units make every score once. A block has a part of one key head's blocks of keys, one after the other, and
// goes over the queries that see them: gradients of keys and values stay in registers, and what a block of keys gives the
// queries is added, by the thread that added before, to a sum in memory of which every part has its own. SIMTSumQueries adds up the parts in order.

// MostParts bounds the number of parts.
const MostParts = 16

// SIMTParts is how many parts share the blocks of keys of a head: as many as fill a device's multiprocessors best.
func (a Attention) SIMTParts(d Device) int {
	blocks := ceil(a.Keys, a.Block.rows())
	time := func(parts int) float64 {
		waves := ceil(a.Batch*a.KeyHeads*parts, d.SMs*a.Block.PerSM)
		return float64(waves) * float64(ceil(blocks, parts))
	}
	best := 1
	for parts := 2; parts <= min(MostParts, blocks); parts++ {
		if time(parts) < 0.98*time(best) {
			best = parts
		}
	}
	return best
}

// SIMTPartialBytes is the size of the sums of all parts.
func (a Attention) SIMTPartialBytes(d Device) int64 {
	return 4 * int64(a.SIMTParts(d)) * int64(a.Batch*a.Heads*a.Queries) * int64(a.Features)
}

// simtGrad is the kernel of the gradients being built.
type simtGrad struct {
	*simtAttention
	parts      int
	part       *ir.Value
	perHead    int       // blocks of queries
	from       *ir.Value // the first that sees a key of the block
	count      *ir.Value // blocks of queries from there on, of a head
	keys, vals simtPanel // of the block
	qs, dos    simtPanel // of a step
	numbers    *ir.Value // lse and delta of a step's queries
}

// SIMTGrad makes the kernel of the gradients of keys and values, and of the parts of those of queries. Parameters: q, k, v, lse, do, delta, dk,
// dv, parts; parts is f32, [SIMTParts, batch, heads, queries, features].
func (a Attention) SIMTGrad(at *ir.Builder, d Device) (*Kernel, error) {
	if err := a.checkSIMT(AttentionGradKeys, d); err != nil {
		return nil, err
	}
	parts, blocks, r := a.SIMTParts(d), ceil(a.Keys, a.Block.rows()), a.Block.rows()
	k, w := a.simtStart(at, "attention_grad_simt", AttentionGradKeys, a.Batch*a.KeyHeads*parts, [2]int{2, 1}, "q", "k", "v", "lse", "do", "delta", "dk", "dv", "parts")
	b := w.b
	g := &simtGrad{simtAttention: w, parts: parts, perHead: ceil(a.Queries, a.Block.Columns)}
	number := b.Special("ctaid.x")
	head := b.DivI(number, parts)
	g.part = b.Sub(number, b.MulI(head, parts))
	w.batch = b.DivI(head, a.KeyHeads)
	w.head = b.Sub(head, b.MulI(w.batch, a.KeyHeads))
	g.keys, g.vals = w.panel(w.plan.rows[0], r, 1), w.panel(w.plan.rows[1], r, 1)
	g.qs, g.dos = w.panel(w.plan.columns[0], a.Block.Columns, 7), w.panel(w.plan.columns[1], a.Block.Columns, 7)
	g.numbers = b.AddI(w.shared, w.plan.numbers)

	// Blocks of keys there and back, that each part has as many queries: 0, 2P-1, 2P, 4P-1 of the first of P.
	b.For(b.I32(0), b.I32(ceil(blocks, parts)), b.I32(1), true, nil, func(round *ir.Value, _ []*ir.Value) []*ir.Value {
		turned := b.Compare("ne", b.RemI(round, 2), b.I32(0))
		block := b.Add(b.MulI(round, parts), b.Select(turned, b.Sub(b.I32(parts-1), g.part), g.part))
		b.If(b.Compare("lt", block, b.I32(blocks)), true, func() { g.keyBlock(round, block) }, nil)
		return nil
	})
	b.Do(ptx.Return, nil)
	return k, nil
}

// keyBlock makes the gradients of a block of keys, and what it gives the queries.
func (g *simtGrad) keyBlock(round, block *ir.Value) {
	w, b := g.simtAttention, g.b
	w.first = b.MulI(block, w.Block.rows())
	g.from = b.I32(0)
	if w.Causal {
		g.from = b.Min(b.DivI(b.Binary(ptx.Max, b.AddI(w.first, -w.offset()), b.I32(0)), w.Block.Columns), b.I32(g.perHead))
	}
	g.count = b.Sub(b.I32(g.perHead), g.from)
	all := b.MulI(g.count, w.Heads/w.KeyHeads)
	w.bring(g.keys, w.base("k", w.K, w.head), w.K.Row, w.first, w.Keys)
	w.bring(g.vals, w.base("v", w.V, w.head), w.V.Row, w.first, w.Keys)
	g.bringQueries(b.I32(0), all)

	half := w.featureParts
	out := b.For(b.I32(0), all, b.I32(1), true, w.zeros(2*half, 4*simtRows), func(i *ir.Value, acc []*ir.Value) []*ir.Value {
		head, query := g.place(i)
		p := g.weights(query)
		w.stage(p)
		b.Do(ptx.WarpSync, nil)
		dv := w.gather(g.dos, acc[half:])
		dp := w.product(g.vals, g.dos)
		b.Do(ptx.WarpSync, nil) // the warp is done with the weights
		g.stageScores(dp)
		b.Do(ptx.WarpSync, nil)
		dk := w.gather(g.qs, acc[:half])
		b.Do(ptx.Sync, nil) // everyone's gradients of scores are there, and everyone is done with the queries
		g.bringQueries(b.AddI(i, 1), all)
		g.addToQueries(round, head, query)
		b.Do(ptx.CopyWait, nil, "pending", 0)
		b.Do(ptx.Sync, nil) // the next queries are here, and everyone is done with the gradients of scores
		return append(dk, dv...)
	})
	out = w.combine(out)
	w.storeRows(w.base("dk", w.DK, w.head), w.DK.Row, w.Keys, out[:half], func(int) *ir.Value { return b.F32(w.Scale) })
	w.storeRows(w.base("dv", w.DV, w.head), w.DV.Row, w.Keys, out[half:], func(int) *ir.Value { return b.F32(1) })
}

// place is where a block of queries lies, of its number among those of all heads that share the keys.
func (g *simtGrad) place(number *ir.Value) (head, query *ir.Value) {
	b, group := g.b, g.Heads/g.KeyHeads
	if group == 1 {
		return g.head, b.MulI(b.Add(g.from, number), g.Block.Columns)
	}
	h := b.Binary(ptx.Div, number, b.Binary(ptx.Max, g.count, b.I32(1)))
	return b.Add(b.MulI(g.head, group), h), b.MulI(b.Add(g.from, b.Sub(number, b.Mul(h, g.count))), g.Block.Columns)
}

// bringQueries starts copying a block of queries, their outputs' gradients and their numbers, if there is one, and waits for the first
// together with the block's keys and values.
func (g *simtGrad) bringQueries(number, all *ir.Value) {
	w, b, n := g.simtAttention, g.b, g.Block.Columns
	b.If(b.Compare("lt", number, all), true, func() {
		head, query := g.place(number)
		w.bring(g.qs, w.base("q", w.Q, head), w.Q.Row, query, w.Queries)
		w.bring(g.dos, w.base("do", w.DO, head), w.DO.Row, query, w.Queries)
		b.If(b.Compare("lo", w.tid, b.I32(n)), false, func() {
			at := b.Add(query, w.tid)
			inside := b.Compare("lo", at, b.I32(w.Queries))
			at = b.Select(inside, at, b.I32(0))
			for i, param := range []string{"lse", "delta"} {
				b.Do(ptx.CopyAsync, []*ir.Value{b.Add(g.numbers, b.MulI(w.tid, 4)), b.MulWide(at, 4, w.statistics(param, head)), b.Select(inside, b.I32(4), b.I32(0))}, "bytes", 4, "offset", 4*n*i)
			}
		}, nil)
	}, nil)
	b.Do(ptx.CopyCommit, nil)
	if v, ok := ptx.ConstInt(number); ok && v == 0 {
		b.Do(ptx.CopyWait, nil, "pending", 0)
		b.Do(ptx.Sync, nil)
	}
}

// number is lse (0) or delta (1) of a thread's column j.
func (g *simtGrad) number(which, j int) *ir.Value {
	b := g.b
	return b.Load(b.Add(g.numbers, b.MulI(g.lane, 4)), b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: 4*g.Block.Columns*which + 64*j})
}

// weights is the weights of the block's keys and a block of queries.
func (g *simtGrad) weights(query *ir.Value) scores {
	w, b := g.simtAttention, g.b
	p := w.product(g.keys, g.qs)
	for j := range p {
		lse, column := b.Unary(ptx.Neg, g.number(0, j)), b.AddI(b.Add(query, w.lane), 16*j)
		for i, x := range p[j] {
			p[j][i] = b.Select(w.seesKey(i, column), w.exponential(x, lse), b.F32(0))
		}
	}
	return p
}

// seesKey says whether a query sees the key of a thread's row; nil where all do. Keys beyond the last are rows that nobody stores, whose
// gradients of scores are times zeros.
func (w *simtAttention) seesKey(i int, query *ir.Value) *ir.Value {
	b := w.b
	in := b.Compare("lt", query, b.I32(w.Queries))
	if w.Causal {
		in = b.And(in, b.Compare("ge", b.AddI(query, w.offset()-2*i), b.Add(w.first, w.rowOfThread)))
	}
	return in
}

// stageScores makes the gradients of scores of those of weights, and puts them in the weights' place.
func (g *simtGrad) stageScores(dp scores) {
	w, b, at := g.simtAttention, g.b, g.staged()
	for q := range w.perThread / 4 {
		var delta []*ir.Value
		for e := range 4 {
			delta = append(delta, g.number(1, 4*q+e))
		}
		for i := range simtRows {
			p := w.read4(at, w.stagedOffset(i, q))
			for e := range p {
				p[e] = b.Binary(ptx.Mul, p[e], b.Binary(ptx.Sub, dp[4*q+e][i], delta[e]))
			}
			b.Store(at, b.Vector(p...), ptx.Access{Space: "shared", Offset: w.stagedOffset(i, q)})
		}
	}
}

// addToQueries adds what the block's keys give a block of queries to the part's sums: for queries that are one lane's columns, each 16 apart.
func (g *simtGrad) addToQueries(round, head, query *ir.Value) {
	w, b, pitch := g.simtAttention, g.b, g.simtPitch()
	row := b.MulI(b.Add(b.MulI(b.Add(b.MulI(g.part, w.Batch), w.batch), w.Heads), head), w.Queries)
	again := b.Compare("ne", round, b.I32(0))
	rows := w.Block.rows() / w.split // keys that a thread adds up
	for pass := range 16 / (2 * w.Block.Warps) {
		lane := b.AddI(b.Add(b.MulI(w.warp, 2), w.half), 2*w.Block.Warps*pass)
		places, inside := make([]*ir.Value, w.perThread), make([]*ir.Value, w.perThread)
		var acc sums = w.zeros(w.featureParts, 4*w.perThread)
		old := make([][]*ir.Value, w.perThread) // by query, then feature
		for j := range places {
			at := b.AddI(b.Add(query, lane), 16*j)
			inside[j] = b.Compare("lo", at, b.I32(w.Queries))
			if w.split > 1 {
				inside[j] = b.And(inside[j], b.Compare("eq", w.share, b.I32(0)))
			}
			places[j] = b.MulWide(b.Select(inside[j], b.Add(row, at), row), 4*w.Features, b.MulWide(w.chunk, 16, w.args["parts"]))
			for f := range w.featureParts {
				there := both(b, b.And(inside[j], again), w.hasFeatures(f))
				old[j] = append(old[j], b.Scalars(b.Load(places[j], b.Ctx.F32(), 4, ptx.Access{Space: "global", Offset: 256 / w.split * f, If: there}))...)
			}
		}
		var left, right [2]*ir.Value
		for u := range left {
			x, y := b.Binary(ptx.Xor, lane, b.I32(u)), b.Binary(ptx.Xor, w.chunk, b.I32(u&g.keys.swizzle))
			left[u] = b.Add(b.AddI(w.shared, w.plan.staging), b.Add(b.MulI(x, 16), b.MulI(w.share, rows*4*w.Block.Columns)))
			right[u] = b.Add(g.keys.at, b.Add(b.MulI(y, 16), b.MulI(w.share, rows*pitch)))
		}
		const together = 16
		acc = b.For(b.I32(0), b.I32(rows), b.I32(together), true, acc, func(key *ir.Value, acc []*ir.Value) []*ir.Value {
			for u := range together {
				fromLeft, from := b.Add(left[u%2], b.MulI(key, 4*w.Block.Columns)), b.Add(right[u%2], b.MulI(key, pitch))
				var x []*ir.Value
				for q := range w.perThread / 4 {
					x = append(x, w.read4(fromLeft, 4*w.Block.Columns*u+256*q)...)
				}
				for f := range w.featureParts {
					y := w.read4(from, pitch*u+256/w.split*f)
					acc[f] = b.Do(ptx.OuterFMA, []*ir.Value{b.Vector(x...), b.Vector(y...), acc[f]}).Result(0)
				}
			}
			return acc
		})
		acc = w.combine(acc)
		for j := range places {
			for f := range w.featureParts {
				var four []*ir.Value
				for k := range 4 {
					four = append(four, b.Binary(ptx.Add, old[j][4*f+k], w.at(acc, j, f, k)))
				}
				b.Store(places[j], b.Vector(four...), ptx.Access{Space: "global", Offset: 256 / w.split * f, If: both(b, inside[j], w.hasFeatures(f))})
			}
		}
	}
}

// SIMTDeltas makes the kernel of the sums of o * do for each query. Parameters: o, do, delta.
func (a Attention) SIMTDeltas(at *ir.Builder, d Device) (*Kernel, error) {
	return a.simtEachQuery(at, d, "attention_deltas_simt", []string{"o", "do", "delta"}, func(w *simtAttention, row, query *ir.Value, inside *ir.Value) {
		b := w.b
		sum := b.F32(0)
		at := func(param string, s Strides) *ir.Value {
			return b.MulWide(b.Add(b.MulI(query, 4*s.Row), b.MulI(w.lane, 16)), 1, w.base(param, s, w.head))
		}
		x, y := at("o", a.O), at("do", a.DO)
		for f := 0; f < a.Features/4; f += 16 {
			there := inside
			if f+16 > a.Features/4 {
				there = b.And(inside, b.Compare("lo", b.AddI(w.lane, f), b.I32(a.Features/4)))
			}
			access := ptx.Access{Space: "global", Offset: 16 * f, If: there}
			xs, ys := b.Scalars(b.Load(x, b.Ctx.F32(), 4, access)), b.Scalars(b.Load(y, b.Ctx.F32(), 4, access))
			for i := range xs {
				sum = b.FMA(xs[i], ys[i], sum)
			}
		}
		sum = w.lanes(sum, ptx.Add)
		b.Store(b.MulWide(row, 4, w.args["delta"]), sum, ptx.Access{Space: "global", If: b.And(inside, b.Compare("eq", w.lane, b.I32(0)))})
	})
}

// SIMTSumQueries makes the kernel that adds up the parts of the queries' gradients. Its block is that of SIMTGrad. Parameters: parts, dq.
func (a Attention) SIMTSumQueries(at *ir.Builder, d Device) (*Kernel, error) {
	parts := a.SIMTParts(d)
	return a.simtEachQuery(at, d, "attention_sum_queries_simt", []string{"parts", "dq"}, func(w *simtAttention, row, query *ir.Value, inside *ir.Value) {
		b := w.b
		to := b.MulWide(b.Add(b.MulI(query, 4*a.DQ.Row), b.MulI(w.lane, 16)), 1, w.base("dq", a.DQ, w.head))
		for f := 0; f < a.Features/4; f += 16 {
			there := inside
			if f+16 > a.Features/4 {
				there = b.And(inside, b.Compare("lo", b.AddI(w.lane, f), b.I32(a.Features/4)))
			}
			sum := each(make([]*ir.Value, 4), func(*ir.Value) *ir.Value { return b.F32(0) })
			for part := range parts {
				at := b.MulWide(b.AddI(row, part*a.Batch*a.Heads*a.Queries), 4*a.Features, b.MulWide(w.lane, 16, w.args["parts"]))
				written := there
				if a.Causal { // the part's first block of keys is number `part`: only blocks of queries that see some of it were added to
					least := max(part*a.Block.rows()-a.offset(), 0) / a.Block.Columns * a.Block.Columns
					written = b.And(there, b.Compare("ge", query, b.I32(least)))
				}
				sum = pairs(b, ptx.Add, sum, b.Scalars(b.Load(at, b.Ctx.F32(), 4, ptx.Access{Space: "global", Offset: 16 * f, If: written})))
			}
			sum = each(sum, func(x *ir.Value) *ir.Value { return b.Binary(ptx.Mul, x, b.F32(a.Scale)) })
			b.Store(to, b.Vector(sum...), ptx.Access{Space: "global", Offset: 16 * f, If: there})
		}
	})
}

// simtEachQuery makes a kernel in which 16 threads see to a query.
func (a Attention) simtEachQuery(at *ir.Builder, d Device, what string, params []string, body func(w *simtAttention, row, query, inside *ir.Value)) (*Kernel, error) {
	if err := a.checkSIMT(AttentionGradKeys, d); err != nil {
		return nil, err
	}
	const threads = 256
	rows := a.Batch * a.Heads * a.Queries
	k := &Kernel{Name: a.name(what), Threads: threads, Cluster: 1, Grid: ceil(rows, threads/16)}
	w := &simtAttention{Attention: a, args: map[string]*ir.Value{}}
	var types []ir.Type
	for _, p := range params {
		k.Params = append(k.Params, Param{Name: p})
		types = append(types, at.Ctx.I64())
	}
	w.b = ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: a.Target, Threads: threads}, types...)
	k.Op = w.b.Kernel
	for i, p := range params {
		w.args[p] = k.Op.Body().Arg(i)
	}
	b := w.b
	w.tid = b.Special("tid.x")
	w.lane = b.RemI(w.tid, 16)
	row := b.Add(b.MulI(b.Special("ctaid.x"), threads/16), b.DivI(w.tid, 16))
	inside := b.Compare("lo", row, b.I32(rows))
	row = b.Select(inside, row, b.I32(0))
	head := b.DivI(row, a.Queries)
	query := b.Sub(row, b.MulI(head, a.Queries))
	w.batch = b.DivI(head, a.Heads)
	w.head = b.Sub(head, b.MulI(w.batch, a.Heads))
	body(w, row, query, inside)
	b.Do(ptx.Return, nil)
	return k, nil
}
