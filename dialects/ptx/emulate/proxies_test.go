package emulate

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// crossing is a kernel of blocks of 64 threads. The first has the copy engine move 32 f32 of global memory to the start of shared memory, or
// from there; the second warp's threads access one each.
type crossing struct {
	*bench
	tensor *ir.Value
	phase  int // of the barrier
}

func (c *crossing) fence() { c.Do(ptx.Fence, nil, "kind", "async") }

// copyIn has the bytes of shared memory written over, of the blocks of a mask where there is one, and all of this block wait for it.
func (c *crossing) copyIn(mask *ir.Value, first func() *ir.Value) {
	c.If(c.first(), false, func() { c.Do(ptx.BarrierExpect, []*ir.Value{c.shared}, "offset", 4096, "bytes", 128) }, nil)
	c.If(first(), false, func() { c.TMALoad(c.tensor, c.shared, c.AddI(c.shared, 4096), mask, c.I32(0), c.I32(0)) }, nil)
	c.Do(ptx.BarrierWait, []*ir.Value{c.shared, c.I32(c.phase % 2)}, "offset", 4096)
	c.phase++
}

func (c *crossing) load() { c.copyIn(nil, c.first) }

// copyOut has global memory written over and waits for it; read: until shared memory has been read.
func (c *crossing) copyOut(read bool) {
	c.If(c.first(), false, func() {
		c.Do(ptx.TMAStore, []*ir.Value{c.tensor, c.shared, c.I32(0), c.I32(0)})
		c.Do(ptx.TMACommit, nil)
		if read {
			c.Do(ptx.TMAWait, nil, "pending", 0, "read", true)
		} else {
			c.Do(ptx.TMAWait, nil, "pending", 0)
		}
	}, nil)
	c.sync()
}

func (c *crossing) second() *ir.Value { return c.Compare("ge", c.tid, c.I32(32)) }

// read has the second warp read shared memory, write write it.
func (c *crossing) read() {
	c.Load(c.mine(), c.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: -128, If: c.second()})
}

func (c *crossing) write() {
	c.Store(c.mine(), c.F32(1), ptx.Access{Space: "shared", Offset: -128, If: c.second()})
}

// theirs is what the second warp's threads access of the global memory that is copied.
func (c *crossing) theirs() (*ir.Value, ptx.Access) {
	return c.MulWide(c.Binary(ptx.And, c.tid, c.I32(31)), 4, c.at), ptx.Access{Space: "global", If: c.second()}
}

func cross(t *testing.T, blocks int, body func(c *crossing)) error {
	t.Helper()
	ctx := ir.NewContext(ptx.Dialect)
	b := &bench{Builder: ptx.NewKernel(ir.NewBuilder(ctx, nil), ptx.Config{Name: "k", Target: ptx.SM90A, Threads: 64, Cluster: blocks, Shared: 8192}, ctx.I64(), ptx.TensorMap(ctx))}
	b.tid, b.at, b.shared = b.Special("tid.x"), b.Kernel.Body().Arg(0), b.SharedBase()
	c := &crossing{bench: b, tensor: b.Kernel.Body().Arg(1)}
	b.If(b.first(), false, func() {
		b.Do(ptx.BarrierInit, []*ir.Value{b.shared}, "offset", 4096, "count", 1)
		b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
	}, nil)
	if b.sync(); blocks > 1 {
		c.meet()
	}
	body(c)
	b.CreateState(ptx.Return, ir.OpState{})
	require.NoError(t, ir.Verify(ctx, b.Kernel))
	m := &Memory{}
	at := m.Alloc(128)
	at.Write(0, make([]byte, 128))
	return Launch(m, b.Kernel, blocks, at.Base, &TensorMap{Element: "f32", Base: at.Base, Dims: []int{32, 1}, Strides: []int{128}, Box: []int{32, 1}})
}

func (c *crossing) meet() {
	c.Do(ptx.ClusterArrive, nil)
	c.Do(ptx.ClusterWait, nil)
}

