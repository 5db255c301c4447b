package blublas

import (
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Forward makes the kernel of outputs and of the logarithms of the sums of exponentials. Parameters: q, k, v, o, lse; lse is
// f32, [batch, heads, queries].
func (a Attention) Forward(at *ir.Builder, d Device) (*Kernel, error) {
	if err := a.check(AttentionForward, d); err != nil {
		return nil, err
	}
	if a.Block.Consumers > 0 {
		return a.forwardHopper(at, d), nil
	}
	k, w := a.start(at, d, "attention", a.Queries, a.Heads, "q", "k", "v", "o", "lse")
	w.body(w.forward)
	return k, nil
}

// forward computes outputs and lse of its rows.
func (w *attention) forward() {
	a := w.Attention
	b := w.b
	rows, keys := a.panel(a.Block.rows()), a.panel(a.Block.Columns)
	head := w.keyHead()
	q, key, value := w.base("q", a.Q, w.head), w.base("k", a.K, head), w.base("v", a.V, head)
	w.bring(rows, q, a.Q.Row, w.first, a.Queries, w.shared)
	b.Do(ptx.CopyCommit, nil)

	unmasked, end := w.keyBlocks()
	ring := columns{w, end, func(block, stage *ir.Value) {
		from := b.MulI(block, a.Block.Columns)
		w.bring(keys, key, a.K.Row, from, a.Keys, stage)
		w.bring(keys, value, a.V.Row, from, a.Keys, b.AddI(stage, keys.bytes()))
	}}
	offset := ring.prime(b.I32(0))
	w.rowsLanded()
	queries := w.rowOperands(w.shared)

	state := &softmax{w: w}
	step := func(masked bool) func(block, stage *ir.Value, carried []*ir.Value) []*ir.Value {
		return func(block, stage *ir.Value, carried []*ir.Value) []*ir.Value {
			state.take(carried)
			scores := w.product(queries, stage, a.Block.Columns)
			if masked {
				w.mask(scores, b.MulI(block, a.Block.Columns), math.Inf(-1))
			}
			weights := state.update(scores)
			state.sum = w.gather(weights, b.AddI(stage, keys.bytes()), a.Block.Columns, state.sum)
			return state.give()
		}
	}
	offset, carried := ring.each(b.I32(0), unmasked, offset, state.begin(), step(false))
	_, carried = ring.each(unmasked, end, offset, carried, step(true))
	state.take(carried)
	factor := w.finish(state.den, each(state.greatest, func(x *ir.Value) *ir.Value { return b.Binary(ptx.Mul, x, b.F32(w.scale())) }))
	w.storeRows(w.base("o", w.O, w.head), w.O.Row, state.sum, factor)
}

// keyBlocks is the number of blocks of keys that all of the block's queries see whole, and that of those that any sees.
func (w *attention) keyBlocks() (unmasked, end *ir.Value) {
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

// mask puts a number in the place of scores of keys that are not seen. Rows are queries, columns keys from `from` on.
func (w *attention) mask(scores []*ir.Value, from *ir.Value, instead float64) {
	b, perTile := w.b, w.Block.Columns/8
	column := b.Add(from, b.MulI(w.quad, 2))
	for t := range w.Block.Tiles {
		var limits [2]*ir.Value // keys from here on are not seen
		for i, later := range []bool{false, true} {
			limits[i] = b.I32(w.Keys)
			if w.Causal {
				limits[i] = b.Min(b.AddI(w.row(t, later), w.offset()+1), limits[i])
			}
			limits[i] = b.Sub(limits[i], column)
		}
		for j := range perTile {
			x := b.Scalars(scores[t*perTile+j])
			for i := range x {
				x[i] = b.Select(b.Compare("gt", limits[i/2], b.I32(8*j+i%2)), x[i], b.F32(instead))
			}
			scores[t*perTile+j] = b.Vector(x...)
		}
	}
}

// softmax is what is known of the rows so far (Milakov and Gimelshein, arXiv 1805.02867): for each of a thread's rows the
// greatest score, and relative to it the sum of exponentials of the thread's columns and the sum of values so weighted.
type softmax struct {
	w             *attention
	greatest, den []*ir.Value // by tile, then row
	sum           []*ir.Value // accumulators
}

// begin is the state before any score.
func (s *softmax) begin() []*ir.Value {
	b := s.w.b
	for range 2 * s.w.Block.Tiles {
		s.greatest = append(s.greatest, b.F32(s.w.lowest()))
		s.den = append(s.den, b.F32(0))
	}
	s.sum = s.w.zeros(s.w.Features)
	return s.give()
}

func (s *softmax) give() []*ir.Value {
	var all []*ir.Value
	all = append(all, s.greatest...)
	all = append(all, s.den...)
	return append(all, s.sum...)
}

func (s *softmax) take(values []*ir.Value) {
	n := 2 * s.w.Block.Tiles
	s.greatest, s.den, s.sum = values[:n:n], values[n:2*n:2*n], values[2*n:]
}

// update takes the scores of more columns, and returns their weights.
func (s *softmax) update(scores []*ir.Value) []*ir.Value {
	w, b := s.w, s.w.b
	perTile, perSum := w.Block.Columns/8, w.Features/8
	out := make([]*ir.Value, len(scores))
	for t := range w.Block.Tiles {
		mine := scores[t*perTile : (t+1)*perTile]
		weights := make([][]*ir.Value, perTile)
		var shrink [2]*ir.Value
		for i := range 2 {
			row := 2*t + i
			greatest := s.greatest[row]
			for _, x := range mine {
				greatest = b.Binary(ptx.Max, greatest, b.Binary(ptx.Max, b.Extract(x, 2*i), b.Extract(x, 2*i+1)))
			}
			greatest = w.quads(greatest, ptx.Max)
			x := w.exponents(greatest)
			shrink[i] = x.shrink(s.greatest[row])
			den := b.Binary(ptx.Mul, s.den[row], shrink[i])
			for j, scores := range mine {
				for e := range 2 {
					p := x.weight(b.Extract(scores, 2*i+e))
					den = b.Binary(ptx.Add, den, p)
					weights[j] = append(weights[j], p)
				}
			}
			s.greatest[row], s.den[row] = greatest, den
		}
		for j := range mine {
			out[t*perTile+j] = b.Vector(weights[j]...)
		}
		for j := range perSum {
			x := b.Scalars(s.sum[t*perSum+j])
			for i := range x {
				x[i] = b.Binary(ptx.Mul, x[i], shrink[i/2])
			}
			s.sum[t*perSum+j] = b.Vector(x...)
		}
	}
	return out
}

// exponents makes weights of a row's scores, relative to the greatest.
//
// Where the exponent's unit is e, the difference of two scores is made first: it is exact near the greatest, whose weight is 1. Where it
// is 2 one instruction makes the exponent, score * factor - greatest * factor, of which the last is rounded: the greatest score's is
// off by up to half a unit in the last place of that product. Weights of one row are all off by the same power of two, which
// their sum takes back; but from hugeExponent on it could be beyond float32. There factor is a power of two, which rounds
// nothing: scores that differ at all are so far apart that one of them has all the weight, whatever the factor.
type exponents struct {
	w             *attention
	greatest      *ir.Value
	factor, below *ir.Value // where the unit is 2
}

// hugeExponent is 2^29: neighbouring float32 differ by 32 there.
const hugeExponent = 1 << 29

// powerAbove is the least power of two that isn't less than the scale of scores.
func (a Attention) powerAbove() float64 { return math.Exp2(math.Ceil(math.Log2(a.scale()))) }

// lowest is where the greatest score begins: no score is less whose product with a factor is finite, and less the lowest the score of
// a key that isn't seen, -inf, still is -inf, where that less itself would be none.
func (a Attention) lowest() float64 { return -math.MaxFloat32 / max(1, a.powerAbove()) }

func (w *attention) exponents(greatest *ir.Value) exponents {
	if w.unit() == 1 {
		return exponents{w: w, greatest: greatest}
	}
	b, c := w.b, w.scale()
	huge := b.Compare("ge", b.Unary(ptx.Abs, greatest), b.F32(min(hugeExponent/c, math.MaxFloat32)))
	factor := b.Select(huge, b.F32(w.powerAbove()), b.F32(c))
	return exponents{w, greatest, factor, b.Unary(ptx.Neg, b.Binary(ptx.Mul, greatest, factor))}
}

// weight is that of a score.
func (x exponents) weight(score *ir.Value) *ir.Value {
	b := x.w.b
	if x.factor == nil {
		return b.Unary(ptx.Exp2Flushed, b.Binary(ptx.Mul, b.Binary(ptx.Sub, score, x.greatest), b.F32(x.w.Scale*math.Log2E)))
	}
	return b.Unary(ptx.Exp2Flushed, b.FMA(score, x.factor, x.below))
}

// shrink is by what sums relative to the greatest score before are to be multiplied: 1 where it is the same.
func (x exponents) shrink(before *ir.Value) *ir.Value {
	if x.factor == nil {
		return x.weight(before)
	}
	b := x.w.b
	return b.Unary(ptx.Exp2Flushed, b.Binary(ptx.Add, b.Binary(ptx.Mul, before, x.factor), x.below))
}

// finish writes lse, and returns the factors of outputs; greatest is the greatest scores in the unit of exponents.
func (w *attention) finish(denominators, greatest []*ir.Value) rowFactor {
	b := w.b
	var inverse []*ir.Value
	rows := w.statistics("lse", w.head)
	for t := range w.Block.Tiles {
		for i, later := range []bool{false, true} {
			den := w.quads(denominators[2*t+i], ptx.Add)
			none := b.Compare("eq", den, b.F32(0)) // a query that sees no key
			inverse = append(inverse, b.Select(none, b.F32(0), b.Binary(ptx.Div, b.F32(1), den)))
			lse := b.FMA(b.Unary(ptx.Log2, den), b.F32(math.Ln2*w.unit()), greatest[2*t+i])
			lse = b.Select(none, b.F32(math.Inf(-1)), lse)
			if w.unit() != 1 {
				lse = b.Binary(ptx.Mul, lse, b.F32(1/w.unit()))
			}
			row := w.row(t, later)
			inside := b.And(w.inside(row), b.Compare("eq", w.quad, b.I32(0)))
			at := b.MulWide(b.Select(inside, row, b.I32(0)), 4, rows)
			b.Store(at, lse, ptx.Access{Space: "global", If: inside})
		}
	}
	return func(t int, later bool) *ir.Value {
		if later {
			return inverse[2*t+1]
		}
		return inverse[2*t]
	}
}
