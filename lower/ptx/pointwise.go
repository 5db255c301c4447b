package ptx

import (
	"cmp"
	"fmt"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// What one product in planes alone reads needn't be in memory where it is a function of single numbers: gelu, say, that a backward pass computes again.
// The function becomes a part of making planes; the launch that computed it goes.

// pointwise is a kernel that computes a function of each number of a tensor.
type pointwise struct {
	kernel      *ir.Op
	ops         []*ir.Op // between the load and the store
	load, store *ir.Op
}

// pointwiseOf is a copy of a kernel as such, or nil.
func pointwiseOf(c *ir.Context, kernel *ir.Op) *pointwise {
	kernel = kernel.Clone(c, map[*ir.Value]*ir.Value{})
	dropDead(kernel.Body())
	ins, outs := tile.Refs(kernel)
	if len(ins) != 1 || len(outs) != 1 || ins[0].Type() != outs[0].Type() || !isDense(ins[0].Type().(*ir.MemRefType)) {
		return nil
	}
	p := &pointwise{kernel: kernel}
	for op := range kernel.Body().Ops() {
		switch {
		case op.Is(tile.Load) && p.load == nil:
			p.load = op
		case op.Is(tile.Store) && p.store == nil:
			p.store = op
		case op.Is(tile.Constant), op.Is(tile.Broadcast), tile.ElementwiseOp(op.Def().Name) == op.Def():
			p.ops = append(p.ops, op)
		case op.Def().DialectName() == "arith", op.Has(ir.Terminator):
		default:
			return nil
		}
	}
	f32 := ir.Type(c.F32())
	if p.load == nil || p.store == nil || p.load.Result(0).Elem() != f32 || p.load.Result(0).Type() != p.store.Operand(0).Type() || !slices.Equal(p.load.Operands()[1:], p.store.Operands()[2:]) {
		return nil
	}
	return p
}

// isDense reports whether a tensor is row-major without gaps.
func isDense(t *ir.MemRefType) bool {
	strides, _ := mem.Layout(t)
	n := int64(1)
	for i := len(strides) - 1; i >= 0; i-- {
		if strides[i] != n {
			return false
		}
		n *= t.Shape[i]
	}
	return true
}

// function is what is computed, by what a product knows of functions of numbers.
func (p *pointwise) function(m *match) *blublas.Function {
	return &blublas.Function{Name: ir.SymName(p.kernel), Apply: func(b *ptx.Builder, x *ir.Value) *ir.Value {
		m.l.b = b
		env := map[*ir.Value][]*ir.Value{p.load.Result(0): {x}}
		for _, op := range p.ops {
			switch {
			case op.Is(tile.Constant):
				env[op.Result(0)] = []*ir.Value{m.l.number(op.Result(0).Elem(), op.Attrs().FloatOr("value", 0))}
			case op.Is(tile.Broadcast):
				env[op.Result(0)] = env[op.Operand(0)]
			default:
				env[op.Result(0)] = m.elementwise(op, env)
			}
		}
		return env[p.store.Operand(0)][0]
	}}
}

// productOf is a kernel as a product in planes of functions of its operands.
func productOf(c *ir.Context, kernel *ir.Op, o Options, align []int64, of [2]*pointwise) (*planeProduct, error) {
	m, d := matchProduct(c, kernel, align), blublas.DeviceFor(o.Target)
	w, err := m.choose(o, align, d)
	if err == nil && (w == nil || w.planes == nil) { // what else a table says is not of functions
		o.Tuning, o.Products = nil, "templates"
		w, err = m.choose(o, align, d)
	}
	if err != nil {
		return nil, err
	}
	p := m.planeProduct(w.planes)
	for side, f := range of {
		if f != nil {
			by := f.function(m)
			p.split.Of[side].Of, p.g.Refuge.Of[side] = by, by
		}
	}
	return p, nil
}

// fusion finds such launches, and changes the program.
type fusion struct {
	c        *ir.Context
	module   *ir.Op
	d        blublas.Device
	products map[string]*match // kernels that are products in planes
	points   map[string]*pointwise
	of       map[string][2]*pointwise // what the operands of new kernels are functions of, by name
	made     map[string]string        // new kernels, by what they are of
	replaced []string                 // kernels that may not be launched any more
}

// fusePointwise makes products in planes of functions of operands, and gives the functions by the kernels' names.
func fusePointwise(c *ir.Context, module *ir.Op, o Options) (map[string][2]*pointwise, error) {
	f := &fusion{c: c, module: module, d: blublas.DeviceFor(o.Target), products: map[string]*match{}, points: map[string]*pointwise{}, of: map[string][2]*pointwise{}, made: map[string]string{}}
	aligned := alignments(module)
	o.Tuning = nil // it decides later
	for op := range module.Body().Ops() {
		if !op.Is(tile.Kernel) {
			continue
		}
		dropDead(op.Body())
		if m := matchProduct(c, op, aligned[ir.SymName(op)]); m != nil {
			w, err := m.choose(o, nil, f.d)
			if err != nil {
				return nil, err
			}
			if w != nil && w.planes != nil {
				f.products[ir.SymName(op)] = m
			}
		}
	}
	for fun := range module.Body().Ops() {
		if fun.Is(exec.Func) && len(f.products) > 0 {
			f.function(fun)
		}
	}
	f.eraseReplaced()
	return f.of, nil
}

// function changes a function's launches.
func (f *fusion) function(fun *ir.Op) {
	var ops []*ir.Op
	for op := range fun.Body().Ops() {
		if !op.Is(exec.Ref) {
			ops = append(ops, op)
		}
	}
	for i := 0; i < len(ops); i++ {
		product := ops[i]
		m := f.products[product.Attrs().Sym("kernel")]
		if m == nil {
			continue
		}
		for side, n := range m.operandRefs() {
			j, p := f.producer(ops[:i], product, product.Operand(n))
			if p == nil || !f.unread(ops[i+1:], memoryOf(product.Operand(n))) {
				continue
			}
			f.join(product, side, n, ops[j], p)
			ops = slices.Delete(ops, j, j+1)
			i--
		}
	}
}

// written is what an operation may write to.
func (f *fusion) written(op *ir.Op) (at []extentOfMemory) {
	first := 0
	if k := f.kernelOf(op); k != nil {
		first = op.NumOperands() - int(k.Attrs().IntOr("outs", 0))
	}
	return extents(op.Operands()[first:])
}

// kernelOf is the kernel that an operation launches, or nil.
func (f *fusion) kernelOf(op *ir.Op) *ir.Op {
	if !op.Is(exec.Launch) {
		return nil
	}
	return ir.LookupSymbol(f.module, op.Attrs().Sym("kernel"))
}

func extents(refs []*ir.Value) (at []extentOfMemory) {
	for _, v := range refs {
		if v.DefinedBy(exec.Ref) {
			at = append(at, memoryOf(v))
		}
	}
	return at
}

// producer is the number of the launch that computes all of a product's operand, and what it computes of what is still there then.
func (f *fusion) producer(before []*ir.Op, product *ir.Op, operand *ir.Value) (j int, p *pointwise) {
	at := memoryOf(operand)
	uses := func(op *ir.Op) (n int) {
		for _, e := range extents(op.Operands()) {
			if meet([]extentOfMemory{e}, []extentOfMemory{at}) {
				n++
			}
		}
		return n
	}
	for j = len(before) - 1; j >= 0 && uses(before[j]) == 0; j-- {
	}
	if j < 0 || uses(product) > 1 || at.space != mem.Arena || at.to-at.from != ir.NumElements(operand.Shape())*ir.ByteSize(operand.Elem()) {
		return 0, nil
	}
	if p = f.pointwise(f.kernelOf(before[j])); p == nil {
		return 0, nil
	}
	from, to := memoryOf(before[j].Operand(0)), memoryOf(before[j].Operand(1))
	if to != at || from != at && meet([]extentOfMemory{from}, []extentOfMemory{at}) || from.space == mem.Const {
		return 0, nil
	}
	for _, op := range append(slices.Clone(before[j+1:]), product) {
		if meet(f.written(op), []extentOfMemory{from}) {
			return 0, nil
		}
	}
	return j, p
}

// pointwise is what a kernel computes, if that is a function of single numbers.
func (f *fusion) pointwise(kernel *ir.Op) *pointwise {
	if kernel == nil || !kernel.Is(tile.Kernel) {
		return nil
	}
	name := ir.SymName(kernel)
	if _, known := f.points[name]; !known {
		f.points[name] = pointwiseOf(f.c, kernel)
	}
	return f.points[name]
}

// unread reports whether nothing reads a piece of memory before it is written anew.
func (f *fusion) unread(after []*ir.Op, at extentOfMemory) bool {
	left := []extentOfMemory{at}
	for _, op := range after {
		reads := op.Operands()
		if k := f.kernelOf(op); k != nil {
			reads = reads[:len(reads)-int(k.Attrs().IntOr("outs", 0))]
		}
		if meet(extents(reads), left) {
			return false
		}
		for _, w := range covered(op.Operands()[len(reads):]) {
			left = without(left, w)
		}
	}
	return true
}

// covered is the pieces of memory that results fill without gaps, each by itself or together: queries, keys and values beside each
// other, say.
func covered(outs []*ir.Value) (full []extentOfMemory) {
	type piece struct {
		extentOfMemory
		bytes int64 // of elements, which are different ones
	}
	var pieces []piece
	for _, v := range outs {
		p := piece{memoryOf(v), ir.NumElements(v.Shape()) * max(ir.ByteSize(v.Elem()), 1)}
		pieces = slices.DeleteFunc(pieces, func(q piece) bool {
			if !meet([]extentOfMemory{q.extentOfMemory}, []extentOfMemory{p.extentOfMemory}) {
				return false
			}
			p.from, p.to, p.bytes = min(p.from, q.from), max(p.to, q.to), p.bytes+q.bytes
			return true
		})
		pieces = append(pieces, p)
	}
	for _, p := range pieces {
		if p.bytes == p.to-p.from {
			full = append(full, p.extentOfMemory)
		}
	}
	return full
}

// without is pieces of memory but what is in another.
func without(pieces []extentOfMemory, w extentOfMemory) (left []extentOfMemory) {
	for _, p := range pieces {
		if !meet([]extentOfMemory{p}, []extentOfMemory{w}) {
			left = append(left, p)
			continue
		}
		if p.from < w.from {
			left = append(left, extentOfMemory{p.space, p.name, p.from, w.from})
		}
		if w.to < p.to {
			left = append(left, extentOfMemory{p.space, p.name, w.to, p.to})
		}
	}
	return left
}

// join has a product read what a launch reads, which goes.
func (f *fusion) join(product *ir.Op, side, n int, producer *ir.Op, p *pointwise) {
	from := producer.Operand(0).Op()
	ref := ir.NewBuilder(f.c, nil).Before(product).At(product.Loc()).CreateState(exec.Ref, ir.OpState{
		Results: []ir.Type{product.Operand(n).Type()}, Attrs: slices.Clone([]ir.NamedAttr(from.Attrs()))})
	product.SetOperand(n, ref.Result(0))
	old := product.Attrs().Sym("kernel")
	product.SetAttr("kernel", f.c.Symbol(f.kernel(old, side, p)))
	f.replaced = append(f.replaced, old, producer.Attrs().Sym("kernel"))
	producer.Erase()
}

// kernel is the one that is a product of a function of an operand.
func (f *fusion) kernel(old string, side int, p *pointwise) string {
	words := sizes.ReplaceAllString(ir.SymName(p.kernel), "")
	key := fmt.Sprint(old, " ", side, " ", ir.SymName(p.kernel))
	if name, ok := f.made[key]; ok {
		return name
	}
	name := words + "_" + old
	for n := 2; ir.LookupSymbol(f.module, name) != nil; n++ {
		name = fmt.Sprintf("%s_%s_%d", words, old, n)
	}
	f.made[key] = name
	of := f.of[old]
	of[side] = p
	f.of[name] = of
	kernel := ir.LookupSymbol(f.module, old)
	copied := kernel.Clone(f.c, map[*ir.Value]*ir.Value{})
	ir.NewBuilder(f.c, nil).Before(kernel).Insert(copied)
	copied.SetAttr("sym_name", f.c.String(name))
	f.products[name] = matchProduct(f.c, copied, nil)
	f.refer(kernel, name, f.products[name].operandRefs()[side], p)
	copied.SetAttr(tileReference, f.c.String(name))
	return name
}

// refer writes the function that the new kernel implements, if there are such.
func (f *fusion) refer(kernel *ir.Op, name string, n int, p *pointwise) {
	reference := ir.LookupSymbol(f.module, referenceModule)
	if reference == nil {
		return
	}
	functionOf := func(kernel *ir.Op) *ir.Op {
		called := ir.SymName(kernel)
		if s, ok := kernel.Attr(tileReference).(*ir.StringAttr); ok {
			called = s.Value
		}
		return ir.LookupSymbol(reference, called)
	}
	outer, inner := functionOf(kernel), functionOf(p.kernel)
	whole := outer.Clone(f.c, map[*ir.Value]*ir.Value{})
	whole.SetAttr("sym_name", f.c.String(name))
	reference.Body().Append(whole)
	x := whole.Body().Arg(n)
	b := blu.On(ir.NewBuilder(f.c, nil).Before(whole.Body().First()).At(kernel.Loc()))
	// As the operand lies in memory it is as long as what the other function takes.
	ins, _ := tile.Refs(kernel)
	strides, _ := mem.Layout(ins[n].Type().(*ir.MemRefType))
	perm, back := make([]int64, len(strides)), make([]int64, len(strides))
	for i := range perm {
		perm[i] = int64(i)
	}
	slices.SortStableFunc(perm, func(i, j int64) int { return cmp.Compare(strides[j], strides[i]) })
	for i, d := range perm {
		back[d] = int64(i)
	}
	along := b.Transpose(x, perm) // the one use of x that stays
	known := map[*ir.Value]*ir.Value{inner.Body().Arg(0): b.Reshape(along, inner.Body().Arg(0).Type())}
	for op := range inner.Body().Ops() {
		if op.Has(ir.Terminator) {
			y := b.Transpose(b.Reshape(known[op.Operand(0)], along.Type()), back)
			x.ReplaceUsesIf(y, func(u *ir.Use) bool { return u.Owner() != along.Op() })
			return
		}
		b.Insert(op.Clone(f.c, known))
	}
}

// eraseReplaced erases the kernels that nobody launches any more.
func (f *fusion) eraseReplaced() {
	launched := map[string]bool{}
	ir.Walk(f.module, func(op *ir.Op) ir.WalkResult {
		if op.Is(exec.Launch) {
			launched[op.Attrs().Sym("kernel")] = true
		}
		return ir.Advance
	})
	for _, name := range f.replaced {
		if k := ir.LookupSymbol(f.module, name); k != nil && !launched[name] {
			k.Erase()
		}
	}
}