// What threads read or wrote and the copy engine then accesses takes a fence on the way from one to the other.
func TestProxies(t *testing.T) {
	const noFence = ` with no fence {kind = "async"} between them`
	for _, x := range []struct {
		name, want string // "": nothing is wrong
		body       func(c *crossing)
	}{
		{"read, then copied over", "block 0, thread 0 writes in the background what thread 32 of block 0 read" + noFence, func(c *crossing) {
			c.load()
			c.read()
			c.sync()
			c.load()
		}},
		{"written, then copied over", "block 0, thread 0 writes in the background what thread 32 of block 0 wrote" + noFence, func(c *crossing) {
			c.write()
			c.sync()
			c.load()
		}},
		{"written, then copied out", "block 0, thread 0 reads in the background what thread 32 of block 0 wrote" + noFence, func(c *crossing) {
			c.write()
			c.sync()
			c.copyOut(false)
		}},
		{"who accesses has the fence", "", func(c *crossing) {
			c.load()
			c.read()
			c.fence()
			c.sync()
			c.load()
			c.read()
			c.sync()
			c.write()
			c.fence()
			c.sync()
			c.copyOut(false)
		}},
		{"who has it copied has the fence", "", func(c *crossing) {
			c.load()
			c.read()
			c.sync()
			c.If(c.first(), false, c.fence, nil)
			c.load()
		}},
		{"a fence before the access", "what thread 32 of block 0 read" + noFence, func(c *crossing) {
			c.load()
			c.fence()
			c.read()
			c.sync()
			c.load()
		}},
		{"a fence of somebody who has not met the reader", "what thread 33 of block 0 read" + noFence, func(c *crossing) {
			c.load()
			c.read()
			c.If(c.Compare("eq", c.tid, c.I32(32)), false, c.fence, nil)
			c.sync()
			c.load()
		}},
		{"a fence of one for the warp", "", func(c *crossing) {
			c.load()
			c.read()
			c.Do(ptx.WarpSync, nil)
			c.If(c.Compare("eq", c.tid, c.I32(32)), false, c.fence, nil)
			c.sync()
			c.load()
		}},
		{"a fence after the other side has gone on", "what thread 32 of block 0 read" + noFence, func(c *crossing) {
			c.load()
			c.read()
			c.sync()
			c.If(c.second(), false, c.fence, nil)
			c.load()
		}},
		{"read, then copied over in a ring of barriers", "what thread 32 of block 0 read" + noFence, func(c *crossing) {
			c.If(c.first(), false, func() { c.Do(ptx.BarrierInit, []*ir.Value{c.shared}, "offset", 4104, "count", 32) }, nil)
			c.sync()
			c.load()
			c.If(c.second(), true, func() {
				c.Load(c.mine(), c.Ctx.F32(), 1, shared(-128))
				c.Do(ptx.BarrierArrive, []*ir.Value{c.shared}, "offset", 4104)
			}, func() { c.Do(ptx.BarrierWait, []*ir.Value{c.shared, c.I32(0)}, "offset", 4104) })
			c.load()
		}},
		{"copied by cp.async, then copied over", "what a cp.async of thread 0 of block 0 wrote" + noFence, func(c *crossing) {
			c.Do(ptx.CopyAsync, []*ir.Value{c.mine(), c.MulWide(c.Binary(ptx.And, c.tid, c.I32(31)), 4, c.at)}, "bytes", 4)
			c.Do(ptx.CopyCommit, nil)
			c.Do(ptx.CopyWait, nil, "pending", 0)
			c.sync()
			c.load()
		}},
		{"copied by cp.async, a fence, copied over", "", func(c *crossing) {
			c.Do(ptx.CopyAsync, []*ir.Value{c.mine(), c.MulWide(c.Binary(ptx.And, c.tid, c.I32(31)), 4, c.at)}, "bytes", 4)
			c.Do(ptx.CopyCommit, nil)
			c.Do(ptx.CopyWait, nil, "pending", 0)
			c.fence()
			c.sync()
			c.load()
		}},
		{"read, then filled by cp.async", "", func(c *crossing) {
			c.load()
			c.Load(c.mine(), c.Ctx.F32(), 1, shared(0))
			c.Do(ptx.CopyAsync, []*ir.Value{c.mine(), c.MulWide(c.Binary(ptx.And, c.tid, c.I32(31)), 4, c.at)}, "bytes", 4)
			c.Do(ptx.CopyCommit, nil)
			c.Do(ptx.CopyWait, nil, "pending", 0)
		}},
		{"the copy engine alone", "", func(c *crossing) {
			c.load()
			c.copyOut(false)
			c.load()
		}},
		{"copied out, then written", "", func(c *crossing) {
			c.load()
			c.copyOut(true)
			c.write()
		}},
		{"global memory, written", "reads in the background what thread 32 of block 0 wrote with nothing that orders both proxies", func(c *crossing) {
			at, access := c.theirs()
			c.Store(at, c.F32(1), access)
			c.fence()
			c.sync()
			c.load()
		}},
		{"global memory, read", "writes in the background what thread 32 of block 0 read with nothing that orders both proxies", func(c *crossing) {
			at, access := c.theirs()
			c.load()
			c.Load(at, c.Ctx.F32(), 1, access)
			c.fence()
			c.sync()
			c.copyOut(false)
		}},
		{"global memory, copied out and read", "", func(c *crossing) {
			at, access := c.theirs()
			c.load()
			c.copyOut(false)
			c.Load(at, c.Ctx.F32(), 1, access)
		}},
	} {
		t.Run(x.name, func(t *testing.T) { expect(t, cross(t, 1, x.body), x.want) })
	}
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, want)
}

