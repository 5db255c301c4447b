package blublas

import (
	"math/bits"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// divided is x / n, of x less than 2^31: the upper half of a product (Granlund and Montgomery, Division by invariant integers using
// multiplication, 1994). The assembler divides by a constant as by anything else, by way of a reciprocal: some 20 instructions, one after the other.
func divided(b *ptx.Builder, x *ir.Value, n int) *ir.Value {
	if n&(n-1) == 0 {
		return b.DivI(x, n)
	}
	factor, shift := reciprocal(uint32(n))
	product := b.Do(ptx.MulWide, []*ir.Value{x, b.I32(int(int32(factor)))}).Result(0)
	_, high := b.Split(product, b.Ctx.I32())
	return b.DivI(high, 1<<shift)
}

// reciprocal is 2^(32+shift) / n rounded up, of n that is no power of two. With 2^s the next power of two and shift = s-1 it is less than 2^32, and
// too great by less than 1: x times that, of the 31+s bits that are dropped, is less than 2^31, which is less than the 2^(31+s) / n that separate x / n
// from the next whole number.
func reciprocal(n uint32) (factor uint32, shift int) {
	s := bits.Len32(n)
	return uint32((1<<(31+s) + uint64(n) - 1) / uint64(n)), s - 1
}
