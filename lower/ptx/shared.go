package ptx

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// sharedTile is a matrix of 32-bit elements in shared memory, one major line after the other.
type sharedTile struct {
	base   *ir.Value // i32
	offset int64     // bytes
	pitch  int64     // bytes from one major line to the next
}

// padded is how many rows of a block of n the threads have together.
func (l *lowering) paddedRows(n int) int {
	if n == 1 {
		return 1
	}
	return l.rows(n) * l.tr
}

func (l *lowering) paddedCols(n int) int {
	if n == 1 {
		return 1
	}
	return l.cols(n) * l.tc
}

// pitchOf is the bytes of a line of n elements: a multiple of 16 that is none of 128.
func pitchOf(n int) int64 { return int64((n+3)/4*4+4) * 4 }

// sharedBytes is the memory of a block in shared memory: columns are the major lines where it is transposed.
func (l *lowering) sharedBytes(x *block, transposed bool) int64 {
	major, minor := l.paddedRows(x.shape[0]), l.paddedCols(x.shape[1])
	if transposed {
		major, minor = minor, major
	}
	return int64(major) * pitchOf(minor)
}

// sharedBlock writes a block to shared memory, with columns as major lines where it is transposed. Elements that are not
// there are written as they are.
func (l *lowering) sharedBlock(x *block, transposed bool, offset int64, base *ir.Value) sharedTile {
	n, minor := l.cols(x.shape[1]), l.paddedCols(x.shape[1])
	together := l.v // elements of a line that a thread has next to each other
	if transposed {
		minor, together = l.paddedRows(x.shape[0]), l.vr
	}
	s := sharedTile{base, offset, pitchOf(minor)}
	if minor == 1 {
		together = 1
	}
	rowPitch, colPitch := s.pitch, int64(4)
	if transposed {
		rowPitch, colPitch = 4, s.pitch
	}
	at := base
	if x.shape[0] > 1 {
		at = l.b.Add(at, l.b.MulI(l.row0, int(rowPitch)))
	}
	if x.shape[1] > 1 {
		at = l.b.Add(at, l.b.MulI(l.col0, int(colPitch)))
	}
	owner := l.owner(x)
	for k := range x.regs {
		i, j := k/n, k%n
		if transposed && i%together != 0 || !transposed && j%together != 0 {
			continue
		}
		regs := make([]*ir.Value, together)
		for m := range regs {
			if transposed {
				regs[m] = x.regs[(i+m)*n+j]
			} else {
				regs[m] = x.regs[k+m]
			}
		}
		shift := offset
		if x.shape[0] > 1 {
			shift += int64(l.rowAt(i)) * rowPitch
		}
		if x.shape[1] > 1 {
			shift += int64(l.colAt(j)) * colPitch
		}
		l.b.Store(at, l.b.Vector(regs...), ptx.Access{Space: "shared", Offset: int(shift), If: owner})
	}
	return s
}

// place is where a thread finds element (i, j) of a block whose rows are the major lines.
func (s sharedTile) place(l *lowering, y *block, i, j int) (*ir.Value, int) {
	return s.element(l, y, i, j, s.pitch, 4)
}

// placeAcross is that of a block whose columns are.
func (s sharedTile) placeAcross(l *lowering, y *block, i, j int) (*ir.Value, int) {
	return s.element(l, y, i, j, 4, s.pitch)
}

// element is where one lies, of rows and columns that are so many bytes apart.
func (s sharedTile) element(l *lowering, y *block, i, j int, rowPitch, colPitch int64) (*ir.Value, int) {
	type key struct {
		base               *ir.Value
		rowPitch, colPitch int64
		row, col           bool
	}
	row, col := y.shape[0] > 1, y.shape[1] > 1
	at := l.remember(key{s.base, rowPitch, colPitch, row, col}, func() *ir.Value {
		at := s.base
		if row {
			at = l.b.Add(at, l.b.MulI(l.row0, int(rowPitch)))
		}
		if col {
			at = l.b.Add(at, l.b.MulI(l.col0, int(colPitch)))
		}
		return at
	})
	shift := s.offset
	if row {
		shift += int64(l.rowAt(i)) * rowPitch
	}
	if col {
		shift += int64(l.colAt(j)) * colPitch
	}
	return at, int(shift)
}

// masked is a block with zeros for the rows, or for the columns, that are not there.
func (l *lowering) masked(x *block, rows bool) *block {
	y := *x
	y.regs = make([]*ir.Value, len(x.regs))
	zero := l.number(x.elem, 0)
	l.each(x, func(i, j, k int) {
		p := l.colInside(x, j)
		if rows {
			p = l.rowInside(x, i)
		}
		y.regs[k] = l.choose(p, x.regs[k], zero)
	})
	return &y
}
