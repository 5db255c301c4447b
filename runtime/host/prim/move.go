package prim

import "fmt"

// Transpose writes dst[c*dstStride + r] = src[r*srcStride + c] for r < rows, c < cols.
// The blocks must not overlap.
func (k *Kernels) Transpose(dst []float32, dstStride int, src []float32, srcStride, rows, cols int) {
	if rows <= 0 || cols <= 0 {
		return
	}
	src, dst = src[:span(rows, srcStride, cols, 1)], dst[:span(cols, dstStride, rows, 1)]
	for r := 0; r < rows; r += k.tile.lanes {
		k.tile.transpose(&dst[r], dstStride, &src[r*srcStride], srcStride, min(k.tile.lanes, rows-r), cols)
	}
}

// checkIndices names the first index that is not a row of the table.
func checkIndices(idx []int32, rows int) error {
	for i, x := range idx {
		if x < 0 || int(x) >= rows {
			return fmt.Errorf("index %d at position %d is not a row of a table of %d rows", x, i, rows)
		}
	}
	return nil
}

// GatherRows copies row idx[i] of table, which has rows rows, to row i of dst. An index that is no row is an error,
// and then nothing is written.
func (k *Kernels) GatherRows(dst []float32, dstStride int, table []float32, tableStride, rows, cols int, idx []int32) error {
	if err := checkIndices(idx, rows); err != nil {
		return err
	}
	for i, x := range idx {
		copy(dst[i*dstStride:][:cols], table[int(x)*tableStride:][:cols])
	}
	return nil
}

// ScatterAddRows adds row i of src to row idx[i] of table, which has rows rows, in the order of i. An
// index that is no row is an error, and then nothing is written.
func (k *Kernels) ScatterAddRows(table []float32, tableStride, rows int, src []float32, srcStride, cols int, idx []int32) error {
	if err := checkIndices(idx, rows); err != nil {
		return err
	}
	for i, x := range idx {
		row := table[int(x)*tableStride:][:cols]
		k.Binary(Add, row, row, src[i*srcStride:][:cols])
	}
	return nil
}
