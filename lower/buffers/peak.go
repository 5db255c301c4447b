package buffers

import (
	"cmp"
	"fmt"
	"slices"

	"blutrain/ir"
)

// PeakAttr is the attribute of a function that says who holds the arena when most of it is held: {bytes, during, holders =
// [{at, bytes, count}, ...]}, places in the source as file:line:column, the largest holder first.
const PeakAttr = "mem.peak"

// peak finds the time at which most bytes are in use; times are operations of the function, in order.
func peak(c *ir.Context, roots []*root, ops []*ir.Op) ir.Attr {
	change := make([]int64, len(ops)+1) // bytes that come into use and go out of it, by time
	for _, r := range roots {
		change[max(0, r.First)] += r.Bytes
		change[min(r.Last, len(ops)-1)+1] -= r.Bytes
	}
	var most, inUse int64
	when := 0
	for t, n := range change {
		if inUse += n; inUse > most {
			most, when = inUse, t
		}
	}
	var live []*root
	for _, r := range roots {
		if r.First <= when && when <= r.Last {
			live = append(live, r)
		}
	}
	return c.Dict(
		ir.NamedAttr{Name: "bytes", Value: c.Int64(most)},
		ir.NamedAttr{Name: "during", Value: c.String(placeOf(ops[when].Loc()))},
		ir.NamedAttr{Name: "holders", Value: holders(c, live)},
	)
}

// holder is the pieces that one place in the source holds.
type holder struct {
	at    string
	bytes int64
	count int64
}

func holders(c *ir.Context, live []*root) ir.Attr {
	var list []*holder
	byPlace := map[string]*holder{}
	for _, r := range live {
		at := placeOf(r.loc)
		h := byPlace[at]
		if h == nil {
			h = &holder{at: at}
			byPlace[at] = h
			list = append(list, h)
		}
		h.bytes += r.Bytes
		h.count++
	}
	slices.SortStableFunc(list, func(a, b *holder) int { return cmp.Compare(b.bytes, a.bytes) })
	attrs := make([]ir.Attr, len(list))
	for i, h := range list {
		attrs[i] = c.Dict(
			ir.NamedAttr{Name: "at", Value: c.String(h.at)},
			ir.NamedAttr{Name: "bytes", Value: c.Int64(h.bytes)},
			ir.NamedAttr{Name: "count", Value: c.Int64(h.count)},
		)
	}
	return c.Array(attrs...)
}

// placeOf is where in the source something came from, or "unknown".
func placeOf(l *ir.Location) string {
	s := l.Source()
	if s == nil {
		return "unknown"
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Line, s.Col)
}
