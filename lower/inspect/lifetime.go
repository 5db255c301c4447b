package inspect

import (
	"slices"

	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// piece is memory of the arena from its first write to its last use: what one value, or several next to each other, had.
type piece struct {
	low, high   int64 // bytes of the arena, high excluded
	first, last int   // steps of the function
	loc         *ir.Location
	by          string // the kernel that writes it
	typ         *ir.MemRefType
	strided     bool   // written with gaps between its elements
	joined      *piece // what it turned out to be a part of
}

func (p *piece) root() *piece {
	for p.joined != nil {
		p = p.joined
	}
	return p
}

// join makes two pieces one: parts of a concatenation.
func join(a, b *piece) *piece {
	a, b = a.root(), b.root()
	if a == b {
		return a
	}
	a.low, a.high = min(a.low, b.low), max(a.high, b.high)
	a.first, a.last = min(a.first, b.first), max(a.last, b.last)
	b.joined = a
	return a
}

// lifetimes finds the pieces of a function's arena from what its steps read and write. The program says only where each
// step finds its operands; which of them are one value is told by what was written there last.
type lifetimes struct {
	pieces  []*piece
	current []*piece // written last at their addresses, by address
}

// read notes a use of memory at a step.
func (l *lifetimes) read(ref *ir.Op, step int) {
	low, high, _ := extent(ref)
	var seen *piece
	for _, p := range l.current {
		if p.low >= high || p.high <= low {
			continue
		}
		p.root().last = step
		if seen != nil {
			join(seen, p)
		}
		seen = p
	}
}

// write notes that a kernel fills memory at a step.
func (l *lifetimes) write(ref *ir.Op, step int, by string) {
	low, high, strided := extent(ref)
	p := &piece{low: low, high: high, first: step, last: step, loc: ref.Loc(), by: by, typ: ref.Result(0).Type().(*ir.MemRefType), strided: strided}
	l.current = slices.DeleteFunc(l.current, func(old *piece) bool {
		if old.low >= high || old.high <= low {
			return false
		}
		if strided && old.strided && old.low != low { // between the elements of the other: one value in parts
			join(old, p)
			return false
		}
		if o := old.root(); o.last == step && o.first < step {
			o.last = step - 1 // taken over within this step
		}
		return true
	})
	l.pieces = append(l.pieces, p)
	at, _ := slices.BinarySearchFunc(l.current, low, func(q *piece, low int64) int { return int(q.low - low) })
	l.current = slices.Insert(l.current, at, p)
}

// values lists the pieces that are no part of another.
func (l *lifetimes) values() (out []*piece) {
	for _, p := range l.pieces {
		if p.joined == nil {
			out = append(out, p)
		}
	}
	return out
}

// extent is the bytes of the arena that a reference spans.
func extent(ref *ir.Op) (low, high int64, strided bool) {
	t := ref.Result(0).Type().(*ir.MemRefType)
	strides, _ := mem.Layout(t)
	last := int64(0)
	for i, d := range t.Shape {
		last += max(0, d-1) * strides[i]
	}
	low = ref.Attrs().IntOr("offset", 0)
	size := ir.ByteSize(t.Elem)
	return low, low + (last+1)*size, last+1 > ir.NumElements(t.Shape)
}

// inArena is the exec.ref of a value that lies in the arena, or nil.
func inArena(v *ir.Value) *ir.Op {
	if op := v.Op(); op.Is(exec.Ref) && op.Attrs().Str("space") == mem.Arena {
		return op
	}
	return nil
}
