package host

import (
	"fmt"
	"unsafe"

	"blutrain/runtime/host/prim"
)

// block is a window of memory: rows x cols elements, rows and columns so many elements apart.
type block struct {
	p          unsafe.Pointer
	rows, cols int
	rowStride  int
	colStride  int
}

// empty reports whether there is nothing to do.
func (b *block) empty() bool { return b.rows == 0 || b.cols == 0 }

// span is the number of elements from the first to the last, gaps included.
func (b *block) span() int {
	if b.empty() {
		return 0
	}
	return (b.rows-1)*b.rowStride + (b.cols-1)*b.colStride + 1
}

// distinct is the number of elements, those once that a stride of 0 repeats.
func (b *block) distinct() int64 {
	n := int64(1)
	if b.rowStride != 0 || b.rows == 0 {
		n *= int64(b.rows)
	}
	if b.colStride != 0 || b.cols == 0 {
		n *= int64(b.cols)
	}
	return n
}

// elements is the block's memory, gaps included, as a slice.
func elements[T any](b *block) []T { return unsafe.Slice((*T)(b.p), b.span()) }

// row is the r-th row of a block whose columns lie next to each other.
func row[T any](b *block, r int) []T {
	return unsafe.Slice((*T)(unsafe.Add(b.p, r*b.rowStride*int(unsafe.Sizeof(*new(T))))), b.cols)
}

// at is one element.
func at[T any](b *block, r, c int) *T {
	return (*T)(unsafe.Add(b.p, (r*b.rowStride+c*b.colStride)*int(unsafe.Sizeof(*new(T)))))
}

// operand is a block whose columns lie next to each other as prim takes it for destination d: repeated where it has one
// row or column and d more.
func operand[T float32 | int32 | uint32](x, d *block) prim.Operand[T] {
	o := prim.Operand[T]{Data: elements[T](x), Row: x.rowStride, Col: 1}
	if x.rows == 1 && d.rows > 1 {
		o.Row = 0
	}
	if x.cols == 1 && (d.cols > 1 || o.Row == 0) {
		o.Col = 0
	}
	return o
}

// target is a destination as prim takes it.
func target[T float32 | int32 | uint32](b *block) prim.Operand[T] {
	return prim.Rows(elements[T](b), b.rowStride)
}

// fits says whether operand x can be used with destination d: equal extents, or one row or column that is repeated.
func (b *block) fits(d *block) bool {
	return (b.rows == d.rows || b.rows == 1) && (b.cols == d.cols || b.cols == 1)
}

func (b *block) String() string { return fmt.Sprintf("%dx%d", b.rows, b.cols) }
