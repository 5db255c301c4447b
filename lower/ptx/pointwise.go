package ptx

import (
	"fmt"
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
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

// pointwiseOf is a kernel as such, or nil.
func pointwiseOf(kernel *ir.Op) *pointwise {
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
	f32 := ir.Type(kernel.Context().F32())
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

// fusion finds such launches, and changes the program.
type fusion struct {
	c        *ir.Context
	module   *ir.Op
	o        Options
	products map[string]*match // kernels that are products in planes by themselves; nil: others
	made     map[string]string // products of functions, by what they are
	of       map[string][2]*pointwise
}

// fusePointwise makes products in planes of functions of operands, and gives the functions by the kernels' names.
func fusePointwise(c *ir.Context, module *ir.Op, o Options) map[string][2]*pointwise {
	f := &fusion{c: c, module: module, o: o, products: map[string]*match{}, made: map[string]string{}, of: map[string][2]*pointwise{}}
	aligned := alignments(module)
	for op := range module.Body().Ops() {
		if op.Is(tile.Kernel) {
			dropDead(op.Body())
			if m, w := bestWay(c, op, o, aligned[ir.SymName(op)]); w != nil && w.planes != nil {
				f.products[ir.SymName(op)] = m
			}
		}
	}
	for op := range module.Body().Ops() {
		if op.Is(exec.Func) && len(f.products) > 0 {
			f.function(op)
		}
	}
	if len(f.of) > 0 {
		f.eraseUnlaunched()
	}
	return f.of
}

// function changes a function's launches.
func (f *fusion) function(fun *ir.Op) {
	var ops []*ir.Op
	for op := range fun.Body().Ops() {
		if !op.Is(exec.Ref) {
			ops = append(ops, op)
		}
	}
	for i, op := range ops {
		m := f.products[op.Attrs().Sym("kernel")]
		if m == nil || !op.Is(exec.Launch) {
			continue
		}
		for side, n := range m.operandRefs() {
			if p, from := f.producer(ops[:i], op, m, n); p != nil && f.unread(ops[i+1:], memoryOf(op.Operand(n))) {
				f.join(op, m, side, n, p, from)
			}
			if ops = slices.DeleteFunc(ops, func(o *ir.Op) bool { return o.Parent() == nil }); len(ops) < i {
				break
			}
		}
	}
}
