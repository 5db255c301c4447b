package ptx

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// Attributes of a ptx.kernel that say how it is launched. Its parameters are the pointers of the launch's references, then
// one to the error records where it has such, and one to the workspace where it has one.
const (
	BlocksAttr    = "launch.blocks"    // thread blocks in the grid
	WorkspaceAttr = "launch.workspace" // bytes of global memory for each thread block; absent: none
	TableAttr     = "launch.table"     // the references' addresses are in memory, whose address is the parameter
	ErrorsAttr    = "launch.errors"    // list of {what, extent}: what each error record is about; absent: none
	RefsAttr      = "launch.refs"      // types of the references
	OutsAttr      = "launch.outs"      // how many of them, from the end, it writes
	ReferenceAttr = "launch.reference" // function it implements; absent: the one of the kernel's name, empty: none, it copies
	ParamsAttr    = "launch.params"    // what the parameters are instead: exec.Param
	ScratchAttr   = "launch.scratch"   // bytes of memory of a launch, all kernels that go together
	ThenAttr      = "launch.then"      // the kernel that is launched next, on the same references
)

// Run replaces every tile.kernel of a module of programs by ptx.kernels for the target, and copies by launches of kernels.
func Run(c *ir.Context, module *ir.Op, o Options) error {
	later := &sharing{module: module, d: blublas.DeviceFor(o.Target), apart: o.Tuning != nil && o.Tuning.Candidates > 0, room: cmp.Or(o.Room, math.MaxInt64)}
	var err error
	if o.of, err = fusePointwise(c, module, o); err != nil {
		return err
	}
	aligned := alignments(module)
	if err := lists(c, module, aligned, o); err != nil {
		return err
	}
	for op := range module.Body().Ops() {
		if !op.Is(tile.Kernel) {
			continue
		}
		p, err := lowerOne(c, op, o, aligned[ir.SymName(op)])
		if err != nil {
			return fmt.Errorf("kernel %s: %w", ir.SymName(op), err)
		}
		if p != nil {
			later.products = append(later.products, p)
		}
	}
	if err := later.lower(); err != nil {
		return err
	}
	return copies(c, module, o.Target)
}

// Alignment is that of memory a runtime allocates, in bytes: states, inputs, outputs, constants and the arena start at
// multiples of it.
const Alignment = 256

