package ptx

import (
	"fmt"
	"regexp"
	"slices"

	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// An optimizer treats every parameter alike, and each is a launch: most of them are over before the next one has begun. Launches
// that follow one another and don't depend on each other are one, of a list: blocks of threads find out by their number which
// kernel of the list they are of, and which launch of that kernel. The references' addresses are in memory, those of all inputs
// first, kernel by kernel and launch by launch.

// The threads of a block in a list, and the most kernels that one has: each is more code.
const (
	listThreads = 256
	listKernels = 24
)

// list is launches that are made together.
type list struct {
	kernels  []*listed
	launches []*ir.Op
	memory   touched
}

// listed is a kernel of a list.
type listed struct {
	kernel    *ir.Op
	layout    layout
	launches  []*ir.Op
	ins, outs int // the first entries in the table
}

// lists finds launches to be made together, and makes their kernels.
func lists(c *ir.Context, module *ir.Op, aligned map[string][]int64, o Options) error {
	for f := range module.Body().Ops() {
		if !f.Is(exec.Func) {
			continue
		}
		var all []*list
		open := &list{}
		for op := range f.Body().Ops() {
			if op.Is(exec.Ref) {
				continue
			}
			if !open.add(module, op, aligned) {
				all = append(all, open)
				open = &list{}
				open.add(module, op, aligned)
			}
		}
		for _, l := range append(all, open) {
			if len(l.launches) > 1 {
				if err := l.lower(c, module, aligned, o.Target); err != nil {
					return err
				}
			}
		}
	}
	eraseUnused(module)
	return nil
}

// add takes a launch into the list, or reports that it is none, or not of a kernel that lists have, or depends on one there.
func (l *list) add(module, op *ir.Op, aligned map[string][]int64) bool {
	if !op.Is(exec.Launch) {
		return false
	}
	kernel := ir.LookupSymbol(module, op.Attrs().Sym("kernel"))
	if kernel == nil || !kernel.Is(tile.Kernel) {
		return false
	}
	i := slices.IndexFunc(l.kernels, func(k *listed) bool { return k.kernel == kernel })
	if i < 0 {
		dropDead(kernel.Body())
		y, ok := listLayout(kernel, aligned[ir.SymName(kernel)])
		if !ok || len(l.kernels) == listKernels {
			return false
		}
		i = len(l.kernels)
		l.kernels = append(l.kernels, &listed{kernel: kernel, layout: y})
	}
	if !l.memory.add(op, int(kernel.Attrs().IntOr("outs", 0))) {
		if len(l.kernels[i].launches) == 0 {
			l.kernels = l.kernels[:i]
		}
		return false
	}
	l.kernels[i].launches, l.launches = append(l.kernels[i].launches, op), append(l.launches, op)
	return true
}

// listLayout is the layout of a kernel in a list; ok is false for kernels that lists don't have: only those that load blocks,
// compute and store, once. Rows that are reduced and then stored are better off with a warp each.
func listLayout(kernel *ir.Op, align []int64) (y layout, ok bool) {
	rows, cols := 1, 1
	reduces, stores := false, false
	ok = true
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		switch op.Def() {
		case tile.Kernel, tile.Load, tile.Store, tile.Constant, tile.Iota, tile.Broadcast, tile.Reduce, tile.End:
		default:
			ok = ok && (op.Def().DialectName() == "arith" || tile.ElementwiseOp(op.Def().Name) == op.Def())
		}
		reduces = reduces || op.Is(tile.Reduce) && op.Attrs().IntOr("axis", 0) == 1 && op.Operand(0).Shape()[0] > 1
		stores = stores || op.Is(tile.Store) && op.Operand(0).Shape()[1] > 1
		for _, v := range op.Results() {
			if r, c := blockShape(v); r*c > rows*cols {
				rows, cols = r, c
			}
		}
		return ir.Advance
	})
	v := vectors(kernel, align, cols)
	y = layout{vr: 1, v: v, threads: listThreads}
	y.tc = min(powerOf2((cols+v-1)/v), max(32, powerOf2((listThreads+rows-1)/rows)), listThreads)
	y.tr = listThreads / y.tc
	return y, ok && !(reduces && stores) && y.rows(rows)*y.cols(cols) <= maxElems
}

func blockShape(v *ir.Value) (rows, cols int) {
	if !tile.IsBlock(v.Type()) {
		return 0, 0
	}
	return int(v.Shape()[0]), int(v.Shape()[1])
}

