package emulate

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"blutrain/ir"
)

// lanes is a register of each lane of a warp. 32-bit registers have a tag above their bits where they hold no number.
type lanes = [32]uint64

// Tags of 32-bit registers.
const (
	undefined = uint64(1) << 63 // nothing was written
	inFlight  = uint64(1) << 62 // a product writes it; the group's number is in the bits from 32 on
)

// cluster is blocks that run together.
type cluster struct {
	program *Program
	memory  *Memory
	number  int
	grid    int // blocks of the launch
	maps    []*TensorMap
	blocks  []*block
	warps   []*warp
	agents  int // so far
	barrier clusterBarrier
}

// block is one thread block.
type block struct {
	cluster  *cluster
	rank     int
	shared   []byte
	written  []bool // by byte of shared memory
	cells    []cell
	warps    []*warp
	bars     [16]bar
	barriers map[int]*mbarrier    // by address
	products map[[2]int]*together // begun by some warps of a warpgroup
	free     int                  // registers that warps have given back
	remote   map[int32]remote     // what other blocks did to this one's shared memory, the last of each agent
	last     *view                // what its threads had seen when they ended
}

// warp is up to 32 threads that run together.
type warp struct {
	cluster *cluster
	block   *block
	number  int // in the cluster
	index   int // in the block
	exists  uint32
	regs    []lanes
	pc      int
	mask    uint32 // lanes at work
	frames  []frame
	done    bool

	ready   func() bool // what it waits for
	waiting string

	views [32]*view
	clock uint32

	copies    groups     // cp.async groups
	stores    groups     // groups of bulk stores
	read      [32]uint32 // groups of bulk stores that have read shared memory
	product   products
	limit     int    // registers a thread has
	atCluster *round // of the cluster's barrier, where it has arrived
}

// groups is each lane's groups of asynchronous operations: how many were closed, and how many are known to be complete.
type groups struct {
	closed, finished [32]uint32
	open             uint32 // lanes that have something in the group being made
}

// frame is what is restored where control flow meets again.
type frame struct {
	mask, rest uint32
}

// instruction is one step of a program.
type instruction struct {
	op *ir.Op
	do func(w *warp) error
}

const sharedBase = 1024 // the address of dynamic shared memory; a block's rank in the cluster is in the bits from 24 on

func newCluster(p *Program, m *Memory, number, grid int, values []uint64, maps []*TensorMap) *cluster {
	c := &cluster{program: p, memory: m, number: number, grid: grid, maps: maps}
	perBlock := (p.threads + 31) / 32
	for rank := range p.clusterSize {
		b := &block{cluster: c, rank: rank, shared: make([]byte, p.shared), written: make([]bool, p.shared), barriers: map[int]*mbarrier{}, products: map[[2]int]*together{}, remote: map[int32]remote{}}
		b.cells = make([]cell, (p.shared+p.sharedGranule-1)/p.sharedGranule)
		for i := range b.shared {
			b.shared[i] = 0xff
		}
		for i := range perBlock {
			w := &warp{cluster: c, block: b, number: len(c.warps), index: i, regs: make([]lanes, p.slots), clock: 1, limit: p.registers}
			w.exists = uint32(1)<<min(32, p.threads-32*i) - 1
			if p.threads-32*i >= 32 {
				w.exists = ^uint32(0)
			}
			w.mask = w.exists
			start := &view{}
			for l := range w.views {
				w.views[l] = start
			}
			for _, k := range p.consts {
				fill(&w.regs[k.slot], k.bits)
			}
			for i, slot := range p.params {
				fill(&w.regs[slot], values[i])
			}
			b.warps, c.warps = append(b.warps, w), append(c.warps, w)
		}
		c.blocks = append(c.blocks, b)
	}
	c.agents = agentsPerWarp * len(c.warps)
	return c
}

func fill(x *lanes, bits uint64) {
	for l := range x {
		x[l] = bits
	}
}

func (c *cluster) warpCount() int { return len(c.warps) }
func (c *cluster) size() int      { return len(c.blocks) }

