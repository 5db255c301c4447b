package shard

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// shardContext gives each rank of a sequence its piece of the tokens, in the functions that compute losses: accumulate and
// eval. Afterwards the losses, counts and gradients that these return are parts of sums over the ranks.
func (s *sharder) shardContext() error {
	found := false
	for _, name := range []string{accumulate, eval} {
		f := s.function(name)
		if f == nil {
			continue
		}
		if err := straight(f); err != nil {
			return err
		}
		s.visit(f)
		if err := s.divide(f); err != nil {
			return err
		}
		found = true
	}
	if !found {
		return s.module.Errorf("shard: cp=%d divides the sequences of a training step, and the model has no train block", s.mesh.CP)
	}
	return nil
}

// divide rewrites a function whose results are sums over tokens.
func (s *sharder) divide(f *ir.Op) error {
	seq, err := s.sequence(f)
	if err != nil {
		return err
	}
	d := &divider{
		Builder: blu.On(ir.NewBuilder(s.c, nil)),
		n:       int64(s.mesh.CP), method: s.mesh.Context,
		held: map[*ir.Value]held{}, pieces: map[cut]*ir.Value{}, indices: map[int64]*ir.Value{}, wholes: map[*ir.Value]*ir.Value{},
		headed: map[*ir.Value]*ir.Value{}, gathered: map[*ir.Value][]gathered{},
	}
	d.chunks = d.n
	if d.method != ulysses && causal(f) {
		d.chunks = 2 * d.n
	}
	if seq%d.chunks != 0 {
		return f.Errorf("%s", d.indivisible(seq))
	}
	d.rank = s.rankScalar(f, dtms.CPRank)
	ops := slices.Collect(f.Body().Ops())
	d.AtStart(f.Body()).At(f.Loc())
	d.divideInputs(f, seq)
	if err := d.walk(s, ops); err != nil {
		return err
	}
	d.finish(f)
	blu.Retype(s.c, f)
	for _, r := range d.remarks {
		s.remark(r.loc, r.msg)
	}
	return nil
}

// sequence is the number of tokens S of a batch, which must be an axis of an input.
func (s *sharder) sequence(f *ir.Op) (int64, error) {
	train, _ := s.module.Attr("blu.train").(*ir.DictAttr)
	var batch *ir.DictAttr
	if train != nil {
		batch, _ = ir.Attrs(train.Entries).Get("batch").(*ir.DictAttr)
	}
	var seq int64
	if batch != nil {
		seq = ir.Attrs(batch.Entries).IntOr("S", 0)
	}
	if seq == 0 {
		return 0, f.Errorf("shard: cp=%d divides the axis S of a batch, and the model's train block gives no S", s.mesh.CP)
	}
	for i := range f.Body().Args() {
		if isTokens(f, i, seq) {
			return seq, nil
		}
	}
	return 0, f.Errorf("shard: cp=%d divides inputs of shape [B, S, ...], and %s has none with S = %d", s.mesh.CP, ir.SymName(f), seq)
}

// isTokens reports whether argument i of f is an input with an entry for each token: [B, S, ...].
func isTokens(f *ir.Op, i int, seq int64) bool {
	a := f.Body().Arg(i)
	return blu.ArgPort(f, i).Kind == blu.InputAttr && len(a.Shape()) >= 2 && a.Shape()[1] == seq
}

// causal reports whether a function has attention in which tokens see only what is before them.
func causal(f *ir.Op) bool {
	for op := range f.Body().Ops() {
		if op.Is(blu.Attention) && op.Attrs().Bool("causal") {
			return true
		}
	}
	return false
}

// indivisible says why a sequence can't be cut, and what could.
func (d *divider) indivisible(seq int64) string {
	why := fmt.Sprintf("%d pieces, one a rank", d.chunks)
	if d.zigzag() {
		why = fmt.Sprintf("%d chunks, two a rank, one of the first half and one of the second, so that causal attention is the same work for all", d.chunks)
	}
	below := seq / d.chunks * d.chunks
	could := fmt.Sprintf("S = %d can", below+d.chunks)
	if below > 0 {
		could = fmt.Sprintf("S = %d and S = %d can", below, below+d.chunks)
	}
	return fmt.Sprintf("shard: S = %d can't be divided by %d: cp=%d cuts a sequence into %s; %s", seq, d.chunks, d.n, why, could)
}

// divider rewrites one function. Its builder stands before the operation that is worked on.
type divider struct {
	*blu.Builder
	n      int64  // ranks of a sequence
	method string // of sharing attention
	chunks int64  // into which a sequence is cut: n, one a rank in order, or 2n in zigzag
	rank   *ir.Value

	held     map[*ir.Value]held       // what became of the function's values; those not in it are whole and themselves
	replaced []*ir.Op                 // operations that nothing needs any more, but each other
	pieces   map[cut]*ir.Value        // of whole values
	wholes   map[*ir.Value]*ir.Value  // of pieces, where they are there
	indices  map[int64]*ir.Value      // see chunkRows
	headed   map[*ir.Value]*ir.Value  // of pieces of a sequence, what the rank's heads have of the whole sequence
	gathered map[*ir.Value][]gathered // by pieces of keys
	remarks  []remark
}

