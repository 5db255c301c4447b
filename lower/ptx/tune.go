package ptx

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/blublas"
	"blutrain/formats/tuning"
	"blutrain/ir"
)

// Tuning is what decides beside prediction where templates leave a choice, and what is made for a choice to be measured.
type Tuning struct {
	Table      *tuning.Table // what was measured; nil: nothing
	Candidates int           // kernels that are made for each key, what is chosen among them; 0: only that

	forced map[string]string // choices by key, for candidates
	known  map[string]bool   // keys that were met: whether the table's choice was taken
}

// Found is for how many keys the table's choice was taken, of those that were met.
func (t *Tuning) Found() (found, keys int) {
	for _, in := range t.known {
		if in {
			found++
		}
	}
	return found, len(t.known)
}

// Attributes of a ptx.kernel, for measuring.
const (
	ChoicesAttr   = "launch.choices"   // list of {key, choice, normal}: what was chosen for it
	CandidateAttr = "launch.candidate" // {key, choice, of}: it can stand for the kernel of that name, and isn't launched
)

// A question is a choice between options of one key. options[0] is what is predicted to be best, the others follow by time.
type question struct {
	key     string
	options []string
	can     func(choice string) bool // whether a choice of a table is one; it may be none of the options
	normal  []float64                // see tuning.Site
}

// pick answers a question for a kernel that is not lowered yet.
func (o Options) pick(c *ir.Context, kernel *ir.Op, align []int64, q question) (string, error) {
	t := o.Tuning
	if t == nil {
		return q.options[0], nil
	}
	if choice, ok := t.forced[q.key]; ok {
		return choice, nil
	}
	choice, found := q.options[0], false
	if t.Table != nil {
		if e := t.Table.Find(q.key); e != nil && q.can(e.Choice) {
			choice, found = e.Choice, true
		}
	}
	if t.forced != nil {
		return choice, nil
	}
	_, met := t.known[q.key]
	if t.known == nil {
		t.known = map[string]bool{}
	}
	t.known[q.key] = found
	if t.Candidates == 0 {
		return choice, nil
	}
	remember(c, kernel, q, choice)
	if met {
		return choice, nil
	}
	others := slices.DeleteFunc(slices.Clone(q.options), func(s string) bool { return s == choice })
	for i, s := range others[:min(len(others), t.Candidates-1)] {
		if err := o.candidate(c, kernel, align, q, s, i+1); err != nil {
			return "", err
		}
	}
	return choice, nil
}

// remember notes on a kernel what was chosen for it.
func remember(c *ir.Context, kernel *ir.Op, q question, choice string) {
	entries := []ir.NamedAttr{{Name: "choice", Value: c.String(choice)}, {Name: "key", Value: c.String(q.key)}}
	if q.normal != nil {
		entries = append(entries, ir.NamedAttr{Name: "normal", Value: c.DenseFloats(c.F64(), q.normal...)})
	}
	var all []ir.Attr
	if list, ok := kernel.Attr(ChoicesAttr).(*ir.ArrayAttr); ok {
		all = list.Elems
	}
	kernel.SetAttr(ChoicesAttr, c.Array(append(slices.Clone(all), c.Dict(entries...))...))
}

// candidate lowers a copy of a kernel by another choice.
func (o Options) candidate(c *ir.Context, kernel *ir.Op, align []int64, q question, choice string, number int) error {
	name, module := ir.SymName(kernel), kernel.Block().ParentOp()
	copied := kernel.Clone(c, map[*ir.Value]*ir.Value{})
	ir.NewBuilder(c, nil).AtEnd(module.Body()).Insert(copied) // behind what is launched, whose code it may share
	copied.SetAttr(ChoicesAttr, nil)
	key, _, _ := strings.Cut(q.key, " ")
	as := fmt.Sprintf("%s.%s.candidate%d", name, strings.ReplaceAll(key, "-", "_"), number)
	copied.SetAttr("sym_name", c.String(as))
	if copied.Attr(tileReference) == nil {
		copied.SetAttr(tileReference, c.String(name))
	}
	if of, ok := o.of[name]; ok {
		o.of[as] = of
	}
	o.Tuning = &Tuning{Table: o.Tuning.Table, forced: map[string]string{q.key: choice}}
	if err := lowerAlone(c, copied, o, align); err != nil {
		return err
	}
	ir.LookupSymbol(module, as).SetAttr(CandidateAttr, c.Dict(ir.NamedAttr{Name: "choice", Value: c.String(choice)},
		ir.NamedAttr{Name: "key", Value: c.String(q.key)}, ir.NamedAttr{Name: "of", Value: c.Symbol(name)}))
	return nil
}

// tileReference is the attribute of a tile kernel that names the function it implements.
const tileReference = "tile.reference"

