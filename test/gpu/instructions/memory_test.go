package instructions

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

func memory() []experiment {
	var all []experiment
	for _, n := range []numberType{i16, i32, i64, f32, f64, f16, bf16} {
		for _, count := range []int{1, 2, 4} {
			if count*n.size <= 16 {
				all = append(all, moved(n, count))
			}
		}
	}
	all = append(all,
		experiment{name: "ld_byte, st_byte", in: words(32), out: 128, elem: "u8", body: func(b *body) {
			odd := b.Compare("eq", b.Binary(ptx.And, b.tid, b.I32(1)), b.I32(1))
			x := b.LoadByte(b.at(b.in, b.tid, 1), 0, odd)
			b.StoreByte(b.at(b.out, b.tid, 1), b.Binary(ptx.Add, x, b.tid), 0, b.Compare("ne", x, b.I32(0)))
		}},
		experiment{name: "red_min", in: words(256), out: 64, elem: "u64", body: func(b *body) {
			at := b.at(b.out, b.Binary(ptx.And, b.tid, b.I32(7)), 8)
			b.ReduceMin(at, b.load(b.at(b.in, b.tid, 8), b.Ctx.I64(), 1), 0, b.Compare("ne", b.tid, b.I32(3)))
		}},
	)
	all = append(all, experiment{name: "copy", in: words(512), out: 2048, elem: "u32", body: func(b *body) {
		b.store(b.at(b.out, b.tid, 16), b.Unary(ptx.Copy, b.load(b.at(b.in, b.tid, 16), b.Ctx.I32(), 4)))
	}})
	all = append(all, experiment{name: "prefetch_bulk", in: words(128), out: 512, elem: "u32", body: func(b *body) {
		b.Do(ptx.PrefetchBulk, []*ir.Value{b.in, b.I32(512), b.Compare("eq", b.tid, b.I32(5))})
		b.store(b.at(b.out, b.tid, 4), b.load(b.at(b.in, b.tid, 4), b.Ctx.I32(), 1))
	}})
	for _, n := range []int{4, 8, 16} {
		all = append(all, copied(n))
	}
	for _, mode := range []string{"idx", "bfly", "down", "up"} {
		all = append(all, experiment{name: "shfl " + mode, in: words(256), out: 512, elem: "u32", body: func(b *body) {
			x := b.load(b.at(b.in, b.tid, 4), b.Ctx.I32(), 1)
			by := b.load(b.at(b.in, b.AddI(b.tid, 128), 4), b.Ctx.I32(), 1)
			if mode != "idx" { // the same for all lanes, else lanes read what they get from nobody
				by = b.RemI(b.DivI(b.tid, 32), 4)
				by = b.AddI(b.MulI(by, 7), 3)
			} else {
				by = b.Binary(ptx.And, by, b.I32(31))
			}
			b.store(b.at(b.out, b.tid, 4), b.Do(ptx.Shuffle, []*ir.Value{x, by}, "mode", mode).Result(0))
		}})
	}
	for _, name := range []string{"tid.x", "ntid.x", "ctaid.x", "nctaid.x", "laneid", "cluster_ctarank", "clusterid.x", "nclusterid.x"} {
		all = append(all, experiment{name: "special " + name, threads: 64, blocks: 4, cluster: 2, out: 4 * 256, elem: "u32", body: func(b *body) {
			b.store(b.at(b.out, b.index, 4), b.Special(name))
		}})
	}
	return all
}

// moved loads and stores registers through global and shared memory, half of them under a predicate that fails.
func moved(n numberType, count int) experiment {
	bytes := n.size * count
	return experiment{name: fmt.Sprintf("ld, st %dx%s", count, n.name), in: words(128 * bytes / 4), out: 128 * bytes, shared: 2048 + 128*bytes, elem: fmt.Sprintf("u%d", 8*n.size), body: func(b *body) {
		even := b.Compare("eq", b.Binary(ptx.And, b.tid, b.I32(1)), b.I32(0))
		to := b.Add(b.SharedBase(), b.MulI(b.tid, bytes))
		x := b.Load(b.at(b.in, b.tid, bytes), n.typ(b.Ctx), count, ptx.Access{Space: "global", If: even, Cache: "nc"})
		b.storeShared(to, x, 2048)
		b.sync()
		y := b.loadShared(to, n.typ(b.Ctx), count, 2048)
		b.Store(b.at(b.out, b.tid, bytes), y, ptx.Access{Space: "global", If: b.Compare("lt", b.tid, b.I32(100)), Cache: "cg"})
	}}
}

