package emulate

import (
	"fmt"
	"math/bits"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// round is one use of a barrier of threads: it is over when all that are expected are there.
type round struct {
	expected, arrived int
	over              bool
	view              *view
}

type bar struct{ *round }

// arrive counts a warp in.
func (w *warp) arrive(r *round) {
	r.arrived += bits.OnesCount32(w.exists)
	r.view = w.release(w.exists).join(r.view)
	r.over = r.arrived == r.expected
}

// until waits for a round.
func (w *warp) until(r *round, what string) {
	w.waitUntil(what, func() bool {
		if r.over {
			w.acquire(w.exists, r.view)
		}
		return r.over
	})
}

func (c *compiler) sync(op *ir.Op) error {
	which, id, n := c.optional(op, 0), int(op.Attrs().IntOr("id", 0)), int(op.Attrs().IntOr("threads", 0))
	if n == 0 {
		n = c.p.threads
	}
	c.emit(op, func(w *warp) error {
		if err := w.full(); err != nil {
			return err
		}
		id := id
		if which >= 0 {
			x, err := w.uniform(which, "barrier")
			if err != nil {
				return err
			}
			id += int(uint32(x))
		}
		if id > 15 {
			return fmt.Errorf("uses barrier %d of 0 to 15", id)
		}
		b := &w.block.bars[id]
		if b.round == nil || b.over {
			b.round = &round{expected: n}
		}
		r := b.round
		if r.expected != n {
			return fmt.Errorf("is at barrier %d for %d threads, others for %d", id, n, r.expected)
		}
		w.arrive(r)
		if r.arrived > r.expected {
			return fmt.Errorf("is too many at barrier %d for %d threads", id, n)
		}
		if op.Is(ptx.Sync) {
			w.until(r, fmt.Sprintf("waits at barrier %d with %d of %d threads", id, r.arrived, n))
		}
		return nil
	})
	return nil
}

// uniform is a register that must be the same in all lanes.
func (w *warp) uniform(slot int, what string) (uint64, error) {
	first, found := uint64(0), false
	for l, x := range &w.regs[slot] {
		if w.mask>>l&1 == 0 {
			continue
		}
		if found && x != first {
			return 0, threadError{l, fmt.Errorf("has another %s (%d) than lanes before it (%d)", what, x, first)}
		}
		first, found = x, true
	}
	return first, nil
}

func (c *compiler) warpSync(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		if err := w.full(); err != nil {
			return err
		}
		w.acquire(w.exists, w.release(w.exists))
		return nil
	})
	return nil
}

func (c *compiler) fence(op *ir.Op) error {
	switch op.Attrs().Str("kind") {
	case "mbarrier_init":
		c.emit(op, func(w *warp) error {
			for _, b := range w.block.barriers {
				a := w.actor(bits.TrailingZeros32(w.mask))
				if a.after(b.made) {
					b.fenced = true
				}
			}
			return nil
		})
	case "async":
		c.emit(op, func(w *warp) error {
			accesses := w.ordinary(w.release(w.mask))
			var from, to *view
			for l := range 32 {
				if w.mask>>l&1 == 0 {
					continue
				}
				if w.views[l] != from {
					from = w.views[l]
					to = &view{from.seen, from.fenced.join(accesses)}
				}
				w.views[l] = to
			}
			return nil
		})
	}
	return nil
}

// ordinary is what a view has seen of the accesses of the generic proxy to the block's shared memory. Threads access no other block's.
func (w *warp) ordinary(v *view) vector {
	n, per := w.cluster.warpCount(), len(w.block.warps)
	out := make(vector, genericAgents*n)
	for kind := range genericAgents {
		first := kind*n + w.block.rank*per
		copy(out[first:first+per], v.seen[first:first+per])
	}
	return out
}

// clusterBarrier is the barrier of all threads of a cluster.
type clusterBarrier struct{ *round }

func (c *compiler) clusterArrive(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		if err := w.full(); err != nil {
			return err
		}
		if w.atCluster != nil {
			return fmt.Errorf("arrives at the cluster's barrier twice")
		}
		b := &w.cluster.barrier
		if b.round == nil || b.over {
			b.round = &round{expected: w.cluster.program.threads * w.cluster.size()}
		}
		w.atCluster = b.round
		w.arrive(b.round)
		return nil
	})
	return nil
}

func (c *compiler) clusterWait(op *ir.Op) error {
	c.emit(op, func(w *warp) error {
		if err := w.full(); err != nil {
			return err
		}
		if w.atCluster == nil {
			return fmt.Errorf("waits at the cluster's barrier without having arrived")
		}
		r := w.atCluster
		w.atCluster = nil
		w.until(r, fmt.Sprintf("waits at the cluster's barrier with %d of %d threads", r.arrived, r.expected))
		return nil
	})
	return nil
}

func (c *compiler) mapShared(op *ir.Op) error {
	base, rank, to := c.one(op.Operand(0)), c.one(op.Operand(1)), c.fresh(op.Result(0))[0]
	c.emit(op, lanewise(func(x, y, _ uint64) uint64 { return x&0xFFFFFF | y<<24&0xFF000000 }, to, []int{base, rank}, 3, undefined))
	return nil
}

