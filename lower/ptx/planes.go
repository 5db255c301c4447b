package ptx

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/exec"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/arena"
)

// Float32 operands of products are multiplied as planes of float16 (blublas.FP16x3), which a kernel makes of them. Which launch makes
// which planes, and where in scratch memory they lie, is decided here for whole functions. Planes are made by the first launch that
// reads them, and kept for those that read them later while nothing is written to the matrix; a launch that reads a matrix to make
// planes of its rows makes those of its columns too, if a later one needs them, and the other way round. Both within the
// scratch memory that the program needs anyway, that of the launch that needs most, and within more of it where that saves enough.

// sharing is that decision for a program.
type sharing struct {
	module   *ir.Op
	products []*planeProduct
	d        blublas.Device
	apart    bool  // nothing is shared: each launch is measured with all that it needs
	room     int64 // bytes of scratch memory that no more than must be are above
}

// worth is how many bytes a byte of scratch memory must save of what launches move. A step of GPT-2 124M in float32 moves 14 to 17 for each
// that the program holds: so 1% more memory is for at least 1% less to move.
const worth = 16

// ceilings is how many amounts of scratch memory are tried, up to twice what the program needs anyway.
const ceilings = 16

// shared is what is made where, if launches may work in so much scratch memory.
type shared struct {
	lines   []*timeline
	scratch int64 // bytes, of the function that needs most
	moved   int64 // bytes that are read and written to make planes, in the function where they are most
}

// timeline is a function: what of scratch memory is in use at each step.
type timeline struct {
	launches []*planned
	all      []*contents
	used     []int64
	closed   []bool // the step's kernel is no product in planes, and works in scratch memory: nothing is kept there meanwhile
}

// planned is a launch of a product in planes.
type planned struct {
	op       *ir.Op
	product  *planeProduct
	step     int
	sets     [2]*planeSet // that its operands are read from
	partials *arena.Piece // nil: K has no parts
}

// contents is a matrix in memory, while nothing else is written there.
type contents struct {
	matrix blublas.Matrix
	sets   []*planeSet // in the order in which they are first read
}

// planeSet is planes that are made at the first of the steps in which they are in use.
type planeSet struct {
	arena.Piece
	of      *contents
	mnMajor bool
	kept    *planeSet // the one that is kept and read in this one's place
}

// read is the set that is read for this one.
func (s *planeSet) read() *planeSet {
	for s.kept != nil {
		s = s.kept
	}
	return s
}

// planeAlign is what planes start at multiples of.
const planeAlign = 1024

// source tells contents apart.
type source struct {
	memory            extentOfMemory
	constant          ir.Attr
	of                string // the function of it
	rows, cols, pitch int
}

// lower replaces all products in planes, once all other kernels have been lowered.
func (s *sharing) lower() error {
	for _, t := range s.best().lines {
		for _, l := range t.launches {
			if err := l.write(s.d); err != nil {
				return err
			}
		}
	}
	for _, p := range s.products {
		if err := p.finish(s.d); err != nil {
			return err
		}
	}
	return nil
}

// best takes more scratch memory than the program needs anyway where that saves enough.
func (s *sharing) best() shared {
	best := s.within(0)
	if s.apart {
		return best
	}
	for i := 1; i <= ceilings; i++ {
		x := s.within(float64(i) / ceilings)
		if x.scratch <= s.room && x.moved+worth*x.scratch < best.moved+worth*best.scratch {
			best = x
		}
	}
	return best
}

// within shares what fits into the scratch memory of the launch that needs most, and so much of it more.
func (s *sharing) within(more float64) (x shared) {
	for f := range s.module.Body().Ops() {
		if f.Is(exec.Func) {
			t := s.timeline(f)
			x.lines = append(x.lines, t)
			x.scratch = max(x.scratch, slices.Max(append(t.used, 0)))
		}
	}
	most := x.scratch + int64(more*float64(x.scratch))
	for _, t := range x.lines {
		if !s.apart {
			t.keep(most)
			t.ahead(most)
		}
		x.scratch = max(x.scratch, t.place())
		x.moved = max(x.moved, t.moved())
	}
	return x
}

