package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// copyThreads is the threads of a block that copies, an element each.
const copyThreads = 256

// copies makes launches of kernels of copies between places in memory. Equal elements of a constant are filled in: they need no memory
// of their own.
func copies(c *ir.Context, module *ir.Op, target string) error {
	m := &mover{c: c, module: module, target: target, made: map[string]string{}, count: map[string]int{}}
	for f := range module.Body().Ops() {
		if !f.Is(exec.Func) {
			continue
		}
		for op := range f.Body().Ops() {
			if !op.Is(exec.Copy) {
				continue
			}
			if err := m.copy(f, op); err != nil {
				return op.Errorf("%v", err)
			}
		}
	}
	return nil
}

// mover makes kernels that copy or fill, one for each kind of places.
type mover struct {
	c      *ir.Context
	module *ir.Op
	target string
	made   map[string]string // names by what the kernels do
	count  map[string]int    // of names
}

// copy replaces a copy in a function by the launch of a kernel.
func (m *mover) copy(f, op *ir.Op) error {
	from, to := op.Operand(0), op.Operand(1)
	src, dst := from.Type().(*ir.MemRefType), to.Type().(*ir.MemRefType)
	element := equalElements(from.Op())
	what, key, operands := "copy", src.String()+dst.String(), op.Operands()
	if element != nil {
		what, key, operands = "fill", fmt.Sprintf("%s %x", dst, element.Raw), operands[1:]
	}
	if m.made[key] == "" {
		m.made[key] = m.freshName(what)
		at, err := ir.NewBuilder(m.c, nil).Before(f).At(op.Loc()), error(nil)
		if element != nil {
			err = m.fillKernel(at, m.made[key], element, dst)
		} else {
			err = m.copyKernel(at, m.made[key], src, dst)
		}
		if err != nil {
			return err
		}
	}
	ir.NewBuilder(m.c, nil).Before(op).At(op.Loc()).CreateState(exec.Launch, ir.OpState{
		Operands: operands, Attrs: []ir.NamedAttr{{Name: "kernel", Value: m.c.Symbol(m.made[key])}}})
	op.Erase()
	if element != nil && from.NumUses() == 0 {
		from.Op().Erase()
	}
	return nil
}

// equalElements is the value of a reference to a constant whose elements are all the same, or nil.
func equalElements(ref *ir.Op) *ir.DenseAttr {
	if ref.Attrs().Str("space") != mem.Const {
		return nil
	}
	if d, ok := ref.Attr("value").(*ir.DenseAttr); ok && d.Splat {
		return d
	}
	return nil
}

// freshName is copy_1 or fill_1, say, if no other has that name.
func (m *mover) freshName(what string) string {
	for {
		m.count[what]++
		name := fmt.Sprintf("%s_%d", what, m.count[what])
		reference := ir.LookupSymbol(m.module, referenceModule) // has functions of kernels that are gone, too
		if ir.LookupSymbol(m.module, name) == nil && (reference == nil || ir.LookupSymbol(reference, name) == nil) {
			return name
		}
	}
}

// copyKernel copies element by element.
func (m *mover) copyKernel(at *ir.Builder, name string, src, dst *ir.MemRefType) error {
	k, err := m.kernel(at, name, func(l *lowering, places []*ir.Value, when *ir.Value) {
		l.write(places[1], 0, l.read(places[0], 0, src.Elem, 1, when), when)
	}, src, dst)
	if err == nil {
		k.SetAttr(ReferenceAttr, m.c.String(""))
	}
	return err
}