// copied copies n bytes a thread in the background, of which some are not read, in groups of which the first is waited for
// first.
func copied(n int) experiment {
	return experiment{name: fmt.Sprintf("cp_async %d", n), in: words(2 * 128 * n / 4), out: 2 * 128 * n, shared: 2 * 128 * n, elem: "u32", body: func(b *body) {
		base := b.SharedBase()
		mine := b.Add(base, b.MulI(b.tid, n))
		count := b.MulI(b.RemI(b.tid, n/2+1), 2)
		for half := range 2 {
			b.Do(ptx.CopyAsync, []*ir.Value{mine, b.at(b.in, b.tid, n), count}, "bytes", n, "offset", half*128*n, "from_offset", half*128*n)
			b.Do(ptx.CopyCommit, nil)
		}
		for half := range 2 {
			b.Do(ptx.CopyWait, nil, "pending", 1-half)
			b.sync()
			for i := 0; i < n; i += 4 { // another thread's
				other := b.Add(base, b.MulI(b.Binary(ptx.Xor, b.tid, b.I32(37)), n))
				to := b.at(b.out, b.tid, n)
				b.Store(to, b.loadShared(other, b.Ctx.I32(), 1, half*128*n+i), ptx.Access{Space: "global", Offset: half*128*n + i})
			}
		}
	}}
}

// barriers is what threads wait for each other with: last, since a GPU that computed otherwise might wait for ever.
func barriers() []experiment {
	return []experiment{
		{name: "bar_arrive, bar_sync", threads: 64, shared: 128, out: 128, elem: "u32", body: func(b *body) {
			at := b.Add(b.SharedBase(), b.MulI(b.lane, 4))
			b.If(b.Compare("lt", b.tid, b.I32(32)), true, func() {
				b.storeShared(at, b.MulI(b.tid, 3), 0)
				b.Do(ptx.Arrive, nil, "id", 3, "threads", 64)
			}, func() {
				b.Do(ptx.Sync, []*ir.Value{b.I32(1)}, "id", 2, "threads", 64)
				b.store(b.at(b.out, b.lane, 4), b.loadShared(at, b.Ctx.I32(), 1, 0))
			})
		}},
		{name: "warp_sync", threads: 32, shared: 128, out: 128, elem: "u32", body: func(b *body) {
			b.storeShared(b.Add(b.SharedBase(), b.MulI(b.tid, 4)), b.MulI(b.tid, 3), 0)
			b.Do(ptx.WarpSync, nil)
			b.store(b.at(b.out, b.tid, 4), b.loadShared(b.Add(b.SharedBase(), b.MulI(b.Binary(ptx.Xor, b.tid, b.I32(5)), 4)), b.Ctx.I32(), 1, 0))
		}},
		// Two warps hand a number to and fro, each adding to it: parities of phases, from the one before the first on.
		{name: "mbarrier", threads: 64, shared: 64, out: 64, elem: "u32", body: func(b *body) {
			base := b.SharedBase()
			b.If(b.Compare("eq", b.tid, b.I32(0)), false, func() {
				b.Do(ptx.BarrierInit, []*ir.Value{base}, "count", 1)
				b.Do(ptx.BarrierInit, []*ir.Value{base}, "offset", 8, "count", 32)
				b.storeShared(base, b.I32(5), 16)
			}, nil)
			b.sync()
			first := b.Compare("eq", b.lane, b.I32(0))
			b.If(b.Compare("lt", b.tid, b.I32(32)), true, func() {
				b.For(b.I32(0), b.I32(8), b.I32(1), true, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
					b.Do(ptx.BarrierWait, []*ir.Value{base, b.Binary(ptx.Xor, b.Binary(ptx.And, i, b.I32(1)), b.I32(1))}, "offset", 8)
					b.If(first, false, func() {
						x := b.loadShared(base, b.Ctx.I32(), 1, 16)
						b.store(b.at(b.out, i, 4), x)
						b.storeShared(base, b.MulI(x, 3), 16)
					}, nil)
					b.Do(ptx.WarpSync, nil)
					b.Do(ptx.BarrierArrive, []*ir.Value{base, first})
					return nil
				})
			}, func() {
				b.For(b.I32(0), b.I32(8), b.I32(1), true, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
					b.Do(ptx.BarrierWait, []*ir.Value{base, b.Binary(ptx.And, i, b.I32(1))})
					b.If(first, false, func() { b.storeShared(base, b.AddI(b.loadShared(base, b.Ctx.I32(), 1, 16), 1), 16) }, nil)
					b.Do(ptx.BarrierArrive, []*ir.Value{base}, "offset", 8)
					return nil
				})
			})
		}},
		{name: "elect", threads: 64, out: 256, elem: "u32", body: func(b *body) {
			p := b.Create(ptx.Elect, nil).Result(0)
			b.store(b.at(b.out, b.tid, 4), b.Select(p, b.I32(1), b.I32(0)))
		}},
		{name: "setmaxnreg, grid_wait, grid_launch", threads: 384, out: 1536, elem: "u32", body: func(b *body) {
			b.Do(ptx.GridWait, nil)
			b.If(b.Compare("lt", b.tid, b.I32(128)), true, func() { b.Do(ptx.SetMaxRegisters, nil, "count", 24) }, func() { b.Do(ptx.SetMaxRegisters, nil, "count", 240, "inc", true) })
			b.Do(ptx.GridLaunch, nil)
			b.store(b.at(b.out, b.tid, 4), b.tid)
		}},
		// Each block of a cluster tells the next one, and ends after it was told.
		{name: "mapa, cluster barriers", threads: 32, blocks: 4, cluster: 4, shared: 64, out: 512, elem: "u32", body: func(b *body) {
			base := b.SharedBase()
			b.If(b.Compare("eq", b.tid, b.I32(0)), false, func() {
				b.Do(ptx.BarrierInit, []*ir.Value{base}, "count", 32)
				b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
			}, nil)
			b.Do(ptx.ClusterArrive, nil)
			b.Do(ptx.ClusterWait, nil)
			next := b.Binary(ptx.And, b.AddI(b.Special("cluster_ctarank"), 1), b.I32(3))
			far := b.Do(ptx.MapShared, []*ir.Value{base, next}).Result(0)
			b.Do(ptx.BarrierArrive, []*ir.Value{far}, "cluster", true)
			b.Do(ptx.BarrierWait, []*ir.Value{base, b.I32(0)})
			b.store(b.at(b.out, b.index, 4), b.index)
			b.Do(ptx.ClusterArrive, nil)
			b.Do(ptx.ClusterWait, nil)
		}},
	}
}

