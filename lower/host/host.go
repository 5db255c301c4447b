// Package host lowers kernels of the tile dialect to bytecode for CPUs, the host dialect. Values get a place: loads become
// windows of memory where nothing need be moved, results are computed where they are stored, and the rest lives in scratch
// memory, packed by lifetime. Carried values of loops become blocks that are written again. A contraction becomes one
// matrix product with what follows it as the epilogue. It knows the two dialects, not what launches the kernels.
package host

import (
	"fmt"

	"blutrain/dialects/host"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/arena"
	"blutrain/lower/share"
)

// Run replaces every tile.kernel of the module by a host.kernel of the same name.
func Run(c *ir.Context, module *ir.Op) error {
	for op := range module.Body().Ops() {
		if !op.Is(tile.Kernel) {
			continue
		}
		if err := lower(c, op); err != nil {
			return fmt.Errorf("kernel %s: %w", ir.SymName(op), err)
		}
	}
	return nil
}

func lower(c *ir.Context, kernel *ir.Op) error {
	dropDead(kernel.Body())
	l := newLowering(c, kernel)
	if contract := l.findContract(); contract != nil {
		if err := l.gemm(contract); err != nil {
			return err
		}
	} else if err := l.body(kernel.Body(), l.b); err != nil {
		return err
	}
	l.b.CreateState(host.End, ir.OpState{})
	l.out.SetAttr("scratch", c.Int64(placeScratch(c, l.out)))
	kernel.Erase()
	return nil
}

// dropDead erases pure operations that nobody uses: an unused index of an axis must not look like a use of it.
func dropDead(b *ir.Block) {
	for op := range b.OpsReversed() {
		for _, r := range op.Regions() {
			for _, inner := range r.Blocks() {
				dropDead(inner)
			}
		}
		if op.Has(ir.Pure) && op.Unused() {
			op.Erase()
		}
	}
}

// lowering is the state of translating one kernel.
type lowering struct {
	c       *ir.Context
	kernel  *ir.Op // tile.kernel
	out     *ir.Op // host.kernel
	b       *ir.Builder
	index   map[*ir.Value]*ir.Value // references and indices of the tile kernel to those of the host kernel
	blocks  map[*ir.Value]*operand
	consts  map[int64]*ir.Value
	clips   map[clipKey]*ir.Value
	axes    map[*ir.Value]axis
	piece   map[*ir.Value]*ir.Value // in an epilogue: the extent along a row or column axis
	stored  map[*ir.Value]*ir.Op    // values computed where this tile.store wants them
	waits   map[*ir.Op]*ir.Op       // multiplications to the operations that take them in
	takenIn map[*ir.Op]*ir.Op       // the other way round
	adamws  map[*ir.Op]*adamw       // steps of the optimizer, by their last operation, for which the others wait
	strict  map[*ir.Value]bool      // references that are read and written just where the kernel does
}

// operand is a tile block: the host block it lives in and its actual extents.
type operand struct {
	block      *ir.Value
	rows, cols *ir.Value
	scratch    bool // in scratch memory that belongs to this value alone
}

// axis is a grid axis: its values are multiples of step below extent.
type axis struct{ extent, step int64 }

type clipKey struct {
	offset *ir.Value
	n, max int64
}

func newLowering(c *ir.Context, kernel *ir.Op) *lowering {
	l := &lowering{
		c: c, kernel: kernel, index: map[*ir.Value]*ir.Value{}, blocks: map[*ir.Value]*operand{}, consts: map[int64]*ir.Value{},
		clips: map[clipKey]*ir.Value{}, axes: map[*ir.Value]axis{}, stored: map[*ir.Value]*ir.Op{}, waits: map[*ir.Op]*ir.Op{}, takenIn: map[*ir.Op]*ir.Op{},
		adamws: map[*ir.Op]*adamw{},
		strict: map[*ir.Value]bool{},
	}
	reference := kernel.Attr("tile.reference")
	attrs := []ir.NamedAttr{
		{Name: "sym_name", Value: kernel.Attr("sym_name")}, {Name: "outs", Value: kernel.Attr("outs")},
		{Name: "grid", Value: kernel.Attr("grid")}, {Name: "steps", Value: kernel.Attr("steps")}, {Name: "scratch", Value: c.Int64(0)},
	}
	if reference != nil {
		attrs = append(attrs, ir.NamedAttr{Name: "reference", Value: reference})
	}
	l.out = ir.NewBuilder(c, nil).Before(kernel).CreateState(host.Kernel, ir.OpState{Loc: kernel.Loc(), Regions: 1, Attrs: attrs})
	body := l.out.Region(0).AddBlock()
	for _, a := range kernel.Body().Args() {
		l.index[a] = body.AddArg(a.Type(), a.Loc())
	}
	grid, steps := kernel.Attrs().Ints("grid"), kernel.Attrs().Ints("steps")
	for i, a := range tile.Axes(kernel) {
		l.axes[a] = axis{grid[i], steps[i]}
	}
	l.b = ir.NewBuilder(c, body)
	l.planStrict()
	l.planAdamw()
	l.planFusion()
	return l
}

