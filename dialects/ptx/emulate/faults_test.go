package emulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// bench is a kernel being made for a test: tid is the thread's number, at the address of 64 f32 of global memory that have
// been written, which the host gives, and raw of 64 that haven't.
type bench struct {
	*ptx.Builder
	tid, at, raw, shared *ir.Value
}

func (b *bench) first() *ir.Value { return b.Compare("eq", b.tid, b.I32(0)) }

// mine is the address of the thread's own element of shared memory.
func (b *bench) mine() *ir.Value { return b.Add(b.shared, b.MulI(b.tid, 4)) }

func (b *bench) sync() { b.Do(ptx.Sync, nil) }

func (b *bench) global() ptx.Access { return ptx.Access{Space: "global"} }

func shared(offset int) ptx.Access { return ptx.Access{Space: "shared", Offset: offset} }

// launch makes a kernel of 64 threads and runs it.
func launch(t *testing.T, threads, blocks int, body func(b *bench)) (*Buffer, error) {
	t.Helper()
	ctx := ir.NewContext(ptx.Dialect)
	b := &bench{Builder: ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM90A, Threads: threads, Shared: 8192, BlocksPerSM: 1}, ctx.I64(), ctx.I64())}
	b.tid, b.at, b.raw, b.shared = b.Special("tid.x"), b.Kernel.Body().Arg(0), b.Kernel.Body().Arg(1), b.SharedBase()
	body(b)
	b.CreateState(ptx.Return, ir.OpState{})
	require.NoError(t, ir.Verify(ctx, b.Kernel))
	m := &Memory{}
	at, raw := m.Alloc(64*4), m.Alloc(64*4)
	at.Write(0, make([]byte, 64*4))
	return at, Launch(m, b.Kernel, blocks, at.Base, raw.Base)
}

