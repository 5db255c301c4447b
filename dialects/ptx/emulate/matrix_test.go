package emulate

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// unit is where a 16-byte unit lies before swizzling, by the tables of the PTX ISA's chapter on matrix descriptors: number
// `along` of the units of a row (or, where M or N is contiguous, of a column), of row (or k) `across`.
func unit(swizzle int, mnMajor bool, along, across, leading, stride int) int {
	per := swizzle / 16 // units in a row of the pattern
	switch {
	case swizzle == 0 && !mnMajor:
		return across%8*16 + across/8*stride + along*leading
	case swizzle == 0:
		return across%8*16 + across/8*leading + along*stride
	case !mnMajor:
		return across%8*swizzle + across/8*stride + along*16
	}
	return across%8*swizzle + across/8*stride + along%per*16 + along/per*leading
}

// exchanged is the unit's place under the swizzle: in each 8 rows of the pattern's 128 bytes, unit i of row r lies at i
// exclusive-or r's low bits.
func exchanged(at, swizzle int) int {
	bits := map[int]int{0: 0, 32: 1, 64: 3, 128: 7}[swizzle]
	row, column := at/128, at/16%8
	return row*128 + (column^row&bits)*16 + at%16
}

// A product of matrices that lie in shared memory in every way there is, against float64.
func TestWGMMA(t *testing.T) {
	for _, format := range []string{"bf16", "f16", "tf32"} {
		for _, swizzle := range []int{0, 32, 64, 128} {
			for _, mnMajor := range []bool{false, true} {
				if format == "tf32" && mnMajor {
					continue
				}
				t.Run(fmt.Sprint(format, swizzle, mnMajor), func(t *testing.T) { testWGMMA(t, format, swizzle, mnMajor) })
			}
		}
	}
}

// a of a product may be in registers: each warp reads its 16 rows of what a product in shared memory reads.
func TestWGMMARegisters(t *testing.T) {
	for _, format := range []string{"bf16", "f16", "tf32"} {
		t.Run(format, func(t *testing.T) {
			const n = 16
			depth := int(ptx.Depth(format))
			image := make([]byte, 8192)
			r := rand.New(rand.NewPCG(3, 4))
			for i := 0; i < len(image); i += 4 {
				x := math.Float32bits(float32(r.NormFloat64())) &^ 0x1FFF
				if format != "tf32" {
					x = uint32(ir.BF16Bits(r.NormFloat64())) | uint32(ir.BF16Bits(r.NormFloat64()))<<16
				}
				if format == "f16" {
					x = uint32(ir.F16Bits(r.NormFloat64())) | uint32(ir.F16Bits(r.NormFloat64()))<<16
				}
				binary.LittleEndian.PutUint32(image[i:], x)
			}
			run := func(registers bool) []byte {
				ctx := ir.NewContext(ptx.Dialect)
				b := ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM90A, Threads: 128, Shared: len(image)}, ctx.I64(), ctx.I64())
				tid, args := b.Special("tid.x"), b.Kernel.Body().Args()
				b.For(tid, b.I32(len(image)/16), b.I32(128), false, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
					b.Store(b.Add(b.SharedBase(), b.MulI(i, 16)), b.Load(b.MulWide(i, 16, args[0]), ctx.I32(), 4, ptx.Access{Space: "global"}), ptx.Access{Space: "shared"})
					return nil
				})
				b.Do(ptx.Fence, nil, "kind", "async")
				b.Do(ptx.Sync, nil)
				// Rows of 32 bytes without a swizzle: eight rows' first 16 bytes, then their second, then the next eight rows.
				a := b.I64(int64(sharedBase>>4 | 128>>4<<16 | 256>>4<<32))
				if registers {
					lane, warp := b.Binary(ptx.And, tid, b.I32(31)), b.DivI(tid, 32)
					low, high, eight := b.Binary(ptx.And, b.DivI(lane, 8), b.I32(1)), b.DivI(lane, 16), b.Binary(ptx.And, lane, b.I32(7))
					at := b.Add(b.Add(b.MulI(warp, 512), b.MulI(low, 256)), b.Add(b.MulI(high, 128), b.MulI(eight, 16)))
					a = b.LoadMatrix(b.Add(b.SharedBase(), at), 4, 0, false)
				}
				b.Do(ptx.WGMMAFence, nil)
				d := b.Do(ptx.WGMMA, []*ir.Value{a, b.I64(int64((sharedBase+4096)>>4 | 128>>4<<16 | 256>>4<<32)), b.Undef(n / 2), b.False()}, "format", format).Result(0)
				b.Do(ptx.WGMMACommit, nil)
				d = b.Do(ptx.WGMMAWait, []*ir.Value{d}, "pending", 0).Result(0)
				for i := range n / 2 {
					b.Store(b.MulWide(b.AddI(b.MulI(tid, n/2), i), 4, args[1]), b.Extract(d, i), ptx.Access{Space: "global"})
				}
				b.CreateState(ptx.Return, ir.OpState{})
				require.NoError(t, ir.Verify(ctx, b.Kernel))
				m := &Memory{}
				in, out := m.Alloc(len(image)), m.Alloc(64*n*4)
				in.Write(0, image)
				require.NoError(t, Launch(m, b.Kernel, 1, in.Base, out.Base))
				return out.Data
			}
			want, zero := run(false), 0
			for i := 0; i < len(want); i += 4 {
				if binary.LittleEndian.Uint32(want[i:]) == 0 {
					zero++
				}
			}
			require.Less(t, zero, depth)
			require.Equal(t, want, run(true))
		})
	}
}

