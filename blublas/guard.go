package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// mostApart is by how many powers of two the largest magnitudes of 64 rows (or columns) that share scales may differ.
// A number in a block whose largest is scaled to 2^15 is kept to 2^-25, and what is 2^14 less than another one, in the same
// 64 rows, has that as its largest somewhere: it is kept to 2^-24 of its own largest.
const mostApart = 14

// Bands describes the kernel that looks whether the planes of a split hold what float32 does, 64 rows (or columns) at a
// time. They don't where one's largest magnitude is too small beside another's, though not 0, where a number is infinite or
// none, and where a largest one is less than 2^-112. It doesn't matter that a row is small in one block: what counts is how
// its result compares to the error that it gets.
type Bands struct {
	Vectors, Blocks int // as Split.Maxima says
	Target          string
}

// Count is how many flags it writes.
func (s Bands) Count() int { return ceil(s.Vectors, BlockEdge) }

// Build makes the kernel. Parameters: maxima, flags, one for each 64: 1 or 0.
func (s Bands) Build(at *ir.Builder) *Kernel {
	k := &Kernel{Name: fmt.Sprintf("bands_%dx%d", s.Vectors, s.Blocks), Grid: s.Count(), Threads: 256, Cluster: 1, Shared: 4*256 + 8, Params: []Param{{Name: "maxima"}, {Name: "flags"}}}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: s.Target, Threads: k.Threads, Shared: k.Shared}, at.Ctx.I64(), at.Ctx.I64())
	k.Op = b.Kernel
	args := k.Op.Body().Args()
	greater := func(x, y *ir.Value) *ir.Value { return b.Binary(ptx.Max, x, y) }
	tid, band, shared := b.Special("tid.x"), b.Special("ctaid.x"), b.SharedBase()
	mine := b.Binary(ptx.And, tid, b.I32(BlockEdge-1))
	vector := b.Add(b.MulI(band, BlockEdge), mine)
	in := b.Compare("lo", vector, b.I32(s.Vectors))
	largest := b.For(b.DivI(tid, BlockEdge), b.I32(s.Blocks), b.I32(256/BlockEdge), false, []*ir.Value{b.I32(0)}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		m := b.Load(b.MulWide(b.Add(b.MulI(i, s.Vectors), vector), 4, args[0]), b.Ctx.I32(), 1, ptx.Access{Space: "global", If: in})
		return []*ir.Value{greater(carried[0], m)}
	})[0]
	b.Store(b.Add(shared, b.MulI(tid, 4)), largest, ptx.Access{Space: "shared"})
	b.Do(ptx.Sync, nil)
	at64 := b.Add(shared, b.MulI(mine, 4))
	for i := range 256 / BlockEdge {
		largest = greater(largest, b.Load(at64, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * BlockEdge * i}))
	}
	// Each half of the 64 is a warp's: the other half's largest is read from shared memory.
	top := largest
	for d := 16; d > 0; d /= 2 {
		top = greater(top, b.Do(ptx.Shuffle, []*ir.Value{top, b.I32(d)}, "mode", "bfly").Result(0))
	}
	half := b.Binary(ptx.And, b.DivI(tid, 32), b.I32(1))
	first := b.And(b.Compare("lo", tid, b.I32(BlockEdge)), b.Compare("eq", b.Binary(ptx.And, tid, b.I32(31)), b.I32(0)))
	b.Store(b.Add(shared, b.MulI(half, 4)), top, ptx.Access{Space: "shared", Offset: 4 * 256, If: first})
	b.Do(ptx.Sync, nil)
	top = greater(b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * 256}), b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4*256 + 4}))
	field := b.Binary(ptx.Shr, largest, b.I32(23))
	least := greater(b.AddI(b.Binary(ptx.Shr, top, b.I32(23)), -mostApart), b.I32(leastField))
	bad := b.And(b.Compare("ne", largest, b.I32(0)), b.Compare("lt", field, least))
	flag := b.Select(b.Compare("hs", top, b.I32(0x7F800000)), b.I32(1), b.Select(bad, b.I32(1), b.I32(0)))
	for d := 16; d > 0; d /= 2 {
		flag = greater(flag, b.Do(ptx.Shuffle, []*ir.Value{flag, b.I32(d)}, "mode", "bfly").Result(0))
	}
	b.Do(ptx.Sync, nil)
	b.Store(b.Add(shared, b.MulI(half, 4)), flag, ptx.Access{Space: "shared", Offset: 4 * 256, If: first})
	b.Do(ptx.Sync, nil)
	flag = greater(b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * 256}), b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4*256 + 4}))
	b.Store(b.MulWide(band, 4, args[1]), flag, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
	b.Do(ptx.Return, nil)
	return k
}

// AnyFlag makes the kernel that looks at n flags, and writes whether one of them is set. Parameters: flags, result.
func AnyFlag(at *ir.Builder, n int, target string) *Kernel {
	k := &Kernel{Name: fmt.Sprint("any_flag_", n), Grid: 1, Threads: 256, Cluster: 1, Shared: 32, Params: []Param{{Name: "flags"}, {Name: "flag"}}}
	b := ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: target, Threads: k.Threads, Shared: k.Shared}, at.Ctx.I64(), at.Ctx.I64())
	k.Op = b.Kernel
	args := k.Op.Body().Args()
	tid, shared := b.Special("tid.x"), b.SharedBase()
	any := b.For(tid, b.I32(n), b.I32(k.Threads), false, []*ir.Value{b.I32(0)}, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		word := b.Load(b.MulWide(i, 4, args[0]), b.Ctx.I32(), 1, ptx.Access{Space: "global"})
		return []*ir.Value{b.Binary(ptx.Or, carried[0], word)}
	})[0]
	for d := 16; d > 0; d /= 2 {
		any = b.Binary(ptx.Or, any, b.Do(ptx.Shuffle, []*ir.Value{any, b.I32(d)}, "mode", "bfly").Result(0))
	}
	first := b.Compare("eq", b.Binary(ptx.And, tid, b.I32(31)), b.I32(0))
	b.Store(b.Add(shared, b.MulI(b.DivI(tid, 32), 4)), any, ptx.Access{Space: "shared", If: first})
	b.Do(ptx.Sync, nil)
	for w := range 8 {
		any = b.Binary(ptx.Or, any, b.Load(shared, b.Ctx.I32(), 1, ptx.Access{Space: "shared", Offset: 4 * w}))
	}
	b.Store(args[1], any, ptx.Access{Space: "global", If: b.Compare("eq", tid, b.I32(0))})
	b.Do(ptx.Return, nil)
	return k
}
