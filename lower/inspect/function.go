package inspect

import (
	"cmp"
	"slices"

	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// Function is one function of the program.
type Function struct {
	Name     string
	Launches int
	Copies   int
	Arena    int64 // bytes, with the gaps between pieces
	Peak     int64 // the most bytes of values in it at one time
	// PeakStep is the step, from 1, at which that is, of Steps; Peak kernel and place say what runs then.
	PeakStep, Steps int
	PeakKernel      string
	PeakPlace       Place
	Holders         []Holder // who has those bytes, the most first
	Collectives     []Collective
}

// Holder is values of one kind that are in memory at the peak: written by the same kernel, for the same place in the source.
type Holder struct {
	Place Place
	By    string // the kernel
	Type  string // of the first: 16x1024x768xf32
	Count int
	Bytes int64
}

// copyName stands for the kernel of what a copy writes.
const copyName = "(copy)"

func (r *Report) function(op *ir.Op, ks *kernels) (Function, error) {
	f := Function{Name: ir.SymName(op), Arena: op.Attrs().IntOr("arena", 0)}
	var l lifetimes
	var t traffic
	var steps []*ir.Op
	begun := map[int64]*ir.Op{} // collectives: what they work on is in use until the wait
	for o := range op.Body().Ops() {
		switch {
		case o.Is(exec.Launch):
			k, err := ks.of(o)
			if err != nil {
				return f, err
			}
			k.launched(f.Name)
			t.step(k.Flops)
			f.Launches++
			f.use(&l, o, len(steps), k.Name, o.NumOperands()-k.outs)
			steps = append(steps, o)
		case o.Is(exec.Copy):
			f.Copies++
			f.use(&l, o, len(steps), copyName, 1)
			steps = append(steps, o)
		case o.Is(exec.Collective):
			t.begin(o.Attrs().IntOr("id", 0), mem.CallOf(o), o.NumOperands()/2)
			f.use(&l, o, len(steps), o.Attrs().Str("op"), o.NumOperands()/2)
			steps = append(steps, o)
			begun[o.Attrs().IntOr("id", 0)] = o
		case o.Is(exec.Wait):
			id := o.Attrs().IntOr("id", 0)
			t.end(id)
			f.use(&l, begun[id], len(steps), "", begun[id].NumOperands())
			steps = append(steps, o)
		}
	}
	f.Collectives = t.collectives()
	f.Steps = len(steps)
	r.peak(&f, l.values(), steps)
	return f, nil
}

// evaluated is what a function of a target that evaluates operations communicates.
func evaluated(op *ir.Op) Function {
	var t traffic
	for o := range op.Body().Ops() {
		t.operation(o)
	}
	return Function{Name: ir.SymName(op), Collectives: t.collectives()}
}

// use notes what a step reads, its first operands, and writes, the others.
func (f *Function) use(l *lifetimes, op *ir.Op, step int, by string, reads int) {
	for i, v := range op.Operands() {
		if ref := inArena(v); ref != nil && i < reads {
			l.read(ref, step)
		}
	}
	for _, v := range op.Operands()[reads:] {
		if ref := inArena(v); ref != nil {
			l.write(ref, step, by)
		}
	}
}

// runs says what a step does.
func runs(step *ir.Op) string {
	switch step.Def() {
	case exec.Launch:
		return step.Attrs().Sym("kernel")
	case exec.Collective:
		return step.Attrs().Str("op")
	case exec.Wait:
		return "(wait)"
	}
	return copyName
}

// peak finds the step at which most bytes are in use, and who has them.
func (r *Report) peak(f *Function, pieces []*piece, steps []*ir.Op) {
	if len(pieces) == 0 {
		return
	}
	change := make([]int64, len(steps)+1)
	for _, p := range pieces {
		change[p.first] += p.high - p.low
		change[p.last+1] -= p.high - p.low
	}
	live, at := int64(0), 0
	for s := range steps {
		if live += change[s]; live > f.Peak {
			f.Peak, at = live, s
		}
	}
	f.PeakStep, f.PeakPlace, f.PeakKernel = at+1, r.place(steps[at].Loc()), runs(steps[at])
	f.Holders = r.holders(pieces, at)
}

// holders groups the pieces in use at a step.
func (r *Report) holders(pieces []*piece, at int) []Holder {
	type key struct {
		place Place
		by    string
	}
	index := map[key]int{}
	var hs []Holder
	for _, p := range pieces {
		if at < p.first || p.last < at {
			continue
		}
		k := key{r.place(p.loc), p.by}
		i, ok := index[k]
		if !ok {
			i = len(hs)
			index[k] = i
			hs = append(hs, Holder{Place: k.place, By: k.by, Type: typeText(p.typ)})
		}
		hs[i].Count++
		hs[i].Bytes += p.high - p.low
	}
	slices.SortStableFunc(hs, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Col, b.Place.Col), cmp.Compare(a.By, b.By))
	})
	return hs
}

// typeText is shape and element type: 16x1024x768xf32.
func typeText(t *ir.MemRefType) string {
	if len(t.Shape) == 0 {
		return t.Elem.String()
	}
	return ir.ShapeString(t.Shape) + " " + t.Elem.String()
}