// lower writes the list's kernel and function, and launches it in the place of the last of its launches.
func (l *list) lower(c *ir.Context, module *ir.Op, aligned map[string][]int64, target string) error {
	last := l.launches[len(l.launches)-1]
	b := ir.NewBuilder(c, nil).Before(last.Parent()).At(last.Loc())
	name := l.name(module)
	p := ptx.NewKernel(b, ptx.Config{Name: name, Target: target, Threads: listThreads}, c.I64())
	p.Kernel.SetAttr(TableAttr, c.Unit())
	l.number()
	number := p.Special("ctaid.x")
	blocks, shared, err := l.write(c, p, number, 0, 0, aligned)
	if err != nil {
		return err
	}
	p.CreateState(ptx.Return, ir.OpState{})
	refs, outs := l.refs()
	var types []ir.Attr
	for _, v := range append(refs, outs...) {
		types = append(types, c.TypeAttr(v.Type()))
	}
	p.Kernel.SetAttr(RefsAttr, c.Array(types...))
	p.Kernel.SetAttr(OutsAttr, c.Int64(int64(len(outs))))
	p.Kernel.SetAttr(BlocksAttr, c.Int64(blocks))
	if shared > 0 {
		p.Kernel.SetAttr("shared", c.Int64(shared))
	}
	if err := l.refer(c, module, name); err != nil {
		return err
	}
	ir.NewBuilder(c, nil).Before(last).At(last.Loc()).CreateState(exec.Launch, ir.OpState{
		Operands: append(refs, outs...), Attrs: []ir.NamedAttr{{Name: "kernel", Value: c.Symbol(name)}}})
	for _, op := range l.launches {
		op.Erase()
	}
	return nil
}

// refs is what the launches read and what they write, kernel by kernel.
func (l *list) refs() (ins, outs []*ir.Value) {
	for _, k := range l.kernels {
		n, _ := tile.Refs(k.kernel)
		for _, op := range k.launches {
			ins, outs = append(ins, op.Operands()[:len(n)]...), append(outs, op.Operands()[len(n):]...)
		}
	}
	return ins, outs
}

// number finds where each kernel's references are in the table.
func (l *list) number() {
	refs, _ := l.refs()
	in, out := 0, len(refs)
	for _, k := range l.kernels {
		ins, outs := tile.Refs(k.kernel)
		k.ins, k.outs = in, out
		in, out = in+len(ins)*len(k.launches), out+len(outs)*len(k.launches)
	}
}

// write writes kernel i and those behind it, whose blocks start at a number. It gives the number of all blocks, and the bytes of
// shared memory.
func (l *list) write(c *ir.Context, b *ptx.Builder, number *ir.Value, i int, start int64, aligned map[string][]int64) (blocks, shared int64, err error) {
	k := l.kernels[i]
	per, err := gridBlocks(k.kernel)
	if err != nil {
		return 0, 0, err
	}
	end := start + per*int64(len(k.launches))
	if end >= 1<<31 {
		return 0, 0, k.kernel.Errorf("a list of %d blocks is more than the target can count", end)
	}
	blocks = end
	body := func() {
		var n int64
		if n, err = k.write(c, b, b.Sub(number, b.I32(int(start))), per, aligned[ir.SymName(k.kernel)]); n > shared {
			shared = n
		}
	}
	if i == len(l.kernels)-1 {
		body()
		return blocks, shared, err
	}
	b.If(b.Compare("lt", number, b.I32(int(end))), true, body, func() {
		n, m, e := l.write(c, b, number, i+1, end, aligned)
		if blocks, shared = n, max(shared, m); e != nil {
			err = e
		}
	})
	return blocks, shared, err
}

// write writes the body of a kernel for blocks numbered from 0 in the kernel's launches.
func (k *listed) write(c *ir.Context, b *ptx.Builder, number *ir.Value, per int64, align []int64) (shared int64, err error) {
	l := newLowering(c, k.kernel)
	if err := l.checkSizes(); err != nil {
		return 0, err
	}
	l.b, l.layout = b, k.layout
	defer b.At(b.Loc)
	b.At(k.kernel.Loc())
	ins, outs := tile.Refs(k.kernel)
	l.point = number
	launch := b.I32(0)
	if len(k.launches) > 1 {
		launch, l.point = b.DivI(number, int(per)), b.RemI(number, int(per))
	}
	table := b.Kernel.Body().Arg(0)
	for n, refs := range [][]*ir.Value{ins, outs} {
		first := b.Add(b.MulWide(launch, 8*len(refs), table), b.I64(8*int64([]int{k.ins, k.outs}[n])))
		for i, v := range refs {
			a := int64(Alignment)
			if align != nil {
				a = align[n*len(ins)+i]
			}
			r := newReference(nil, v.Type().(*ir.MemRefType), a)
			r.table, r.entry = first, i
			l.refs[v] = r
		}
	}
	l.findShared(ins, outs)
	l.place()
	err = l.body(k.kernel.Body())
	return l.shared, err
}

