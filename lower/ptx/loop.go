package ptx

import (
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// loop translates scf.for: carried blocks are carried register by register. What a loop reduces, its threads reduce each
// for itself; they exchange what they have once, behind the loop.
func (l *lowering) loop(op *ir.Op) error {
	carried := op.Operands()[3:]
	for _, v := range carried {
		if !tile.IsBlock(v.Type()) {
			return op.Errorf("scf.for that carries a value of type %s has no lowering for GPUs", v.Type())
		}
	}
	late, err := l.lateReductions(op)
	if err != nil {
		return err
	}
	if l.waits[op] {
		l.sync()
	}
	var inits []*ir.Value
	for i, v := range carried {
		regs := l.blocks[v].regs
		if late[i] != nil && late[i].reduce.Attrs().Str("kind") == "sum" {
			regs = slices.Repeat(late[i].neutral, len(regs)) // else all may begin with what the loop begins with
		}
		inits = append(inits, regs...)
	}
	spread := func(values []*ir.Value, regs []*ir.Value) {
		for i, v := range values {
			x := *l.blocks[carried[i]]
			x.regs, regs = regs[:len(x.regs)], regs[len(x.regs):]
			l.blocks[v] = &x
		}
	}
	round := func(i *ir.Value, regs []*ir.Value) ([]*ir.Value, error) {
		l.index[op.Body().Arg(0)] = i
		spread(op.Body().Args()[1:], regs)
		if err := l.body(op.Body()); err != nil {
			return regs, err
		}
		var next []*ir.Value
		for _, v := range op.Body().Terminator().Operands() {
			next = append(next, l.blocks[v].regs...)
		}
		return next, nil
	}
	ahead := l.askAhead(op, late)
	results, err := l.rounds(op, inits, ahead == nil, round)
	if err != nil {
		return err
	}
	ahead.release()
	spread(op.Results(), results)
	return l.exchangeLate(op, late)
}

// rounds makes the rounds of a loop. Where the last one has less to do than the others it stands behind the loop, so that these
// need not ask how much there is, if it may.
func (l *lowering) rounds(op *ir.Op, carried []*ir.Value, split bool, round func(*ir.Value, []*ir.Value) ([]*ir.Value, error)) ([]*ir.Value, error) {
	index := op.Body().Arg(0)
	lower, upper, step := l.index[op.Operand(0)], l.index[op.Operand(1)], l.index[op.Operand(2)]
	end, rest := wholeRounds(lower, upper, step)
	if rest = rest && split; rest {
		upper = l.b.I32(int(end))
		l.whole[index] = whole{end, constantOf(step)}
		defer delete(l.whole, index)
	}
	var failed error
	carried = l.b.For(lower, upper, step, true, carried, func(i *ir.Value, regs []*ir.Value) []*ir.Value {
		regs, failed = round(i, regs)
		return regs
	})
	if failed == nil && rest {
		delete(l.whole, index)
		carried, failed = round(upper, carried)
	}
	return carried, failed
}

// whole is a loop without its last round: where its index is always a step below.
type whole struct{ end, step int64 }

// wholeRounds is where the last round of a loop starts, and whether there are others and it is shorter than they are.
func wholeRounds(lower, upper, step *ir.Value) (end int64, rest bool) {
	from, okFrom := ptx.ConstInt(lower)
	to, okTo := ptx.ConstInt(upper)
	by, okBy := ptx.ConstInt(step)
	if !okFrom || !okTo || !okBy || by < 2 || to-from <= by || (to-from)%by == 0 {
		return 0, false
	}
	return from + (to-from)/by*by, true
}

func constantOf(v *ir.Value) int64 {
	n, _ := ptx.ConstInt(v)
	return n
}

// late is a reduction that goes on over all rounds of a loop, whose threads exchange what they have behind it.
type late struct {
	*reduction
	reduce *ir.Op // tile.reduce, of a round
	of     *late  // the greatest element so far, of which a sum of exponentials is relative; else nil
	exp    scalarFunc
}

// combiners is what elements are combined by in reductions of each kind.
var combiners = map[string]string{"sum": "tile.add", "max": "tile.max", "min": "tile.min"}

// lateReductions finds what a loop carries only to reduce it, for each of the values that it carries.
func (l *lowering) lateReductions(op *ir.Op) ([]*late, error) {
	body := op.Body()
	all := make([]*late, len(op.Operands())-3)
	for i := range all {
		r := roundOf(body.Terminator().Operand(i), body.Arg(i+1))
		if r == nil {
			continue
		}
		var err error
		if all[i], err = l.newLate(r, r.Attrs().Str("kind")); err != nil {
			return nil, err
		}
	}
	for i := range all {
		for k, top := range all {
			if i == k || top == nil || all[i] != nil || !isZero(op.Operand(i+3)) {
				continue
			}
			r, exp := expSum(body.Terminator().Operand(i), body.Arg(i+1), body.Terminator().Operand(k), body.Arg(k+1))
			if r == nil {
				continue
			}
			sum, err := l.newLate(r, "sum")
			if err != nil {
				return nil, err
			}
			if sum.exp, err = l.function(exp); err != nil {
				return nil, err
			}
			sum.of, all[i] = top, sum
			l.rough[r.Operand(0).Op()] = true // once all terms are relative to the greatest
		}
	}
	for n := 0; n < len(all); { // until none is left that something else needs in each round
		if n++; all[n-1] != nil && !carriesOnly(all, n-1, body) {
			all[n-1], n = nil, 0
		}
	}
	for _, r := range all {
		if r != nil {
			l.within[r.reduce] = true
		}
	}
	return all, nil
}

func (l *lowering) newLate(reduce *ir.Op, kind string) (*late, error) {
	r, err := l.reduction(reduce, kind, reduce.Operand(0).Elem())
	if err != nil {
		return nil, err
	}
	return &late{reduction: r, reduce: reduce}, nil
}

// roundOf is the reduction of which next is the combination with what was carried; nil where it is anything else.
func roundOf(next, carried *ir.Value) *ir.Op {
	combine := next.Op()
	if combine == nil || combine.NumOperands() != 2 || combine.Block() != carried.Arg() {
		return nil
	}
	for i := range 2 {
		r := combine.Operand(i).Op()
		if combine.Operand(1-i) == carried && isRound(r, combine) && combiners[r.Attrs().Str("kind")] == combine.Name() {
			return r
		}
	}
	return nil
}

// isRound reports whether an operation is a reduction beside the one that uses it.
func isRound(r, user *ir.Op) bool { return r != nil && r.Is(tile.Reduce) && r.Block() == user.Block() }

// carriesOnly reports whether what a round reduces, and what is carried of it, is used for nothing but what is carried so.
func carriesOnly(all []*late, i int, body *ir.Block) bool {
	rounds, sums := 0, 0
	for _, r := range all {
		if r != nil && r.reduce == all[i].reduce {
			rounds++
		}
		if r != nil && r.of == all[i] {
			sums++
		}
	}
	if all[i].reduce.Result(0).NumUses() != rounds {
		return false
	}
	if top := all[i].of; top != nil {
		return slices.Contains(all, top)
	}
	// The next value uses it, and differences from both are what sums of exponentials are scaled by.
	return body.Arg(i+1).NumUses() == 1+sums && body.Terminator().Operand(i).NumUses() == 1+2*sums
}

// expSum recognizes sum' = sum * exp(top - top') + reduce(exp(x - top')), and gives the reduction and an exponential; nil
// where sum' is anything else.
func expSum(next, sum, nextTop, top *ir.Value) (reduce, exp *ir.Op) {
	add := named(next, "tile.add")
	if add == nil {
		return nil, nil
	}
	scaled, r := named(add.Operand(0), "tile.mul"), add.Operand(1).Op()
	if scaled == nil || scaled.Operand(0) != sum || !sum.HasOneUse() || !next.HasOneUse() || !isRound(r, add) || r.Attrs().Str("kind") != "sum" {
		return nil, nil
	}
	factor, terms := named(scaled.Operand(1), "tile.exp"), named(r.Operand(0), "tile.exp")
	if factor == nil || terms == nil {
		return nil, nil
	}
	down, shifted := named(factor.Operand(0), "tile.sub"), named(terms.Operand(0), "tile.sub")
	if down == nil || shifted == nil || down.Operand(0) != top || down.Operand(1) != nextTop || shifted.Operand(1) != nextTop {
		return nil, nil
	}
	return r, factor
}

// named is the operation that gives a value, if it is called so and gives it to one other alone.
func named(v *ir.Value, name string) *ir.Op {
	if op := v.Op(); op != nil && op.Name() == name && v.HasOneUse() {
		return op
	}
	return nil
}

func isZero(v *ir.Value) bool {
	return v.DefinedBy(tile.Constant) && v.Op().Attrs().FloatOr("value", 1) == 0
}

// exchangeLate makes of what the threads have what the loop gives.
func (l *lowering) exchangeLate(op *ir.Op, all []*late) error {
	own := map[*late][]*ir.Value{}
	totals := map[*late][]*ir.Value{}
	for i, r := range all {
		if r != nil && r.of == nil {
			own[r] = l.blocks[op.Result(i)].regs
			l.finishLate(op, i, r)
			totals[r] = l.blocks[op.Result(i)].regs
		}
	}
	for i, r := range all {
		if r == nil || r.of == nil {
			continue
		}
		y := l.blocks[op.Result(i)]
		for k, sum := range y.regs {
			factor, err := r.exp([]*ir.Value{l.b.Sub(own[r.of][k], totals[r.of][k])})
			if err != nil {
				return err
			}
			y.regs[k] = l.b.Mul(sum, factor)
		}
		l.finishLate(op, i, r)
	}
	return nil
}

// finishLate combines what the threads have, and what the loop began with.
func (l *lowering) finishLate(op *ir.Op, i int, r *late) {
	y, init, x := *l.blocks[op.Result(i)], l.blocks[op.Operand(i+3)], r.reduce.Operand(0).Shape()
	sums := make([][]*ir.Value, len(y.regs))
	for k, v := range y.regs {
		sums[k] = []*ir.Value{v}
	}
	sums = l.across(l.newBlock(y.elem, int(x[0]), int(x[1])), int(r.reduce.Attrs().IntOr("axis", 0)), sums, r.reduction)
	y.regs = make([]*ir.Value, len(sums))
	for k, s := range sums {
		y.regs[k] = r.combine([]*ir.Value{init.regs[k]}, s)[0]
	}
	l.blocks[op.Result(i)] = &y
}
