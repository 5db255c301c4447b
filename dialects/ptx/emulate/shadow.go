package emulate

import (
	"fmt"
	"math/bits"
)

// access is an access that was made: by lanes of an agent at a clock. Clock 0 is none.
type access struct {
	agent       int32
	mask, clock uint32
}

// cell is what is remembered of a few bytes that are only accessed together: the last write, and the reads since it.
type cell struct {
	writer        access
	writerCluster int32
	readerCluster int32
	first         access // of the reads
	more          []access
	atomic        bool // the write is an atomic operation
	foreign       bool // several clusters have read it
}

// proxy is how memory is accessed.
//
// Accesses of threads and of their cp.async copies are of PTX's generic proxy; those of the copy engine and of matrix products are of
// its async proxy. Barriers order accesses of one proxy. What is accessed by both is ordered by a fence.proxy.async on the way from one
// access to the other, in either direction and for reads too: the rule of "proxy-preserved base causality order" (PTX ISA, memory
// consistency model), as Lustig, Cooksey and Giroux state it for any two accesses (Mixed-Proxy Extensions for the NVIDIA PTX Memory
// Consistency Model, ISCA 2022). From the async proxy to the generic one it is implied: a bulk copy's or a product's completion is followed by
// such a fence (PTX ISA, "Async Proxy" of asynchronous copies and of wgmma). So one of an ordinary access and what the copy engine or a product
// does later is what has to be looked for. The fence may be anywhere on the way: the thread that accessed has it before it arrives
// (as in CUTLASS's epilogues), or the one that goes on has it after it waited; but it works on its own block's shared memory alone, as
// it is printed (.shared::cta).
type proxy uint8

const (
	ordinary proxy = iota // by threads
	async                 // by the copy engine and matrix units
	atomic                // by threads, as one step
)

// actor is who accesses memory: what is remembered of the access, and what comes before it: all that the view has seen, and
// all that the warp's lanes `own` did themselves.
type actor struct {
	access
	cluster int32
	proxy   proxy
	warp    *warp
	own     uint32
	view    *view
}

// after reports whether an access of the same cluster comes before what the actor does now.
func (a *actor) after(b access) bool {
	agent, n := int(b.agent), a.warp.cluster.warpCount()
	mask := b.mask
	if agent < agentsPerWarp*n && agent%n == a.warp.number && a.own&mask != 0 {
		// Its own: what it did itself, and what it waited for.
		for m := a.own & mask; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			if a.warp.finished(agent/n, l) >= b.clock {
				mask &^= 1 << l
			}
		}
		if mask == 0 {
			return true
		}
	}
	return a.view.seen.of(agent).covers(mask, b.clock)
}

// unfenced says that an access which comes before an actor's is of the generic proxy, the actor's of the other one, and no fence between them.
func (a *actor) unfenced(b access, s space) bool {
	if a.proxy != async || int(b.agent) >= genericAgents*a.warp.cluster.warpCount() {
		return false
	}
	return s != sharedSpace || !a.view.fenced.of(int(b.agent)).covers(b.mask, b.clock)
}

// noFence is the error of an access that another does something in the background with.
func (a *actor) noFence(does string, b access, did string, s space) error {
	missing := "no fence {kind = \"async\"} between them"
	if s != sharedSpace {
		missing = "nothing that orders both proxies, as a fence {kind = \"async\"} does for shared memory alone"
	}
	return fmt.Errorf("%s in the background what %s %s with %s", does, a.name(b, a.cluster), did, missing)
}

// read notes a read of a cell, or says what is wrong with it.
func (c *cell) read(a *actor, s space) error {
	if c.writer.clock == 0 { // nobody wrote it in this launch
	} else if err := c.afterWrite(a); err != nil {
		return err
	} else if a.unfenced(c.writer, s) {
		return a.noFence("reads", c.writer, "wrote", s)
	}
	if c.first.clock != 0 && c.readerCluster != a.cluster {
		c.foreign = true
		c.first, c.more = access{}, nil
	}
	c.readerCluster = a.cluster
	c.addReader(a.access)
	return nil
}

func (c *cell) addReader(b access) {
	merge := func(r *access) bool {
		if r.agent != b.agent {
			return false
		}
		if r.clock == b.clock || r.mask&^b.mask == 0 && r.clock < b.clock {
			r.mask, r.clock = r.mask|b.mask, b.clock
			return true
		}
		return false
	}
	if c.first.clock == 0 {
		c.first = b
		return
	}
	if merge(&c.first) {
		return
	}
	for i := range c.more {
		if merge(&c.more[i]) {
			return
		}
	}
	c.more = append(c.more, b)
}

// afterWrite checks that the last write comes before the actor.
func (c *cell) afterWrite(a *actor) error {
	if a.proxy == atomic && c.atomic || c.writerCluster == a.cluster && a.after(c.writer) {
		return nil
	}
	return fmt.Errorf("accesses what %s writes with nothing that orders them", a.name(c.writer, c.writerCluster))
}

// write notes a write of a cell.
func (c *cell) write(a *actor, s space) error {
	if c.writer.clock != 0 {
		if err := c.afterWrite(a); err != nil {
			return err
		}
	}
	if c.foreign {
		return fmt.Errorf("writes what several other blocks read with nothing that orders them")
	}
	if c.first.clock != 0 {
		for i := -1; i < len(c.more); i++ {
			r := c.first
			if i >= 0 {
				r = c.more[i]
			}
			if c.readerCluster != a.cluster || !a.after(r) {
				return fmt.Errorf("writes what %s reads with nothing that orders them", a.name(r, c.readerCluster))
			}
			if a.unfenced(r, s) {
				return a.noFence("writes", r, "read", s)
			}
		}
	}
	if c.writer.clock != 0 && a.unfenced(c.writer, s) {
		return a.noFence("writes", c.writer, "wrote", s)
	}
	c.writer, c.writerCluster, c.atomic = a.access, a.cluster, a.proxy == atomic
	c.first, c.more = access{}, c.more[:0]
	return nil
}

// name says who made an access.
func (a *actor) name(b access, cluster int32) string {
	n, per := a.warp.cluster.warpCount(), len(a.warp.block.warps)
	agent := int(b.agent)
	if agent >= agentsPerWarp*n {
		return fmt.Sprintf("a copy that a barrier counts, of cluster %d,", cluster)
	}
	w, mask := agent%n, b.mask
	if others := mask &^ a.own; w == a.warp.number && others != 0 {
		mask = others
	}
	block := int(cluster)*a.warp.cluster.size() + w/per
	thread := fmt.Sprintf("thread %d of block %d", w%per*32+bits.TrailingZeros32(mask), block)
	switch agent / n {
	case asCopies:
		return "a cp.async of " + thread
	case asProducts:
		return fmt.Sprintf("a matrix product of warp %d of block %d", w%per, block)
	case asStores, asReads:
		return "a bulk store of " + thread
	}
	return thread
}
