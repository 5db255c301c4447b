package autodiff

import (
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// Backward writes, at the end of block, operations that compute the gradient of sum(<seed, output>) by each of wanted.
// outputs, and seeds of the same types, are values of the block; wanted are arguments of it. The block must be
// straight-line code: calls inlined, no region that depends on wanted. What the outputs don't depend on gets zeros.
//
// Operations of the block that have no rule may be replaced by their decompositions, also such as define outputs: the
// block's terminator follows. Some operations it writes may be left unused.
func Backward(c *ir.Context, block *ir.Block, outputs, seeds, wanted []*ir.Value) ([]*ir.Value, error) {
	end := block.Terminator()
	r := &reverse{
		Builder:   blu.On(ir.NewBuilder(c, nil).Before(end)),
		outputs:   slices.Clone(outputs),
		dependent: map[*ir.Value]bool{},
		severed:   map[*ir.Value]*ir.Op{},
		cotangent: map[*ir.Value]cotangent{},
	}
	for _, v := range wanted {
		if !ir.IsFloat(v.Type()) {
			return nil, errorAt(v, "no gradient by a value of type %s: only floating-point values have one", v.Type())
		}
		r.dependent[v] = true
	}
	for op := range block.Ops() {
		r.trace(op)
	}
	last := end.Prev()
	for i, v := range outputs {
		if err := r.seed(v, seeds[i]); err != nil {
			return nil, err
		}
	}
	if err := r.walk(last); err != nil {
		return nil, err
	}
	return r.gradients(wanted)
}

// reverse is the state of one backward pass.
type reverse struct {
	*blu.Builder // writes the backward pass
	outputs      []*ir.Value
	// dependent is the floating-point values that wanted values reach through operations with a derivative.
	dependent map[*ir.Value]bool
	// severed is the values that wanted values reach only through an integer, with the operation that made it one.
	severed   map[*ir.Value]*ir.Op
	cotangent map[*ir.Value]cotangent
}

// cotangent is the gradient by a value of the forward pass, as far as the walk has summed it up.
type cotangent struct {
	value *ir.Value
	// selected: all contributions come from selects, and elements may be zero because they were not taken.
	selected bool
}

// wants reports whether the cotangent of an operand is asked for. Values that an integer cut off want one too: where it
// comes to the cut, there is an error to tell.
func (r *reverse) wants(v *ir.Value) bool {
	return r.dependent[v] || r.severed[v] != nil && ir.IsFloat(v.Type())
}

// trace extends dependent and severed by the results of op, whose operands are known.
func (r *reverse) trace(op *ir.Op) {
	if op.Is(blu.StopGradient) {
		return
	}
	depends := false
	var cut *ir.Op
	for _, v := range reads(op) {
		depends = depends || r.dependent[v]
		if cut == nil {
			cut = r.severed[v]
		}
	}
	for _, v := range op.Results() {
		switch {
		case depends && ir.IsFloat(v.Type()):
			r.dependent[v] = true
		case depends:
			r.severed[v] = op
		case cut != nil:
			r.severed[v] = cut
		}
	}
}

// reads is the values that op uses, within its regions too.
func reads(op *ir.Op) []*ir.Value {
	if len(op.Regions()) == 0 {
		return op.Operands()
	}
	var vs []*ir.Value
	ir.Walk(op, func(o *ir.Op) ir.WalkResult {
		vs = append(vs, o.Operands()...)
		return ir.Advance
	})
	return vs
}

func (r *reverse) seed(v, seed *ir.Value) error {
	switch {
	case !ir.IsFloat(v.Type()):
		return errorAt(v, "no gradient of a value of type %s: only floating-point values have one", v.Type())
	case r.dependent[v]:
		r.add(v, seed, false)
	case r.severed[v] != nil:
		return throughInteger(v.Loc(), r.severed[v])
	}
	return nil
}

// add sums a contribution into the cotangent of v.
func (r *reverse) add(v, d *ir.Value, selected bool) {
	if c, ok := r.cotangent[v]; ok {
		d = r.sum(c.value, d)
		selected = selected && c.selected
	}
	r.cotangent[v] = cotangent{d, selected}
}

// sum adds two contributions.
func (r *reverse) sum(a, b *ir.Value) *ir.Value {
	if v := r.joined(a, b); v != nil {
		return v
	}
	return r.Add(a, b)
}

// walk visits the operations from op back to the first of the block, and passes cotangents from results to operands.
func (r *reverse) walk(op *ir.Op) error {
	for op != nil {
		r.Loc = op.Loc()
		expanded, err := r.visit(op)
		switch {
		case err != nil:
			return err
		case expanded != nil:
			op = expanded
		default:
			op = op.Prev()
		}
	}
	return nil
}

// visit passes the cotangents of op's results on to its operands. When op had to be replaced by its decomposition, it
// returns the last operation of that, from which the walk goes on.
func (r *reverse) visit(op *ir.Op) (expanded *ir.Op, err error) {
	primary, others := r.received(op)
	if !primary && !others || op.Is(blu.StopGradient) {
		return nil, nil
	}
	if !slices.ContainsFunc(reads(op), r.wants) {
		return nil, r.checkSevered(op)
	}
	rule, known := rules[op.Name()]
	if known && !others {
		return nil, r.apply(op, rule)
	}
	if blu.Decompose[op.Name()] != nil {
		return r.expand(op), nil
	}
	if len(op.Regions()) > 0 {
		return nil, op.Errorf("%s can't be reversed: its body depends on what the gradient is taken by", op.Name())
	}
	if known {
		return nil, op.Errorf("%s: no gradient through any result but the first", op.Name())
	}
	return nil, op.Errorf("%s has no gradient rule", op.Name())
}

// received says whether the first result of op, and whether any other, has a cotangent.
func (r *reverse) received(op *ir.Op) (primary, others bool) {
	for i, v := range op.Results() {
		if _, ok := r.cotangent[v]; ok {
			primary = primary || i == 0
			others = others || i > 0
		}
	}
	return primary, others
}

// checkSevered refuses a conversion from integers that depend on a wanted value: its cotangent has nowhere to go.
func (r *reverse) checkSevered(op *ir.Op) error {
	if op.Is(blu.Cast) && r.severed[op.Operand(0)] != nil {
		return throughInteger(op.Loc(), r.severed[op.Operand(0)])
	}
	return nil
}

func (r *reverse) apply(op *ir.Op, rule rule) error {
	c := r.cotangent[op.Result(0)]
	ds := rule.vjp(r, op, c.value)
	guard := c.selected && op.Has(ir.Elementwise) && !rule.linear
	for i, d := range ds {
		v := op.Operand(i)
		if d == nil || !r.wants(v) {
			continue
		}
		if guard {
			d = r.zeroWhereZero(c.value, d)
		}
		r.add(v, d, rule.selects || c.selected && !rule.mixes)
	}
	return nil
}

// zeroWhereZero is d, but 0 wherever dy is: 0 times an infinite derivative is 0.
func (r *reverse) zeroWhereZero(dy, d *ir.Value) *ir.Value {
	zero := r.SplatLike(dy, 0)
	return r.Select(r.Compare(dy, zero, "eq"), zero, d)
}

// expand replaces op by its decomposition, moves its results' cotangents over, and returns the decomposition's last
// operation.
func (r *reverse) expand(op *ir.Op) *ir.Op {
	before, after := op.Prev(), op.Next()
	b := blu.On(ir.NewBuilder(r.Ctx, nil).Before(op).At(op.Loc()))
	values := blu.Decompose[op.Name()](b, op)
	for i, v := range op.Results() {
		if c, ok := r.cotangent[v]; ok {
			delete(r.cotangent, v)
			r.add(values[i], c.value, c.selected)
		}
		for k, o := range r.outputs {
			if o == v {
				r.outputs[k] = values[i]
			}
		}
	}
	first := op.Block().First()
	if before != nil {
		first = before.Next()
	}
	for o := first; o != op; o = o.Next() {
		r.trace(o)
	}
	op.ReplaceWith(values...)
	return after.Prev()
}

// gradients picks the cotangents of the wanted values. One without is zero, unless an integer cut it off.
func (r *reverse) gradients(wanted []*ir.Value) ([]*ir.Value, error) {
	ds := make([]*ir.Value, len(wanted))
	for i, v := range wanted {
		if c, ok := r.cotangent[v]; ok {
			ds[i] = c.value
			continue
		}
		if cut := severs(v, r.outputs); cut != nil {
			return nil, throughInteger(r.outputs[0].Loc(), cut)
		}
		r.Loc = v.Loc()
		ds[i] = r.SplatLike(v, 0)
	}
	return ds, nil
}
