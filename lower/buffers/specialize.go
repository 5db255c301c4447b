package buffers

import (
	"fmt"
	"strings"

	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/lower/share"
)

// specializer makes, for each kernel and combination of strides and shared references it is launched with, one copy of
// the kernel.
type specializer struct {
	ctx     *ir.Context
	module  *ir.Op
	kernels map[string]*ir.Op
	made    map[string]*ir.Op
	count   map[*ir.Op]int
	used    map[*ir.Op]bool
}

func newSpecializer(c *ir.Context, module *ir.Op) *specializer {
	s := &specializer{c, module, map[string]*ir.Op{}, map[string]*ir.Op{}, map[*ir.Op]int{}, map[*ir.Op]bool{}}
	for op := range module.Body().Ops() {
		if op.Name() == "tile.kernel" {
			s.kernels[ir.SymName(op)] = op
		}
	}
	return s
}

// specialize is the kernel for references of these types, of which some share memory. Offsets don't matter, since pointers
// carry them.
func (s *specializer) specialize(kernel *ir.Op, refs []*ir.Value, shared []int64) *ir.Op {
	types := make([]ir.Type, len(refs))
	equal := len(shared) == 0
	var key strings.Builder
	key.WriteString(ir.SymName(kernel))
	for i, r := range refs {
		t := r.Type().(*ir.MemRefType)
		strides, _ := mem.Layout(t)
		types[i] = s.ctx.MemRefWith(t.Shape, t.Elem, s.ctx.Strided(strides, 0), t.Space)
		equal = equal && types[i] == kernel.Body().Arg(i).Type()
		key.WriteString(" " + types[i].String())
	}
	fmt.Fprint(&key, shared)
	special := kernel
	if !equal {
		special = s.made[key.String()]
		if special == nil {
			special = s.clone(kernel, types, shared)
			s.made[key.String()] = special
		}
	}
	s.used[special] = true
	return special
}

func (s *specializer) clone(kernel *ir.Op, types []ir.Type, shared []int64) *ir.Op {
	n := kernel.Clone(s.ctx, map[*ir.Value]*ir.Value{})
	s.count[kernel]++
	name := ir.SymName(kernel)
	n.SetAttr("sym_name", s.ctx.String(fmt.Sprintf("%s.s%d", name, s.count[kernel])))
	n.SetAttr("tile.reference", s.ctx.String(name)) // the function it implements
	if len(shared) > 0 {
		n.SetAttr(share.Attr, s.ctx.I64s(shared...))
	}
	for i, t := range types {
		n.Body().Arg(i).SetType(t)
	}
	ir.NewBuilder(s.ctx, nil).After(kernel).Insert(n)
	return n
}

// dropUnused erases kernels that nobody launches any more.
func (s *specializer) dropUnused() {
	for op := range s.module.Body().Ops() {
		if op.Name() == "tile.kernel" && !s.used[op] {
			op.Erase()
		}
	}
}
