package tile

import (
	"blutrain/ir"
)

// verifyCoverage checks that stores reach all of an output, where that can be told from the kernel's text: when the output
// has one store and each of its offsets is a grid axis or the constant 0. Whatever else an offset is, a loop's index say,
// the evaluator checks.
func verifyCoverage(kernel *ir.Op, i int, out *ir.Value) error {
	if !out.HasOneUse() {
		return nil
	}
	var store *ir.Op
	for u := range out.Uses() {
		store = u.Owner()
	}
	if !store.Is(Store) || store.Block() != kernel.Body() {
		return nil
	}
	used := map[*ir.Value]bool{}
	row, col := Window(store)
	rows, cols := extents(store.Operand(0))
	for d, n := range out.Shape() {
		extent := int64(1)
		switch int64(d) {
		case row:
			extent = rows
		case col:
			extent = cols
		}
		off := store.Operand(2 + d)
		used[off] = true
		if err := coversDim(kernel, store, i, d, n, extent, off); err != nil {
			return err
		}
	}
	for a, axis := range Axes(kernel) {
		g, s := kernel.Attrs().Ints("grid")[a], kernel.Attrs().Ints("steps")[a]
		if g > s && !used[axis] && onlyAxes(kernel, store) {
			return store.Errorf("tile.store: every grid point along axis %d stores the same block of output %d", a, i)
		}
	}
	return nil
}

// coversDim checks one dimension of n elements that is stored in pieces of an extent at an offset.
func coversDim(kernel, store *ir.Op, out, dim int, n, extent int64, off *ir.Value) error {
	if isZero(off) && extent < n {
		return store.Errorf("tile.store: stores %d of the %d elements of output %d along dimension %d", extent, n, out, dim)
	}
	if off.Arg() != kernel.Body() {
		return nil
	}
	for a, axis := range Axes(kernel) {
		if axis != off {
			continue
		}
		g, s := kernel.Attrs().Ints("grid")[a], kernel.Attrs().Ints("steps")[a]
		if g != n || s != extent {
			return store.Errorf("tile.store: axis %d takes steps of %d up to %d, output %d has %d elements along dimension %d, stored %d at a time",
				a, s, g, out, n, dim, extent)
		}
	}
	return nil
}

// onlyAxes reports whether every offset of a store is a grid axis or the constant 0.
func onlyAxes(kernel, store *ir.Op) bool {
	for i := 2; i < store.NumOperands(); i++ {
		if v := store.Operand(i); v.Arg() != kernel.Body() && !isZero(v) {
			return false
		}
	}
	return true
}

// isZero reports whether v is the constant index 0.
func isZero(v *ir.Value) bool {
	if v.Op() == nil || v.Op().Name() != "arith.constant" {
		return false
	}
	n, ok := v.Op().Attrs().Int("value")
	return ok && n == 0
}
