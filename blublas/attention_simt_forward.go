package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// SIMTForward is Forward on float32 units. Keys and values of a block arrive in turns: values while scores are made, the next keys
// while values are added up.
func (a Attention) SIMTForward(at *ir.Builder, d Device) (*Kernel, error) {
	if err := a.checkSIMT(AttentionForward, d); err != nil {
		return nil, err
	}
	n, blocks := a.Block.Columns, ceil(a.Queries, a.Block.rows())
	k, w := a.simtStart(at, "attention_simt", AttentionForward, blocks*a.Heads*a.Batch, [2]int{2, 2}, "q", "k", "v", "o", "lse")
	b := w.b
	number := b.Special("ctaid.x")
	block := b.DivI(number, a.Heads*a.Batch)
	within := b.Sub(number, b.MulI(block, a.Heads*a.Batch))
	if a.Causal { // later queries have most to do
		block = b.Sub(b.I32(blocks-1), block)
	}
	w.first = b.MulI(block, a.Block.rows())
	w.batch = b.DivI(within, a.Heads)
	w.head = b.Sub(within, b.MulI(w.batch, a.Heads))
	keyHead := b.DivI(w.head, a.Heads/a.KeyHeads)
	key, value := w.base("k", a.K, keyHead), w.base("v", a.V, keyHead)
	rows, keys, values := w.panel(w.plan.rows[0], a.Block.rows(), 1), w.panel(w.plan.columns[0], n, 7), w.panel(w.plan.columns[1], n, 0)

	unmasked, end := w.keyBlocks()
	bring := func(p simtPanel, base *ir.Value, pitch int, block *ir.Value) {
		b.If(b.Compare("lt", block, end), true, func() { w.bring(p, base, pitch, b.MulI(block, n), a.Keys) }, nil)
		b.Do(ptx.CopyCommit, nil)
	}
	w.bring(rows, w.base("q", a.Q, w.head), a.Q.Row, w.first, a.Queries)
	bring(keys, key, a.K.Row, b.I32(0))
	bring(values, value, a.V.Row, b.I32(0))
	b.Do(ptx.CopyWait, nil, "pending", 1)
	b.Do(ptx.Sync, nil)

	s := &simtSoftmax{w: w}
	step := func(masked bool) func(block *ir.Value, carried []*ir.Value) []*ir.Value {
		return func(block *ir.Value, carried []*ir.Value) []*ir.Value {
			s.take(carried)
			x := w.product(rows, keys)
			if masked {
				w.maskKeys(x, b.MulI(block, n))
			}
			w.stage(s.update(x))
			b.Do(ptx.CopyWait, nil, "pending", 0)
			b.Do(ptx.Sync, nil) // values are here, and everyone is done with the keys
			bring(keys, key, a.K.Row, b.AddI(block, 1))
			s.sum = w.gather(values, s.sum)
			b.Do(ptx.CopyWait, nil, "pending", 0)
			b.Do(ptx.Sync, nil) // keys are here, and everyone is done with the values
			bring(values, value, a.V.Row, b.AddI(block, 1))
			return s.give()
		}
	}
	carried := b.For(b.I32(0), unmasked, b.I32(1), true, s.begin(), step(false))
	carried = b.For(unmasked, end, b.I32(1), true, carried, step(true))
	s.take(carried)
	s.finish()
	b.Do(ptx.Return, nil)
	return k, nil
}

// keyBlocks is the number of blocks of keys that all of the block's queries see whole, and that of those that any sees.
func (w *simtAttention) keyBlocks() (unmasked, end *ir.Value) {
	b, n := w.b, w.Block.Columns
	whole, all := w.Keys/n, ceil(w.Keys, n)
	if !w.Causal {
		return b.I32(whole), b.I32(all)
	}
	// The first query sees first + offset + 1 keys, the last first + rows + offset.
	zero := b.I32(0)
	least := b.Binary(ptx.Max, b.AddI(w.first, w.offset()+1), zero)
	most := b.Binary(ptx.Max, b.AddI(w.first, w.Block.rows()+w.offset()), zero)
	return b.Min(b.DivI(least, n), b.I32(whole)), b.Min(b.DivI(b.AddI(most, n-1), n), b.I32(all))
}

