package ptx

import (
	"fmt"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// What one product in planes alone reads needn't be in memory where it is a function of single numbers that are: gelu, say, in a forward pass that
// keeps its argument, or computed again in a backward pass. The function becomes a part of making planes; the launch that computed it goes, or stores
// one result less.

// pointwise is a kernel that computes a function of each number of a tensor, which it reads or which is another of its results.
type pointwise struct {
	kernel   *ir.Op    // a copy
	out      int       // which of the results
	of       int       // the number of the reference that it is a function of
	ops      []*ir.Op  // in order
	from, to *ir.Value // blocks
}

// pointwiseOf finds out whether a result of a kernel is such a function; nil: it isn't.
func pointwiseOf(c *ir.Context, kernel *ir.Op, out int) *pointwise {
	kernel = kernel.Clone(c, map[*ir.Value]*ir.Value{})
	dropDead(kernel.Body())
	ins, outs := tile.Refs(kernel)
	refs := slices.Concat(ins, outs)
	store := onlyStore(kernel, outs[out])
	if store == nil || !isDense(outs[out].Type().(*ir.MemRefType)) {
		return nil
	}
	alike := func(places []*ir.Value) bool { return slices.Equal(places, store.Operands()[2:]) }
	at := map[*ir.Value]int{} // references that have a block's numbers where the result has those of the function
	for i, v := range refs {
		if other := onlyStore(kernel, v); i >= len(ins) && other != nil && other != store && alike(other.Operands()[2:]) {
			at[other.Operand(0)] = i
		}
	}
	if len(refs) == 2 {
		for u := range ins[0].Uses() {
			if op := u.Owner(); op.Is(tile.Load) && alike(op.Operands()[1:]) {
				at[op.Result(0)] = 0
			}
		}
	}
	p := &pointwise{kernel: kernel, out: out, to: store.Operand(0)}
	if !p.follow(p.to, at) || p.from == nil || p.from.Elem() != ir.Type(c.F32()) || p.from.Type() != p.to.Type() || refs[p.of].Type() != outs[out].Type() {
		return nil
	}
	return p
}

// onlyStore is what stores to a result of a kernel, if that is done once for each of its blocks and nothing else is done with it.
func onlyStore(kernel *ir.Op, out *ir.Value) *ir.Op {
	if !out.HasOneUse() {
		return nil
	}
	for u := range out.Uses() {
		if op := u.Owner(); op.Is(tile.Store) && op.Block() == kernel.Body() {
			return op
		}
	}
	return nil
}

// follow collects the operations that a block is computed by, from one that is in memory.
func (p *pointwise) follow(v *ir.Value, at map[*ir.Value]int) bool {
	if n, ok := at[v]; ok && (p.from == nil || p.from == v) {
		p.from, p.of = v, n
		return true
	}
	op := v.Op()
	if op == nil || !op.Is(tile.Constant) && !op.Is(tile.Broadcast) && tile.ElementwiseOp(op.Def().Name) != op.Def() {
		return false
	}
	for _, x := range op.Operands() {
		if !p.follow(x, at) {
			return false
		}
	}
	if !slices.Contains(p.ops, op) {
		p.ops = append(p.ops, op)
	}
	return true
}

// isDense reports whether a tensor is row-major without gaps.
func isDense(t *ir.MemRefType) bool {
	strides, _ := mem.Layout(t)
	return dense(t.Shape, strides)
}

// name tells functions apart.
func (p *pointwise) name() string { return fmt.Sprint(ir.SymName(p.kernel), ".", p.out) }

// words is what is computed.
func (p *pointwise) words() (s string) {
	for _, op := range p.ops {
		if tile.ElementwiseOp(op.Def().Name) == op.Def() {
			s += op.Def().Name + "_"
		}
	}
	return s
}

// function is what is computed, by what a product knows of functions of numbers.
func (p *pointwise) function(m *match) *blublas.Function {
	return &blublas.Function{Name: p.name(), Apply: func(b *ptx.Builder, x *ir.Value) *ir.Value {
		m.l.b = b
		env := map[*ir.Value][]*ir.Value{p.from: {x}}
		for _, op := range p.ops {
			env[op.Result(0)] = m.compute(op, env)
		}
		return env[p.to][0]
	}}
}

// functions is what products in planes are functions of, by the kernels' names.
type functions map[string][2]*pointwise

// ofFunctions reports whether it is a product of functions of its operands: such is computed of planes alone.
func (m *match) ofFunctions() bool { return m.of != [2]*pointwise{} }

// applyFunctions has planes made of the functions, and what they don't hold multiplied as they say.
func (m *match) applyFunctions(p *planes) {
	for side, f := range m.of {
		if f != nil {
			by := f.function(m)
			p.split.Of[side].Of, p.g.Refuge.Of[side] = by, by
		}
	}
}

// fusion finds such launches, and changes the program.
type fusion struct {
	c        *ir.Context
	module   *ir.Op
	d        blublas.Device
	products map[string]*match // kernels that are products in planes
	points   map[string]*pointwise
	of       functions
	made     map[string]string // new kernels, by what they are of
	replaced []string          // kernels that may not be launched any more
}

// fusePointwise makes products in planes of functions of operands, and gives those.
func fusePointwise(c *ir.Context, module *ir.Op, o Options) (functions, error) {
	f := &fusion{c: c, module: module, d: blublas.DeviceFor(o.Target), products: map[string]*match{}, points: map[string]*pointwise{}, of: functions{}, made: map[string]string{}}
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
			if f.join(product, side, n, ops[j], p) {
				ops = slices.Delete(ops, j, j+1)
				i--
			}
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
	launch := before[j]
	kernel := f.kernelOf(launch)
	if kernel == nil || !kernel.Is(tile.Kernel) || uses(launch)-countOf(launch.Operands(), at) > 0 {
		return 0, nil
	}
	ins := launch.NumOperands() - int(kernel.Attrs().IntOr("outs", 0))
	to := slices.IndexFunc(launch.Operands()[ins:], func(v *ir.Value) bool { return v.DefinedBy(exec.Ref) && memoryOf(v) == at })
	if to < 0 {
		return 0, nil
	}
	if p = f.pointwise(kernel, to); p == nil || p.of >= ins && kernel.Attr(share.Attr) != nil {
		return 0, nil
	}
	from := memoryOf(launch.Operand(p.of))
	if from != at && meet([]extentOfMemory{from}, []extentOfMemory{at}) || from.space == mem.Const {
		return 0, nil
	}
	for _, op := range append(slices.Clone(before[j+1:]), product) {
		if meet(f.written(op), []extentOfMemory{from}) {
			return 0, nil
		}
	}
	return j, p
}

// countOf is how many of the references are to a piece of memory.
func countOf(refs []*ir.Value, at extentOfMemory) (n int) {
	for _, e := range extents(refs) {
		if e == at {
			n++
		}
	}
	return n
}

// pointwise is what a result of a kernel is, if that is a function of single numbers.
func (f *fusion) pointwise(kernel *ir.Op, out int) *pointwise {
	name := fmt.Sprint(ir.SymName(kernel), ".", out)
	if _, known := f.points[name]; !known {
		f.points[name] = pointwiseOf(f.c, kernel, out)
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

// join has a product read what a launch reads, or stores beside. It reports whether the launch is gone.
func (f *fusion) join(product *ir.Op, side, n int, producer *ir.Op, p *pointwise) (gone bool) {
	from := producer.Operand(p.of).Op()
	ref := ir.NewBuilder(f.c, nil).Before(product).At(product.Loc()).CreateState(exec.Ref, ir.OpState{
		Results: []ir.Type{product.Operand(n).Type()}, Attrs: slices.Clone([]ir.NamedAttr(from.Attrs()))})
	product.SetOperand(n, ref.Result(0))
	old, other := product.Attrs().Sym("kernel"), producer.Attrs().Sym("kernel")
	product.SetAttr("kernel", f.c.Symbol(f.kernel(old, side, p)))
	f.replaced = append(f.replaced, old, other)
	_, outs := tile.Refs(p.kernel)
	if len(outs) == 1 {
		producer.Erase()
		return true
	}
	producer.SetAttr("kernel", f.c.Symbol(f.without(other, p)))
	producer.SetOperands(slices.Delete(slices.Clone(producer.Operands()), producer.NumOperands()-len(outs)+p.out, producer.NumOperands()-len(outs)+p.out+1))
	return false
}

// without is a kernel that doesn't store one of its results.
func (f *fusion) without(old string, p *pointwise) string {
	name := fmt.Sprint(old, ".without", p.out)
	if ir.LookupSymbol(f.module, name) != nil {
		return name
	}
	kernel := ir.LookupSymbol(f.module, old)
	copied := kernel.Clone(f.c, map[*ir.Value]*ir.Value{})
	ir.NewBuilder(f.c, nil).Before(kernel).Insert(copied)
	copied.SetAttr("sym_name", f.c.String(name))
	ins, outs := tile.Refs(copied)
	for op := range copied.Body().Ops() {
		if op.Is(tile.Store) && op.Operand(1) == outs[p.out] {
			op.Erase()
		}
	}
	copied.Body().EraseArg(len(ins) + p.out)
	copied.SetAttr("outs", f.c.Int64(int64(len(outs)-1)))
	dropDead(copied.Body())
	if of, ok := f.of[old]; ok {
		f.of[name] = of
	}
	reference := ir.LookupSymbol(f.module, referenceModule)
	if reference == nil {
		return name
	}
	whole := functionOf(reference, kernel).Clone(f.c, map[*ir.Value]*ir.Value{})
	whole.SetAttr("sym_name", f.c.String(name))
	end := whole.Body().Terminator()
	end.SetOperands(slices.Delete(slices.Clone(end.Operands()), p.out, p.out+1))
	t := whole.Attr("function_type").(*ir.TypeAttr).Type.(*ir.FunctionType)
	whole.SetAttr("function_type", f.c.TypeAttr(f.c.Func(t.Inputs, slices.Delete(slices.Clone(t.Results), p.out, p.out+1))))
	dropDead(whole.Body())
	reference.Body().Append(whole)
	copied.SetAttr(tileReference, f.c.String(name))
	return name
}

// functionOf is the function that a kernel implements.
func functionOf(reference, kernel *ir.Op) *ir.Op {
	called := ir.SymName(kernel)
	if s, ok := kernel.Attr(tileReference).(*ir.StringAttr); ok {
		called = s.Value
	}
	return ir.LookupSymbol(reference, called)
}

// kernel is the one that is a product of a function of an operand.
func (f *fusion) kernel(old string, side int, p *pointwise) string {
	key := fmt.Sprint(old, " ", side, " ", p.name())
	if name, ok := f.made[key]; ok {
		return name
	}
	name := p.words() + old
	for n := 2; ir.LookupSymbol(f.module, name) != nil; n++ {
		name = fmt.Sprint(p.words(), old, "_", n)
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
	whole := functionOf(reference, kernel).Clone(f.c, map[*ir.Value]*ir.Value{})
	whole.SetAttr("sym_name", f.c.String(name))
	reference.Body().Append(whole)
	x := whole.Body().Arg(n)
	b := ir.NewBuilder(f.c, nil).Before(whole.Body().First()).At(kernel.Loc())
	known, made := map[*ir.Value]*ir.Value{p.from: x}, map[*ir.Op]bool{}
	for _, op := range p.ops {
		known[op.Result(0)] = f.onTensors(b, op, x.Shape(), known)
		made[known[op.Result(0)].Op()] = true
	}
	x.ReplaceUsesIf(known[p.to], func(u *ir.Use) bool { return !made[u.Owner()] })
}

// onTensors is what an operation on blocks does, on whole tensors of one shape.
func (f *fusion) onTensors(b *ir.Builder, op *ir.Op, shape []int64, known map[*ir.Value]*ir.Value) *ir.Value {
	t := f.c.Tensor(shape, op.Result(0).Elem())
	switch {
	case op.Is(tile.Constant):
		return blu.On(b).Splat(t, op.Attrs().FloatOr("value", 0))
	case op.Is(tile.Broadcast):
		return known[op.Operand(0)]
	}
	var operands []*ir.Value
	for _, v := range op.Operands() {
		operands = append(operands, known[v])
	}
	return b.CreateState(f.c.LookupOp("blu."+op.Def().Name), ir.OpState{Operands: operands, Results: []ir.Type{t}, Attrs: slices.Clone([]ir.NamedAttr(op.Attrs()))}).Result(0)
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