func testWGMMA(t *testing.T, format string, swizzle int, mnMajor bool) {
	const n = 24
	depth := int(ptx.Depth(format))
	size := 32 / depth
	leading, stride := 128, 256
	if swizzle > 0 {
		leading, stride = 2048, 8*swizzle
	}
	image := make([]byte, 32768)
	for i := range image {
		image[i] = 0xff
	}
	r := rand.New(rand.NewPCG(1, 2))
	place := func(rows, start int) [][]float64 {
		m := make([][]float64, rows)
		for row := range m {
			m[row] = make([]float64, depth)
			for k := range m[row] {
				along, across := k*size, row
				if mnMajor {
					along, across = row*size, k
				}
				at := start + exchanged(unit(swizzle, mnMajor, along/16, across, leading, stride), swizzle) + along%16
				x := float32(r.NormFloat64())
				switch format {
				case "bf16":
					binary.LittleEndian.PutUint16(image[at:], ir.BF16Bits(float64(x)))
					m[row][k] = operand16("bf16", ir.BF16Bits(float64(x)))
				case "f16":
					binary.LittleEndian.PutUint16(image[at:], ir.F16Bits(float64(x)))
					m[row][k] = ir.F16Value(ir.F16Bits(float64(x)))
				default:
					binary.LittleEndian.PutUint32(image[at:], math.Float32bits(x))
					m[row][k] = float64(math.Float32frombits(math.Float32bits(x) >> 13 << 13))
				}
			}
		}
		return m
	}
	a, c := place(64, 0), place(n, 16384)
	descriptor := func(start int) int64 {
		kind := map[int]uint64{0: 0, 128: 1, 64: 2, 32: 3}[swizzle]
		return int64(uint64(start)>>4 | uint64(leading)>>4<<16 | uint64(stride)>>4<<32 | kind<<62)
	}
	ctx := ir.NewContext(ptx.Dialect)
	b := ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM90A, Threads: 128, Shared: len(image)}, ctx.I64(), ctx.I64())
	tid, args := b.Special("tid.x"), b.Kernel.Body().Args()
	b.For(tid, b.I32(len(image)/16), b.I32(128), false, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
		x := b.Load(b.MulWide(i, 16, args[0]), ctx.I32(), 4, ptx.Access{Space: "global"})
		b.Store(b.Add(b.SharedBase(), b.MulI(i, 16)), x, ptx.Access{Space: "shared"})
		return nil
	})
	b.Do(ptx.Fence, nil, "kind", "async")
	b.Do(ptx.Sync, nil)
	b.Do(ptx.WGMMAFence, nil)
	attrs := []any{"format", format}
	if mnMajor {
		attrs = append(attrs, "ta", true, "tb", true)
	}
	d := b.Do(ptx.WGMMA, []*ir.Value{b.I64(descriptor(sharedBase)), b.I64(descriptor(sharedBase + 16384)), b.Undef(n / 2), b.False()}, attrs...).Result(0)
	b.Do(ptx.WGMMACommit, nil)
	d = b.Do(ptx.WGMMAWait, []*ir.Value{d}, "pending", 0).Result(0)
	for i := range n / 2 {
		b.Store(b.MulWide(b.AddI(b.MulI(tid, n/2), i), 4, args[1]), b.Extract(d, i), ptx.Access{Space: "global"})
	}
	b.CreateState(ptx.Return, ir.OpState{})
	m := &Memory{}
	in, out := m.Alloc(len(image)), m.Alloc(64*n*4)
	in.Write(0, image)
	require.NoError(t, Launch(m, b.Kernel, 1, in.Base, out.Base))
	for tid := range 128 {
		for i := range n / 2 {
			row, col := tid/32*16+tid%32/4+i/2%2*8, i/4*8+tid%4*2+i%2
			want := 0.0
			for k := range depth {
				want += a[row][k] * c[col][k]
			}
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(out.Data[4*(tid*n/2+i):])))
			require.InDelta(t, want, got, 1e-5, "row %d, column %d", row, col)
		}
	}
}