// maskKeys puts -inf in the place of scores of keys that are not seen; columns are keys from `from` on.
func (w *simtAttention) maskKeys(x scores, from *ir.Value) {
	b := w.b
	limits := make([]*ir.Value, simtRows) // keys from here on are not seen
	for i := range limits {
		limits[i] = b.I32(w.Keys)
		if w.Causal {
			limits[i] = b.Min(b.AddI(b.Add(w.first, w.rowOfThread), 2*i+w.offset()+1), limits[i])
		}
		limits[i] = b.Sub(limits[i], b.Add(from, w.lane))
	}
	for j := range x {
		for i := range x[j] {
			x[j][i] = b.Select(b.Compare("gt", limits[i], b.I32(16*j)), x[j][i], b.F32(math.Inf(-1)))
		}
	}
}

// simtSoftmax is what is known of the rows so far, as softmax is: the greatest score and, relative to it, the sum of exponentials of
// the thread's columns, and the sum of values so weighted.
type simtSoftmax struct {
	w             *simtAttention
	greatest, den []*ir.Value // by row
	sum           sums
}

func (s *simtSoftmax) begin() []*ir.Value {
	b := s.w.b
	for range simtRows {
		s.greatest = append(s.greatest, b.F32(s.w.lowest()))
		s.den = append(s.den, b.F32(0))
	}
	s.sum = s.w.zeros(s.w.featureParts, 4*simtRows)
	return s.give()
}

func (s *simtSoftmax) give() []*ir.Value {
	var all []*ir.Value
	all = append(all, s.greatest...)
	all = append(all, s.den...)
	return append(all, s.sum...)
}

func (s *simtSoftmax) take(values []*ir.Value) {
	const n = simtRows
	s.greatest, s.den, s.sum = values[:n:n], values[n:2*n:2*n], values[2*n:]
}

// update takes the scores of more columns, and returns their weights.
func (s *simtSoftmax) update(x scores) scores {
	w, b := s.w, s.w.b
	greatest, den, shrink := make([]*ir.Value, simtRows), make([]*ir.Value, simtRows), make([]*ir.Value, simtRows)
	weights := make(scores, len(x))
	for i := range simtRows {
		greatest[i] = s.greatest[i]
		for j := range x {
			greatest[i] = b.Binary(ptx.Max, greatest[i], x[j][i])
		}
		greatest[i] = w.lanes(greatest[i], ptx.Max)
		weight := func(x *ir.Value) *ir.Value { // the difference is exact near the greatest, whose weight is 1
			return b.Unary(ptx.Exp2Flushed, b.Binary(ptx.Mul, b.Binary(ptx.Sub, x, greatest[i]), b.F32(w.Scale*math.Log2E)))
		}
		shrink[i] = weight(s.greatest[i])
		den[i] = b.Binary(ptx.Mul, s.den[i], shrink[i])
		for j := range x {
			weights[j] = append(weights[j], weight(x[j][i]))
			den[i] = b.Binary(ptx.Add, den[i], weights[j][i])
		}
	}
	for f, v := range s.sum {
		x := b.Scalars(v)
		for i := range x {
			x[i] = b.Binary(ptx.Mul, x[i], shrink[i/4])
		}
		s.sum[f] = b.Vector(x...)
	}
	s.greatest, s.den = greatest, den
	return weights
}

// finish writes the outputs and lse.
func (s *simtSoftmax) finish() {
	w, b := s.w, s.w.b
	inverse, logs := make([]*ir.Value, simtRows), w.statistics("lse", w.head)
	for i := range simtRows {
		den := w.lanes(s.den[i], ptx.Add)
		none := b.Compare("eq", den, b.F32(0)) // a query that sees no key
		inverse[i] = b.Select(none, b.F32(0), b.Binary(ptx.Div, b.F32(1), den))
		lse := b.FMA(b.Unary(ptx.Log2, den), b.F32(math.Ln2), b.Binary(ptx.Mul, s.greatest[i], b.F32(w.Scale)))
		lse = b.Select(none, b.F32(math.Inf(-1)), lse)
		row := b.AddI(b.Add(w.first, w.rowOfThread), 2*i)
		inside := b.And(b.Compare("lo", row, b.I32(w.Queries)), b.Compare("eq", w.lane, b.I32(0)))
		b.Store(b.MulWide(b.Select(inside, row, b.I32(0)), 4, logs), lse, ptx.Access{Space: "global", If: inside})
	}
	w.storeRows(w.base("o", w.O, w.head), w.O.Row, w.Queries, w.combine(s.sum), func(i int) *ir.Value { return inverse[i] })
}
