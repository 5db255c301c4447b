package kernels

import (
	"math"
	"slices"

	"blutrain/dialects/arith"
	"blutrain/dialects/blu"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// passes goes over the rows at hand several times, in pieces: each pass computes the reductions whose operands are known
// from the passes before it, and stores what can be stored. Elementwise operations are computed again in each pass.
func (e *emitter) passes() {
	levels := e.levels()
	last := 0
	for _, n := range levels {
		last = max(last, n)
	}
	for pass := 0; pass <= last; pass++ {
		var reductions []*ir.Op
		for _, op := range e.f.ops {
			if e.reduces(op) && levels[op.Result(0)] == pass+1 {
				reductions = append(reductions, op)
			}
		}
		var outputs []int
		for i, t := range e.f.outputs {
			if t.sum == nil && e.pieced(e.f.g.dims[t.value]) && levels[t.value] == pass {
				outputs = append(outputs, i)
			}
		}
		for _, op := range e.f.ops { // what rows are needed for is read before anything is stored
			if r := op.Result(0); !e.pieced(e.f.g.dims[r]) && levels[r] <= pass {
				e.block(r)
			}
		}
		whole := e.narrow(outputs)
		if len(reductions)+len(whole) > 0 {
			e.pass(reductions, whole)
		}
	}
	for i, t := range e.f.outputs {
		if t.sum == nil && !e.pieced(e.f.g.dims[t.value]) {
			e.storeOutput(i)
		}
	}
}

// reduces reports whether an operation is a reduction that passes compute.
func (e *emitter) reduces(op *ir.Op) bool { return isReduction(op) && !op.Is(pick) }

// levels is, for each value, how many passes must have come before it is known.
func (e *emitter) levels() map[*ir.Value]int {
	levels := map[*ir.Value]int{}
	for _, op := range e.f.ops {
		n := 0
		for _, s := range e.f.sources[op] {
			if s.member != nil {
				n = max(n, levels[s.member])
			}
		}
		if e.reduces(op) {
			n++
		}
		levels[op.Result(0)] = n
	}
	return levels
}

// pieced reports whether a tensor with these atoms is gone over in pieces.
func (e *emitter) pieced(ds dims) bool {
	for k, a := range e.f.axes {
		if a.reduce && e.f.has(ds, k) {
			return true
		}
	}
	return false
}

func (e *emitter) pass(reductions []*ir.Op, outputs []int) {
	seen := map[*ir.Op]bool{}
	for _, op := range reductions {
		e.prefetchOperands(op, seen)
	}
	for _, i := range outputs {
		e.prefetch(e.f.outputs[i].value, seen)
	}
	var inits []*ir.Value
	for _, op := range reductions {
		inits = append(inits, e.initial(op)...)
	}
	results := e.nest(e.piecedAxes(), inits, func(carried []*ir.Value) []*ir.Value {
		var next []*ir.Value
		for _, op := range reductions {
			n := len(e.initialTypes(op))
			next = append(next, e.step(op, carried[:n])...)
			carried = carried[n:]
		}
		for _, i := range outputs {
			e.storeOutput(i)
		}
		return next
	})
	for _, op := range reductions {
		n := len(e.initialTypes(op))
		e.scope.blocks[op.Result(0)] = results[n-1] // of an argmax the position, which comes second
		results = results[n:]
	}
}

// narrow stores the outputs that lack some of the axes a pass goes over, each in loops of its own: once. It returns the others.
func (e *emitter) narrow(outputs []int) (whole []int) {
	for _, i := range outputs {
		t := e.f.outputs[i]
		var own []int
		for _, k := range e.piecedAxes() {
			if e.f.has(e.f.g.dims[t.value], k) {
				own = append(own, k)
			}
		}
		if len(own) == len(e.f.loops)+1 {
			whole = append(whole, i)
			continue
		}
		e.prefetch(t.value, map[*ir.Op]bool{})
		e.nest(own, nil, func([]*ir.Value) []*ir.Value {
			e.storeOutput(i)
			return nil
		})
	}
	return whole
}

// piecedAxes is what a pass goes over, from the outermost.
func (e *emitter) piecedAxes() []int { return append(slices.Clip(e.f.loops), e.blockAxis()) }

// blockAxis is the axis of blocks that reductions run along.
func (e *emitter) blockAxis() int {
	if e.f.along == 0 {
		return e.f.row
	}
	return e.f.col
}

// nest loops over axes, block by block.
func (e *emitter) nest(axes []int, carried []*ir.Value, body func([]*ir.Value) []*ir.Value) []*ir.Value {
	if len(axes) == 0 {
		return body(carried)
	}
	k := axes[0]
	a := e.f.axes[k]
	old := e.at[k]
	defer func() { e.at[k] = old }()
	return e.loop(e.number(0), e.number(a.size), e.number(a.extent), carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		e.enter()
		defer e.leave()
		e.moveTo(k, i)
		return e.nest(axes[1:], carried, body)
	})
}

// prefetch writes, before the loop, what a value needs that does not change in it.
func (e *emitter) prefetch(v *ir.Value, seen map[*ir.Op]bool) {
	op := v.Op()
	if seen[op] || e.scope.block(v) != nil {
		return
	}
	seen[op] = true
	if !e.pieced(e.f.g.dims[v]) {
		e.block(v)
		return
	}
	e.prefetchOperands(op, seen)
}