// timeline reads a function.
func (s *sharing) timeline(f *ir.Op) *timeline {
	t := &timeline{}
	current := map[source]*contents{}
	for op := range f.Body().Ops() {
		if op.Is(exec.Ref) {
			continue
		}
		kernel := op.Attrs().Sym("kernel")
		i := slices.IndexFunc(s.products, func(p *planeProduct) bool { return op.Is(exec.Launch) && ir.SymName(p.m.kernel) == kernel })
		used, ins := int64(0), 0
		if i >= 0 {
			p := s.products[i]
			ins = op.NumOperands() - p.outs()
			used = t.launch(p, op, s.d, func(side int) *contents {
				ref, x := op.Operand(p.refs[side]), p.split.Of[side]
				at := source{memoryOf(ref), ref.Op().Attr("value"), x.Of.String(), x.Rows, x.Cols, x.Pitch}
				if current[at] == nil {
					current[at] = &contents{matrix: x}
				}
				return current[at]
			})
		} else if op.Is(exec.Launch) {
			used = s.scratch(kernel)
		}
		t.used, t.closed = append(t.used, used), append(t.closed, i < 0 && used > 0)
		for _, v := range op.Operands()[ins:] { // what is no product may write to all that it refers to
			for at := range current {
				if v.DefinedBy(exec.Ref) && meet([]extentOfMemory{at.memory}, []extentOfMemory{memoryOf(v)}) {
					delete(current, at)
				}
			}
		}
	}
	return t
}

// scratch is the scratch memory that a kernel that has been lowered works in, with those that go with it.
func (s *sharing) scratch(name string) (bytes int64) {
	for name != "" {
		k := ir.LookupSymbol(s.module, name)
		if k == nil {
			break
		}
		a := k.Attrs()
		bytes = max(bytes, a.IntOr(ScratchAttr, 0), a.IntOr(WorkspaceAttr, 0)*a.IntOr(BlocksAttr, 1))
		name = a.Sym(ThenAttr)
	}
	return bytes
}

// launch notes a launch of a product, whose operands are found by side, and gives the scratch memory that it needs by itself.
func (t *timeline) launch(p *planeProduct, op *ir.Op, d blublas.Device, find func(side int) *contents) (used int64) {
	l := &planned{op: op, product: p, step: len(t.used)}
	for side, x := range p.split.Of {
		c := find(side)
		if len(c.sets) == 0 {
			t.all = append(t.all, c)
		}
		if first := l.sets[0]; side == 1 && first.of == c && first.mnMajor == x.Sets[0].MNMajor {
			l.sets[1] = first
			continue
		}
		set := &planeSet{of: c, mnMajor: x.Sets[0].MNMajor}
		_, set.Bytes = p.places(x, x.Sets[0], d, 0)
		set.First, set.Last = l.step, l.step
		l.sets[side], c.sets = set, append(c.sets, set)
		used += set.Bytes
	}
	if p.g.SplitK > 1 {
		l.partials = &arena.Piece{Bytes: p.g.PartialBytes(), First: l.step, Last: l.step}
		used += l.partials.Bytes
	}
	t.launches = append(t.launches, l)
	return used
}

// fits reports whether so many bytes more may be in use at steps, and notes that they are.
func (t *timeline) fits(bytes int64, from, to int, most int64) bool {
	for i := from; i <= to; i++ {
		if t.closed[i] || t.used[i]+bytes > most {
			return false
		}
	}
	for i := from; i <= to; i++ {
		t.used[i] += bytes
	}
	return true
}

// again is a set and a later one of the same matrix.
type again struct{ earlier, later *planeSet }

// inOrder goes through pairs, those that are the fewest steps apart first.
func inOrder(pairs []again, f func(earlier, later *planeSet)) {
	slices.SortStableFunc(pairs, func(x, y again) int {
		return cmp.Compare(x.later.First-x.earlier.Last, y.later.First-y.earlier.Last)
	})
	for _, p := range pairs {
		f(p.earlier, p.later)
	}
}

// keep finds the sets that are kept until they are read again.
func (t *timeline) keep(most int64) {
	var pairs []again
	for _, c := range t.all {
		last := map[bool]*planeSet{}
		for _, s := range c.sets {
			if last[s.mnMajor] != nil {
				pairs = append(pairs, again{last[s.mnMajor], s})
			}
			last[s.mnMajor] = s
		}
	}
	inOrder(pairs, func(earlier, later *planeSet) {
		if t.fits(later.Bytes, earlier.Last+1, later.First-1, most) {
			later.kept = earlier
		}
	})
	for _, c := range t.all {
		for _, s := range c.sets {
			if first := s.read(); first != s {
				first.Last = max(first.Last, s.Last)
			}
		}
		c.sets = slices.DeleteFunc(c.sets, func(s *planeSet) bool { return s.kept != nil })
	}
}

// ahead finds the sets that are made where the matrix is read for another.
func (t *timeline) ahead(most int64) {
	var pairs []again
	for _, c := range t.all {
		for i, s := range c.sets {
			for _, before := range slices.Backward(c.sets[:i]) {
				if before.mnMajor != s.mnMajor && before.First < s.First {
					pairs = append(pairs, again{before, s})
					break
				}
			}
		}
	}
	inOrder(pairs, func(earlier, later *planeSet) {
		if t.fits(later.Bytes, earlier.First, later.First-1, most) {
			later.First = earlier.First
		}
	})
}

