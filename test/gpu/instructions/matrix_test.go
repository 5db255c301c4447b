package instructions

import (
	"fmt"
	"math"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

func matrices() []experiment {
	var all []experiment
	for _, n := range []int{1, 2, 4} {
		for _, trans := range []bool{false, true} {
			all = append(all, movedMatrices(n, trans, false), movedMatrices(n, trans, true))
		}
	}
	for _, format := range []string{"bf16", "f16", "tf32"} {
		all = append(all, multiplied(format))
		for _, n := range []int{8, 64, 136, 256} {
			all = append(all, warpgroup(format, n, layout{128, false, 0}, layout{128, false, 0}), registered(format, n, layout{128, false, 0}))
		}
		for _, swizzle := range []int{0, 32, 64, 128} {
			all = append(all, warpgroup(format, 64, layout{swizzle, false, 0}, layout{128 - swizzle/64*64, false, 0}))
		}
		all = append(all, warpgroup(format, 32, layout{128, false, 96}, layout{64, false, 32}))
		if format == "tf32" {
			continue
		}
		for _, swizzle := range []int{0, 32, 64, 128} {
			all = append(all, registered(format, 64, layout{swizzle, true, 0}))
			all = append(all, warpgroup(format, 64, layout{swizzle, true, 0}, layout{128, false, 0}), warpgroup(format, 128, layout{128, false, 0}, layout{swizzle, true, 0}))
		}
		all = append(all, warpgroup(format, 128, layout{128, true, 0}, layout{128, true, 0}))
	}
	return all
}

// movedMatrices reads matrices with ldmatrix, or writes them with stmatrix.
func movedMatrices(n int, trans, store bool) experiment {
	name := map[bool]string{false: "ldmatrix", true: "stmatrix"}[store]
	if trans {
		name += " trans"
	}
	return experiment{name: fmt.Sprintf("%s x%d", name, n), threads: 32, in: words(128), out: 128 * n, shared: 512, elem: "u32", body: func(b *body) {
		// Lane l names row 3 l mod 32.
		row := b.Add(b.SharedBase(), b.MulI(b.Binary(ptx.And, b.MulI(b.lane, 3), b.I32(8*n-1)), 16))
		vector := func(from *ir.Value) *ir.Value {
			var x []*ir.Value
			for i := range n {
				x = append(x, b.load(b.at(from, b.AddI(b.lane, 32*i), 4), b.Ctx.I32(), 1))
			}
			return b.Create(ptx.Vector, x).Result(0)
		}
		if store {
			attrs := []any{}
			if trans {
				attrs = append(attrs, "trans", true)
			}
			b.Do(ptx.StoreMatrix, []*ir.Value{row, vector(b.in)}, attrs...)
			b.sync()
			b.dump(32, 128*n)
			return
		}
		b.stage(32, 512)
		b.sync()
		x := b.LoadMatrix(row, n, 0, trans)
		for i := range n {
			b.store(b.at(b.out, b.AddI(b.lane, 32*i), 4), b.Extract(x, i))
		}
	}}
}

// sums is how far sums of products of normal numbers may be from the emulator's: PTX leaves the order and the rounding open,
// at no less than float32's precision, and what was seen keeps two bits more.
func sums(depth int) func(int, float64) float64 {
	return func(_ int, want float64) float64 { return 0x1p-22 * (math.Abs(want) + 8*math.Sqrt(float64(depth))) }
}

// multiplied is mma.sync.
func multiplied(format string) experiment {
	in := append(repeated(format, 2048), repeated("f32", 128)...)
	at := map[string]int{"tf32": 8192}[format]
	if at == 0 {
		at = 4096
	}
	return experiment{name: "mma " + format, threads: 32, in: in, out: 512, elem: "f32", bound: sums(16), body: func(b *body) {
		word := func(i int) *ir.Value { return b.load(b.at(b.in, b.AddI(b.lane, 32*i), 4), b.Ctx.I32(), 1) }
		x, y := b.Vector(word(0), word(1), word(2), word(3)), b.Vector(word(4), word(5))
		c := b.load(b.Add(b.MulWide(b.lane, 16, b.in), b.I64(int64(at))), b.Ctx.F32(), 4)
		d := b.Do(ptx.MMA, []*ir.Value{x, y, c}, "format", format).Result(0)
		b.store(b.at(b.out, b.lane, 16), d)
	}}
}

// layout is how a matrix lies in shared memory: bytes of the swizzle, whether M or N is contiguous, and by how many bytes
// of k the descriptor starts late.
type layout struct {
	swizzle int
	mnMajor bool
	late    int
}

func (l layout) String() string {
	s := fmt.Sprintf("k%d", l.swizzle)
	if l.mnMajor {
		s = fmt.Sprintf("mn%d", l.swizzle)
	}
	if l.late > 0 {
		s += fmt.Sprintf("+%d", l.late)
	}
	return s
}

// offsets is the leading and the stride offset, and bytes is what a matrix of some rows takes.
func (l layout) offsets() (leading, stride int) {
	switch {
	case l.swizzle == 0:
		return 128, 256 // 8x16-byte cores: along k, then along M or N
	case l.mnMajor:
		return 16 * l.swizzle, 8 * l.swizzle
	}
	return 16, 8 * l.swizzle
}

func (l layout) bytes(rows, size int) int {
	switch {
	case l.swizzle == 0:
		return rows * 32
	case l.mnMajor:
		return (rows*size + l.swizzle - 1) / l.swizzle * 16 * l.swizzle
	}
	return rows * l.swizzle
}

func (l layout) descriptor(start int) uint64 {
	leading, stride := l.offsets()
	kind := map[int]uint64{0: 0, 128: 1, 64: 2, 32: 3}[l.swizzle]
	return uint64((start+l.late)>>4) | uint64(leading>>4)<<16 | uint64(stride>>4)<<32 | kind<<62
}

// warpgroup multiplies matrices of random bytes of shared memory, laid out as the descriptors say, twice: d = a b, then
// d = a b + d, negative first.
func warpgroup(format string, n int, a, c layout) experiment {
	return products(fmt.Sprintf("wgmma %s n%d %v %v", format, n, a, c), format, n, a, c, nil)
}

// registered multiplies with rows of a in registers, read from the same place.
func registered(format string, n int, c layout) experiment {
	return products(fmt.Sprintf("wgmma %s n%d registers %v", format, n, c), format, n, layout{128, false, 0}, c, func(b *body) *ir.Value {
		lane, warp := b.Binary(ptx.And, b.tid, b.I32(31)), b.DivI(b.tid, 32)
		low, high, eight := b.Binary(ptx.And, b.DivI(lane, 8), b.I32(1)), b.DivI(lane, 16), b.Binary(ptx.And, lane, b.I32(7))
		row := b.Add(b.Add(b.MulI(warp, 16), b.MulI(low, 8)), eight)
		return b.LoadMatrix(b.Add(b.SharedBase(), b.Add(b.MulI(row, 128), b.MulI(b.Binary(ptx.Xor, high, eight), 16))), 4, 0, false)
	})
}

// products is two products, of a by its descriptor or as it is made.
func products(name, format string, n int, a, c layout, rows func(b *body) *ir.Value) experiment {
	size := map[string]int{"bf16": 2, "f16": 2, "tf32": 4}[format]
	bytesA := (a.bytes(64, size) + 1023) / 1024 * 1024
	total := bytesA + (c.bytes(n, size)+1023)/1024*1024
	return experiment{name: name, in: repeated(format, total/size), out: 256 * n, shared: total, elem: "f32", bound: sums(32), body: func(b *body) {
		b.stage(128, total)
		b.Do(ptx.Fence, nil, "kind", "async")
		b.sync()
		base := b.DivI(b.Binary(ptx.And, b.SharedBase(), b.I32(0x3FFFF)), 16)
		make := func(l layout, start int) *ir.Value {
			bits := l.descriptor(start)
			return b.Join(b.AddI(base, int(uint32(bits))), b.I32(int(int32(bits>>32))))
		}
		x, y := make(a, 0), make(c, bytesA)
		if rows != nil {
			x = rows(b)
		}
		attrs := []any{"format", format}
		if a.mnMajor {
			attrs = append(attrs, "ta", true)
		}
		if c.mnMajor {
			attrs = append(attrs, "tb", true)
		}
		acc := b.Undef(n / 2)
		b.Do(ptx.WGMMAFence, nil)
		for _, add := range []*ir.Value{b.False(), b.True()} {
			acc = b.Do(ptx.WGMMA, []*ir.Value{x, y, acc, add}, attrs...).Result(0)
		}
		b.Do(ptx.WGMMACommit, nil)
		acc = b.Do(ptx.WGMMAWait, []*ir.Value{acc}, "pending", 0).Result(0)
		for i := range n / 2 {
			b.store(b.at(b.out, b.AddI(b.tid, 128*i), 4), b.Extract(acc, i))
		}
	}}
}
