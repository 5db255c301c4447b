package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// tiles is the order of a block's tiles: rows of heads.
type tiles struct {
	total, heads int // heads of all batches, and of one
	count, rows  int // tiles of a head, and rows of a tile
	items        int // what is dealt out to blocks: a tile, or two of one head that together are as much work as any other two
	folded       bool
	alone        int // pairs, the last ones, of heads of their own, whose tiles are dealt out by themselves
	causal       bool
	rising       bool // later rows have less to do
	block        *ir.Value
	grid         int
}

func (a Attention) tiling(extent, heads, rows int, d Device, rising bool) tiles {
	t := tiles{total: heads * a.Batch, heads: heads, count: ceil(extent, rows), rows: rows, causal: a.Causal, rising: rising}
	pairs := ceil(t.count, 2) * t.total
	if t.items = t.count * t.total; a.Causal && pairs >= 2*d.SMs {
		t.items, t.folded = pairs, true
		t.alone = t.evenly(d.SMs)
	}
	return t
}

// beyond is whether some tiles lie beyond the end: the other half of the middle.
func (t tiles) beyond() bool { return t.folded && t.count%2 == 1 }

// each goes over the block's tiles.
func (w *groups) each(carried []*ir.Value, body func(carried []*ir.Value) []*ir.Value) {
	b, t := w.b, &w.tiles
	count := divided(b, b.Sub(b.I32(t.items+t.grid-1), t.block), t.grid)
	if t.folded {
		count = b.MulI(count, 2)
	}
	if t.alone > 0 {
		count = t.countAlone(b)
	}
	b.For(b.I32(0), count, b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		w.locate(i)
		return body(carried)
	})
}

// locate finds this block's i-th tile.
func (w *groups) locate(i *ir.Value) {
	b, t := w.b, &w.tiles
	var head, block *ir.Value // among heads of all batches
	switch {
	case t.folded:
		pairs := ceil(t.count, 2)
		item := b.Add(t.block, b.MulI(b.DivI(i, 2), t.grid))
		head = divided(b, item, pairs)
		pair := b.Sub(item, b.MulI(head, pairs))
		other := b.Sub(b.I32(2*pairs-1), pair)
		if t.rising {
			pair, other = other, pair
		}
		block = b.Select(b.Compare("eq", b.Binary(ptx.And, i, b.I32(1)), b.I32(0)), other, pair)
		if t.alone > 0 {
			head, block = t.locateAlone(b, i, head, block)
		}
	case t.causal:
		item := b.Add(t.block, b.MulI(i, t.grid))
		block = divided(b, item, t.total)
		head = b.Sub(item, b.MulI(block, t.total))
		if !t.rising {
			block = b.Sub(b.I32(t.count-1), block)
		}
	default:
		item := b.Add(t.block, b.MulI(i, t.grid))
		head = divided(b, item, t.count)
		block = b.Sub(item, b.MulI(head, t.count))
	}
	w.first = b.MulI(block, t.rows)
	w.batch = divided(b, head, t.heads)
	w.head = b.Sub(head, b.MulI(w.batch, t.heads))
	extent := w.Queries
	if w.kind == AttentionGradKeys {
		extent = w.Keys
	}
	w.extent = b.I32(extent)
	if t.beyond() {
		w.extent = b.Select(b.Compare("lo", w.first, w.extent), w.extent, b.I32(0))
	}
	if w.Guard != Always {
		w.extent = b.Select(w.runs(), w.extent, b.I32(0))
	}
}

// Pairs of tiles are as much work as each other, but their number is seldom a multiple of the blocks': with 768 pairs on 132 multiprocessors 24 of
// these have 5 instead of 6. The pairs of the last heads are dealt out as single tiles, the longest first, to blocks in their order and back: 5 pairs
// and at most 16 steps instead of 6 pairs of 18. All tiles of the few heads are under way at once, so that what they share is read from memory once.

// evenly is how many of the pairs should be dealt out so to n blocks, 0 if none: the rest of the last round, or with it a whole round more.
func (t tiles) evenly(n int) (alone int) {
	pairs, rest := t.count/2, t.items%n
	if rest == 0 || t.count%2 != 0 {
		return 0
	}
	pair := t.steps(0) + t.steps(t.count-1)
	least := ceil(t.items, n) * pair
	for _, last := range []int{rest, rest + n} {
		if last > t.items || last%pairs != 0 { // heads are dealt out whole
			continue
		}
		if most := (t.items-last)/n*pair + t.most(last/pairs, n); most < least {
			alone, least = last, most
		}
	}
	return alone
}

// steps is how long a tile takes, of which level 0 is the longest: in steps of as many columns as a tile has rows, and one for the tile itself.
func (t tiles) steps(level int) int { return t.count - level + 1 }

// most is how long one of n blocks takes, at most, for the single tiles of some heads.
func (t tiles) most(heads, n int) (most int) {
	sums := make([]int, n)
	for i := range t.count * heads {
		block := i % n
		if i/n%2 == 1 {
			block = n - 1 - block
		}
		sums[block] += t.steps(i / heads)
		most = max(most, sums[block])
	}
	return most
}

// rounds is how many pairs each block has before its single tiles.
func (t *tiles) rounds() int { return (t.items - t.alone) / t.grid }

// turned is this block's place in a round of single tiles: blocks take them in their order, then back.
func (t *tiles) turned(b *ptx.Builder, odd *ir.Value) *ir.Value {
	return b.Select(odd, b.Sub(b.I32(t.grid-1), t.block), t.block)
}

// countAlone is how many tiles this block has.
func (t *tiles) countAlone(b *ptx.Builder) *ir.Value {
	whole, rest := 2*t.alone/t.grid, 2*t.alone%t.grid
	more := b.Compare("lo", t.turned(b, b.Const(b.Ctx.Bool(whole%2 == 1))), b.I32(rest))
	return b.AddI(b.Select(more, b.I32(1), b.I32(0)), 2*t.rounds()+whole)
}

// locateAlone is the head and the block of rows of the i-th tile: those given, of a pair, or after all pairs those of a single tile, which only then
// are looked for.
func (t *tiles) locateAlone(b *ptx.Builder, i, head, block *ir.Value) (h, rows *ir.Value) {
	heads := t.alone / (t.count / 2)
	round := b.AddI(i, -2*t.rounds())
	once := b.Select(b.Compare("ge", round, b.I32(0)), b.I32(0), b.I32(1))
	out := b.For(once, b.I32(1), b.I32(1), true, []*ir.Value{head, block}, func(*ir.Value, []*ir.Value) []*ir.Value {
		odd := b.Compare("ne", b.Binary(ptx.And, round, b.I32(1)), b.I32(0))
		number := b.Add(b.MulI(round, t.grid), t.turned(b, odd))
		level := divided(b, number, heads)
		rows := level // the longest are the first
		if !t.rising {
			rows = b.Sub(b.I32(t.count-1), level)
		}
		return []*ir.Value{b.AddI(b.Sub(number, b.MulI(level, heads)), t.total-heads), rows}
	})
	return out[0], out[1]
}