// boxes is copies of boxes by the copy engine, in every swizzle, rounded and not, over the edges of the tensor.
func boxes() []experiment {
	var all []experiment
	for _, s := range []int{0, 32, 64, 128} {
		row := rowOf(s)
		all = append(all, loaded(fmt.Sprintf("tma_load, swizzle %d", s), tensor{element: "f32", dims: []int{40, 20}, strides: []int{176}, box: []int{row / 4, 16}, swizzle: s}, [][]int{{0, 0}, {-4, -3}, {36, 10}}))
	}
	all = append(all,
		loaded("tma_load bf16", tensor{element: "bf16", dims: []int{90, 20}, strides: []int{192}, box: []int{64, 8}, swizzle: 128}, [][]int{{8, 3}, {56, 15}}),
		loaded("tma_load tf32", tensor{element: "tf32", dims: []int{44, 20}, strides: []int{176}, box: []int{32, 8}, swizzle: 128}, [][]int{{4, 0}}),
		loaded("tma_load of 1 dimension", tensor{element: "f32", dims: []int{100}, box: []int{64}}, [][]int{{80}}),
		loaded("tma_load of 3 dimensions", tensor{element: "f32", dims: []int{16, 5, 3}, strides: []int{64, 320}, box: []int{8, 4, 2}}, [][]int{{4, 2, 1}, {-4, -1, -1}}))
	all = append(all, multicast())
	for _, s := range []int{0, 32, 64, 128} {
		row := rowOf(s)
		all = append(all, stored(fmt.Sprintf("tma_store, swizzle %d", s), s, [][]int{{0, 3}, {4 + row/4, 15}}))
	}
	return all
}

// rowOf is the bytes of a box's rows: what the swizzle spans.
func rowOf(swizzle int) int {
	if swizzle == 0 {
		return 64
	}
	return swizzle
}

var driverNames = map[string]int{"f16": 6, "f32": 7, "bf16": 9, "tf32": 11}

func product(ns []int) int {
	n := 1
	for _, k := range ns {
		n *= k
	}
	return n
}

func (d tensor) boxBytes() int {
	return product(d.box) * map[string]int{"f32": 4, "tf32": 4, "bf16": 2, "f16": 2}[d.element]
}