func (e *emitter) prefetchOperands(op *ir.Op, seen map[*ir.Op]bool) {
	for _, s := range e.f.sources[op] {
		switch {
		case s.member != nil:
			e.prefetch(s.member, seen)
		case s.inline == nil && s.input >= 0 && !e.f.inputs[s.input].from.raw && !e.pieced(e.f.inputs[s.input].from.dims):
			e.input(s.input)
		}
	}
}

// initialTypes is the element types of what a reduction carries: its result so far, for argmax the greatest element and
// its position, for a sum of exponentials the greatest element and the sum relative to it.
func (e *emitter) initialTypes(op *ir.Op) []ir.Type {
	switch op.Def() {
	case blu.Argmax:
		return []ir.Type{op.Operand(0).Elem(), e.c.I32()}
	case expSum:
		return []ir.Type{op.Operand(0).Elem(), op.Operand(0).Elem()}
	}
	return []ir.Type{op.Result(0).Elem()}
}

func (e *emitter) initial(op *ir.Op) (out []*ir.Value) {
	ds := e.f.g.dims[op.Result(0)]
	rows, cols := e.f.extentsOf(ds)
	for i, t := range e.initialTypes(op) {
		v := identity(op)
		switch {
		case op.Is(expSum) && i == 0:
			v = leastNumber(t)
		case op.Is(blu.Argmax) && i == 0:
			v = identityOf(t, true)
		case op.Is(blu.Argmax):
			v = 0
		}
		out = append(out, e.broadcast(e.constant(v, t), rows, cols, e.actualOf(ds, e.f.row), e.actualOf(ds, e.f.col)))
	}
	return out
}

// step adds the block at hand to what a reduction carries.
func (e *emitter) step(op *ir.Op, carried []*ir.Value) []*ir.Value {
	if op.Is(expSum) {
		return e.sumStep(op, carried)
	}
	x := e.whole(e.operand(op, 0), e.f.g.operand[op])
	axis := int64(e.f.along)
	if !op.Is(blu.Argmax) {
		y := e.named(combiner(op), carried[0], e.reduce(reductionKind(op), axis, x))
		return []*ir.Value{y}
	}
	best, at := carried[0], carried[1]
	top := e.reduce("max", axis, x)
	here := e.named("add", e.reduce("argmax", axis, x), e.offset(op))
	nan := e.named("and", e.compare("ne", top, top), e.compare("eq", best, best))
	better := e.named("or", e.compare("gt", top, best), nan)
	return []*ir.Value{e.named("select", better, top, best), e.named("select", better, here, at)}
}

// leastNumber is the least finite number of a type: differences from it are no NaN, whatever the other number is.
func leastNumber(elem ir.Type) float64 {
	if t, ok := elem.(*ir.FloatType); ok && t.Kind == ir.F64 {
		return -math.MaxFloat64
	}
	return -math.MaxFloat32
}

// sumStep adds the block at hand to a sum of exponentials, which becomes one relative to what is the greatest element now.
func (e *emitter) sumStep(op *ir.Op, carried []*ir.Value) []*ir.Value {
	x := e.whole(e.operand(op, 0), e.f.g.operand[op])
	axis := int64(e.f.along)
	top := e.named("max", carried[0], e.reduce("max", axis, x))
	scaled := e.named("mul", carried[1], e.named("exp", e.named("sub", carried[0], top)))
	terms := e.named("exp", e.named("sub", x, top))
	return []*ir.Value{top, e.named("add", scaled, e.reduce("sum", axis, terms))}
}

// offset is the position of the block at hand along what an argmax runs over, as a block of one.
func (e *emitter) offset(op *ir.Op) *ir.Value {
	over, _ := e.f.g.split(op, e.f.g.operand[op])
	at := e.number(0)
	n := int64(1)
	for i := len(over) - 1; i >= 0; {
		k := e.f.axisOf(over[i])
		at = e.index(arith.Addi, at, e.index(arith.Muli, e.at[k], e.number(n)))
		n *= e.f.axes[k].size
		i -= len(e.f.axes[k].atoms)
	}
	return e.typed(tile.Iota, []*ir.Value{at, e.number(1)}, tile.Block(e.c, 1, 1, e.c.I32()), ir.NamedAttr{Name: "axis", Value: e.c.Int64(1)})
}

// product writes the contraction that a product's epilogue starts from.
func (e *emitter) product() {
	f := e.f
	at := func(t tensor) (out []*ir.Value) {
		for _, k := range t.axes {
			if k < 0 {
				out = append(out, e.number(0))
			} else {
				out = append(out, e.at[k])
			}
		}
		return out
	}
	lhsAt, rhsAt := at(f.sides[0]), at(f.sides[1])
	operands := append([]*ir.Value{e.sides[0], e.sides[1]}, append(lhsAt, rhsAt...)...)
	rows, cols := f.extentsOf(f.g.anchor)
	y := f.g.root.Result(0)
	elem := y.Elem()
	if isNarrow(elem) {
		elem = e.c.F32()
	}
	op := e.b.CreateState(tile.Contract, ir.OpState{
		Operands: operands, Results: []ir.Type{tile.Block(e.c, rows, cols, elem)}, Regions: 1,
		Attrs: []ir.NamedAttr{{Name: "operandSegmentSizes", Value: e.c.DenseInts(e.c.I32(), 1, 1, int64(len(lhsAt)), int64(len(rhsAt)))}},
	})
	if a := f.g.root.Attr(blu.PrecisionAttr); a != nil {
		op.SetAttr("precision", a)
	}
	e.scope.blocks[y] = e.cast(op.Result(0), y.Elem())
}
