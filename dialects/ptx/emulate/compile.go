package emulate

import (
	"fmt"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// constant is a register that holds an immediate.
type constant struct {
	slot int
	bits uint64
}

// registers are the slots of a value. Owned ones belong to it alone, so that an operation that is tied to it may work on
// them in place, as the printed kernel does.
type registers struct {
	slots []int
	owned bool
}

// compiler makes a kernel's operations into steps on numbered registers.
type compiler struct {
	p    *Program
	regs map[*ir.Value]registers
}

// Compile makes a kernel, which must verify, ready.
func Compile(kernel *ir.Op) (*Program, error) {
	if !kernel.Is(ptx.Kernel) {
		return nil, kernel.Errorf("%s is no ptx.kernel", kernel.Name())
	}
	a := kernel.Attrs()
	threads, _ := a.Int("threads")
	p := &Program{kernel: kernel, threads: int(threads), clusterSize: int(a.IntOr("cluster", 1)), shared: int(a.IntOr("shared", 0))}
	perSM := int(a.IntOr("blocks_per_sm", 1))
	warps := (p.threads + 31) / 32
	p.registers = min(65536/(perSM*warps*32)/8*8, 255)
	p.granule, p.sharedGranule = granules(kernel)
	c := &compiler{p: p, regs: map[*ir.Value]registers{}}
	for _, v := range kernel.Body().Args() {
		p.params = append(p.params, c.fresh(v)[0])
	}
	if err := c.block(kernel.Body()); err != nil {
		return nil, err
	}
	return p, nil
}

// granules is the least number of bytes that the kernel accesses at once, in global and in shared memory.
func granules(kernel *ir.Op) (global, shared int) {
	global, shared = 16, 16
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		var t ir.Type
		switch op.Def() {
		case ptx.LoadByte, ptx.StoreByte:
			global = 1
		case ptx.ReduceMin, ptx.BarrierInit:
			global, shared = min(global, 8), min(shared, 8)
		case ptx.CopyAsync:
			n := int(op.Attrs().IntOr("bytes", 16))
			shared = min(shared, n)
			global = min(global, n)
			if op.NumOperands() > 2 {
				global = min(global, 2) // parts of rows
			}
		case ptx.TMALoad, ptx.TMAStore:
			global = min(global, 2)
		case ptx.Load:
			t = op.Result(0).Type()
		case ptx.Store:
			t = op.Operand(1).Type()
		}
		if t != nil {
			n := ptx.Registers(t) * ptx.Width(ir.Elem(t)) / 8
			if op.Attrs().Str("space") == "shared" {
				shared = min(shared, n)
			} else {
				global = min(global, n)
			}
		}
		return ir.Advance
	})
	return global, shared
}

func (c *compiler) newSlots(n int) []int {
	slots := make([]int, n)
	for i := range slots {
		slots[i] = c.p.slots + i
	}
	c.p.slots += n
	return slots
}

// fresh gives a value registers of its own.
func (c *compiler) fresh(v *ir.Value) []int {
	slots := c.newSlots(max(1, ptx.Registers(v.Type())))
	c.regs[v] = registers{slots, true}
	return slots
}

// of is a value's registers.
func (c *compiler) of(v *ir.Value) []int { return c.regs[v].slots }

// one is the register of a scalar.
func (c *compiler) one(v *ir.Value) int { return c.regs[v].slots[0] }

// optional is the register of an optional operand, or -1.
func (c *compiler) optional(op *ir.Op, i int) int {
	if i < op.NumOperands() {
		return c.one(op.Operand(i))
	}
	return -1
}

// inPlace gives a result the registers of an operand where that isn't used again, else copies of them.
func (c *compiler) inPlace(v *ir.Value, op *ir.Op, i int) []int {
	from := op.Operand(i)
	if r := c.regs[from]; r.owned && from.HasOneUse() && from.Block() == op.Block() {
		c.regs[v] = r
		return r.slots
	}
	slots := c.fresh(v)
	c.copy(op, slots, c.of(from))
	return slots
}

func (c *compiler) emit(op *ir.Op, do func(w *warp) error) int {
	c.p.code = append(c.p.code, instruction{op, do})
	return len(c.p.code) - 1
}

// copy moves registers as if all were moved at once.
func (c *compiler) copy(op *ir.Op, to, from []int) {
	type move struct{ to, from int }
	var moves []move
	crossed := false
	for i := range to {
		if to[i] != from[i] {
			crossed = crossed || slices.ContainsFunc(moves, func(m move) bool { return m.to == from[i] })
			moves = append(moves, move{to[i], from[i]})
		}
	}
	if len(moves) == 0 {
		return
	}
	c.emit(op, func(w *warp) error {
		var saved []lanes
		if crossed {
			for _, m := range moves {
				saved = append(saved, w.regs[m.from])
			}
		}
		for i, m := range moves {
			x := &w.regs[m.from]
			if crossed {
				x = &saved[i]
			}
			w.assign(m.to, x)
		}
		return nil
	})
}