// held is what a rank has of a value.
type held struct {
	sharding
	v *ir.Value
}

// remark is something a person may want to know about an operation.
type remark struct {
	loc *ir.Location
	msg string
}

// zigzag reports whether a rank has two chunks of a sequence.
func (d *divider) zigzag() bool { return d.chunks > d.n }

// share is how many chunks a rank has.
func (d *divider) share() int64 { return d.chunks / d.n }

// get is what the rank has of a value of the function.
func (d *divider) get(v *ir.Value) held {
	if h, ok := d.held[v]; ok {
		return h
	}
	return held{sharding{}, v}
}

// put says what became of a result.
func (d *divider) put(old *ir.Value, s sharding, v *ir.Value) { d.held[old] = held{s, v} }

// divideInputs takes the rank's piece of the inputs that have an entry for each token, and notes which arguments hold sums
// that the function goes on with: each rank has its own.
func (d *divider) divideInputs(f *ir.Op, seq int64) {
	written := map[blu.Port]bool{}
	for _, r := range results(f) {
		written[r.Port] = true
	}
	for i, a := range f.Body().Args() {
		switch {
		case isTokens(f, i, seq):
			s := sharding{divided, 1, 1}
			p := d.piece(a, s)
			d.put(a, s, p)
			d.wholes[p] = a
		case written[blu.ArgPort(f, i)]:
			d.put(a, sharding{how: partial}, a)
		}
	}
}

// walk rewrites the operations of the function in order.
func (d *divider) walk(s *sharder, ops []*ir.Op) error {
	for _, op := range ops {
		s.visit(op)
		d.Before(op).At(op.Loc())
		if op.Has(ir.Terminator) {
			for i, v := range op.Operands() {
				op.SetOperand(i, d.as(v, sharding{how: partial}))
			}
			continue
		}
		if err := d.step(op); err != nil {
			return err
		}
	}
	return nil
}

// step rewrites one operation.
func (d *divider) step(op *ir.Op) error {
	var parts, pieces bool
	for _, v := range op.Operands() {
		parts = parts || d.get(v).how == partial
		pieces = pieces || d.get(v).how == divided
	}
	if parts && d.linear(op) {
		return nil
	}
	if rule := rules[op.Def()]; pieces && rule != nil {
		if ok, err := rule(d, op); ok || err != nil {
			return err
		}
	} else if pieces && op.Has(ir.Elementwise) && d.elementwise(op) {
		return nil
	}
	if pieces {
		d.remark(op, "%s can't be computed from pieces of a sequence: cp=%d gathers its operands, and every rank computes all of it", op.Name(), d.n)
	}
	d.keep(op, sharding{})
	return nil
}

// remark notes something once a place in the source.
func (d *divider) remark(op *ir.Op, format string, args ...any) {
	r := remark{op.Loc(), fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(d.remarks, func(o remark) bool { return o.msg == r.msg && o.loc.Source() == r.loc.Source() }) {
		d.remarks = append(d.remarks, r)
	}
}

// keep leaves an operation where it is, on operands of a sharding (whole or partial), which its results then have.
func (d *divider) keep(op *ir.Op, s sharding) {
	for i, v := range op.Operands() {
		op.SetOperand(i, d.as(v, s))
	}
	for _, r := range op.Results() {
		d.put(r, s, r)
	}
}

// finish removes what was replaced, and what is not used: what pieces were taken from, if it was for them only.
func (d *divider) finish(f *ir.Op) {
	for _, op := range slices.Backward(d.replaced) {
		op.Erase()
	}
	rewrite.EraseDead(f)
}

// replace makes an operation on pieces in the place of one: the same with other operands, and results of the shardings.
func (d *divider) replace(op *ir.Op, operands []*ir.Value, attrs []ir.NamedAttr, results ...sharding) {
	types := op.ResultTypes()
	for i, s := range results {
		types[i] = d.typeOf(types[i], s)
	}
	n := d.CreateState(op.Def(), ir.OpState{Operands: operands, Attrs: attrs, Results: types})
	d.become(op, n.Results(), results...)
}

// become says that the results of an operation are now these.
func (d *divider) become(op *ir.Op, vs []*ir.Value, results ...sharding) {
	for i, s := range results {
		d.put(op.Result(i), s, vs[i])
	}
	d.replaced = append(d.replaced, op)
}

// typeOf is the type of what a rank holds of a value of type t.
func (d *divider) typeOf(t ir.Type, s sharding) ir.Type {
	tensor := t.(*ir.TensorType)
	return d.Ctx.Tensor(d.localShape(tensor.Shape, s), tensor.Elem)
}

// withInts is attributes with one of them, a list of integers, changed.
func (d *divider) withInts(attrs ir.Attrs, name string, values []int64) []ir.NamedAttr {
	changed := slices.Clone(attrs)
	for i := range changed {
		if changed[i].Name == name {
			changed[i].Value = d.Ctx.I64s(values...)
		}
	}
	return changed
}

// list writes numbers with commas.
func list(ns []int64) string {
	text := make([]string, len(ns))
	for i, n := range ns {
		text[i] = fmt.Sprint(n)
	}
	return strings.Join(text, ", ")
}
