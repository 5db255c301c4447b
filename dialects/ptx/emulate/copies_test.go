package emulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// What is wrong with barriers in memory and with copies in the background is found.
func TestCopyFaults(t *testing.T) {
	barrier := func(b *bench, count int) {
		b.If(b.first(), false, func() {
			b.Do(ptx.BarrierInit, []*ir.Value{b.shared}, "offset", 4096, "count", count)
			b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
		}, nil)
		b.sync()
	}
	copyMine := func(b *bench) {
		b.Do(ptx.CopyAsync, []*ir.Value{b.mine(), b.MulWide(b.tid, 4, b.at)}, "bytes", 4)
	}
	for _, c := range []struct {
		name, want string
		body       func(b *bench)
	}{
		{"no barrier", "uses a barrier at 0 of shared memory, where none was made", func(b *bench) {
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared})
		}},
		{"not ordered", "uses the barrier at 4096 with nothing that orders this after it was made", func(b *bench) {
			b.If(b.first(), false, func() { b.Do(ptx.BarrierInit, []*ir.Value{b.shared}, "offset", 4096, "count", 64) }, nil)
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared}, "offset", 4096)
		}},
		{"made twice", "makes a barrier at 4096, where there is one", func(b *bench) {
			barrier(b, 1)
			barrier(b, 1)
		}},
		{"written over", "uses the barrier at 4096, which something was written over", func(b *bench) {
			barrier(b, 64)
			b.Store(b.shared, b.F32(1), ptx.Access{Space: "shared", Offset: 4096, If: b.first()})
			b.sync()
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared}, "offset", 4096)
		}},
		{"never ends", "waits for the barrier at 4096 to end a phase of parity 0 (1 of 65 arrivals and 0 bytes are missing in phase 0), and nobody can go on", func(b *bench) {
			barrier(b, 65)
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared}, "offset", 4096)
			b.Do(ptx.BarrierWait, []*ir.Value{b.shared, b.I32(0)}, "offset", 4096)
		}},
		{"bytes that never come", "expects 16 bytes more than came", func(b *bench) {
			barrier(b, 1)
			b.If(b.first(), false, func() { b.Do(ptx.BarrierExpect, []*ir.Value{b.shared}, "offset", 4096, "bytes", 16) }, nil)
		}},
		{"orders lanes that arrived", "", func(b *bench) {
			barrier(b, 64)
			b.Store(b.mine(), b.F32(1), shared(0))
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared}, "offset", 4096)
			b.Do(ptx.BarrierWait, []*ir.Value{b.shared, b.I32(0)}, "offset", 4096)
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(140)), b.Ctx.F32(), 1, shared(0))
		}},
		{"doesn't order lanes that didn't arrive", "accesses what thread", func(b *bench) {
			barrier(b, 2)
			b.Store(b.mine(), b.F32(1), shared(0))
			lane := b.Binary(ptx.And, b.tid, b.I32(31))
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared, b.Compare("eq", lane, b.I32(0))}, "offset", 4096)
			b.Do(ptx.BarrierWait, []*ir.Value{b.shared, b.I32(0)}, "offset", 4096)
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(140)), b.Ctx.F32(), 1, shared(0))
		}},
		{"unless the warp meets first", "", func(b *bench) {
			barrier(b, 2)
			b.Store(b.mine(), b.F32(1), shared(0))
			lane := b.Binary(ptx.And, b.tid, b.I32(31))
			b.Do(ptx.WarpSync, nil)
			b.Do(ptx.BarrierArrive, []*ir.Value{b.shared, b.Compare("eq", lane, b.I32(0))}, "offset", 4096)
			b.Do(ptx.BarrierWait, []*ir.Value{b.shared, b.I32(0)}, "offset", 4096)
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(140)), b.Ctx.F32(), 1, shared(0))
		}},
		{"a copy that isn't waited for", "accesses what a cp.async of thread 0 of block 0 writes", func(b *bench) {
			copyMine(b)
			b.Do(ptx.CopyCommit, nil)
			b.Load(b.mine(), b.Ctx.F32(), 1, shared(0))
		}},
		{"a wait for fewer groups", "accesses what a cp.async of thread 0 of block 0 writes", func(b *bench) {
			copyMine(b)
			b.Do(ptx.CopyCommit, nil)
			b.Do(ptx.CopyWait, nil, "pending", 1)
			b.Load(b.mine(), b.Ctx.F32(), 1, shared(0))
		}},
		{"a copy in no group", "accesses what a cp.async of thread 0 of block 0 writes", func(b *bench) {
			copyMine(b)
			b.Do(ptx.CopyWait, nil, "pending", 0)
			b.Load(b.mine(), b.Ctx.F32(), 1, shared(0))
		}},
		{"a copy of another thread", "accesses what a cp.async of thread", func(b *bench) {
			copyMine(b)
			b.Do(ptx.CopyCommit, nil)
			b.Do(ptx.CopyWait, nil, "pending", 0)
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(4)), b.Ctx.F32(), 1, shared(0))
		}},
		{"a copy that all wait for", "", func(b *bench) {
			copyMine(b)
			b.Do(ptx.CopyCommit, nil)
			b.Do(ptx.CopyWait, nil, "pending", 0)
			b.sync()
			b.Load(b.Binary(ptx.Xor, b.mine(), b.I32(132)), b.Ctx.F32(), 1, shared(0))
		}},
		{"registers the wrong way", "changes the registers of a thread from 255 to 256, the wrong way", func(b *bench) {
			b.Do(ptx.SetMaxRegisters, nil, "count", 256)
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
}

// Launches that the driver would refuse are refused.
func TestLaunchErrors(t *testing.T) {
	ctx := ir.NewContext(ptx.Dialect)
	b := ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM90A, Threads: 32, Cluster: 2}, ctx.I64(), ptx.TensorMap(ctx))
	b.CreateState(ptx.Return, ir.OpState{})
	m := &Memory{}
	good := func() *TensorMap {
		return &TensorMap{Element: "bf16", Base: m.Alloc(4096).Base, Dims: []int{64, 16}, Strides: []int{128}, Box: []int{64, 8}, Swizzle: 128}
	}
	require.NoError(t, Launch(m, b.Kernel, 2, uint64(0), good()))
	require.ErrorContains(t, Launch(m, b.Kernel, 3, uint64(0), good()), "3 blocks in clusters of 2")
	require.ErrorContains(t, Launch(m, b.Kernel, 2, uint64(0)), "1 parameters given, it has 2")
	require.ErrorContains(t, Launch(m, b.Kernel, 2, uint64(0), uint64(0)), "parameter 1 is a tensor map")
	require.ErrorContains(t, Launch(m, b.Kernel, 2, good(), good()), "parameter 0 is no tensor map")
	require.ErrorContains(t, Launch(m, b.Kernel, 2, 5, good()), "parameter 0 is a int")
	for want, change := range map[string]func(t *TensorMap){
		`no element "i8"`:                         func(t *TensorMap) { t.Element = "i8" },
		"2 dimensions, 0 strides":                 func(t *TensorMap) { t.Strides = nil },
		"no multiple of 16":                       func(t *TensorMap) { t.Base += 8 },
		"rows of a box have 24 bytes":             func(t *TensorMap) { t.Box[0] = 12 },
		"rows of a box have 128 bytes, the swiz":  func(t *TensorMap) { t.Swizzle = 64 },
		"no swizzle of 130 bytes":                 func(t *TensorMap) { t.Swizzle = 130 },
		"a box has extents 1 to 256":              func(t *TensorMap) { t.Box[1] = 300 },
		"a stride of 130 bytes, no multiple of 1": func(t *TensorMap) { t.Strides[0] = 130 },
	} {
		bad := good()
		change(bad)
		require.ErrorContains(t, Launch(m, b.Kernel, 2, uint64(0), bad), want)
	}
	odd := ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM90A, Threads: 32, Shared: 1024}, ptx.TensorMap(ctx))
	odd.If(odd.Compare("eq", odd.Special("tid.x"), odd.I32(0)), false, func() {
		odd.Do(ptx.TMAStore, []*ir.Value{odd.Kernel.Body().Arg(0), odd.SharedBase(), odd.I32(5), odd.I32(0)})
	}, nil)
	odd.CreateState(ptx.Return, ir.OpState{})
	require.ErrorContains(t, Launch(m, odd.Kernel, 1, good()), "a box that starts 10 bytes into its rows, no multiple of 16")
	_, err := Compile(b.Kernel.Body().Last())
	require.ErrorContains(t, err, "is no ptx.kernel")
}

// A block has no more registers than its threads were started with: 96 each where there are 640.
func TestRegistersOfBlock(t *testing.T) {
	for count, want := range map[int]string{112: "", 120: "waits for 768 registers"} {
		_, err := launch(t, 640, 1, func(b *bench) {
			b.If(b.Compare("lo", b.Do(ptx.Shuffle, []*ir.Value{b.tid, b.I32(0)}, "mode", "idx").Result(0), b.I32(128)), true,
				func() { b.Do(ptx.SetMaxRegisters, nil, "count", 24) },
				func() { b.Do(ptx.SetMaxRegisters, nil, "count", count, "inc", true) })
		})
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}
