package irhtml

import (
	"encoding/json"
	"slices"

	"blutrain/ir"
)

// Recorder collects what a page shows. A nil Recorder collects nothing. All modules must be of one context.
type Recorder struct {
	title   string
	stopped string
	print   ir.PrintOptions
	sources []source
	locs    *locations
	chunks  []json.RawMessage
	index   map[string]int // of chunks, by their text
	columns []*column
	turns   map[*ir.Op]int // passes that ran on an operation since the last one that ran on the root
	nested  map[turn]int   // the columns of these passes
}

type source struct{ name, text string }

// column is the module after a pass.
type column struct {
	phase, pass, summary string
	entries              []entry
	same                 bool // as the column before
}

// entry is a chunk where it stands in a module. op is what it prints, nil for several operations.
type entry struct {
	op    *ir.Op
	depth int
	chunk int
}

// turn is the n-th pass of a pipeline on the operations of a name, which runs once on each of them.
type turn struct {
	anchor string
	n      int
}

// New starts a recording. title is what the page is about, usually a file; print says how operations are written,
// locations aside: these the page shows apart.
func New(title string, print ir.PrintOptions) *Recorder {
	print.Locations = false
	return &Recorder{title: title, print: print, locs: newLocations(), index: map[string]int{}}
}

// Source gives a text that locations point into. It is shown if one of them does.
func (r *Recorder) Source(file string, text []byte) {
	if r != nil {
		r.sources = append(r.sources, source{file, string(text)})
	}
}

// Phase records the module at the end of a phase: as a column where the phase did more than run passes, else in the
// column of the last pass, which then has what marks the end of the phase.
func (r *Recorder) Phase(phase, summary string, m *ir.Op, more bool) {
	switch {
	case r == nil:
	case more || len(r.columns) == 0:
		r.column(phase, "", summary, m)
	default:
		r.columns[len(r.columns)-1].entries = r.cut(m, 0)
	}
}

// Pass records the module m after a pass on op, which is m or in it. The runs of one pass on many operations are one
// column.
func (r *Recorder) Pass(phase, pass, summary string, op, m *ir.Op) {
	if r == nil || op != m && r.pass(phase, pass, summary, op) {
		return
	}
	r.column(phase, pass, summary, m)
}

// Stop says why the recording ends early.
func (r *Recorder) Stop(reason string) {
	if r != nil {
		r.stopped = reason
	}
}

// Empty reports whether nothing was recorded.
func (r *Recorder) Empty() bool { return r == nil || len(r.columns) == 0 }

func (r *Recorder) column(phase, pass, summary string, m *ir.Op) {
	r.turns, r.nested = map[*ir.Op]int{}, map[turn]int{}
	r.columns = append(r.columns, &column{phase: phase, pass: pass, summary: summary, entries: r.cut(m, 0)})
	r.compare(len(r.columns) - 1)
}

// compare tells whether column i shows what the one before it does.
func (r *Recorder) compare(i int) {
	r.columns[i].same = i > 0 && slices.EqualFunc(r.columns[i-1].entries, r.columns[i].entries, func(a, b entry) bool {
		return a.chunk == b.chunk
	})
}

// pass records a pass on an operation inside of the module. The pipeline of such passes runs as a whole on one
// operation, then on the next: the column of a pass has each operation as this pass left it. It is false when op isn't
// what a chunk prints.
func (r *Recorder) pass(phase, pass, summary string, op *ir.Op) bool {
	if len(r.columns) == 0 {
		return false
	}
	last := r.columns[len(r.columns)-1]
	at := slices.IndexFunc(last.entries, func(e entry) bool { return e.op == op })
	if at < 0 {
		return false
	}
	now := r.cut(op, last.entries[at].depth)
	if len(now) != 1 {
		return false // a symbol table, whose parts are chunks of their own
	}
	t := turn{op.Name(), r.turns[op]}
	r.turns[op]++
	i, known := r.nested[t]
	if !known {
		i = len(r.columns)
		r.nested[t] = i
		r.columns = append(r.columns, &column{phase: phase, pass: pass, summary: summary, entries: slices.Clone(last.entries)})
	}
	for ; i < len(r.columns); i++ {
		for j, e := range r.columns[i].entries {
			if e.op == op {
				r.columns[i].entries[j] = now[0]
			}
		}
		r.compare(i)
	}
	return true
}

// Missing lists the files that locations point into and whose text wasn't given.
func (r *Recorder) Missing() []string {
	if r == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.locs.files), func(file string) bool {
		return slices.ContainsFunc(r.sources, func(s source) bool { return s.name == file })
	})
}
