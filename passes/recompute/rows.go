package recompute

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// How many rows of logits are computed at a time is chosen with what is recomputed. Each chunk reads the table and adds to its gradient:
// fewer chunks move less. What that takes is little where a batch is large: the memory of the rest of the program grows with the batch, so
// that it may even be fullest elsewhere. So there are twice as many rows as by default, or four times as many and so on, as long as it saves
// enough of what is moved for each byte. A budget decides by itself.

// worth is how many bytes a byte of memory must save of what chunks move: half of what a step of GPT-2 124M moves for each byte that the
// program holds, since what products work in is taken to be as much as it can be.
const worth = 8

// multiples lists how many times as many rows as by default can be computed at once: 1, 2, 4 and so on, as long as it makes a difference and
// is worth what products work in, which plans don't count.
func (g *graph) multiples() []int64 {
	defer g.setTimes(g.times)
	all := []int64{1}
	g.setTimes(1)
	for rows, working, moved := g.rows(), g.working(), g.moved(); ; {
		n := 2 * all[len(all)-1]
		g.setTimes(n)
		if g.rows() == rows || worth*(g.working()-working) > moved-g.moved() {
			return all
		}
		all, rows, working, moved = append(all, n), g.rows(), g.working(), g.moved()
	}
}

// rows is how many rows of logits there are at once, of all classifiers together.
func (g *graph) rows() (n int64) {
	for _, x := range g.logits {
		n += g.rowsAtOnce(logitsOf(x.v))
	}
	return n
}

// working is the bytes of memory beside values that products work in, where they split operands or copy them: those of the one that needs
// most. Of a chunk of logits' gradient there may be copies for both products with it.
func (g *graph) working() (most int64) {
	if g.copies == 0 {
		return 0
	}
	for i := range g.ops {
		n := &g.ops[i]
		if n.role != product {
			continue
		}
		bytes := int64(0)
		for k, v := range n.op.Operands() {
			if inChunks(v, g.target) {
				bytes += g.copies * g.chunkRows(logitsOf(v)) * v.Shape()[len(v.Shape())-1] * ir.ByteSize(v.Elem())
			} else {
				bytes += g.values[n.in[k]].size
			}
		}
		most = max(most, bytes)
	}
	return most
}

// setTimes has some times as many rows of logits computed at once as by default, and measures the function as it is then.
func (c *chooser) setTimes(n int64) {
	c.graph.setTimes(n)
	c.base = c.measure(make([]bool, len(c.ops)))
}

// moved is the bytes that all chunks but the first read and write once more.
func (g *graph) moved() (bytes int64) {
	for i := range g.ops {
		if k := g.ops[i].chunked; k != nil {
			bytes += (g.chunks(k.logits) - 1) * g.again(k)
		}
	}
	return bytes
}

// again is the bytes that each chunk but the first reads and writes once more, in one operation.
func (g *graph) again(k *chunked) (bytes int64) {
	for _, v := range k.again {
		bytes += g.values[v].size
	}
	return bytes
}

// enlarge takes a plan with as many rows of logits at once as are worth their memory.
func (c *chooser) enlarge(plan choice) choice {
	least, most := plan.peak+c.working(), c.moved()
	for _, n := range c.multiples()[1:] {
		c.setTimes(n)
		p := c.try(plan.items)
		memory, moved := p.peak+c.working(), c.moved()
		if worth*(memory-least) > most-moved {
			break
		}
		plan, least, most = p, memory, moved
	}
	c.setTimes(plan.times)
	return plan
}

// inTimes is a plan of a function that has no gradients, perhaps of an evaluation, with so many times as many rows of logits at once as
// training has, for the sake of the same kernels, if that fits into limit.
func (c *chooser) inTimes(plan choice, n, limit int64) choice {
	c.setTimes(n)
	p := c.try(plan.items)
	if p.peak > limit {
		c.setTimes(plan.times)
		return plan
	}
	return p
}

// sumsChunks reports whether the function adds up what chunks of logits give.
func (g *graph) sumsChunks() bool {
	return slices.ContainsFunc(g.ops, func(n node) bool { return sumsChunks(n.op, g.target) })
}

// inRows has the function's logits computed as many rows at once as a plan says.
func (c *chooser) inRows(ctx *ir.Context, plan choice) {
	if plan.times == 1 {
		return
	}
	c.setTimes(plan.times)
	for _, x := range c.logits {
		logits := logitsOf(x.v)
		logits.Op().SetAttr(blu.RowsAttr, ctx.Int64(c.rowsAtOnce(logits)))
	}
}
