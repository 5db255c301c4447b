package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// exchange is how a consumer adds up the columns of results in the accumulators' layout. Each warp leaves the sums of its 16 rows in shared memory,
// a line for each 64 rows of the tile and each warp; then each thread adds up columns of the four warps, in their order.
type exchange struct {
	w      *wgmma
	id     *ir.Value // of the consumer's barrier
	thread *ir.Value // in the consumer
	to     *ir.Value // where a lane leaves its sums
	from   *ir.Value // where a thread reads
	line   int       // bytes
	param  int       // that sums go to; -1: there were none
}

func (f *fragments) exchange(w *wgmma, inGroup *ir.Value) *exchange {
	b := w.b
	s := &exchange{w: w, id: b.AddI(w.consumer, 1), thread: b.Add(b.MulI(inGroup, 32), w.lane), line: 4 * w.BN, param: -1}
	start := b.Add(b.AddI(w.base, f.sums), b.MulI(w.consumer, w.rowsPerConsumer()/64*4*s.line))
	// Of 64 columns lanes 4i to 4i+3 have 8i to 8i+7 in the end, two each; of 32 columns lanes 8i to 8i+7 have them, one each.
	row, pair := b.DivI(w.lane, 4), b.Binary(ptx.And, w.lane, b.I32(3))
	lane := b.Add(b.MulI(row, 32), b.MulI(pair, 8))
	if f.columns == 32 {
		lane = b.Add(b.Add(b.MulI(b.DivI(row, 2), 32), b.MulI(pair, 8)), b.MulI(b.Binary(ptx.And, row, b.I32(1)), 4))
	}
	s.to, s.from = b.Add(start, b.Add(b.MulI(inGroup, s.line), lane)), b.Add(start, b.MulI(s.thread, 4))
	return s
}

// put adds up a chunk's columns over the lanes that have the same, and leaves the sums of the warp's rows in its line. Lanes exchange halves of what they
// have, three times.
func (s *exchange) put(c chunk) {
	w, b := s.w, s.w.b
	for param := range w.epilogue {
		var sums []*ir.Value
		for _, pt := range c.pts {
			if pt.dRow == 0 {
				key := columnLoad{param, pt.dCol}
				sums = append(sums, c.sums[key]...)
			}
		}
		if sums == nil {
			continue
		}
		for d := 16; d >= 4; d /= 2 {
			upper := b.Compare("ne", b.Binary(ptx.And, w.lane, b.I32(d)), b.I32(0))
			half := len(sums) / 2
			for i := range half {
				mine, theirs := b.Select(upper, sums[i+half], sums[i]), b.Select(upper, sums[i], sums[i+half])
				sums[i] = b.Binary(ptx.Add, mine, b.Do(ptx.Shuffle, []*ir.Value{theirs, b.I32(d)}, "mode", "bfly").Result(0))
			}
			sums = sums[:half]
		}
		s.param = param
		b.Store(s.to, b.Vector(sums...), ptx.Access{Space: "shared", Offset: 4*c.block*s.line + 4*c.col})
	}
}

// finish adds up the four warps' sums of every 64 rows, from a row on, and stores them.
func (s *exchange) finish(at place, row *ir.Value, blocks int) {
	if s.param < 0 {
		return
	}
	w, b := s.w, s.w.b
	b.Do(ptx.Sync, []*ir.Value{s.id}, "threads", 128)
	for m := range blocks {
		block := b.DivI(b.AddI(row, 64*m), 64)
		to := b.MulWide(b.Add(b.Add(b.MulI(block, w.N), at.col), s.thread), 4, w.epilogue[s.param])
		for c := 0; c < w.BN; c += 128 {
			var mine *ir.Value
			if c+128 > w.BN {
				mine = b.Compare("lo", s.thread, b.I32(w.BN-c))
			}
			warp := func(i int) *ir.Value {
				return b.Load(s.from, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: (4*m+i)*s.line + 4*c, If: mine})
			}
			total := warp(0)
			for i := 1; i < 4; i++ {
				total = b.Binary(ptx.Add, total, warp(i))
			}
			b.Store(to, total, ptx.Access{Space: "global", Offset: 4 * c, If: both(b, mine, s.inside(at, block, c))})
		}
	}
	b.Do(ptx.Sync, []*ir.Value{s.id}, "threads", 128) // before the next tile's sums are left there
}

// inside says whether a thread has a column of the result from column c of a tile on, and a block of rows is one; nil where both are sure.
func (s *exchange) inside(at place, block *ir.Value, c int) (in *ir.Value) {
	w, b := s.w, s.w.b
	if w.M%(w.BM*w.Cluster) != 0 {
		in = b.Compare("lo", b.MulI(block, 64), b.I32(w.M))
	}
	if w.N%w.BN != 0 {
		in = both(b, in, b.Compare("lo", b.Add(b.AddI(at.col, c), s.thread), b.I32(w.N)))
	}
	return in
}
