package shard

import (
	"slices"

	"blutrain/ir"
)

// placement is the kind of a sharding.
type placement uint8

const (
	whole   placement = iota // every rank has all of it
	divided                  // every rank has a piece, along one axis
	partial                  // every rank has a term; the value is their sum
)

// sharding is what of a value a rank has. An axis that is divided is, in row-major order, [outer, chunks, inner] elements:
// the chunks are the divider's, and a rank has some of them. So batch and sequence may become one axis and be split again.
type sharding struct {
	how   placement
	axis  int   // divided: which axis
	outer int64 // divided: how many times the chunks repeat along the axis
}

// localShape is the shape of what a rank holds.
func (d *divider) localShape(shape []int64, s sharding) []int64 {
	if s.how != divided {
		return shape
	}
	local := slices.Clone(shape)
	local[s.axis] /= d.n
	return local
}

// fits reports whether an axis of a shape can be divided so.
func (d *divider) fits(shape []int64, s sharding) bool {
	n := shape[s.axis]
	return n > 0 && n%(s.outer*d.chunks) == 0
}

// rowsOf is a shape seen as [rows, chunks, width], the chunks being those of its divided axis.
func (d *divider) rowsOf(shape []int64, s sharding) (rows, width int64) {
	rows = ir.NumElements(shape[:s.axis]) * s.outer
	return rows, shape[s.axis] / (s.outer * d.chunks) * ir.NumElements(shape[s.axis+1:])
}

// reshaped is how a value is divided after a reshape; ok is false where no one axis holds the chunks.
func (d *divider) reshaped(from, to []int64, s sharding) (t sharding, ok bool) {
	_, width := d.rowsOf(from, s)
	if ir.NumElements(from) == 0 {
		return sharding{}, false
	}
	after := int64(1) // elements of the axes after the one that is looked at
	for axis := len(to) - 1; axis >= 0; axis-- {
		n := to[axis]
		if n > 1 && width%after == 0 && n%(width/after*d.chunks) == 0 {
			return sharding{divided, axis, n / (width / after * d.chunks)}, true
		}
		after *= n
	}
	return sharding{}, false
}