func (c *compiler) shuffle(op *ir.Op) error {
	x, by, to := c.one(op.Operand(0)), c.one(op.Operand(1)), c.fresh(op.Result(0))[0]
	mode := op.Attrs().Str("mode")
	source := map[string]func(l, by int) int{
		"idx":  func(_, by int) int { return by & 31 },
		"bfly": func(l, by int) int { return l ^ by&31 },
		"down": func(l, by int) int {
			if l+by > 31 {
				return l
			}
			return l + by
		},
		"up": func(l, by int) int {
			if l-by < 0 {
				return l
			}
			return l - by
		},
	}[mode]
	c.emit(op, func(w *warp) error {
		if err := w.full(); err != nil {
			return err
		}
		if err := w.untagged([]int{by}); err != nil {
			return err
		}
		from, lane := w.regs[x], w.regs[by]
		for l := range 32 {
			if w.exists>>l&1 == 0 {
				continue
			}
			s := source(l, int(lane[l]&31))
			if w.exists>>s&1 == 0 {
				return threadError{l, fmt.Errorf("reads lane %d, which is no thread", s)}
			}
			if from[s]&inFlight != 0 {
				return threadError{l, tagged(from[s])}
			}
			w.regs[to][l] = from[s]
		}
		return nil
	})
	return nil
}

func (c *compiler) elect(op *ir.Op) error {
	to := c.fresh(op.Result(0))[0]
	c.emit(op, func(w *warp) error {
		if err := w.full(); err != nil {
			return err
		}
		w.regs[to] = lanes{1}
		return nil
	})
	return nil
}

// setMaxRegisters keeps the account of a block's registers: more are given when others have given them back.
func (c *compiler) setMaxRegisters(op *ir.Op) error {
	n, more := int(op.Attrs().IntOr("count", 0)), op.Attrs().Bool("inc")
	if _, ok := c.p.kernel.Attrs().Int("blocks_per_sm"); !ok {
		return op.Errorf("ptx.setmaxnreg: is ignored in a kernel that doesn't say blocks_per_sm")
	}
	c.emit(op, func(w *warp) error {
		if err := w.complete(); err != nil {
			return err
		}
		if more && n < w.limit || !more && n > w.limit {
			return fmt.Errorf("changes the registers of a thread from %d to %d, the wrong way", w.limit, n)
		}
		need := 32 * (n - w.limit)
		w.waitUntil(fmt.Sprintf("waits for %d registers", need), func() bool {
			if need > w.block.free {
				return false
			}
			w.block.free -= need
			w.limit = n
			return true
		})
		return nil
	})
	return nil
}

func (c *compiler) special(op *ir.Op) error {
	to := c.fresh(op.Result(0))[0]
	name := op.Attrs().Str("register")
	value, ok := map[string]func(w *warp, l int) int{
		"tid.x":           func(w *warp, l int) int { return w.index*32 + l },
		"tid.y":           func(*warp, int) int { return 0 },
		"ntid.x":          func(w *warp, _ int) int { return w.cluster.program.threads },
		"ctaid.x":         func(w *warp, _ int) int { return w.block.id() },
		"ctaid.y":         func(*warp, int) int { return 0 },
		"ctaid.z":         func(*warp, int) int { return 0 },
		"nctaid.x":        func(w *warp, _ int) int { return w.cluster.grid },
		"laneid":          func(_ *warp, l int) int { return l },
		"cluster_ctarank": func(w *warp, _ int) int { return w.block.rank },
		"clusterid.x":     func(w *warp, _ int) int { return w.cluster.number },
		"nclusterid.x":    func(w *warp, _ int) int { return w.cluster.grid / w.cluster.size() },
	}[name]
	if !ok {
		return op.Errorf("ptx.special: register %s, which is different each time, is not emulated", name)
	}
	c.emit(op, func(w *warp) error {
		for l := range 32 {
			w.regs[to][l] = uint64(value(w, l))
		}
		return nil
	})
	return nil
}

func (c *compiler) sharedBase(op *ir.Op) error {
	to := c.fresh(op.Result(0))[0]
	c.emit(op, func(w *warp) error {
		fill(&w.regs[to], uint64(w.block.rank<<24+sharedBase))
		return nil
	})
	return nil
}

func (c *compiler) split(op *ir.Op) error {
	x, low, high := c.one(op.Operand(0)), c.fresh(op.Result(0))[0], c.fresh(op.Result(1))[0]
	width := ptx.Width(op.Operand(0).Type()) / 2
	tags := uint64(1)
	if width == 32 {
		tags = 0
	}
	c.emit(op, lanewise(func(x, _, _ uint64) uint64 { return x & ones(width) }, low, []int{x}, tags, undefined))
	c.emit(op, lanewise(func(x, _, _ uint64) uint64 { return x >> width & ones(width) }, high, []int{x}, tags, undefined))
	return nil
}