// alignments is, for the references of each kernel, the alignment in bytes that all launches of it keep.
func alignments(module *ir.Op) map[string][]int64 {
	all := map[string][]int64{}
	ir.Walk(module, func(op *ir.Op) ir.WalkResult {
		if !op.Is(exec.Launch) {
			return ir.Advance
		}
		name := op.Attrs().Sym("kernel")
		if all[name] == nil {
			all[name] = make([]int64, op.NumOperands())
		}
		for i, v := range op.Operands() {
			all[name][i] = gcd(all[name][i], gcd(Alignment, v.Op().Attrs().IntOr("offset", 0)))
		}
		return ir.Advance
	})
	return all
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// lowering is the state of translating one kernel.
type lowering struct {
	c      *ir.Context
	kernel *ir.Op // tile.kernel
	b      *ptx.Builder
	layout
	point *ir.Value // number of the block of threads; nil: that it has in the grid

	index  map[*ir.Value]*ir.Value // indices as i32
	blocks map[*ir.Value]*block
	refs   map[*ir.Value]*reference
	within map[*ir.Op]bool     // reductions that each thread makes for itself, of a loop's round
	rough  map[*ir.Op]bool     // exponentials that are terms of a sum with one that is 1
	whole  map[*ir.Value]whole // indices of loops of which the round at hand is no shorter one
	asked  map[*ir.Op]*asked   // loads of a loop that are asked for a round ahead
	shares map[*ir.Value]bool  // outputs that share memory with an input that other threads may read
	waits  map[*ir.Op]bool     // loops that store to such memory what others have read before

	trow, tcol *ir.Value // row and column of the thread
	part       *ir.Value // which of the blocks of threads at its grid point it is in
	row0, col0 *ir.Value // of its first element
	known      map[*ir.Block]map[any]*ir.Value

	stage     *stage // the row that is kept in shared memory, or nil
	shared    int64  // bytes of shared memory
	held      int64  // those behind that row that exchanges between threads leave alone; they use the rest, one after the other
	workspace int64  // bytes of global memory of a block of threads
	errors    []ir.Attr
	errorsAt  *ir.Value
	workAt    *ir.Value
	table     *ir.Value           // address of the references' addresses, where they are no parameters
	streams   map[int64]*ir.Value // parameters that say which stream of random numbers is drawn from
}

// maxParams is the references that can be parameters: those of a kernel may have 4352 bytes.
const maxParams = 500

// reference is a place in memory that blocks are read from and written to.
type reference struct {
	base    *ir.Value // i64; nil where it is in the table
	entry   int       // in the table
	table   *ir.Value // the table, where it is not the kernel's
	shape   []int64
	strides []int64 // elements
	elem    ir.Type
	size    int64 // bytes of an element
	align   int64 // of the base, in bytes
	scratch bool
}

// base is the address of a reference.
func (l *lowering) base(r *reference) *ir.Value {
	if r.base != nil {
		return r.base
	}
	table := l.table
	if r.table != nil {
		table = r.table
	}
	return l.b.Load(table, l.c.I64(), 1, ptx.Access{Space: "global", Offset: 8 * r.entry})
}

func newReference(base *ir.Value, t *ir.MemRefType, align int64) *reference {
	strides, _ := mem.Layout(t)
	return &reference{base: base, shape: t.Shape, strides: strides, elem: t.Elem, size: ir.ByteSize(t.Elem), align: align}
}

func lower(c *ir.Context, kernel *ir.Op, target string, align []int64) error {
	l := newLowering(c, kernel)
	if err := l.checkSizes(); err != nil {
		return err
	}
	needs := l.needs()
	params := l.parameters(needs)
	ins, outs := tile.Refs(kernel)
	var err error
	if l.stage = findStage(kernel, target, align); l.stage != nil {
		l.layout = l.stage.layout()
	} else if l.layout, err = chooseLayout(kernel, align); err != nil {
		return err
	}
	at := ir.NewBuilder(c, nil).Before(kernel).At(kernel.Loc())
	l.b = ptx.NewKernel(at, ptx.Config{Name: ir.SymName(kernel), Target: target, Threads: l.threads, BlocksPerSM: l.perSM}, params...)
	args := l.b.Kernel.Body().Args()
	for i, v := range append(ins, outs...) {
		a := int64(Alignment)
		if align != nil {
			a = align[i]
		}
		l.refs[v] = newReference(nil, v.Type().(*ir.MemRefType), a)
		if l.refs[v].entry = i; !needs.table {
			l.refs[v].base = args[i]
		}
	}
	rest := args[1:]
	if needs.table {
		l.table = args[0]
	} else {
		rest = args[len(ins)+len(outs):]
	}
	for i, s := range needs.streams {
		l.streams[s] = rest[i]
	}
	rest = rest[len(needs.streams):]
	if needs.errors {
		l.errorsAt, rest = rest[0], rest[1:]
	}
	if needs.workspace {
		l.workAt = rest[0]
	}
	l.findShared(ins, outs)
	l.b.At(kernel.Loc())
	l.place()
	if l.stage != nil {
		err = l.staged(kernel.Body())
	} else {
		err = l.body(kernel.Body())
	}
	if err != nil {
		return err
	}
	l.b.CreateState(ptx.Return, ir.OpState{})
	l.finish()
	if n, limit := l.shared, ptx.SharedLimit(target); n > limit {
		return kernel.Errorf("needs %d bytes of shared memory, a block of threads on %s has %d", n, target, limit)
	}
	kernel.Erase()
	return nil
}

func newLowering(c *ir.Context, kernel *ir.Op) *lowering {
	return &lowering{
		c: c, kernel: kernel, index: map[*ir.Value]*ir.Value{}, blocks: map[*ir.Value]*block{}, refs: map[*ir.Value]*reference{},
		known: map[*ir.Block]map[any]*ir.Value{}, shares: map[*ir.Value]bool{}, asked: map[*ir.Op]*asked{}, waits: map[*ir.Op]bool{}, rough: map[*ir.Op]bool{}, within: map[*ir.Op]bool{}, whole: map[*ir.Value]whole{}, streams: map[int64]*ir.Value{},
	}
}

// gridBlocks is the number of a kernel's grid points.
func gridBlocks(kernel *ir.Op) (int64, error) {
	blocks := int64(1)
	grid, steps := kernel.Attrs().Ints("grid"), kernel.Attrs().Ints("steps")
	for i, n := range grid {
		blocks *= (n + steps[i] - 1) / steps[i]
		if n >= 1<<31 || blocks >= 1<<31 {
			return 0, kernel.Errorf("a grid of %v in steps of %v has more points than the target can count", grid, steps)
		}
	}
	return blocks, nil
}

// checkSizes refuses what 32-bit indices can't address.
func (l *lowering) checkSizes() error {
	if _, err := gridBlocks(l.kernel); err != nil {
		return err
	}
	ins, outs := tile.Refs(l.kernel)
	for _, v := range append(ins, outs...) {
		t := v.Type().(*ir.MemRefType)
		strides, _ := mem.Layout(t)
		for i, s := range strides {
			if t.Shape[i] >= 1<<31 || s*ir.ByteSize(t.Elem) >= 1<<31 {
				return l.kernel.Errorf("%s: dimension %d is too large for the target's 32-bit indices", t, i)
			}
		}
	}
	return nil
}

// needs is the parameters that a kernel has besides its references.
type needs struct {
	table, errors, workspace bool
	streams                  []int64 // of random numbers; none with a table
}

func (l *lowering) needs() (n needs) {
	ins, outs := tile.Refs(l.kernel)
	n.table = len(ins)+len(outs) > maxParams
	ir.Walk(l.kernel, func(op *ir.Op) ir.WalkResult {
		switch op.Def() {
		case tile.Gather, tile.Pick, tile.ScatterAdd:
			n.errors = true
		case tile.Scratch:
			n.workspace = true
		case tile.RandomUniform, tile.RandomNormal:
			if s := op.Attrs().IntOr("stream", 0); !n.table && !slices.Contains(n.streams, s) {
				n.streams = append(n.streams, s)
			}
		}
		return ir.Advance
	})
	return n
}

func (l *lowering) parameters(n needs) (params []ir.Type) {
	ins, outs := tile.Refs(l.kernel)
	count := len(ins) + len(outs)
	if n.table {
		count = 1
	}
	for range count {
		params = append(params, l.c.I64())
	}
	for range n.streams {
		params = append(params, l.c.I64())
	}
	for _, has := range []bool{n.errors, n.workspace} {
		if has {
			params = append(params, l.c.I64())
		}
	}
	return params
}

// place finds where the thread stands and what grid point its block is.
func (l *lowering) place() {
	b := l.b
	tid := b.Special("tid.x")
	l.trow, l.tcol = b.DivI(tid, l.tc), tid
	if l.tr > 1 {
		l.tcol = b.RemI(tid, l.tc)
	}
	l.row0, l.col0 = b.MulI(l.trow, l.vr), b.MulI(l.tcol, l.v)
	if l.stage != nil {
		return // its block goes from one grid point to another
	}
	point := l.point
	if l.part = b.I32(0); l.parts > 1 {
		point = b.Special("ctaid.x")
		l.part, point = b.RemI(point, l.parts), b.DivI(point, l.parts)
	}
	maps.Copy(l.index, l.axesOf(point))
}

// axesOf is the indices of a grid point; nil is that of the block's number in the grid.
func (l *lowering) axesOf(point *ir.Value) map[*ir.Value]*ir.Value {
	b, at := l.b, map[*ir.Value]*ir.Value{}
	grid, steps := l.kernel.Attrs().Ints("grid"), l.kernel.Attrs().Ints("steps")
	axes := tile.Axes(l.kernel)
	for i := len(grid) - 1; i >= 0; i-- {
		n := (grid[i] + steps[i] - 1) / steps[i]
		if n <= 1 {
			at[axes[i]] = b.I32(0)
			continue
		}
		if point == nil {
			point = b.Special("ctaid.x")
		}
		at[axes[i]] = b.MulI(b.RemI(point, int(n)), int(steps[i]))
		point = b.DivI(point, int(n))
	}
	return at
}

// finish says on the kernel what a launch needs to know.
func (l *lowering) finish() {
	k := l.b.Kernel
	ins, outs := tile.Refs(l.kernel)
	var types []ir.Attr
	for _, v := range append(ins, outs...) {
		types = append(types, l.c.TypeAttr(v.Type()))
	}
	k.SetAttr(RefsAttr, l.c.Array(types...))
	k.SetAttr(OutsAttr, l.c.Int64(int64(len(outs))))
	blocks, _ := gridBlocks(l.kernel) // that there are not too many was checked
	if blocks *= int64(max(1, l.parts)); l.stage != nil {
		blocks = int64(l.stage.blocks)
	}
	k.SetAttr(BlocksAttr, l.c.Int64(blocks))
	if l.shared > 0 {
		k.SetAttr("shared", l.c.Int64(l.shared))
	}
	if l.table != nil {
		k.SetAttr(TableAttr, l.c.Unit())
	}
	if l.workAt != nil {
		k.SetAttr(WorkspaceAttr, l.c.Int64(l.workspace))
	}
	if l.errorsAt != nil {
		k.SetAttr(ErrorsAttr, l.c.Array(l.errors...))
	}
	if len(l.streams) > 0 {
		k.SetAttr(ParamsAttr, l.c.Array(l.paramsWithStreams(len(types))...))
	}
	if r := l.kernel.Attr(tileReference); r != nil {
		k.SetAttr(ReferenceAttr, r)
	}
	k.SetAttr(ChoicesAttr, l.kernel.Attr(ChoicesAttr))
}

// paramsWithStreams is the references, then the streams in their order.
func (l *lowering) paramsWithStreams(refs int) (params []ir.Attr) {
	for i := range refs {
		params = append(params, exec.Param{Ref: i}.Attr(l.c))
	}
	for _, s := range l.needs().streams {
		params = append(params, exec.Param{Ref: -1, Value: &s}.Attr(l.c))
	}
	return params
}

// dropDead erases pure operations that nobody uses.
func dropDead(b *ir.Block) {
	for op := range b.OpsReversed() {
		for _, r := range op.Regions() {
			for _, inner := range r.Blocks() {
				dropDead(inner)
			}
		}
		if (op.Has(ir.Pure) || op.Is(tile.Load)) && op.Unused() {
			op.Erase()
		}
	}
}

// remember gives the value made for a key in this block or one around it, or makes it.
func (l *lowering) remember(key any, make func() *ir.Value) *ir.Value {
	for b := l.b.Block(); b != nil; {
		if v := l.known[b][key]; v != nil {
			return v
		}
		parent := b.ParentOp()
		if parent == nil {
			break
		}
		b = parent.Block()
	}
	v := make()
	b := l.b.Block()
	if l.known[b] == nil {
		l.known[b] = map[any]*ir.Value{}
	}
	l.known[b][key] = v
	return v
}

// sync is a barrier of all threads of the block.
func (l *lowering) sync() { l.b.Do(ptx.Sync, nil) }

// exchange is shared memory for an exchange of so many bytes, once all threads are done with the one before.
func (l *lowering) exchange(bytes int64) *ir.Value {
	held := l.stage.bytes() + l.held
	l.shared = max(l.shared, held+bytes)
	l.sync()
	return l.b.AddI(l.sharedBase(), int(held))
}

// hold is shared memory that exchanges leave alone until it is released. One may still read there: one before, or in a loop one
// behind, of the round before.
func (l *lowering) hold(bytes int64) *ir.Value {
	held := l.stage.bytes() + l.held
	if l.shared > held || l.inLoop() {
		l.sync()
	}
	l.held += bytes
	l.shared = max(l.shared, held+bytes)
	return l.b.AddI(l.sharedBase(), int(held))
}

// inLoop reports whether what is made now is done again in a loop.
func (l *lowering) inLoop() bool {
	for op := l.b.Block().ParentOp(); op != nil; op = op.Parent() {
		if op.Is(ptx.For) {
			return true
		}
	}
	return false
}

func (l *lowering) sharedBase() *ir.Value { return l.remember("shared", l.b.SharedBase) }

// Kernel replaces one tile.kernel, of which nothing is known but that the memory it is given starts at multiples of Alignment.
func Kernel(c *ir.Context, op *ir.Op, o Options) error { return lowerAlone(c, op, o, nil) }

// lowerAlone replaces a kernel of whose launches nothing is known.
func lowerAlone(c *ir.Context, op *ir.Op, o Options, align []int64) error {
	p, err := lowerOne(c, op, o, align)
	if p == nil || err != nil {
		return err
	}
	return p.finish(blublas.DeviceFor(o.Target))
}

// lowerOne lowers a kernel by a template where one is better, else the general way. A product in planes is lowered later: whether
// there are planes depends on its launches.
func lowerOne(c *ir.Context, op *ir.Op, o Options, align []int64) (later *planeProduct, err error) {
	dropDead(op.Body())
	if later, done, err := template(c, op, o, align); done || err != nil {
		return later, err
	}
	if done, err := attention(c, op, o, align); done || err != nil {
		return nil, err
	}
	return nil, lower(c, op, o.Target, align)
}