// sizes is what follows the words of a kernel's name.
var sizes = regexp.MustCompile(`_\d.*$`)

// name is what the list's greatest kernel is called, without sizes, and the number of launches.
func (l *list) name(module *ir.Op) string {
	most, words := int64(-1), ""
	for _, k := range l.kernels {
		if n, err := gridBlocks(k.kernel); err == nil && n > most {
			most, words = n, sizes.ReplaceAllString(ir.SymName(k.kernel), "")
		}
	}
	name := fmt.Sprintf("%s_list_%d", words, len(l.launches))
	for n, first := 2, name; ir.LookupSymbol(module, name) != nil; n++ {
		name = fmt.Sprintf("%s_%d", first, n)
	}
	return name
}

// refer writes the function that the list implements, if there are such: one after the other of its kernels'.
func (l *list) refer(c *ir.Context, module *ir.Op, name string) error {
	reference := ir.LookupSymbol(module, referenceModule)
	if reference == nil {
		return nil
	}
	var ins, outs []ir.Type
	var functions []*ir.Op
	for _, k := range l.kernels {
		f := functionOf(reference, k.kernel)
		if f == nil {
			return k.kernel.Errorf("no function says what kernel %s does", ir.SymName(k.kernel))
		}
		t := f.Attr("function_type").(*ir.TypeAttr).Type.(*ir.FunctionType)
		for range k.launches {
			ins, outs, functions = append(ins, t.Inputs...), append(outs, t.Results...), append(functions, f)
		}
	}
	whole := c.NewOp(fn.Func, ir.OpState{Loc: l.launches[0].Loc(), Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: c.String(name)}, {Name: "function_type", Value: c.TypeAttr(c.Func(ins, outs))},
	}})
	body := whole.Region(0).AddBlock(ins...)
	b, args := ir.NewBuilder(c, body), body.Args()
	var results []*ir.Value
	for _, f := range functions {
		known := map[*ir.Value]*ir.Value{}
		for i, a := range f.Body().Args() {
			known[a] = args[i]
		}
		args = args[len(f.Body().Args()):]
		for op := range f.Body().Ops() {
			if op.Has(ir.Terminator) {
				for _, v := range op.Operands() {
					results = append(results, known[v])
				}
				continue
			}
			b.Insert(op.Clone(c, known))
		}
	}
	b.CreateState(fn.Return, ir.OpState{Operands: results})
	reference.Body().Append(whole)
	return nil
}

// eraseUnused erases the kernels that are only launched in lists.
func eraseUnused(module *ir.Op) {
	launched := map[string]bool{}
	listed := false
	ir.Walk(module, func(op *ir.Op) ir.WalkResult {
		if op.Is(exec.Launch) {
			launched[op.Attrs().Sym("kernel")] = true
		}
		listed = listed || op.Is(ptx.Kernel)
		return ir.Advance
	})
	for op := range module.Body().Ops() {
		if listed && op.Is(tile.Kernel) && !launched[ir.SymName(op)] {
			op.Erase()
		}
	}
}

// touched is the memory that launches read and write.
type touched struct{ reads, writes []extentOfMemory }

// extentOfMemory is bytes of a piece of memory.
type extentOfMemory struct {
	space, name string
	from, to    int64
}

// add notes what one more launch reads and writes, unless it depends on those before, or they on it.
func (t *touched) add(launch *ir.Op, outs int) bool {
	var reads, writes []extentOfMemory
	for i, v := range launch.Operands() {
		e := memoryOf(v)
		if i < launch.NumOperands()-outs {
			reads = append(reads, e)
		} else {
			writes = append(writes, e)
		}
	}
	if meet(writes, t.reads) || meet(writes, t.writes) || meet(reads, t.writes) {
		return false
	}
	t.reads, t.writes = append(t.reads, reads...), append(t.writes, writes...)
	return true
}

func meet(xs, ys []extentOfMemory) bool {
	for _, x := range xs {
		for _, y := range ys {
			if x.space == y.space && x.name == y.name && x.from < y.to && y.from < x.to {
				return true
			}
		}
	}
	return false
}

// memoryOf is the bytes from the first to the last element of a reference.
func memoryOf(v *ir.Value) extentOfMemory {
	a, t := v.Op().Attrs(), v.Type().(*ir.MemRefType)
	strides, _ := mem.Layout(t)
	last := int64(0)
	for i, n := range t.Shape {
		if n == 0 {
			return extentOfMemory{}
		}
		last += (n - 1) * strides[i]
	}
	from := a.IntOr("offset", 0)
	return extentOfMemory{a.Str("space"), a.Str("name"), from, from + (last+1)*max(ir.ByteSize(t.Elem), 1)}
}