// planStrict finds the references that share memory though the order of operations, which may have changed since that was decided,
// doesn't allow for reading where values are used and writing where they are computed.
func (l *lowering) planStrict() {
	for _, pair := range share.Shared(l.kernel) {
		if !share.Allowed(l.kernel, pair[0], pair[1]) {
			l.strict[l.kernel.Body().Arg(pair[0])] = true
			l.strict[l.kernel.Body().Arg(pair[1])] = true
		}
	}
}

// number is a constant index, made at the start of the kernel.
func (l *lowering) number(n int64) *ir.Value {
	if l.consts[n] == nil {
		b := ir.NewBuilder(l.c, nil).AtStart(l.out.Body())
		l.consts[n] = b.CreateState(l.def("arith.constant"), ir.OpState{
			Attrs: []ir.NamedAttr{{Name: "value", Value: l.c.Integer(n, l.c.Index())}}, Results: []ir.Type{l.c.Index()},
		}).Result(0)
	}
	return l.consts[n]
}

func (l *lowering) def(name string) *ir.OpDef {
	d := l.c.LookupOp(name)
	if d == nil {
		panic("lower/host: no operation " + name)
	}
	return d
}

// arith makes an operation of two indices.
func (l *lowering) arith(name string, x, y *ir.Value) *ir.Value {
	return l.b.CreateState(l.def("arith."+name), ir.OpState{Operands: []*ir.Value{x, y}, Results: []ir.Type{l.c.Index()}}).Result(0)
}

// clip is the actual extent of a block of at most so many elements at an offset in a dimension of n.
func (l *lowering) clip(offset *ir.Value, n, most int64) *ir.Value {
	if most == 1 {
		return l.number(1)
	}
	if v := l.piece[offset]; v != nil {
		return v
	}
	if at, ok := constant(offset); ok {
		return l.number(max(0, min(most, n-at)))
	}
	if a, ok := l.axes[offset]; ok && a.step >= most && a.extent <= n && (n-a.extent >= most-1 || a.extent%a.step == 0 && a.step == most) {
		return l.number(most)
	}
	key := clipKey{offset, n, most}
	if v := l.clips[key]; v != nil && l.dominates(v) {
		return v
	}
	left := l.arith("subi", l.number(n), l.index[offset])
	l.clips[key] = l.arith("minsi", l.number(most), left)
	return l.clips[key]
}

// dominates reports whether v is known where the builder is: in the same block, or in one around it.
func (l *lowering) dominates(v *ir.Value) bool {
	for b := l.b.Block(); b != nil; {
		if v.Block() == b {
			return true
		}
		parent := b.ParentOp()
		if parent == nil {
			return false
		}
		b = parent.Block()
	}
	return false
}

func constant(v *ir.Value) (int64, bool) {
	if v.Op() == nil || v.Op().Name() != "arith.constant" {
		return 0, false
	}
	a, ok := v.Op().Attr("value").(*ir.IntegerAttr)
	if !ok {
		return 0, false
	}
	return a.Value, true
}

// placeScratch gives every scratch block of a kernel its offset and returns the bytes needed. A block lives from where it
// is made to its last use; one used in a loop that it was made outside of lives until the loop ends.
func placeScratch(c *ir.Context, kernel *ir.Op) int64 {
	time := map[*ir.Op]int{}
	end := map[*ir.Op]int{}
	n := 0
	var visit func(b *ir.Block)
	visit = func(b *ir.Block) {
		for op := range b.Ops() {
			time[op] = n
			n++
			for _, r := range op.Regions() {
				for _, inner := range r.Blocks() {
					visit(inner)
				}
			}
			end[op] = n
			n++
		}
	}
	visit(kernel.Body())
	var pieces []*arena.Piece
	var owners []*ir.Op
	for op := range scratchBlocks(kernel) {
		p := &arena.Piece{Bytes: host.BytesOf(op), First: time[op], Last: time[op]}
		for u := range op.Result(0).Uses() {
			user := u.Owner()
			for user.Block() != op.Block() {
				user = user.Parent()
			}
			p.Last = max(p.Last, end[user])
		}
		pieces, owners = append(pieces, p), append(owners, op)
	}
	total := arena.Pack(pieces, 64)
	for i, op := range owners {
		op.SetAttr("offset", c.Int64(pieces[i].Offset))
	}
	return total
}

func scratchBlocks(kernel *ir.Op) func(yield func(*ir.Op) bool) {
	return func(yield func(*ir.Op) bool) {
		ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
			if (op.Is(host.Scratch) || op.Is(host.Memory)) && !yield(op) {
				return ir.Stop
			}
			return ir.Advance
		})
	}
}