// byGeneral is the choice of the lowering of kernels that are no template's.
const byGeneral = "general"

// key is what decides which way is best for a product.
func (m *match) key() string {
	precision := string(m.g.Precision)
	if m.faithful {
		precision = "fp32"
	}
	return m.g.Key(precision)
}

// choice is a way by its parameters.
func (w *way) choice() string {
	switch {
	case w.general:
		return byGeneral
	case w.planes != nil:
		return w.planes.g.Choice()
	}
	return w.prefix() + w.g.Choice()
}

// prefix says which operands are copied.
func (w *way) prefix() (s string) {
	for i, t := range w.copies {
		if t != nil {
			s += map[bool]string{false: "copy", true: "transpose"}[t.Transposed] + "=" + sideNames[i] + " "
		}
	}
	return s
}

// choose is the way that a product is computed; nil: the general lowering.
func (m *match) choose(o Options, align []int64, d blublas.Device) (*way, error) {
	predicted := func(g blublas.Gemm, _ *way) []blublas.Gemm { return blublas.Candidates(g, d) }
	direct, byPlanes := m.templates(d, predicted)
	switch {
	case len(direct) == 0 || o.Products == "general":
		return nil, nil
	case o.Products == "templates":
		return append(byPlanes, direct...)[0], nil
	}
	first := m.sorted(d, direct, byPlanes)[0]
	if o.Tuning == nil {
		return first.ofTemplate(), nil
	}
	q := question{key: m.key(), options: []string{first.choice()}, can: func(choice string) bool { return m.find(d, choice) != nil }}
	if o.Tuning.Candidates > 0 {
		direct, byPlanes = m.templates(d, func(g blublas.Gemm, _ *way) []blublas.Gemm { return blublas.Measurable(g, d) })
		for _, w := range shapesFirst(m.sorted(d, direct, byPlanes)) {
			if c := w.choice(); c != q.options[0] && w.seconds <= worthMeasuring*first.seconds {
				q.options = append(q.options, c)
			}
		}
	}
	choice, err := o.pick(m.l.c, m.kernel, align, q)
	if err != nil {
		return nil, err
	}
	return m.find(d, choice).ofTemplate(), nil
}

// templates lists the ways by templates, on the operands' own elements and by planes.
func (m *match) templates(d blublas.Device, of kernels) (direct, byPlanes []*way) {
	if direct = m.ways(d, of); len(direct) > 0 {
		byPlanes = m.inPlanes(d, direct[0], of)
	}
	return direct, byPlanes
}

// sorted is all ways by predicted time, the general lowering among them where it has the precision.
func (m *match) sorted(d blublas.Device, direct, byPlanes []*way) []*way {
	if m.ofFunctions() {
		return byPlanes // by predicted time already
	}
	all := slices.Concat(direct, byPlanes)
	if m.g.Precision == blublas.FP32Strict {
		all = append(all, &way{general: true, seconds: m.general(d)})
	}
	slices.SortStableFunc(all, bySeconds)
	return all
}

// shapesFirst brings the best of each tile shape to the front: predictions are worse for shapes than for numbers of parts of K.
func shapesFirst(all []*way) []*way {
	seen := map[string]bool{}
	var first, rest []*way
	for _, w := range all {
		g := w.g
		if w.planes != nil {
			g = w.planes.g
		}
		g.SplitK = 1
		if shape := g.Choice(); w.general || seen[shape] {
			rest = append(rest, w)
		} else {
			seen[shape] = true
			first = append(first, w)
		}
	}
	return append(first, rest...)
}

// worthMeasuring is how many times the best prediction another may be, to be measured: predictions are within a third of the times.
const worthMeasuring = 2

// ofTemplate is nil for the general lowering.
func (w *way) ofTemplate() *way {
	if w.general {
		return nil
	}
	return w
}

// find is the way that a choice stands for, or nil.
func (m *match) find(d blublas.Device, choice string) *way {
	if choice == byGeneral && m.g.Precision == blublas.FP32Strict && !m.ofFunctions() {
		return &way{general: true}
	}
	only := func(g blublas.Gemm, w *way) []blublas.Gemm {
		rest, ok := strings.CutPrefix(choice, w.prefix())
		if !ok {
			return nil
		}
		if g, ok = blublas.Find(g, d, rest); !ok {
			return nil
		}
		return []blublas.Gemm{g}
	}
	if ways := m.ways(d, only); len(ways) > 0 && !m.ofFunctions() {
		return ways[0]
	}
	otherwise := m.ways(d, func(g blublas.Gemm, _ *way) []blublas.Gemm { return blublas.Candidates(g, d) })
	if len(otherwise) > 0 {
		if ways := m.inPlanes(d, otherwise[0], only); len(ways) > 0 {
			return ways[0]
		}
	}
	return nil
}
