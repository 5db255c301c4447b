package passes

import (
	"fmt"
	"reflect"

	"blutrain/dialects/dtms"
	"blutrain/ir"
	"blutrain/ir/diag"
	"blutrain/passes/recompute"
)

// Table lists the passes of this package.
var Table = []Pass{
	{Name: "canonicalize", Summary: "fold constants, drop what is dead, rewrite to the simplest form", Run: Plain(canonicalize),
		After: []After{{"inline", "calls hide what could be simplified across them"}}},
	{Name: "cse", Summary: "merge equal pure operations", Run: Plain(cse),
		After: []After{{"canonicalize", "equal operations look equal only in canonical form"}}},
	{Name: "dce", Summary: "drop operations without effect or use, and private symbols that nothing refers to", Run: Plain(dce),
		After: []After{{"inline", "functions are unused only once they are inlined"}}},
	{Name: "inline", Summary: "replace calls of private functions by their bodies", Run: Plain(inline)},
	{Name: "precision", Summary: "make products keep the promise of a precision", Run: With(precision),
		Options: PrecisionOptions{Mode: "fp32", Target: "cpu"},
		After:   []After{{"inline", "what a function's arguments are rounded to is known where it is called"}}},
	{Name: "narrow", Summary: "bring bfloat16 from rank to rank where all that is read of it is that", Run: Plain(narrowCollectives),
		After: []After{
			{"shard", "it makes the collectives"},
			{"precision", "it says which operands are rounded"},
		}},
	{Name: "recompute", Summary: "compute values again where they are used late, instead of keeping them", Run: With(recomputeValues),
		Options: RecomputeOptions{Mode: string(recompute.None), Target: "cpu"},
		After: []After{
			{"narrow", "rounded values take half the memory"},
			{"canonicalize", "the forms that rewriting leaves are those whose memory is estimated"},
			{"cse", "of two equal values one would be recomputed and the other one kept"},
			{"dce", "dead operations count as memory and work"},
			{"precision", "rounded operands are values too, which cost little to compute again"},
		}},
	{Name: "shard", Summary: "make the functions of training those of one rank of a mesh", Run: With(shardProgram),
		Options: ShardOptions{CP: 1, Context: dtms.Contexts[0]},
		After:   []After{{"inline", "what a value is a part of is followed through straight-line code"}}},
	{Name: "defer", Summary: "compute what the last sum over ranks doesn't depend on while it is under way", Run: With(deferProducts),
		Options: DeferOptions{Bucket: 25 << 20},
		After: []After{
			{"shard", "it makes the sums"},
			{"recompute", "the peak of memory, which may not rise, depends on what is kept"},
			{"narrow", "what is sent has its size then"},
		}},
	{Name: "bucket", Summary: "put collectives together in the order in which their operands are ready", Run: With(bucketCollectives),
		Options: BucketOptions{Size: 25 << 20},
		After: []After{
			{"shard", "it makes the collectives"},
			{"recompute", "when a value is ready depends on when it is computed"},
			{"narrow", "a bucket has one element type"},
			{"defer", "when a value is ready depends on where it is computed"},
		}},
	{Name: "overlap", Summary: "start collectives early and wait for them late", Run: Plain(overlapCollectives),
		After: []After{{"bucket", "a collective under way can't be put together with others"}}},
	{Name: "copies", Summary: "keep parameters that products round to bfloat16 in bfloat16 too", Run: Plain(keepCopies),
		After: []After{
			{"precision", "it says which operands are rounded"},
			{"recompute", "a copy that products widen for themselves takes no memory in float32"},
			{"shard", "it makes the functions of training those of a rank"},
		}},
}

// Pass is one row of a table.
type Pass struct {
	Name, Summary string
	// Options is a struct whose fields are the options, holding the defaults; nil when there are none. See option.
	Options any
	// After is the passes that must run first, where both are in a pipeline.
	After []After
	// Run does the work on an operation and all that is nested in it.
	Run func(s *State, op *ir.Op, options any) error
}

// After is a pass that must run first, and why.
type After struct{ Pass, Reason string }

// State is what a running pass knows besides the operation it works on.
type State struct {
	Ctx      *ir.Context
	visiting *ir.Op
	remarks  *diag.List
}

// Remark tells the person who compiles something about the program that is no fault: that a part of it costs more than it
// could, for one.
func (s *State) Remark(loc *ir.Location, message string) {
	if s.remarks != nil {
		s.remarks.Remarkf(ir.Range(loc), "%s", message)
	}
}

// Visit says which operation the pass is busy with, so that a crash can name it.
func (s *State) Visit(op *ir.Op) { s.visiting = op }

// Walk is ir.Walk with Visit.
func (s *State) Walk(root *ir.Op, visit func(*ir.Op) ir.WalkResult) bool {
	return ir.Walk(root, func(op *ir.Op) ir.WalkResult {
		s.Visit(op)
		return visit(op)
	})
}

// Plain makes a Run of a function without options.
func Plain(f func(*State, *ir.Op) error) func(*State, *ir.Op, any) error {
	return func(s *State, op *ir.Op, _ any) error { return f(s, op) }
}

// With makes a Run of a function with options of type O, the type of the row's Options.
func With[O any](f func(*State, *ir.Op, O) error) func(*State, *ir.Op, any) error {
	return func(s *State, op *ir.Op, options any) error { return f(s, op, options.(O)) }
}

// Check reports what is wrong with a table: names twice or missing, options that aren't, passes that must run before
// themselves.
func Check(table []Pass) error {
	rows := map[string]*Pass{}
	for i := range table {
		p := &table[i]
		if p.Name == "" || p.Summary == "" || p.Run == nil {
			return fmt.Errorf("pass %d, %q, has no name, summary or function", i, p.Name)
		}
		if rows[p.Name] != nil {
			return fmt.Errorf("two passes are called %s", p.Name)
		}
		rows[p.Name] = p
		if p.Options != nil {
			if err := checkOptions(reflect.TypeOf(p.Options)); err != nil {
				return fmt.Errorf("pass %s: %w", p.Name, err)
			}
		}
	}
	done := map[*Pass]int{}
	for i := range table {
		if err := checkOrder(rows, &table[i], done); err != nil {
			return err
		}
	}
	return nil
}

// checkOrder looks for a pass that comes before itself; done is 1 while a pass is looked at and 2 then.
func checkOrder(rows map[string]*Pass, p *Pass, done map[*Pass]int) error {
	switch done[p] {
	case 1:
		return fmt.Errorf("pass %s must run before itself", p.Name)
	case 2:
		return nil
	}
	done[p] = 1
	for _, a := range p.After {
		before := rows[a.Pass]
		if before == nil || a.Reason == "" {
			return fmt.Errorf("pass %s comes after %q, which is no pass or has no reason", p.Name, a.Pass)
		}
		if err := checkOrder(rows, before, done); err != nil {
			return err
		}
	}
	done[p] = 2
	return nil
}