// A fence is one of its block's shared memory: another block's, which has met the readers and has their memory written, has no effect on it.
func TestProxiesOfCluster(t *testing.T) {
	for _, x := range []struct {
		name, want string
		before     bool // the readers' fence
	}{
		{"the readers' fence", "", true},
		{"the other block's fence", `block 0, thread 0 writes in the background what thread 32 of block 1 read with no fence {kind = "async"} between them`, false},
	} {
		t.Run(x.name, func(t *testing.T) {
			expect(t, cross(t, 2, func(c *crossing) {
				rank := c.Special("cluster_ctarank")
				copies := func() *ir.Value { return c.And(c.first(), c.Compare("eq", rank, c.I32(0))) }
				both := c.Const(c.Ctx.Integer(3, c.Ctx.Int(16)))
				c.copyIn(both, copies)
				c.If(c.Compare("eq", rank, c.I32(1)), false, c.read, nil)
				if x.before {
					c.fence()
				}
				c.meet()
				c.If(copies(), false, c.fence, nil)
				c.copyIn(both, copies)
				c.meet()
			}), x.want)
		})
	}
}

// What threads wrote and a product reads takes a fence too.
func TestProxiesOfProducts(t *testing.T) {
	for _, want := range []string{"", `reads in the background what thread 0 of block 0 wrote with no fence {kind = "async"} between them`} {
		_, err := launch(t, 128, 1, func(b *bench) {
			for i := range 8 {
				b.Store(b.mine(), b.I32(0), shared(512*i))
			}
			if want == "" {
				b.Do(ptx.Fence, nil, "kind", "async")
			}
			b.sync()
			b.Do(ptx.WGMMAFence, nil)
			at := func(offset int) *ir.Value { return b.I64(int64((sharedBase+offset)>>4 | 128>>4<<16 | 256>>4<<32)) }
			d := b.Do(ptx.WGMMA, []*ir.Value{at(0), at(2048), b.Undef(4), b.False()}, "format", "bf16").Result(0)
			b.Do(ptx.WGMMACommit, nil)
			b.Do(ptx.WGMMAWait, []*ir.Value{d}, "pending", 0)
		})
		expect(t, err, want)
	}
}