// id is the block's number in the grid.
func (b *block) id() int { return b.cluster.number*b.cluster.size() + b.rank }

// run runs the warps in turns until all are done.
func (c *cluster) run() error {
	turns := c.inOrder
	if seed := c.program.Seed; seed != 0 {
		turns = c.atRandom(rand.New(rand.NewPCG(seed, uint64(c.number))))
	}
	for {
		running, progress := false, false
		for w, most := range turns {
			if w.done {
				continue
			}
			running = true
			moved, err := w.run(most)
			if err != nil {
				return err
			}
			progress = progress || moved
		}
		if !running {
			return c.finish()
		}
		if !progress {
			return c.deadlock()
		}
	}
}

// inOrder has every warp run until it waits.
func (c *cluster) inOrder(yield func(w *warp, most int) bool) {
	for _, w := range c.warps {
		if !yield(w, math.MaxInt) {
			return
		}
	}
}

// atRandom has the warps run in any order, each for some instructions.
func (c *cluster) atRandom(r *rand.Rand) func(yield func(w *warp, most int) bool) {
	return func(yield func(w *warp, most int) bool) {
		for _, i := range r.Perm(len(c.warps)) {
			if !yield(c.warps[i], 1+r.IntN(200)) {
				return
			}
		}
	}
}

// run runs a warp for some instructions, or until it waits or ends; moved: it did something.
func (w *warp) run(most int) (moved bool, err error) {
	code := w.cluster.program.code
	for range most {
		if w.ready != nil {
			if !w.ready() {
				return moved, nil
			}
			w.ready = nil
		}
		moved = true
		in := &code[w.pc]
		w.pc++
		if err := in.do(w); err != nil {
			return true, w.fault(in.op, err)
		}
		if w.done {
			return true, nil
		}
	}
	return moved, nil
}

// threadError is about one lane.
type threadError struct {
	lane int
	error
}

func (w *warp) fault(op *ir.Op, err error) error {
	where := fmt.Sprintf("block %d, warp %d", w.block.id(), w.index)
	if t, ok := err.(threadError); ok {
		where, err = fmt.Sprintf("block %d, thread %d", w.block.id(), w.index*32+t.lane), t.error
	}
	return op.Errorf("%s %v (%s)", where, err, describe(op))
}

// describe is the operation's text, without what is inside it.
func describe(op *ir.Op) string {
	s := op.String()
	for i, c := range s {
		if c == '\n' {
			return s[:i]
		}
	}
	return s
}

// waitUntil makes the warp wait; ready is asked until it is true, and does then what follows from it.
func (w *warp) waitUntil(what string, ready func() bool) {
	w.ready, w.waiting = ready, what
}

// deadlock says who waits for what.
func (c *cluster) deadlock() error {
	for _, w := range c.warps {
		if w.done {
			continue
		}
		text := ""
		for _, o := range c.warps {
			if !o.done && o != w {
				text += fmt.Sprintf("; warp %d of block %d %s", o.index, o.block.id(), o.waiting)
			}
		}
		return w.fault(c.program.code[w.pc-1].op, fmt.Errorf("%s, and nobody can go on%s", w.waiting, text))
	}
	return nil
}

// remote is an access to another block's shared memory.
type remote struct {
	access
	op *ir.Op
	by int // block
}

// reached notes that an actor of another block did something to the block's shared memory.
func (b *block) reached(a *actor, op *ir.Op) {
	if b == a.warp.block {
		return
	}
	r := b.remote[a.agent]
	if r.clock != a.clock {
		r = remote{access{a.agent, 0, a.clock}, op, a.warp.block.id()}
	}
	r.mask |= a.mask
	b.remote[a.agent] = r
}

// ends checks that other blocks are done with this one's shared memory when its threads end.
func (b *block) ends() error {
	for _, agent := range slices.Sorted(maps.Keys(b.remote)) {
		if r := b.remote[agent]; !b.last.seen.of(int(agent)).covers(r.mask, r.clock) {
			return r.op.Errorf("block %d does this to block %d's shared memory, with nothing that orders it before that block ends (%s)", r.by, b.id(), describe(r.op))
		}
	}
	return nil
}