// assign sets a register of the lanes at work.
func (w *warp) assign(slot int, x *lanes) {
	y := &w.regs[slot]
	if w.mask == ^uint32(0) {
		*y = *x
		return
	}
	for l := range 32 {
		if w.mask>>l&1 == 1 {
			y[l] = x[l]
		}
	}
}

// block compiles the operations of a block, but not its ptx.yield.
func (c *compiler) block(b *ir.Block) error {
	for op := range b.Ops() {
		if op.Is(ptx.Yield) {
			return nil
		}
		if err := c.op(op); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) op(op *ir.Op) error {
	switch op.Def() {
	case ptx.For:
		return c.loop(op)
	case ptx.If:
		return c.branch(op)
	case ptx.Return:
		c.emit(op, func(w *warp) error {
			if w.mask != w.exists {
				return fmt.Errorf("returns in part")
			}
			w.done = true
			w.block.last = w.seen(w.exists).join(w.block.last)
			return nil
		})
		return nil
	}
	if f := compilers[op.Def()]; f != nil {
		return f(c, op)
	}
	return c.scalar(op)
}

// compilers compiles the operations that are more than a function of numbers.
var compilers = map[*ir.OpDef]func(c *compiler, op *ir.Op) error{
	ptx.Const: (*compiler).constant, ptx.Undef: (*compiler).undefined, ptx.Fill: (*compiler).fill, ptx.Copy: (*compiler).copyRegisters, ptx.Special: (*compiler).special,
	ptx.SharedBase: (*compiler).sharedBase, ptx.Extract: (*compiler).extract, ptx.Vector: (*compiler).vector, ptx.Split: (*compiler).split,
	ptx.Load: (*compiler).load, ptx.Store: (*compiler).store, ptx.LoadByte: (*compiler).load, ptx.StoreByte: (*compiler).store,
	ptx.ReduceMin: (*compiler).reduceMin,
	ptx.CopyAsync: (*compiler).copyAsync, ptx.CopyCommit: (*compiler).copyCommit, ptx.CopyWait: (*compiler).copyWait,
	ptx.Select:     (*compiler).choose,
	ptx.LoadMatrix: (*compiler).loadMatrix, ptx.StoreMatrix: (*compiler).storeMatrix, ptx.MMA: (*compiler).mma,
	ptx.WGMMA: (*compiler).wgmma, ptx.WGMMAFence: (*compiler).wgmmaFence, ptx.WGMMACommit: (*compiler).wgmmaCommit, ptx.WGMMAWait: (*compiler).wgmmaWait,
	ptx.OuterFMA: (*compiler).outerFMA, ptx.AddScaled: (*compiler).addScaled,
	ptx.BarrierInit: (*compiler).barrierInit, ptx.BarrierExpect: (*compiler).barrierExpect, ptx.BarrierArrive: (*compiler).barrierArrive,
	ptx.BarrierWait: (*compiler).barrierWait,
	ptx.TMALoad:     (*compiler).tmaLoad, ptx.TMAStore: (*compiler).tmaStore, ptx.TMACommit: (*compiler).tmaCommit, ptx.TMAWait: (*compiler).tmaWait,
	ptx.PrefetchBulk: (*compiler).prefetchBulk, ptx.TMAPrefetch: (*compiler).nothing,
	ptx.Sync: (*compiler).sync, ptx.Arrive: (*compiler).sync, ptx.WarpSync: (*compiler).warpSync, ptx.Fence: (*compiler).fence,
	ptx.ClusterArrive: (*compiler).clusterArrive, ptx.ClusterWait: (*compiler).clusterWait, ptx.MapShared: (*compiler).mapShared,
	ptx.Shuffle: (*compiler).shuffle, ptx.Elect: (*compiler).elect, ptx.SetMaxRegisters: (*compiler).setMaxRegisters,
	ptx.GridWait: (*compiler).nothing, ptx.GridLaunch: (*compiler).nothing,
}

func (c *compiler) nothing(*ir.Op) error { return nil }

func (c *compiler) constant(op *ir.Op) error {
	bits, err := constantBits(op.Attr("value"))
	slots := c.fresh(op.Result(0))
	c.regs[op.Result(0)] = registers{slots, false}
	c.p.consts = append(c.p.consts, constant{slots[0], bits})
	return err
}

func (c *compiler) undefined(op *ir.Op) error {
	slots := c.fresh(op.Result(0))
	if ptx.Width(ir.Elem(op.Result(0).Type())) != 32 {
		return nil
	}
	var x lanes
	fill(&x, undefined)
	c.emit(op, func(w *warp) error {
		for _, s := range slots {
			w.assign(s, &x)
		}
		return nil
	})
	return nil
}

func (c *compiler) fill(op *ir.Op) error {
	from := c.one(op.Operand(0))
	to := c.fresh(op.Result(0))
	c.copy(op, to, slices.Repeat([]int{from}, len(to)))
	return nil
}

func (c *compiler) copyRegisters(op *ir.Op) error {
	from := c.of(op.Operand(0))
	c.copy(op, c.fresh(op.Result(0)), from)
	return nil
}

func (c *compiler) extract(op *ir.Op) error {
	i, _ := op.Attrs().Int("index")
	c.regs[op.Result(0)] = registers{c.of(op.Operand(0))[i : i+1], false}
	return nil
}

func (c *compiler) vector(op *ir.Op) error {
	var slots []int
	for _, v := range op.Operands() {
		slots = append(slots, c.one(v))
	}
	c.regs[op.Result(0)] = registers{slots, false}
	return nil
}

// loop compiles a loop: the test at its head decides which of the lanes that are still in it go on.
func (c *compiler) loop(op *ir.Op) error {
	body := op.Body()
	index, upper, step := c.fresh(body.Arg(0))[0], c.one(op.Operand(1)), c.one(op.Operand(2))
	to, from := []int{index}, []int{c.one(op.Operand(0))}
	for i, v := range body.Args()[1:] {
		to = append(to, c.fresh(v)...)
		from = append(from, c.of(op.Operand(i+3))...)
		c.regs[op.Result(i)] = c.regs[v]
	}
	c.copy(op, to, from)
	c.emit(op, func(w *warp) error {
		w.frames = append(w.frames, frame{mask: w.mask})
		return nil
	})
	end := 0
	uniform := op.Attrs().Bool("uniform")
	head := c.emit(op, func(w *warp) error {
		i, n := &w.regs[index], &w.regs[upper]
		inner := uint32(0)
		for l := range 32 {
			if int32(i[l]) < int32(n[l]) {
				inner |= 1 << l
			}
		}
		inner &= w.mask
		if uniform && inner != 0 && inner != w.mask {
			return fmt.Errorf("parts lanes %08x of %08x in what is said to be uniform", inner, w.mask)
		}
		if inner == 0 {
			w.mask, w.frames = w.frames[len(w.frames)-1].mask, w.frames[:len(w.frames)-1]
			w.pc = end
			return nil
		}
		w.mask = inner
		return nil
	})
	if err := c.block(body); err != nil {
		return err
	}
	to, from = to[1:], nil
	for _, v := range body.Last().Operands() {
		from = append(from, c.of(v)...)
	}
	c.copy(op, to, from)
	c.emit(op, func(w *warp) error {
		i, by := &w.regs[index], &w.regs[step]
		for l := range 32 {
			if w.mask>>l&1 == 1 {
				i[l] = uint64(uint32(i[l]) + uint32(by[l]))
			}
		}
		w.pc = head
		return nil
	})
	end = len(c.p.code)
	return nil
}

// branch compiles a branch: lanes of the first region, then lanes of the second, then all together again.
func (c *compiler) branch(op *ir.Op) error {
	p := c.one(op.Operand(0))
	for _, r := range op.Results() {
		c.fresh(r)
	}
	otherwise, end := 0, 0
	uniform := op.Attrs().Bool("uniform")
	c.emit(op, func(w *warp) error {
		taken := uint32(0)
		for l, x := range &w.regs[p] {
			taken |= uint32(x&1) << l
			if x>>32 != 0 && w.mask>>l&1 == 1 {
				return threadError{l, tagged(x)}
			}
		}
		taken &= w.mask
		if uniform && taken != 0 && taken != w.mask {
			return fmt.Errorf("parts lanes %08x of %08x in what is said to be uniform", taken, w.mask)
		}
		w.frames = append(w.frames, frame{w.mask, w.mask &^ taken})
		w.mask = taken
		if taken == 0 {
			w.pc = otherwise
		}
		return nil
	})
	if err := c.arm(op, op.Region(0).First()); err != nil {
		return err
	}
	otherwise = c.emit(op, func(w *warp) error {
		if w.mask = w.frames[len(w.frames)-1].rest; w.mask == 0 {
			w.pc = end
		}
		return nil
	})
	if b := op.Region(1).First(); b != nil {
		if err := c.arm(op, b); err != nil {
			return err
		}
	}
	end = c.emit(op, func(w *warp) error {
		w.mask, w.frames = w.frames[len(w.frames)-1].mask, w.frames[:len(w.frames)-1]
		return nil
	})
	return nil
}

func (c *compiler) arm(op *ir.Op, b *ir.Block) error {
	if err := c.block(b); err != nil {
		return err
	}
	var to, from []int
	for i, r := range op.Results() {
		to, from = append(to, c.of(r)...), append(from, c.of(b.Last().Operand(i))...)
	}
	c.copy(op, to, from)
	return nil
}
