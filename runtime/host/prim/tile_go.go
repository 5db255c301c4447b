package prim

import "unsafe"

// The portable tile. Its micro-kernel keeps one row of accumulators at a time.
const (
	goRows  = 4
	goCols  = 8
	goLanes = 4
)

func goTile() tileTable {
	t := tileTable{rows: goRows, cols: goCols, lanes: goLanes,
		transpose: transposeGo, copyA: copyPanelsGo, copyB: copyPanelsGo}
	for r := range goRows + 1 {
		t.packed = append(t.packed, func(k int, a, b, c *float32, ldc, n int, acc bool) {
			tileGo(r, k, a, 1, r, b, goCols, c, ldc, n, acc)
		})
		t.direct = append(t.direct, func(k int, a *float32, rs, cs int, b *float32, ldb int, c *float32, ldc, n int, acc bool) {
			tileGo(r, k, a, rs, cs, b, ldb, c, ldc, n, acc)
		})
		t.packing = append(t.packing, func(k int, a, b *float32, ldb int, to, c *float32, ldc, n int, acc bool) {
			copyPanelsGo(to, goCols*k, b, ldb, k, goCols, goCols)
			tileGo(r, k, a, 1, r, to, goCols, c, ldc, n, acc)
		})
	}
	return t
}

// view is the slice of the n floats at p.
func view(p *float32, n int) []float32 { return unsafe.Slice(p, n) }

func tileGo(rows, k int, pa *float32, rs, cs int, pb *float32, ldb int, pc *float32, ldc, n int, acc bool) {
	a := view(pa, (rows-1)*rs+(k-1)*cs+1)
	b := view(pb, (k-1)*ldb+n)
	c := view(pc, (rows-1)*ldc+n)
	for i := range rows {
		var sum [goCols]float32
		for p := range k {
			x := a[i*rs+p*cs]
			for j, y := range b[p*ldb : p*ldb+n] {
				sum[j] = fma32(x, y, sum[j])
			}
		}
		out := c[i*ldc : i*ldc+n]
		for j := range out {
			if acc {
				out[j] += sum[j]
			} else {
				out[j] = sum[j]
			}
		}
	}
}

func transposeGo(pd *float32, ldd int, ps *float32, lds, rows, k int) {
	dst, src := view(pd, (k-1)*ldd+rows), view(ps, (rows-1)*lds+k)
	for i := range rows {
		for p, x := range src[i*lds : i*lds+k] {
			dst[p*ldd+i] = x
		}
	}
}

func copyPanelsGo(pd *float32, stride int, ps *float32, lds, k, width, pw int) {
	src := view(ps, (k-1)*lds+width)
	for q := 0; q*pw < width; q++ {
		w := min(pw, width-q*pw)
		dst := view((*float32)(unsafe.Add(unsafe.Pointer(pd), 4*q*stride)), (k-1)*pw+w)
		for p := range k {
			copy(dst[p*pw:p*pw+w], src[p*lds+q*pw:])
		}
	}
}