// What a GPU would hide is an error.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name, want string // "": nothing is wrong
		body       func(b *bench)
	}{
		{"outside", "thread 63 accesses 4 bytes at 0x100100, where no memory is", func(b *bench) {
			b.Store(b.MulWide(b.tid, 4, b.at), b.F32(1), ptx.Access{Space: "global", Offset: 4})
		}},
		{"outside shared memory", "thread 1 accesses 4 bytes at 8192 of block 0's shared memory, which has 8192", func(b *bench) {
			b.Store(b.mine(), b.F32(1), shared(8188))
		}},
		{"misaligned", "thread 1 accesses 8 bytes at 0x100004, which is no multiple", func(b *bench) {
			b.Load(b.MulWide(b.tid, 4, b.at), b.Ctx.F32(), 2, ptx.Access{Space: "global", If: b.Compare("lt", b.tid, b.I32(4))})
		}},
		{"unwritten global memory", "thread 0 reads memory that nobody wrote", func(b *bench) {
			b.Load(b.MulWide(b.tid, 4, b.raw), b.Ctx.F32(), 1, b.global())
		}},
		{"unwritten shared memory, stored", "uses registers, or shared memory, that nobody wrote", func(b *bench) {
			x := b.Binary(ptx.Add, b.Load(b.mine(), b.Ctx.F32(), 1, shared(0)), b.F32(1))
			b.Store(b.MulWide(b.tid, 4, b.at), x, b.global())
		}},
		{"unwritten shared memory, decides", "uses registers, or shared memory, that nobody wrote", func(b *bench) {
			x := b.Load(b.mine(), b.Ctx.F32(), 1, shared(0))
			b.If(b.Compare("lt", x, b.F32(1)), false, func() {}, nil)
		}},
		{"unwritten shared memory, not chosen", "", func(b *bench) {
			x := b.Load(b.mine(), b.Ctx.F32(), 1, shared(0))
			b.Store(b.MulWide(b.tid, 4, b.at), b.Select(b.Compare("lt", b.tid, b.I32(64)), b.F32(1), x), b.global())
		}},
		{"write and write", "accesses what thread 0 of block 0 writes with nothing that orders them", func(b *bench) {
			b.Store(b.at, b.F32(1), b.global())
		}},
		{"read and write", "writes what thread 1 of block 0 reads with nothing that orders them", func(b *bench) {
			v := b.Load(b.at, b.Ctx.F32(), 1, b.global())
			b.Store(b.at, v, ptx.Access{Space: "global", If: b.first()})
		}},
		{"lanes of a warp", "accesses what thread 1 of block 0 writes", func(b *bench) {
			b.Store(b.mine(), b.F32(1), shared(0))
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(4)), b.Ctx.F32(), 1, shared(0))
		}},
		{"lanes of a warp in order", "", func(b *bench) {
			b.Store(b.mine(), b.F32(1), shared(0))
			b.Do(ptx.WarpSync, nil)
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(4)), b.Ctx.F32(), 1, shared(0))
		}},
		{"warps", "writes what thread 0 of block 0 reads", func(b *bench) {
			b.Store(b.mine(), b.F32(1), shared(0))
			b.Do(ptx.WarpSync, nil)
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(128)), b.Ctx.F32(), 1, shared(0))
		}},
		{"in order", "", func(b *bench) {
			b.Store(b.at, b.F32(1), ptx.Access{Space: "global", If: b.first()})
			b.sync()
			b.Load(b.at, b.Ctx.F32(), 1, b.global())
		}},
		{"read-only cache", "reads through the read-only cache what this kernel writes", func(b *bench) {
			b.Store(b.at, b.F32(1), ptx.Access{Space: "global", If: b.first()})
			b.sync()
			b.Load(b.at, b.Ctx.F32(), 1, ptx.Access{Space: "global", Cache: "nc"})
		}},
		{"barrier", "warp 0 waits at barrier 0 with 32 of 64 threads, and nobody can go on", func(b *bench) {
			b.If(b.Compare("lt", b.tid, b.I32(32)), false, func() { b.sync() }, nil)
		}},
		{"part of a warp at a barrier", "thread 16 doesn't take part in what the whole warp has to do", func(b *bench) {
			b.If(b.Compare("lt", b.tid, b.I32(16)), false, func() { b.sync() }, nil)
		}},
		{"two counts at a barrier", "is at barrier 1 for 32 threads, others for 64", func(b *bench) {
			b.If(b.Compare("lt", b.tid, b.I32(32)), true, func() { b.Do(ptx.Sync, nil, "id", 1, "threads", 64) }, func() { b.Do(ptx.Sync, nil, "id", 1, "threads", 32) })
		}},
		{"arrive and sync", "", func(b *bench) {
			b.If(b.Compare("lt", b.tid, b.I32(32)), true, func() {
				b.Store(b.mine(), b.F32(1), shared(0))
				b.Do(ptx.Arrive, nil, "id", 1, "threads", 64)
			}, func() {
				b.Do(ptx.Sync, nil, "id", 1, "threads", 64)
				b.Load(b.mine(), b.Ctx.F32(), 1, shared(-128))
			})
		}},
		{"who only arrives is not ordered", "accesses what thread 0 of block 0 writes", func(b *bench) {
			b.If(b.Compare("lt", b.tid, b.I32(32)), true, func() {
				b.Store(b.mine(), b.F32(1), shared(0))
				b.Do(ptx.Arrive, nil, "id", 1, "threads", 64)
				b.Do(ptx.Sync, nil, "id", 2, "threads", 32)
				b.Store(b.mine(), b.F32(1), shared(0))
			}, func() {
				b.Do(ptx.Sync, nil, "id", 1, "threads", 64)
				b.Load(b.mine(), b.Ctx.F32(), 1, shared(-128))
			})
		}},
		{"shuffle", "thread 7 doesn't take part", func(b *bench) {
			b.If(b.Compare("lt", b.tid, b.I32(7)), false, func() { b.Do(ptx.Shuffle, []*ir.Value{b.tid, b.I32(1)}, "mode", "bfly") }, nil)
		}},
		{"not uniform", "parts lanes", func(b *bench) {
			b.For(b.I32(0), b.tid, b.I32(1), true, nil, func(*ir.Value, []*ir.Value) []*ir.Value { return nil })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := launch(t, 64, 1, c.body)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := launch(t, 32, 2, func(b *bench) { b.Store(b.MulWide(b.tid, 4, b.at), b.F32(1), b.global()) })
	require.ErrorContains(t, err, "block 1, thread 0 accesses what thread 0 of block 0 writes with nothing that orders them")
	_, err = launch(t, 32, 2, func(b *bench) {
		x := b.Load(b.at, b.Ctx.F32(), 1, b.global())
		b.Store(b.at, x, ptx.Access{Space: "global", If: b.And(b.first(), b.Compare("eq", b.Special("ctaid.x"), b.I32(1)))})
	})
	require.ErrorContains(t, err, "block 1, thread 0 writes what")
}
