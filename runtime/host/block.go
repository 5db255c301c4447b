package host

import (
	"fmt"
	"unsafe"
)

// block is a window of memory: rows x cols elements, rows and columns so many elements apart.
type block struct {
	p          unsafe.Pointer
	rows, cols int
	rowStride  int
	colStride  int
}

// dense reports whether the rows follow each other without gaps.
func (b *block) dense() bool { return b.colStride == 1 && (b.rowStride == b.cols || b.rows == 1) }

// empty reports whether there is nothing to do.
func (b *block) empty() bool { return b.rows == 0 || b.cols == 0 }

// span is the number of elements from the first to the last, gaps included.
func (b *block) span() int {
	if b.empty() {
		return 0
	}
	return (b.rows-1)*b.rowStride + (b.cols-1)*b.colStride + 1
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

// fits says whether operand x can be used with destination d: equal extents, or one row or column that is repeated.
func (b *block) fits(d *block) bool {
	return (b.rows == d.rows || b.rows == 1) && (b.cols == d.cols || b.cols == 1)
}

func (b *block) String() string { return fmt.Sprintf("%dx%d", b.rows, b.cols) }
