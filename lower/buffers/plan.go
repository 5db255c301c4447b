package buffers

import (
	"cmp"
	"slices"

	"blutrain/ir"
)

// root is one piece of memory: named storage, a constant, or a range of the arena. Its lifetime is counted in operations
// of the function.
type root struct {
	space       string
	name        string
	value       ir.Attr // of a constant
	typ         *ir.MemRefType
	bytes       int64
	first, last int // from the first write to the last access
	offset      int64
	loc         *ir.Location
	buffer      *ir.Op // the mem.buffer, once made
}

func (r *root) extend(from, to int) {
	r.first = min(r.first, from)
	r.last = max(r.last, to)
}

// pack gives every root an offset such that roots alive at the same time don't overlap, and returns the bytes needed.
// The largest are placed first, each at the lowest offset that is free during its lifetime.
func pack(roots []*root, align int64) (total int64) {
	order := slices.Clone(roots)
	slices.SortStableFunc(order, func(a, b *root) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.first, b.first))
	})
	var placed []*root // by offset
	for _, r := range order {
		r.offset = lowestGap(placed, r, align)
		i, _ := slices.BinarySearchFunc(placed, r.offset, func(p *root, off int64) int { return cmp.Compare(p.offset, off) })
		placed = slices.Insert(placed, i, r)
		total = max(total, r.offset+r.bytes)
	}
	return roundUp(total, align)
}

func lowestGap(placed []*root, r *root, align int64) int64 {
	at := int64(0)
	for _, p := range placed {
		if p.last < r.first || r.last < p.first {
			continue
		}
		if p.offset >= at+r.bytes {
			return at
		}
		at = max(at, roundUp(p.offset+p.bytes, align))
	}
	return at
}

func roundUp(n, align int64) int64 { return (n + align - 1) / align * align }
