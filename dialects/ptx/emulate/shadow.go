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
	ordinary      bool // the write is one of threads, which the copy engine sees after a fence only
	foreign       bool // several clusters have read it
}

// proxy is how memory is accessed.
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

// fenced reports whether an ordinary write was made visible to the copy engine.
func (a *actor) fenced(b access) bool { return a.view.fenced.of(int(b.agent)).covers(b.mask, b.clock) }

// read notes a read of a cell, or says what is wrong with it.
func (c *cell) read(a *actor) error {
	if c.writer.clock == 0 { // nobody wrote it in this launch
	} else if err := c.afterWrite(a); err != nil {
		return err
	} else if c.ordinary && a.proxy == async && !a.fenced(c.writer) {
		return fmt.Errorf("reads in the background what %s wrote with no fence {kind = \"async\"} between them", a.name(c.writer, c.writerCluster))
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
func (c *cell) write(a *actor) error {
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
		}
	}
	c.writer, c.writerCluster, c.atomic, c.ordinary = a.access, a.cluster, a.proxy == atomic, a.proxy != async
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
