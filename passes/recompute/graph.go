package recompute

import (
	"blutrain/dialects/blu"
	"blutrain/ir"
)

// graph is a straight-line function in numbers: operations in order, and values, the function's arguments first.
type graph struct {
	fn     *ir.Op
	ops    []node
	values []value
	end    int32 // the terminator's number
}

// node is one operation.
type node struct {
	op         *ir.Op
	role       role
	in         []int32 // the values it reads
	first      int32   // its first result
	results    int32
	elems      int64 // of the domain it works on
	cost       float64
	pinned     bool // can't be copied
	fusedView  bool // of views: kernels see through it
	sumsUp     bool // results are known only once every element was seen
	isAddition bool
	inPlace    bool // may write its result over an operand
	again      bool // is a copy that an earlier run made
}

// value is one argument or result of an operation.
type value struct {
	def   int32 // the operation, -1 for an argument
	root  int32 // the value that this one is a view of, or itself
	bytes int64 // of memory in the arena, were it kept in memory; 0 for what lives in storage and for views
	// stored is true of results of the function, and views of them: they live in storage, and need not be had again.
	stored bool
	// whole is true of results that are in memory even where one operation alone uses them, as part of the same kernel.
	whole bool
}

// newGraph reads a function; ok is false when it is not straight-line.
func newGraph(fn *ir.Op) (g *graph, ok bool) {
	body := fn.Body()
	if body == nil || len(fn.Region(0).Blocks()) != 1 || body.Terminator() == nil {
		return nil, false
	}
	g = &graph{fn: fn}
	number := map[*ir.Value]int32{}
	rewritten := rewrittenArguments(fn)
	for _, a := range body.Args() {
		number[a] = int32(len(g.values))
		g.values = append(g.values, value{def: -1, root: number[a]})
	}
	for op := range body.Ops() {
		if len(op.Regions()) > 0 {
			return nil, false
		}
		n := newNode(op)
		for _, v := range op.Operands() {
			i, known := number[v]
			if !known {
				return nil, false // from outside: the function is nested in another
			}
			n.in = append(n.in, i)
			n.pinned = n.pinned || rewritten[v]
		}
		n.first, n.results = int32(len(g.values)), int32(op.NumResults())
		for _, r := range op.Results() {
			number[r] = int32(len(g.values))
			g.values = append(g.values, newValue(g, n, r, number[r]))
		}
		g.ops = append(g.ops, n)
	}
	g.pinEquals()
	g.pinChunks()
	g.end = int32(len(g.ops) - 1)
	for _, v := range g.ops[g.end].in {
		g.values[g.values[v].root].bytes, g.values[g.values[v].root].stored = 0, true
	}
	for i := range g.values {
		g.values[i].stored = g.values[g.values[i].root].stored
	}
	return g, true
}

// pinEquals keeps what is compared for equality with something else than a constant, as max's gradient compares its operand with the
// maximum: computed again, in another kernel, it may be rounded otherwise, and equal no longer.
func (g *graph) pinEquals() {
	for _, n := range g.ops {
		if !blu.ComparesEqual(n.op) {
			continue
		}
		for _, v := range n.in {
			if def := g.values[g.values[v].root].def; def >= 0 {
				g.ops[def].pinned = true
			}
		}
	}
}

// pinChunks keeps what the gradient of logits that are computed some rows at a time is multiplied with: computed again after the loss,
// it would come too late for the chunks, and the logits would be there whole.
func (g *graph) pinChunks() {
	for _, n := range g.ops {
		if !sumsChunks(n.op) {
			continue
		}
		for _, v := range n.in {
			if def := g.values[g.values[v].root].def; def >= 0 {
				g.ops[def].pinned = true
			}
		}
	}
}

func newValue(g *graph, n node, v *ir.Value, number int32) value {
	out := value{def: int32(len(g.ops)), root: number, whole: sumsChunks(v.Op())}
	switch n.role {
	case view:
		out.root = g.values[n.in[0]].root
	case inline:
	default:
		out.bytes = roundUp(bytesInMemory(v))
	}
	return out
}

// align is what sizes are rounded up to, as buffers are.
const align = 64

func roundUp(n int64) int64 { return (n + align - 1) / align * align }

// rewrittenArguments are those whose storage the function writes: reading them later than it does would need a copy.
func rewrittenArguments(fn *ir.Op) map[*ir.Value]bool {
	written := map[blu.Port]*ir.Value{}
	for i, v := range fn.Body().Terminator().Operands() {
		written[blu.ResultPort(fn, i)] = v
	}
	out := map[*ir.Value]bool{}
	for i, a := range fn.Body().Args() {
		p := blu.ArgPort(fn, i)
		if v := written[p]; p.Kind == blu.StateAttr && v != nil && v != a {
			out[a] = true
		}
	}
	return out
}