// What is wrong with products is found.
func TestProductFaults(t *testing.T) {
	fill := func(b *bench) {
		for i := range 16 {
			b.Store(b.mine(), b.F32(0), shared(512*i))
		}
	}
	descriptor := func(b *bench) *ir.Value { return b.I64(1<<62 | 64<<32 | 1<<16 | sharedBase>>4) }
	begin := func(b *bench, acc *ir.Value, add *ir.Value) *ir.Value {
		return b.Do(ptx.WGMMA, []*ir.Value{descriptor(b), descriptor(b), acc, add}, "format", "bf16").Result(0)
	}
	for _, c := range []struct {
		name, want string
		body       func(b *bench)
	}{
		{"without a fence", "with no fence {kind = \"async\"} between them", func(b *bench) {
			fill(b)
			b.sync()
			b.Do(ptx.WGMMAFence, nil)
			begin(b, b.Undef(4), b.False())
		}},
		{"fenced after the barrier", "with no fence {kind = \"async\"} between them", func(b *bench) {
			fill(b)
			b.sync()
			b.If(b.first(), false, func() { b.Do(ptx.Fence, nil, "kind", "async") }, nil)
			b.Do(ptx.WGMMAFence, nil)
			begin(b, b.Undef(4), b.False())
		}},
		{"adds to nothing", "uses registers, or shared memory, that nobody wrote", func(b *bench) {
			fill(b)
			b.Do(ptx.Fence, nil, "kind", "async")
			b.sync()
			b.Do(ptx.WGMMAFence, nil)
			begin(b, b.Undef(4), b.True())
		}},
		{"read too early", "uses registers that a matrix product writes", func(b *bench) {
			fill(b)
			b.Do(ptx.Fence, nil, "kind", "async")
			b.sync()
			b.Do(ptx.WGMMAFence, nil)
			d := begin(b, b.Undef(4), b.False())
			b.Do(ptx.WGMMACommit, nil)
			d = b.Do(ptx.WGMMAWait, []*ir.Value{d}, "pending", 1).Result(0)
			b.Binary(ptx.Add, b.Extract(d, 0), b.F32(1))
		}},
		{"written over too early", "reads with nothing that orders them", func(b *bench) {
			fill(b)
			b.Do(ptx.Fence, nil, "kind", "async")
			b.sync()
			b.Do(ptx.WGMMAFence, nil)
			begin(b, b.Undef(4), b.False())
			b.Do(ptx.WGMMACommit, nil)
			b.sync()
			fill(b)
		}},
		{"operand written over too early", "operand in registers was written over", func(b *bench) {
			fill(b)
			b.Do(ptx.Fence, nil, "kind", "async")
			b.sync()
			b.For(b.I32(0), b.I32(2), b.I32(1), true, []*ir.Value{b.I32(0)}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
				b.Do(ptx.WGMMAFence, nil)
				a := b.Vector(carried[0], carried[0], carried[0], carried[0])
				b.Do(ptx.WGMMA, []*ir.Value{a, descriptor(b), b.Undef(4), b.False()}, "format", "bf16")
				b.Do(ptx.WGMMACommit, nil)
				return []*ir.Value{b.AddI(i, 1)}
			})
			b.Do(ptx.WGMMAWait, nil, "pending", 0)
		}},
		{"different in a warpgroup", "begins another product than other warps", func(b *bench) {
			fill(b)
			b.Do(ptx.Fence, nil, "kind", "async")
			b.sync()
			b.Do(ptx.WGMMAFence, nil)
			warp := b.Do(ptx.Shuffle, []*ir.Value{b.DivI(b.tid, 32), b.I32(0)}, "mode", "idx").Result(0)
			d := b.Join(b.I32(1<<16|sharedBase>>4), b.I32(1<<30|64))
			e := b.Join(b.Add(warp, b.I32(1<<16|sharedBase>>4)), b.I32(1<<30|64))
			b.Do(ptx.WGMMA, []*ir.Value{e, d, b.Undef(4), b.False()}, "format", "bf16")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := launch(t, 128, 1, c.body)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The rounding of fma and of what the matrix units add.
func TestRounding(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	few := func() float32 { // few bits, so that sums are often in the middle between two numbers
		return float32(math.Ldexp(float64(int(r.Uint32N(65))-32), int(r.Uint32N(60))-30))
	}
	for range 200_000 {
		x, y, z := few(), few(), few()
		if r.Uint32N(2) == 0 {
			x, y = x*(1+0x1p-12), y*(1-0x1p-12)
		}
		if r.Uint32N(8) == 0 { // results that are denormal
			x, z = x*0x1p-118, z*0x1p-118
		}
		exact := new(big.Float).SetPrec(500).Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)))
		want, _ := exact.Add(exact, big.NewFloat(float64(z))).Float32()
		require.Equal(t, want, fma32(x, y, z), "%g * %g + %g", x, y, z)
	}
	require.Equal(t, float32(1), accumulated(1+0x1p-24+0x1p-30))
	require.Equal(t, float32(-1), accumulated(-1-0x1.8p-24))
	require.True(t, math.IsInf(float64(accumulated(math.Inf(1))), 1))
	require.Equal(t, uint32(0x3F802000), tf32Away(0x3F801000))
	require.Equal(t, uint32(0x3F800000), tf32Even(0x3F801000))
	require.Equal(t, uint32(0x3F804000), tf32Even(0x3F803000))
	require.Equal(t, uint32(0x7FC00001), tf32Even(0x7FC00001))
}