// fillKernel writes the same to each element, and the function that this implements, if there are such.
func (m *mover) fillKernel(at *ir.Builder, name string, value *ir.DenseAttr, dst *ir.MemRefType) error {
	if _, err := m.kernel(at, name, func(l *lowering, places []*ir.Value, when *ir.Value) {
		l.write(places[0], 0, []*ir.Value{l.element(dst.Elem, value.Raw)}, when)
	}, dst); err != nil {
		return err
	}
	reference := ir.LookupSymbol(m.module, referenceModule)
	if reference == nil {
		return nil
	}
	t := m.c.Tensor(dst.Shape, dst.Elem)
	f := m.c.NewOp(fn.Func, ir.OpState{Loc: at.Loc, Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: m.c.String(name)}, {Name: "function_type", Value: m.c.TypeAttr(m.c.Func(nil, []ir.Type{t}))},
	}})
	b := blu.On(ir.NewBuilder(m.c, f.Region(0).AddBlock()).At(at.Loc))
	b.CreateState(fn.Return, ir.OpState{Operands: []*ir.Value{b.Constant(m.c.Dense(t, []byte(value.Raw)))}})
	reference.Body().Append(f)
	return nil
}

// joined is a shape and the strides of several places that have it, dimensions made one where that can be told in none of them.
func joined(shape []int64, strides [][]int64) ([]int64, [][]int64) {
	shape, few := slices.Clone(shape), make([][]int64, len(strides))
	for j, s := range strides {
		few[j] = slices.Clone(s)
	}
	for d := len(shape) - 2; d >= 0; d-- {
		if slices.ContainsFunc(few, func(s []int64) bool { return s[d] != s[d+1]*shape[d+1] }) {
			continue
		}
		shape[d] *= shape[d+1]
		shape = slices.Delete(shape, d+1, d+2)
		for j, s := range few {
			few[j] = slices.Delete(s, d, d+1)
		}
	}
	return shape, few
}

// element is an immediate of the value that a constant's bytes are.
func (l *lowering) element(t ir.Type, raw string) *ir.Value {
	if t == ir.Type(l.c.I64()) { // float64 doesn't hold all of them
		return l.b.I64(int64(binary.LittleEndian.Uint64([]byte(raw))))
	}
	return l.number(t, ir.DecodeElement(t, raw))
}

// kernel has a thread do something for each element of places of one shape, of which the last is written.
func (m *mover) kernel(at *ir.Builder, name string, each func(l *lowering, places []*ir.Value, when *ir.Value), refs ...*ir.MemRefType) (*ir.Op, error) {
	shape := refs[0].Shape
	n := ir.NumElements(shape)
	if n >= 1<<31 {
		return nil, fmt.Errorf("a copy of %d elements is too large for the target's 32-bit indices", n)
	}
	var params []ir.Type
	var types []ir.Attr
	var strides [][]int64
	for _, t := range refs {
		params, types, strides = append(params, m.c.I64()), append(types, m.c.TypeAttr(t)), append(strides, layoutOf(t))
	}
	shape, strides = joined(shape, strides)
	b := ptx.NewKernel(at, ptx.Config{Name: name, Target: m.target, Threads: copyThreads}, params...)
	l := &lowering{c: m.c, b: b, known: map[*ir.Block]map[any]*ir.Value{}}
	l.trow = b.Special("tid.x")
	at32 := b.Add(b.MulI(b.Special("ctaid.x"), copyThreads), l.trow)
	when := b.Compare("lt", at32, b.I32(int(n)))
	places := slices.Clone(b.Kernel.Body().Args())
	rest := at32
	for d := len(shape) - 1; d >= 0; d-- {
		i := rest
		if d > 0 {
			extent := int(max(shape[d], 1))
			i, rest = b.RemI(rest, extent), b.DivI(rest, extent)
		}
		for j := range places {
			if strides[j][d] >= 1<<31 {
				return nil, fmt.Errorf("strides of dimension %d are too large for the target's 32-bit indices", d)
			}
			places[j] = b.MulWide(i, int(strides[j][d]), places[j])
		}
	}
	each(l, places, when)
	b.CreateState(ptx.Return, ir.OpState{})
	b.Kernel.SetAttr(RefsAttr, m.c.Array(types...))
	b.Kernel.SetAttr(OutsAttr, m.c.Int64(1))
	b.Kernel.SetAttr(BlocksAttr, m.c.Int64((n+copyThreads-1)/copyThreads))
	return b.Kernel, nil
}
