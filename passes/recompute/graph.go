package recompute

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// graph is a straight-line function in numbers: operations in order, and values, the function's arguments first.
type graph struct {
	fn     *ir.Op
	target Target
	beside bool  // kernels of products compute, beside their results, what others read that is computed of the same
	planes bool  // operands of products are split into planes, by launches that may compute them
	copies int64 // of a chunk of logits' gradient that products work on
	ops    []node
	values []value
	end    int32 // the terminator's number

	times  int64   // how many times as many rows of logits are computed at once as by default
	logits []sized // what takes memory for those
}

// sized is a value of elements of so many bytes.
type sized struct {
	number int32
	v      *ir.Value
	elem   int64
}

// node is one operation. One that rounds an argument of the function for products is no operation of the function's yet.
type node struct {
	op         *ir.Op // nil: rounds an argument
	role       role
	in         []int32 // the values it reads
	first      int32   // its first result; those rounded to bfloat16, of results that are read so, come after the others
	results    int32
	elems      int64   // of the domain it works on
	flops      float64 // of matrix products
	simple     float64 // floating-point operations beside those
	pinned     bool    // can't be copied
	rounds     bool    // rounds an argument to bfloat16: however often the program does it, it is done once
	fusedView  bool    // of views: kernels see through it
	sumsUp     bool    // results are known only once every element was seen
	isAddition bool
	inPlace    bool // may write its result over an operand
	again      bool // is a copy that an earlier run made
	chunked    *chunked
}

// value is one argument or result of an operation.
type value struct {
	def   int32 // the operation, -1 for an argument
	root  int32 // the value that this one is a view of, or itself
	bytes int64 // of memory in the arena, were it kept in memory; 0 for what lives in storage and for views
	size  int64 // bytes that are moved where it is read or written
	// stored is true of results of the function, and views of them: they live in storage, and need not be had again.
	stored bool
	// whole is true of results that are in memory even where one operation alone uses them, as part of the same kernel.
	whole bool
}

