package prim

// A fewKernel multiplies a panel of few rows by some columns of B where they lie.
type fewKernel func(k int, a, b *float32, ldb int, c *float32, ldc int, acc bool)

// An acrossKernel is one that asks for as many bytes from ahead on as it reads of B, in that order.
type acrossKernel func(k int, a, b *float32, ldb int, ahead, c *float32, ldc int, acc bool)

// A wideKernel is one and its number of columns.
type wideKernel struct {
	cols int
	mul  fewKernel
}

// A tileTable is what the matrix product needs of an instruction set: the shape
// of its register tile, a micro-kernel for each number of rows, and the routines
// that pack panels.
type tileTable struct {
	rows, cols int  // of the register tile; cols is two vectors
	lanes      int  // floats in a vector
	keepsB     bool // half the first-level cache holds a panel of B, which then stays there while panels of A pass by

	// packed[r] multiplies an r x k panel [k][r] by a k x cols panel [k][cols] into
	// r rows of c, of which it writes n columns; it adds to c if acc is set.
	packed []func(k int, a, b, c *float32, ldc, n int, acc bool)

	// direct[r] does so on operands where they lie: a[i*rs + p*cs], b[p*ldb + j].
	direct []func(k int, a *float32, rs, cs int, b *float32, ldb int, c *float32, ldc, n int, acc bool)

	// packing[r] does so on a packed A and cols columns of B where they lie: b[p*ldb + j],
	// which it packs into the panel at to. n is cols.
	packing []func(k int, a, b *float32, ldb int, to, c *float32, ldc, n int, acc bool)

	// across[r] and wide[r] do so on a packed A of few rows and B where it lies, stored b[j*ldb + p] for across, which takes cols
	// columns and a k that 4 divides, and b[p*ldb + j] for wide, which takes more columns. There may be none.
	across []acrossKernel
	wide   []wideKernel

	// transpose writes dst[p*ldd+i] = src[i*lds+p] for i < rows <= lanes and p < k.
	transpose func(dst *float32, ldd int, src *float32, lds, rows, k int)

	// copyA and copyB write dst[q*stride+p*pw+c] = src[p*lds+q*pw+c] for p < k,
	// c < pw and q*pw+c < width. For copyA pw <= lanes, for copyB pw = cols.
	copyA, copyB func(dst *float32, stride int, src *float32, lds, k, width, pw int)
}