// finish checks what a cluster leaves behind.
func (c *cluster) finish() error {
	for _, b := range c.blocks {
		if err := b.ends(); err != nil {
			return err
		}
		for _, m := range b.sortedBarriers() {
			if m.bytes != 0 {
				return m.op.Errorf("block %d ends while a barrier at %d expects %d bytes more than came (%s)", b.id(), m.address, m.bytes, describe(m.op))
			}
		}
		for _, t := range b.products {
			return t.op.Errorf("block %d ends with a product that %d warps of a warpgroup began (%s)", b.id(), t.warps, describe(t.op))
		}
		for _, w := range b.warps {
			for l := range 32 {
				if w.stores.open>>l&1 == 1 || w.read[l] < w.stores.closed[l] {
					return c.program.kernel.Errorf("block %d, thread %d ends while its bulk stores still read shared memory", b.id(), w.index*32+l)
				}
			}
			if w.product.open || w.product.finished < w.product.closed {
				return c.program.kernel.Errorf("block %d, warp %d ends while its products are unfinished", b.id(), w.index)
			}
		}
	}
	return nil
}

// full checks that every lane is there, for instructions that need them all.
func (w *warp) full() error {
	if missing := w.exists &^ w.mask; missing != 0 {
		l := bits.TrailingZeros32(missing)
		return threadError{l, fmt.Errorf("doesn't take part in what the whole warp has to do")}
	}
	return nil
}

// complete is full for instructions that also need 32 threads.
func (w *warp) complete() error {
	if w.exists != ^uint32(0) {
		return fmt.Errorf("has no 32 threads")
	}
	return w.full()
}

// eachLane calls f for the lanes at work.
func (w *warp) eachLane(f func(l int) error) error {
	for m := w.mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if err := f(l); err != nil {
			return threadError{l, err}
		}
	}
	return nil
}

// finished is how far what the warp has in the background is complete for a lane; its own accesses always are.
func (w *warp) finished(kind, lane int) uint32 {
	switch kind {
	case asCopies:
		return w.copies.finished[lane]
	case asProducts:
		return w.product.finished
	case asStores:
		return w.stores.finished[lane]
	case asReads:
		return w.read[lane]
	}
	return ^uint32(0)
}

// seen is what lanes of the mask have seen and done, joined.
func (w *warp) seen(mask uint32) *view {
	var v *view
	for m := mask; m != 0; m &= m - 1 {
		v = w.views[bits.TrailingZeros32(m)&31].join(v)
	}
	n := w.cluster.warpCount()
	out := make(vector, w.cluster.agents)
	copy(out, v.seen)
	out[w.number] = out[w.number].with(mask, func(int) uint32 { return w.clock })
	if w.exists&^mask == 0 {
		out[w.number] = stamp{all: w.clock}
	}
	for kind, used := range [agentsPerWarp]bool{asCopies: w.copies.finished != [32]uint32{}, asStores: w.stores.finished != [32]uint32{}, asReads: w.read != [32]uint32{}} {
		if used {
			agent := kind*n + w.number
			out[agent] = out[agent].with(mask, func(l int) uint32 { return w.finished(kind, l) })
		}
	}
	if agent := asProducts*n + w.number; w.product.finished > 0 {
		out[agent] = out[agent].join(stamp{all: w.product.finished})
	}
	return &view{out, v.fenced}
}

// release is what others see that acquire it: all that lanes of the mask have seen and done.
func (w *warp) release(mask uint32) *view {
	v := w.seen(mask)
	w.clock++
	return v
}

// acquire has the lanes of the mask see what was released.
func (w *warp) acquire(mask uint32, v *view) {
	var from, to *view
	for m := mask; m != 0; m &= m - 1 {
		l := bits.TrailingZeros32(m) & 31
		if w.views[l] != from || to == nil {
			from = w.views[l]
			to = from.join(v)
		}
		w.views[l] = to
	}
}
