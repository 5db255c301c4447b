package emulate

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// mbarrier is a barrier in shared memory. A phase is over when as many have arrived as it was made for and all bytes that
// were expected have come.
type mbarrier struct {
	op      *ir.Op // that made it
	address int    // in its block's shared memory
	count   int
	pending int
	bytes   int // expected and not here yet
	phase   uint32
	agent   int    // the copies that it counts
	made    access // by whom
	fenced  bool   // the copy engine and other blocks see that it was made
	coming  *view  // of those that arrived in this phase
	past    *view  // of the phases that are over
}

func (b *block) sortedBarriers() []*mbarrier {
	var all []*mbarrier
	for _, m := range b.barriers {
		all = append(all, m)
	}
	slices.SortFunc(all, func(x, y *mbarrier) int { return x.address - y.address })
	return all
}

// settle ends the phase where nothing is missing.
func (m *mbarrier) settle() {
	if m.pending > 0 || m.bytes != 0 {
		return
	}
	m.phase++
	m.past = m.coming.join(m.past)
	m.past = &view{m.past.seen.raised(m.agent, stamp{all: m.phase}), m.past.fenced}
	m.pending, m.coming = m.count, nil
}

func (m *mbarrier) arrive(v *view) error {
	if m.pending == 0 {
		return fmt.Errorf("arrives at a barrier at %d where all %d have arrived", m.address, m.count)
	}
	m.pending--
	m.coming = v.join(m.coming)
	m.settle()
	return nil
}

// barrierAt finds the barrier that lane l names; far: it is used by more than the block's own threads.
func (w *warp) barrierAt(address uint32, l int, far bool) (*mbarrier, error) {
	b, at, err := w.owner(address, 8)
	if err != nil {
		return nil, err
	}
	m := b.barriers[at]
	a := w.actor(l)
	switch {
	case m == nil:
		return nil, fmt.Errorf("uses a barrier at %d of shared memory, where none was made", at)
	case !a.after(m.made):
		return nil, fmt.Errorf("uses the barrier at %d with nothing that orders this after it was made", at)
	case (far || b != w.block) && !m.fenced:
		return nil, fmt.Errorf("has the barrier at %d used by others with no fence {kind = \"mbarrier_init\"} after it was made", at)
	case b.cells[at/w.cluster.program.sharedGranule].writer != m.made:
		return nil, fmt.Errorf("uses the barrier at %d, which something was written over", at)
	}
	return m, nil
}

func (c *compiler) barrierInit(op *ir.Op) error {
	address, offset, count := c.one(op.Operand(0)), uint32(op.Attrs().IntOr("offset", 0)), int(op.Attrs().IntOr("count", 0))
	if count < 1 || count >= 1<<20 {
		return op.Errorf("ptx.mbarrier_init: %d arrivals; a barrier is made for 1 to 1048575", count)
	}
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			p, err := w.shared(uint32(w.regs[address][l])+offset, 8)
			if err != nil {
				return err
			}
			if w.block.barriers[p.start] != nil {
				return fmt.Errorf("makes a barrier at %d, where there is one", p.start)
			}
			a := w.actor(l)
			if err := p.write(&a); err != nil {
				return err
			}
			w.block.barriers[p.start] = &mbarrier{op: op, address: p.start, count: count, pending: count, agent: w.cluster.agents, made: a.access}
			w.cluster.agents++
			return nil
		})
	})
	return nil
}

func (c *compiler) barrierExpect(op *ir.Op) error {
	address, offset, n := c.one(op.Operand(0)), uint32(op.Attrs().IntOr("offset", 0)), int(op.Attrs().IntOr("bytes", 0))
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			m, err := w.barrierAt(uint32(w.regs[address][l])+offset, l, false)
			if err != nil {
				return err
			}
			m.bytes += n
			return m.arrive(w.release(1 << l))
		})
	})
	return nil
}

func (c *compiler) barrierArrive(op *ir.Op) error {
	address, when, offset := c.one(op.Operand(0)), c.optional(op, 1), uint32(op.Attrs().IntOr("offset", 0))
	far := op.Attrs().Bool("cluster")
	c.emit(op, func(w *warp) error {
		return w.eachLane(func(l int) error {
			if on, err := w.holds(when, l); !on {
				return err
			}
			at := uint32(w.regs[address][l]) + offset
			m, err := w.barrierAt(at, l, false)
			if err != nil {
				return err
			}
			if !far && int(at>>24) != w.block.rank {
				return fmt.Errorf("arrives at a barrier of block %d of the cluster, which takes {cluster}", at>>24)
			}
			a := w.actor(l)
			w.cluster.blocks[at>>24].reached(&a, op)
			return m.arrive(w.release(1 << l))
		})
	})
	return nil
}

// awaited is lanes that wait for a phase of one barrier.
type awaited struct {
	m      *mbarrier
	parity uint32
	mask   uint32
}

func (c *compiler) barrierWait(op *ir.Op) error {
	address, parity, offset := c.one(op.Operand(0)), c.one(op.Operand(1)), uint32(op.Attrs().IntOr("offset", 0))
	c.emit(op, func(w *warp) error {
		var all []awaited
		err := w.eachLane(func(l int) error {
			at := uint32(w.regs[address][l]) + offset
			m, err := w.barrierAt(at, l, false)
			if err != nil {
				return err
			}
			if int(at>>24) != w.block.rank {
				return fmt.Errorf("waits at a barrier of block %d of the cluster, which isn't its own", at>>24)
			}
			p := uint32(w.regs[parity][l])
			if p > 1 {
				return fmt.Errorf("waits for parity %d", p)
			}
			for i := range all {
				if all[i].m == m && all[i].parity == p {
					all[i].mask |= 1 << l
					return nil
				}
			}
			all = append(all, awaited{m, p, 1 << l})
			return nil
		})
		if err != nil {
			return err
		}
		first := all[0]
		what := fmt.Sprintf("waits for the barrier at %d to end a phase of parity %d (%d of %d arrivals and %d bytes are missing in phase %d)",
			first.m.address, first.parity, first.m.pending, first.m.count, first.m.bytes, first.m.phase)
		w.waitUntil(what, func() bool {
			for _, a := range all {
				if a.m.phase&1 == a.parity {
					return false
				}
			}
			for _, a := range all {
				w.acquire(a.mask, a.m.past)
			}
			return true
		})
		return nil
	})
	return nil
}
