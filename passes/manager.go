package passes

import (
	"bytes"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"blutrain/internal/near"
	"blutrain/ir"
	"blutrain/ir/diag"
)

// Config says how passes are run. The zero value runs them quietly.
type Config struct {
	PrintBefore, PrintAfter []string // passes
	PrintAfterAll           bool
	PrintAfterChange        bool // only where the pass changed something
	Print                   ir.PrintOptions
	Log                     io.Writer // where IR is printed; must be given with the flags above
	Shuffle                 bool      // permute independent operations before each pass
	Seed                    uint64    // of Shuffle
	Timing                  *Timing   // collects times, unless nil

	Remarks *diag.List // collects what passes have to say about the program, unless nil

	Observe func(pass *Pass, op *ir.Op) // called after a pass on op that left valid IR, unless nil
}

// CheckNames refuses flags that name no pass of the table.
func (cfg *Config) CheckNames(table []Pass) error {
	var names []string
	for i := range table {
		names = append(names, table[i].Name)
	}
	for _, n := range slices.Concat(cfg.PrintBefore, cfg.PrintAfter) {
		if !slices.Contains(names, n) {
			return fmt.Errorf("no pass %s%s", n, near.Suggest(n, names))
		}
	}
	return nil
}

// Failure is a fault of a pass, not of its input: it crashed, or what it left is invalid.
type Failure struct {
	Pass       string
	Err        error
	Stack      string // of a crash, else ""
	Reproducer []byte // a module and a pipeline: Replay
}

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the error, at the operation it is about.
func (f *Failure) Unwrap() error { return f.Err }

// Run runs a pipeline on an operation, which must be of the pipeline's name, and verifies it after every pass. An error
// about the program comes from a pass as it is; a fault of the pass is a *Failure.
func (cfg *Config) Run(c *ir.Context, root *ir.Op, pl *Pipeline) error {
	if root.Name() != pl.Anchor {
		return root.Errorf("the pipeline is for %s, this is %s", pl.Anchor, root.Name())
	}
	r := &runner{Config: cfg, ctx: c, root: root}
	return r.pipeline(root, pl, func(inner *Pipeline) *Pipeline { return inner })
}

type runner struct {
	*Config
	ctx  *ir.Context
	root *ir.Op
	runs uint64 // passes run so far, so that each shuffles differently
}

// pipeline runs the steps on op; wrap puts a pipeline for op into one for the root.
func (r *runner) pipeline(op *ir.Op, pl *Pipeline, wrap func(*Pipeline) *Pipeline) error {
	for _, s := range pl.Steps {
		alone := wrap(&Pipeline{pl.Anchor, []Step{s}})
		var err error
		if s.Nested == nil {
			err = r.pass(op, s, alone)
		} else {
			err = r.nested(op, s.Nested, func(inner *Pipeline) *Pipeline {
				return wrap(&Pipeline{pl.Anchor, []Step{{Nested: inner}}})
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// nested runs a pipeline on the operations of its name directly inside op.
func (r *runner) nested(op *ir.Op, pl *Pipeline, wrap func(*Pipeline) *Pipeline) error {
	for _, reg := range op.Regions() {
		for _, b := range reg.Blocks() {
			for o := range b.Ops() {
				if o.Name() != pl.Anchor {
					continue
				}
				if err := r.pipeline(o, pl, wrap); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// pass runs one pass on op. alone is a pipeline that runs it on the root.
func (r *runner) pass(op *ir.Op, s Step, alone *Pipeline) error {
	if r.Shuffle {
		r.runs++
		ShuffleOps(op, r.Seed+r.runs)
	}
	before := r.snapshot()
	if slices.Contains(r.PrintBefore, s.Pass.Name) {
		r.dump("before", s.Pass.Name)
	}
	start := time.Now()
	failure := r.guarded(op, s)
	r.Timing.add(s.Pass.Name, time.Since(start))
	if err, ok := failure.(*ir.Error); ok && err.Loc == nil {
		err.Loc = op.Loc()
	}
	if f, ok := failure.(*Failure); ok {
		f.Reproducer = reproducer(s.Pass.Name, alone, before)
	}
	if failure != nil {
		return failure
	}
	start = time.Now()
	err := ir.Verify(r.ctx, r.root)
	r.Timing.add("(verifier)", time.Since(start))
	if err != nil {
		return &Failure{Pass: s.Pass.Name, Err: invalid(s.Pass.Name, err), Reproducer: reproducer(s.Pass.Name, alone, before)}
	}
	after := slices.Contains(r.PrintAfter, s.Pass.Name) || r.PrintAfterAll
	if after || r.PrintAfterChange && !bytes.Equal(before, r.snapshot()) {
		r.dump("after", s.Pass.Name)
	}
	if r.Observe != nil {
		r.Observe(s.Pass, op)
	}
	return nil
}

// guarded runs the pass and makes a crash a *Failure.
func (r *runner) guarded(op *ir.Op, s Step) (err error) {
	state := &State{Ctx: r.ctx, visiting: op, remarks: r.Remarks}
	defer func() {
		if v := recover(); v != nil {
			at := state.visiting
			e := at.Errorf("pass %s crashed at %s: %v", s.Pass.Name, headline(at), v)
			err = &Failure{Pass: s.Pass.Name, Err: e, Stack: string(debug.Stack())}
		}
	}()
	return s.Pass.Run(state, op, s.Options)
}

// headline is the first line of an operation's text, cut where it is long. It may be asked of broken IR.
func headline(op *ir.Op) (s string) {
	defer func() {
		if recover() != nil {
			s = op.Name()
		}
	}()
	s, _, _ = strings.Cut(op.String(), "\n")
	if len(s) > 120 {
		s = s[:117] + "..."
	}
	return s
}

// invalid says in each error of the verifier which pass is to blame. A pass that is wrong is often wrong everywhere: the
// first few errors are enough.
func invalid(pass string, err error) error {
	const most = 3
	all := err.(ir.Errors)
	var es ir.Errors
	for _, e := range all[:min(most, len(all))] {
		es = append(es, &ir.Error{Loc: e.Loc, Op: e.Op, Msg: "pass " + pass + " left invalid IR: " + e.Msg, Notes: e.Notes})
	}
	if more := len(all) - len(es); more > 0 {
		last := es[len(es)-1]
		last.Msg += fmt.Sprintf(" (and %d more errors)", more)
	}
	return es
}

func (r *runner) snapshot() []byte {
	return ir.Print(r.root, ir.PrintOptions{Locations: true, ElideAbove: -1})
}

func (r *runner) dump(when, pass string) {
	fmt.Fprintf(r.Log, "// IR %s %s\n%s// -----\n", when, pass, ir.Print(r.root, r.Print))
}

// pipelineComment starts the line of a reproducer that has the pipeline.
const pipelineComment = "// pipeline: "

func reproducer(pass string, pl *Pipeline, module []byte) []byte {
	return fmt.Appendf(nil, "// The module before the pass %s failed. To run it again: bluc opt THIS_FILE\n%s%s\n%s", pass, pipelineComment, pl, module)
}

// Replay is the pipeline that a reproducer's comments give; ok is false for other files.
func Replay(src []byte) (pipeline string, ok bool) {
	for line := range strings.Lines(string(src)) {
		if !strings.HasPrefix(line, "//") {
			return "", false
		}
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), pipelineComment); ok {
			return p, true
		}
	}
	return "", false
}
