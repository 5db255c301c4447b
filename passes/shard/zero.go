package shard

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// A shard of a tensor is one of n equal blocks of its elements in row-major order, with zeros behind them so that they
// divide. Gradients and optimizer state exist as the rank's shard only; parameters are whole on every rank, which updates
// its shard of them and gets the others.

// shardStates cuts gradients and optimizer state into shards.
//
//	accumulate: the shard of a gradient is a reduce_scatter of every micro-batch's, added to the sum
//	apply: loss, count and the norm's square are summed over the ranks; a parameter is an all_gather of updated shards
func (s *sharder) shardStates() error {
	states := map[string]bool{}
	for op := range s.module.Body().Ops() {
		if op.Is(blu.State) && op.Attrs().Str("role") != blu.RoleAccumulator {
			states[ir.SymName(op)] = true
			s.declareShard(op)
		}
	}
	for op := range s.module.Body().Ops() {
		if !op.Is(fn.Func) || ir.IsPrivate(op) {
			continue
		}
		s.visit(op)
		if err := s.shardFunction(op, states); err != nil {
			return err
		}
	}
	return nil
}

// declareShard makes a state a shard, and notes of what.
func (s *sharder) declareShard(op *ir.Op) {
	whole := op.Attr("type").(*ir.TypeAttr).Type
	shape, _ := ir.Shape(whole)
	op.SetAttr("type", s.c.TypeAttr(s.shardType(whole)))
	op.SetAttr("shard", s.c.Dict(
		ir.NamedAttr{Name: "group", Value: s.c.String(dtms.World)},
		ir.NamedAttr{Name: "ranks", Value: s.c.Int64(s.ranks())},
		ir.NamedAttr{Name: "shape", Value: s.c.I64s(shape...)},
	))
}

func (s *sharder) ranks() int64 { return int64(s.mesh.Ranks(dtms.World)) }

// shardType is the type of a shard of a tensor.
func (s *sharder) shardType(whole ir.Type) *ir.TensorType {
	shape, _ := ir.Shape(whole)
	return s.c.Tensor([]int64{ceilDiv(ir.NumElements(shape), s.ranks())}, ir.Elem(whole))
}

func ceilDiv(n, by int64) int64 { return (n + by - 1) / by }

// shardFunction makes a function read and write shards of states.
func (s *sharder) shardFunction(f *ir.Op, states map[string]bool) error {
	shards := map[*ir.Value]bool{}
	for i, a := range f.Body().Args() {
		if p := blu.ArgPort(f, i); p.Kind == blu.StateAttr && states[p.Name] {
			if err := s.checkUses(f, a); err != nil {
				return err
			}
			shards[a] = true
			a.SetType(s.shardType(a.Type()))
		}
	}
	for op := range f.Body().Ops() {
		if update, _ := updates(op); update && (shards[op.Operand(1)] || shards[gradient(op)]) {
			s.visit(op)
			if err := s.updateShard(f, op, shards); err != nil {
				return err
			}
		}
	}
	for _, r := range results(f) {
		if r.Kind == blu.StateAttr && states[r.Name] {
			if err := s.writeShard(f, r); err != nil {
				return err
			}
		}
	}
	if ir.SymName(f) == apply {
		if err := s.sumApply(f); err != nil {
			return err
		}
	}
	blu.Retype(s.c, f)
	return nil
}

// updates reports whether an operation is an optimizer's step, and how many of its operands, behind the parameter, are shards.
func updates(op *ir.Op) (ok bool, shards int) {
	switch op.Def() {
	case blu.Adamw:
		return true, 3
	case blu.Sgd:
		return true, 2
	}
	return false, 0
}

// gradient is the gradient that an optimizer's step takes.
func gradient(op *ir.Op) *ir.Value {
	_, n := updates(op)
	return op.Operand(n)
}

// checkUses refuses uses of a state that a shard is not enough for.
func (s *sharder) checkUses(f *ir.Op, state *ir.Value) error {
	for u := range state.Uses() {
		op := u.Owner()
		update, n := updates(op)
		switch {
		case op.Is(blu.Accumulate) && u.Index() == 0 && op.Result(0).HasOneUse():
		case op.Is(blu.SumSquares) && ir.SymName(f) == apply:
		case update && 1 <= u.Index() && u.Index() <= n:
		default:
			return op.Errorf("shard: %s uses a state in %s that only a shard is there of", op.Name(), ir.SymName(f))
		}
	}
	return nil
}