// moved is the bytes that are read and written to make all planes.
func (t *timeline) moved() (bytes int64) {
	for _, c := range t.all {
		read := map[int]bool{}
		for _, s := range c.sets {
			if !read[s.First] {
				read[s.First] = true
				bytes += 4 * int64(c.matrix.Rows) * int64(c.matrix.Cols)
			}
			bytes += s.Bytes
		}
	}
	return bytes
}

// place gives everything in scratch memory its place, and is the bytes that this takes.
func (t *timeline) place() int64 {
	var pieces []*arena.Piece
	for _, c := range t.all {
		for _, s := range c.sets {
			pieces = append(pieces, &s.Piece)
		}
	}
	for _, l := range t.launches {
		if l.partials != nil {
			pieces = append(pieces, l.partials)
		}
	}
	return arena.Pack(pieces, planeAlign)
}

// planeProduct is a kernel that is a product in planes, and what it becomes: kernels for each way in which its launches find and leave
// planes in scratch memory.
type planeProduct struct {
	*planes
	m      *match
	refs   [2]int            // the operands among the references
	chains map[string]string // the first of the kernels, by what they do
}

func (m *match) planeProduct(p *planes) *planeProduct {
	m.applyFunctions(p)
	return &planeProduct{planes: p, m: m, refs: m.operandRefs(), chains: map[string]string{}}
}

// operandRefs is the numbers of the operands among the references.
func (m *match) operandRefs() [2]int {
	lhs, rhs, _, _ := tile.ContractOperands(m.contract)
	return [2]int{m.refOf(lhs[0]), m.refOf(rhs[0])}
}

func (p *planeProduct) outs() int { return int(p.m.kernel.Attrs().IntOr("outs", 0)) }

// finish erases the tile kernel. One that nobody launches is lowered as if it were launched alone.
func (p *planeProduct) finish(d blublas.Device) error {
	if len(p.chains) == 0 {
		t := &timeline{}
		t.launch(p, nil, d, func(side int) *contents { return &contents{matrix: p.split.Of[side]} })
		t.place()
		if err := t.launches[0].write(d); err != nil {
			return err
		}
	}
	p.m.kernel.Erase()
	return nil
}

// places is where the parts of a set lie that starts at an offset in scratch memory, and where it ends.
func (p *planeProduct) places(x blublas.Matrix, set blublas.Set, d blublas.Device, from int64) (places map[string]exec.Param, end int64) {
	places = map[string]exec.Param{}
	add := func(part any, bytes int64) {
		places[fmt.Sprint(set.Name, ".", part)] = exec.Param{Ref: -1, Offset: from}
		from += (bytes + planeAlign - 1) / planeAlign * planeAlign
	}
	for n := range p.split.Planes() {
		add(n, x.PlaneBytes())
	}
	add("scales", int64(x.ScaleBytes(set)))
	add("flags", 4*int64(x.Flags(d)))
	return places, from
}

// write gives a launch the kernels that it needs.
func (l *planned) write(d blublas.Device) error {
	p := l.product
	c := &chain{m: p.m}
	if n := len(p.chains); n > 0 {
		c.suffix = fmt.Sprint(".planes", n+1)
	}
	places := map[string]exec.Param{}
	take := func(set *planeSet, name string) blublas.Set {
		out := blublas.Set{Name: name, MNMajor: set.mnMajor}
		parts, end := p.places(set.of.matrix, out, d, set.Offset)
		maps.Copy(places, parts)
		c.scratch = max(c.scratch, end)
		return out
	}
	split := p.split
	split.Of = l.makes(take)
	for side, set := range l.sets {
		take(set.read(), sideNames[side])
	}
	if l.partials != nil {
		places["partials"] = exec.Param{Ref: -1, Offset: l.partials.Offset}
		c.scratch = max(c.scratch, l.partials.Offset+l.partials.Bytes)
	}
	key := fmt.Sprint(split.Of, places)
	name, known := p.chains[key]
	if !known {
		name = c.name()
		p.chains[key] = name
		if err := c.planes(p, split, d, places); err != nil {
			return err
		}
	}
	if l.op != nil {
		l.op.SetAttr("kernel", p.m.l.c.Symbol(name))
	}
	return nil
}

// makes lists the matrices of which a launch makes planes.
func (l *planned) makes(take func(set *planeSet, name string) blublas.Set) (of []blublas.Matrix) {
	for side, read := range l.sets {
		if side == 1 && read.of == l.sets[0].of {
			break
		}
		x := read.of.matrix
		x.Name, x.Sets = sideNames[side], nil
		for _, set := range read.of.sets {
			if set.First == l.step && set.kept == nil {
				x.Sets = append(x.Sets, take(set, x.Name+map[bool]string{false: ".rows", true: ".columns"}[set.mnMajor]))
			}
		}
		if len(x.Sets) > 0 {
			of = append(of, x)
		}
	}
	return of
}