// loaded copies boxes, one after the other with one barrier, and gives shared memory as it is.
func loaded(name string, d tensor, at [][]int) experiment {
	d.driverName = driverNames[d.element]
	n := d.boxBytes()
	in := words(2048)
	if d.element == "tf32" { // no NaN, and ties
		for i := 0; i < len(in); i += 4 {
			in[i+3] &= 0xBF
			if i%8 == 0 {
				in[i], in[i+1] = 0, in[i+1]&0xE0|0x10
			}
		}
	}
	return experiment{name: name, in: in, out: n * len(at), shared: (n+1023)/1024*1024 + 1024, elem: "u32", maps: []tensor{d}, body: func(b *body) {
		base := b.SharedBase()
		barrier := b.AddI(base, (n+1023)/1024*1024)
		first := b.Compare("eq", b.tid, b.I32(0))
		b.If(first, false, func() {
			b.Do(ptx.BarrierInit, []*ir.Value{barrier}, "count", 1)
			b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
			b.Do(ptx.TMAPrefetch, []*ir.Value{b.maps[0]})
		}, nil)
		for i, corner := range at {
			b.sync()
			b.If(first, false, func() {
				b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "bytes", n)
				b.TMALoad(b.maps[0], base, barrier, nil, coordinates(b, corner)...)
			}, nil)
			b.Do(ptx.BarrierWait, []*ir.Value{barrier, b.I32(i & 1)})
			b.For(b.tid, b.I32(n/4), b.I32(128), false, nil, func(k *ir.Value, _ []*ir.Value) []*ir.Value {
				b.store(b.at(b.out, b.AddI(k, i*n/4), 4), b.loadShared(b.Add(base, b.MulI(k, 4)), b.Ctx.I32(), 1, 0))
				return nil
			})
			b.Do(ptx.Fence, nil, "kind", "async") // the next copy writes over what was read
		}
	}}
}

func coordinates(b *body, at []int) []*ir.Value {
	var vs []*ir.Value
	for _, x := range at {
		vs = append(vs, b.I32(x))
	}
	return vs
}

// multicast has each of two blocks copy one half to both.
func multicast() experiment {
	d := tensor{element: "f32", dims: []int{32, 16}, strides: []int{128}, box: []int{32, 8}, swizzle: 128, driverName: driverNames["f32"]}
	return experiment{name: "tma_load, multicast", blocks: 2, cluster: 2, in: words(512), out: 4096, shared: 3072, elem: "u32", maps: []tensor{d}, body: func(b *body) {
		base := b.SharedBase()
		barrier, rank := b.AddI(base, 2048), b.Special("cluster_ctarank")
		first := b.Compare("eq", b.tid, b.I32(0))
		b.If(first, false, func() {
			b.Do(ptx.BarrierInit, []*ir.Value{barrier}, "count", 1)
			b.Do(ptx.Fence, nil, "kind", "mbarrier_init")
		}, nil)
		b.Do(ptx.ClusterArrive, nil)
		b.Do(ptx.ClusterWait, nil)
		b.If(first, false, func() {
			b.Do(ptx.BarrierExpect, []*ir.Value{barrier}, "bytes", 2048)
			mask := b.Const(b.Ctx.Integer(3, b.Ctx.Int(16)))
			b.TMALoad(b.maps[0], b.Add(base, b.MulI(rank, 1024)), barrier, mask, b.I32(0), b.MulI(rank, 8))
		}, nil)
		b.Do(ptx.BarrierWait, []*ir.Value{barrier, b.I32(0)})
		b.dump(128, 2048)
		b.Do(ptx.ClusterArrive, nil)
		b.Do(ptx.ClusterWait, nil)
	}}
}

// stored copies boxes from shared memory to the output, over its edges.
func stored(name string, swizzle int, corners [][]int) experiment {
	row := rowOf(swizzle)
	d := tensor{element: "f32", output: true, dims: []int{40, 20}, strides: []int{176}, box: []int{row / 4, 8}, swizzle: swizzle, driverName: driverNames["f32"]}
	return experiment{name: name, in: words(2 * row), out: 20 * 176, shared: 8 * row, elem: "u32", maps: []tensor{d}, body: func(b *body) {
		b.stage(128, 8*row)
		b.Do(ptx.Fence, nil, "kind", "async")
		b.sync()
		b.If(b.Compare("eq", b.tid, b.I32(0)), false, func() {
			for _, corner := range corners {
				b.Do(ptx.TMAStore, []*ir.Value{b.maps[0], b.SharedBase(), b.I32(corner[0]), b.I32(corner[1])})
				b.Do(ptx.TMACommit, nil)
			}
			b.Do(ptx.TMAWait, nil, "pending", 1, "read", true)
			b.Do(ptx.TMAWait, nil, "pending", 0)
		}, nil)
	}}
}

// repeated is bytes for matrices: numbers between -2 and 2 in a format, every row another.
func repeated(format string, n int) []byte {
	r := random()
	var out bytes.Buffer
	for range n {
		x := r.NormFloat64()
		switch format {
		case "bf16":
			out.Write(binary.LittleEndian.AppendUint16(nil, ir.BF16Bits(x)))
		case "f16":
			out.Write(binary.LittleEndian.AppendUint16(nil, ir.F16Bits(x)))
		default: // all bits, of which the last 13 are ignored
			out.Write(binary.LittleEndian.AppendUint32(nil, uint32(f32.bits(x))))
		}
	}
	return out.Bytes()
}
