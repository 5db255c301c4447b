package shard

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
	"blutrain/passes/internal/place"
)

// shardData adds up what the ranks compute: gradients, loss and count of a step, and loss and count of an evaluation.
func (s *sharder) shardData() error {
	for _, name := range []string{initialize, accumulate, apply, eval} {
		f := s.function(name)
		if f == nil {
			continue
		}
		if err := straight(f); err != nil {
			return err
		}
		s.visit(f)
	}
	if f := s.function(eval); f != nil {
		s.reduceResults(f, blu.OutputAttr)
	}
	if s.mesh.Zero == 1 {
		return s.shardStates()
	}
	if f := s.function(accumulate); f != nil {
		if taken := s.function(blu.AccumulateLast); taken != nil {
			return taken.Errorf("shard: a model's function can't be called %s: a mesh makes one of that name", blu.AccumulateLast)
		}
		s.addLast(f)
	}
	return nil
}

// addLast adds accumulate_last, behind accumulate: the same, and then the sums of all ranks.
func (s *sharder) addLast(f *ir.Op) {
	last := f.Clone(s.c, map[*ir.Value]*ir.Value{})
	last.SetAttr("sym_name", s.c.String(blu.AccumulateLast))
	ir.NewBuilder(s.c, nil).After(f).Insert(last)
	s.reduceResults(last, blu.StateAttr)
}

// reduceResults makes the results of a kind the sums of all ranks'. Each has an operation of its own: how many go into one
// call is decided elsewhere.
func (s *sharder) reduceResults(f *ir.Op, kind string) {
	end := f.Body().Terminator()
	for _, r := range results(f) {
		if r.Kind != kind {
			continue
		}
		b := dtms.Builder{Builder: ir.NewBuilder(s.c, nil).Before(end).At(r.use.Value().Loc())}
		sum := b.AllReduce([]*ir.Value{r.use.Value()}, dtms.World)
		r.use.Set(sum.Result(0))
		whenReady(sum.Op)
	}
}

// whenReady moves a collective to where its operands are ready: so late as autodiff has the sums, all gradients would seem
// to live until the end.
func whenReady(op *ir.Op) {
	place.Prepare(op)
	place.After(op, place.Ready(op))
}
