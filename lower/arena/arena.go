// Package arena packs pieces of memory with known lifetimes into one block. It knows sizes and times only.
package arena

import (
	"cmp"
	"slices"
)

// Piece is so many bytes that are in use from time First to time Last, both included. Pack sets Offset.
type Piece struct {
	Bytes       int64
	First, Last int
	Offset      int64
}

// Pack gives every piece an offset, a multiple of align, such that pieces in use at the same time don't overlap, and
// returns the bytes needed. The largest are placed first, each at the lowest offset that is free during its lifetime.
func Pack(pieces []*Piece, align int64) (total int64) {
	order := slices.Clone(pieces)
	slices.SortStableFunc(order, func(a, b *Piece) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.First, b.First))
	})
	var placed []*Piece // by offset
	for _, p := range order {
		p.Offset = lowestGap(placed, p, align)
		i, _ := slices.BinarySearchFunc(placed, p.Offset, func(q *Piece, off int64) int { return cmp.Compare(q.Offset, off) })
		placed = slices.Insert(placed, i, p)
		total = max(total, p.Offset+p.Bytes)
	}
	return roundUp(total, align)
}

func lowestGap(placed []*Piece, p *Piece, align int64) int64 {
	at := int64(0)
	for _, q := range placed {
		if q.Last < p.First || p.Last < q.First {
			continue
		}
		if q.Offset >= at+p.Bytes {
			return at
		}
		at = max(at, roundUp(q.Offset+q.Bytes, align))
	}
	return at
}

func roundUp(n, align int64) int64 { return (n + align - 1) / align * align }