// newGraph reads a function; ok is false when it is not straight-line.
func newGraph(fn *ir.Op, t Target) (g *graph, ok bool) {
	body := fn.Body()
	if body == nil || len(fn.Region(0).Blocks()) != 1 || body.Terminator() == nil {
		return nil, false
	}
	for op := range body.Ops() {
		if len(op.Regions()) > 0 {
			return nil, false
		}
	}
	b := graphBuilder{graph: &graph{fn: fn, target: t, times: 1}, number: map[*ir.Value]int32{}, twin: map[*ir.Value]int32{}, rounding: roundingOf(fn, t), rewritten: rewrittenArguments(fn)}
	b.arguments(body)
	for op := range body.Ops() {
		if !b.operation(op) {
			return nil, false // from outside: the function is nested in another
		}
	}
	g = b.graph
	g.beside, g.planes, g.copies = t.products(g.ops)
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

// graphBuilder numbers what a function has.
type graphBuilder struct {
	*graph
	number    map[*ir.Value]int32
	twin      map[*ir.Value]int32 // the same rounded to bfloat16
	rounding  rounding
	rewritten map[*ir.Value]bool
}

// arguments numbers the function's arguments, and adds nodes that round those which products read.
func (b *graphBuilder) arguments(body *ir.Block) {
	for _, a := range body.Args() {
		b.number[a] = int32(len(b.values))
		b.values = append(b.values, value{def: -1, root: b.number[a], size: sizeOf(a, ir.ByteSize(a.Elem()))})
	}
	for i, a := range body.Args() {
		if !b.rounding.twin(a) {
			continue
		}
		n := node{role: elementwise, in: []int32{b.number[a]}, first: int32(len(b.values)), results: 1, elems: ir.NumElements(a.Shape()), pinned: true}
		b.twin[a] = n.first
		size := sizeOf(a, roundedBytes)
		if hasCopy(b.fn, i) {
			b.values = append(b.values, value{def: -1, root: n.first, size: size})
			continue
		}
		b.values = append(b.values, value{def: int32(len(b.ops)), root: n.first, bytes: roundUp(size), size: size})
		b.ops = append(b.ops, n)
	}
}

// hasCopy reports whether an argument that products read rounded is a parameter: those have copies in bfloat16 in storage.
func hasCopy(fn *ir.Op, i int) bool {
	p := blu.ArgPort(fn, i)
	if p.Kind != blu.StateAttr || fn.Parent() == nil {
		return false
	}
	param := ir.LookupSymbol(fn.Parent(), p.Name)
	return param != nil && param.Is(blu.Param)
}

// operation adds one; it reports whether all that it reads is known.
func (b *graphBuilder) operation(op *ir.Op) bool {
	n := newNode(op)
	rounded := b.rounding.operands[op]
	for i, v := range op.Operands() {
		k, known := b.number[v]
		if !known {
			return false
		}
		if t, ok := b.twin[v]; ok && slices.Contains(rounded, i) {
			k = t
		}
		n.in = append(n.in, k)
		n.rounds = n.rounds || b.values[b.values[k].root].def < 0 && roundsTo16(op)
		n.pinned = n.pinned || b.rewritten[v] || n.rounds
	}
	n.first = int32(len(b.values))
	for _, r := range op.Results() {
		elem := ir.ByteSize(r.Elem())
		if b.rounding.exact[r] {
			elem = roundedBytes
		}
		b.number[r] = b.value(&n, r, elem, 0)
	}
	for _, r := range op.Results() {
		if !b.rounding.twin(r) {
			continue
		}
		if widens(op) {
			b.twin[r] = n.in[0]
			continue
		}
		if n.role == view {
			n.in = append(n.in, b.rounded(op.Operand(0)))
		}
		b.twin[r] = b.value(&n, r, roundedBytes, len(n.in)-1)
	}
	n.results = int32(len(b.values)) - n.first
	n.chunked = b.chunkedOf(op, &n)
	b.ops = append(b.ops, n)
	return true
}

// rounded is the number of a value in bfloat16.
func (b *graphBuilder) rounded(v *ir.Value) int32 {
	if t, ok := b.twin[v]; ok {
		return t
	}
	return b.number[v]
}

// value numbers a result, of elements of so many bytes; where the node is a view, one of what it reads under number from.
func (b *graphBuilder) value(n *node, v *ir.Value, elem int64, from int) int32 {
	number := int32(len(b.values))
	out := value{def: int32(len(b.ops)), root: number, whole: sumsChunks(v.Op(), b.target), size: sizeOf(v, elem)}
	switch n.role {
	case view:
		out.root = b.values[n.in[from]].root
	case inline:
		out.size = 0
	default:
		out.bytes = roundUp(b.bytesInMemory(v, elem))
		if out.bytes > 0 && inChunks(v, b.target) {
			b.logits = append(b.logits, sized{number, v, elem})
		}
	}
	b.values = append(b.values, out)
	return number
}

// setTimes has some times as many rows of logits computed at once as by default.
func (g *graph) setTimes(n int64) {
	g.times = n
	for _, x := range g.logits {
		g.values[x.number].bytes = roundUp(g.bytesInMemory(x.v, x.elem))
	}
}

func sizeOf(v *ir.Value, elem int64) int64 { return ir.NumElements(v.Shape()) * elem }

// pinEquals keeps what is compared for equality with something else than a constant, as max's gradient compares its operand with the
// maximum: computed again, in another kernel, it may be rounded otherwise, and equal no longer.
func (g *graph) pinEquals() {
	for _, n := range g.ops {
		if n.op == nil || !blu.ComparesEqual(n.op) {
			continue
		}
		for _, v := range n.in {
			if def := g.values[g.values[v].root].def; def >= 0 {
				g.ops[def].pinned = true
			}
		}
	}
}

// pinChunks keeps logits that are computed some rows at a time, their loss and its gradient, and what that is computed of and multiplied
// with: computed again after the loss, or twice, it would be no part of the chunks, and the logits would be there whole.
func (g *graph) pinChunks() {
	for i := range g.ops {
		n := &g.ops[i]
		loss := n.op != nil && (n.op.Is(blu.CrossEntropy) || n.op.Is(blu.CrossEntropyGrad)) && inChunks(n.op.Operand(0), g.target)
		if !loss && !sumsChunks(n.op, g.target) {
			continue
		}
		n.pinned = n.pinned || loss
		for _, v := range n.in {
			if def := g.values[g.values[v].root].def; def >= 0 {
				g.ops[def].pinned = true
			}
		}
	}
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
