package buffers

import (
	"blutrain/ir"
	"blutrain/lower/arena"
)

// root is one piece of memory: named storage, a constant, or a range of the arena. Its lifetime is counted in operations
// of the function, from the first write to the last access.
type root struct {
	arena.Piece
	space  string
	name   string
	value  ir.Attr // of a constant
	typ    *ir.MemRefType
	loc    *ir.Location
	buffer *ir.Op // the mem.buffer, once made

	tenants []tenant // of named storage: what is put there
}

func (r *root) extend(from, to int) {
	r.First = min(r.First, from)
	r.Last = max(r.Last, to)
}

// pack gives the pieces of the arena their offsets.
func pack(roots []*root, align int64) int64 {
	pieces := make([]*arena.Piece, len(roots))
	for i, r := range roots {
		pieces[i] = &r.Piece
	}
	return arena.Pack(pieces, align)
}
