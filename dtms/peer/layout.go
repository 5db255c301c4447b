package peer

import (
	"slices"

	"blutrain/dtms"
)

// alignment is that of what a part is made of, in bytes: more than kernels and copies want.
const alignment = 256

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }

// span is a run of bytes of a part, and where this rank has them: in what it gives and in what it gets, 0 where it has none.
type span struct {
	at, bytes int64 // in the part
	in, out   uintptr
}

// cut is what lies from lo to hi, exclusive, counted from lo.
func cut(spans []span, lo, hi int64) []span {
	var within []span
	for _, s := range spans {
		from, to := max(s.at, lo), min(s.at+s.bytes, hi)
		if from >= to {
			continue
		}
		skip := from - s.at
		within = append(within, span{from - lo, to - from, moved(s.in, skip), moved(s.out, skip)})
	}
	return within
}

func moved(at uintptr, bytes int64) uintptr {
	if at == 0 {
		return 0
	}
	return at + uintptr(bytes)
}

// extent is where a part ends.
func extent(spans []span) int64 {
	if len(spans) == 0 {
		return 0
	}
	last := spans[len(spans)-1]
	return last.at + last.bytes
}

// parts divides the memory of calls of one operation: part p is what rank p adds up, or gives. All ranks get the same bytes at the same places.
func parts(calls []dtms.Call, rank, size int) [][]span {
	all := make([][]span, size)
	if calls[0].Op == dtms.AllReduce {
		whole := part(calls, func(c dtms.Call) (int64, uintptr, uintptr) { return c.In.Bytes(), c.In.Address(), c.Out.Address() })
		each := aligned((extent(whole) + int64(size) - 1) / int64(size))
		for p := range all {
			all[p] = cut(whole, int64(p)*each, int64(p+1)*each)
		}
		return all
	}
	for p := range all {
		all[p] = part(calls, func(c dtms.Call) (bytes int64, in, out uintptr) {
			if c.Op == dtms.ReduceScatter {
				bytes, in = c.Out.Bytes(), c.In.Address()+uintptr(int64(p)*c.Out.Bytes())
				if p == rank {
					out = c.Out.Address()
				}
				return bytes, in, out
			}
			bytes, out = c.In.Bytes(), c.Out.Address()+uintptr(int64(p)*c.In.Bytes())
			if p == rank {
				in = c.In.Address()
			}
			return bytes, in, out
		})
	}
	return all
}

// part puts one run of bytes of each call behind the other, from the last call to the first: gradients come in the order of the backward
// pass, and where they are kept that is from the last parameter to the first, so that many are one run in memory, too.
func part(calls []dtms.Call, of func(c dtms.Call) (bytes int64, in, out uintptr)) []span {
	var spans []span
	at := int64(0)
	for _, c := range slices.Backward(calls) {
		bytes, in, out := of(c)
		if bytes > 0 {
			spans = append(spans, span{at, bytes, in, out})
			at = aligned(at + bytes)
		}
	}
	return spans
}

// joined makes one span of those that are neighbours everywhere: fewer copies and launches. It changes nothing that another rank sees.
func joined(spans []span) []span {
	var runs []span
	for _, s := range spans {
		if n := len(runs) - 1; n >= 0 && runs[n].at+runs[n].bytes == s.at && follows(runs[n].in, s.in, runs[n].bytes) && follows(runs[n].out, s.out, runs[n].bytes) {
			runs[n].bytes += s.bytes
			continue
		}
		runs = append(runs, s)
	}
	return runs
}

func follows(at, next uintptr, bytes int64) bool {
	return next == moved(at, bytes)
}