// writeShard makes a result that is written to a sharded state a shard.
func (s *sharder) writeShard(f *ir.Op, r result) error {
	v, op := r.use.Value(), r.use.Value().Op()
	switch {
	case op.Is(blu.Adamw) || op.Is(blu.Sgd): // a shard already
	case op.Is(blu.Accumulate) && op.Operand(0) == argument(f, r.Port):
		s.visit(op)
		b := s.before(op)
		blocks := s.blocks(b, op.Operand(1))
		scatter := (&dtms.Builder{Builder: b.Builder}).ReduceScatter([]*ir.Value{blocks}, dtms.World, s.ranks())
		whenReady(scatter.Op)
		mine := scatter.Result(0)
		op.SetOperand(1, mine)
		op.Result(0).SetType(mine.Type())
	case op.Is(blu.Constant) && splat(op) != nil:
		r.use.Set(s.before(op).Constant(s.c.Dense(s.shardType(v.Type()), []byte(splat(op).Raw))))
	default:
		return f.Errorf("shard: %s writes @%s, and how it is computed can't be sharded", ir.SymName(f), r.Name)
	}
	return nil
}

// splat is the value of a constant that is the same everywhere, or nil.
func splat(op *ir.Op) *ir.DenseAttr {
	if d, ok := op.Attr("value").(*ir.DenseAttr); ok && d.Splat {
		return d
	}
	return nil
}

func (s *sharder) before(op *ir.Op) *blu.Builder {
	return blu.On(ir.NewBuilder(s.c, nil).Before(op).At(op.Loc()))
}

// blocks is a tensor as its shards, one below the other.
func (s *sharder) blocks(b *blu.Builder, x *ir.Value) *ir.Value {
	n := ir.NumElements(x.Shape())
	size := ceilDiv(n, s.ranks())
	x = b.ReshapeTo(x, n)
	if missing := size*s.ranks() - n; missing > 0 {
		x = b.Pad(x, []int64{0}, []int64{missing}, 0)
	}
	return b.ReshapeTo(x, s.ranks(), size)
}

// updateShard makes an optimizer's operation one on shards, and its parameter whole again. Its states and its gradient are
// shards already.
func (s *sharder) updateShard(f, op *ir.Op, shards map[*ir.Value]bool) error {
	_, states := updates(op)
	for _, v := range op.Operands()[1 : states+1] {
		if !shards[v] {
			return op.Errorf("shard: %s has sharded states and others", op.Name())
		}
	}
	b := s.before(op)
	whole := op.Operand(0).Type()
	rank := b.ReshapeTo(s.rankScalar(f, dtms.WorldRank), 1)
	mine := b.ReshapeTo(b.Gather(s.blocks(b, op.Operand(0)), rank), s.shardType(whole).Shape...)
	op.SetOperand(0, mine)
	for _, r := range op.Results() {
		r.SetType(s.shardType(r.Type()))
	}
	b.After(op)
	all := (&dtms.Builder{Builder: b.Builder}).AllGather([]*ir.Value{op.Result(0)}, dtms.World, s.ranks())
	shape, _ := ir.Shape(whole)
	n := ir.NumElements(shape)
	flat := b.ReshapeTo(all.Result(0), s.ranks()*s.shardType(whole).Shape[0])
	if flat.Shape()[0] != n {
		flat = b.Slice(flat, []int64{0}, []int64{n}, []int64{1})
	}
	p := b.ReshapeTo(flat, shape...)
	op.Result(0).ReplaceUsesIf(p, func(u *ir.Use) bool { return u.Owner() != all.Op })
	return nil
}

// sumApply adds up what apply reads that is a part on each rank: the loss, the count, and the squares of the gradients.
func (s *sharder) sumApply(f *ir.Op) error {
	var squares *ir.Op
	for op := range f.Body().Ops() {
		if op.Is(blu.SumSquares) {
			squares = op
		}
	}
	loss, count := argument(f, blu.Port{Kind: blu.StateAttr, Name: "loss_sum"}), argument(f, blu.Port{Kind: blu.StateAttr, Name: "count"})
	if squares == nil || loss == nil || count == nil {
		return f.Errorf("shard: apply does not read loss_sum and count and the gradients' norm, as the phase train leaves it")
	}
	squares.MoveBefore(f.Body().First())
	b := &dtms.Builder{Builder: ir.NewBuilder(s.c, nil).After(squares).At(squares.Loc())}
	for _, v := range []*ir.Value{loss, count, squares.Result(0)} {
		sum := b.AllReduce([]*ir.Value{v}, dtms.World)
		v.ReplaceUsesIf(sum.Result(0), func(u *ir.Use) bool { return u.Owner() != sum.Op })
	}
	return nil
}
