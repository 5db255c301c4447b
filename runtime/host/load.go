package host

import (
	"fmt"
	"slices"
	"unsafe"

	"blutrain/artifact"
	"blutrain/dialects/exec"
	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/runtime/collective"
)

// function is a decoded exec.func: steps in order.
type function struct {
	name       string
	arena      int64
	steps      []step
	collective bool // other ranks take part in it
}

// step is a launch of a kernel, the beginning or the end of a collective, or else a copy of refs[0] to refs[1].
type step struct {
	kernel *kernel
	begin  *collective.Spec // sources first among the references
	wait   *collective.Spec
	refs   []slot
	types  []reference
	flops  float64
	loc    *ir.Location
}

// slotName names memory that is bound for each call.
type slotName struct{ space, name string }

// slot is a place in memory: a fixed address, or an offset into what a call binds.
type slot struct {
	base   unsafe.Pointer // nil: look name up for each call
	name   slotName
	offset int64
}

// loadFunctions decodes the program's functions and the kernels they launch. Every function of the manifest must be there.
func (d *device) loadFunctions(module *ir.Op) error {
	kernels := map[string]*kernel{}
	arena := int64(0)
	for op := range module.Body().Ops() {
		switch {
		case op.Is(host.Kernel):
			k, err := decode(op)
			if err != nil {
				return err
			}
			kernels[k.name] = k
		case op.Is(exec.Func):
			n := op.Attrs().IntOr("arena", 0)
			if n < 0 {
				return op.Errorf("function %s: an arena of %d bytes", ir.SymName(op), n)
			}
			arena = max(arena, n)
		}
	}
	var err error
	if d.arena, err = d.allocate(arena, "the arena"); err != nil {
		return err
	}
	for op := range module.Body().Ops() {
		if op.Is(exec.Func) {
			f, err := d.decodeFunction(op, kernels)
			if err != nil {
				return fmt.Errorf("function %s: %w", ir.SymName(op), err)
			}
			d.functions[f.name] = f
		}
	}
	for _, f := range d.manifest.Functions {
		if d.functions[f.Name] == nil {
			return fmt.Errorf("the program has no function %q, which the manifest lists", f.Name)
		}
	}
	return nil
}

func (d *device) decodeFunction(op *ir.Op, kernels map[string]*kernel) (*function, error) {
	f := &function{name: ir.SymName(op), arena: op.Attrs().IntOr("arena", 0)}
	written := func(launch *ir.Op) int {
		if k := kernels[launch.Attrs().Sym("kernel")]; k != nil {
			return k.outs
		}
		return 0 // decoding the launch says that there is none
	}
	if err := exec.CheckFlights(op, written); err != nil {
		return nil, err
	}
	slots, begun := map[*ir.Value]slot{}, map[int64]*collective.Spec{}
	for o := range op.Body().Ops() {
		switch o.Def() {
		case exec.Ref:
			s, err := d.slot(o, f)
			if err != nil {
				return nil, err
			}
			slots[o.Result(0)] = s
		case exec.Launch, exec.Copy:
			s, err := decodeStep(o, slots, kernels)
			if err != nil {
				return nil, err
			}
			f.steps = append(f.steps, s)
		case exec.Collective:
			s, err := d.decodeCollective(o, slots)
			if err != nil {
				return nil, err
			}
			f.collective = true
			f.steps, begun[s.begin.ID] = append(f.steps, s), s.begin
		case exec.Wait:
			s := step{wait: begun[o.Attrs().IntOr("id", 0)], loc: o.Loc()} // which there is: the verifier of functions says so
			f.steps = append(f.steps, s)
		case exec.End:
		default:
			return nil, o.Errorf("%s is no step of a program", o.Name())
		}
	}
	return f, nil
}

// references finds the places in memory that a step works on.
func (s *step) references(op *ir.Op, slots map[*ir.Value]slot) error {
	for _, v := range op.Operands() {
		at, ok := slots[v]
		if !ok {
			return op.Errorf("%s: an operand is no exec.ref of this function", op.Name())
		}
		s.refs, s.types = append(s.refs, at), append(s.types, referenceOf(v.Type().(*ir.MemRefType)))
	}
	return nil
}

func decodeStep(op *ir.Op, slots map[*ir.Value]slot, kernels map[string]*kernel) (step, error) {
	s := step{loc: op.Loc(), flops: float64(op.Attrs().IntOr("flops", 0))}
	if err := s.references(op, slots); err != nil {
		return s, err
	}
	if op.Is(exec.Copy) {
		return s, checkDistinct(op, "the destination of a copy", s.types[1])
	}
	if s.kernel = kernels[op.Attrs().Sym("kernel")]; s.kernel == nil {
		return s, op.Errorf("no kernel %s", op.Attr("kernel"))
	}
	return s, checkLaunch(op, s.kernel, s.types)
}

// checkLaunch holds the launch's references to the kernel's arguments.
func checkLaunch(op *ir.Op, k *kernel, got []reference) error {
	if len(got) != k.args {
		return op.Errorf("kernel %s takes %d references, not %d", k.name, k.args, len(got))
	}
	for i, want := range k.refs[:k.args] {
		if !got[i].equal(want) {
			return op.Errorf("kernel %s: reference %d is %v, wants %v", k.name, i, got[i], want)
		}
	}
	for _, out := range got[k.args-k.outs:] {
		if err := checkDistinct(op, "an output of kernel "+k.name, out); err != nil {
			return err
		}
	}
	return nil
}

// checkDistinct refuses to write to a place whose elements repeat.
func checkDistinct(op *ir.Op, what string, r reference) error {
	for i, n := range r.shape {
		if n > 1 && r.strides[i] == 0 {
			return op.Errorf("%s repeats its elements: %v", what, r)
		}
	}
	return nil
}

// reference is the type of a place in memory.
type reference struct {
	shape, strides []int64
	elem           ir.Type
	elemBytes      int64
}

func referenceOf(t *ir.MemRefType) reference {
	strides, _ := mem.Layout(t)
	return reference{t.Shape, strides, t.Elem, ir.ByteSize(t.Elem)}
}

func (r reference) String() string {
	return fmt.Sprintf("%s%v with strides %v", r.elem, r.shape, r.strides)
}

func (r reference) equal(s reference) bool {
	if !slices.Equal(r.shape, s.shape) || r.elem != s.elem {
		return false
	}
	for i, n := range r.shape {
		if n > 1 && r.strides[i] != s.strides[i] {
			return false
		}
	}
	return true
}

// elements is how many there are.
func (r reference) elements() int64 { return ir.NumElements(r.shape) }

// maxElements bounds the elements of a reference, those that a stride of 0 repeats included, so that products of extents
// don't overflow.
const maxElements = 1 << 40

// checkReference holds a reference to a storage of so many bytes.
func checkReference(t *ir.MemRefType, offset, bytes int64) error {
	r := referenceOf(t)
	if storedType(t.Elem) == 0 {
		return fmt.Errorf("elements of type %s can't be stored", t.Elem)
	}
	n := int64(1)
	for _, d := range r.shape {
		if d > 0 && n > maxElements/d {
			return fmt.Errorf("a place of %v has more than 2^40 elements", r.shape)
		}
		n *= max(d, 1)
	}
	return mem.CheckRange(r.shape, r.strides, offset/r.elemBytes, bytes/r.elemBytes)
}

// slot finds the memory an exec.ref is about, and checks that all it can reach lies within it.
func (d *device) slot(op *ir.Op, f *function) (slot, error) {
	space, name, offset := op.Attrs().Str("space"), op.Attrs().Str("name"), op.Attrs().IntOr("offset", 0)
	s := slot{name: slotName{space, name}, offset: offset}
	bytes := int64(-1)
	switch space {
	case mem.State:
		m, ok := d.states[name]
		if !ok {
			return s, op.Errorf("no state %q", name)
		}
		s.base, bytes = m.base(), int64(len(m.bytes))
	case mem.Arena:
		s.base, bytes = d.arena.base(), f.arena
	case mem.Const:
		m, err := d.constant(op)
		if err != nil {
			return s, err
		}
		s.base, bytes = m.base(), int64(len(m.bytes))
	default:
		bytes = d.boundBytes(f.name, space, name)
	}
	if bytes < 0 {
		return s, op.Errorf("function %s has no %s %q", f.name, space, name)
	}
	if err := checkReference(op.Result(0).Type().(*ir.MemRefType), offset, bytes); err != nil {
		return s, op.Errorf("%s %s: %v", space, name, err)
	}
	return s, nil
}

// boundBytes is the size of an input, output or scalar of a function; -1 where there is none of that name.
func (d *device) boundBytes(fn, space, name string) int64 {
	info, ok := d.manifest.Function(fn)
	if !ok {
		return -1
	}
	for _, v := range map[string][]artifact.Value{mem.Input: info.Inputs, mem.Output: info.Outputs, mem.Scalar: info.Scalars}[space] {
		if v.Name == name {
			return v.Bytes()
		}
	}
	return -1
}

func (d *device) constant(op *ir.Op) (memory, error) {
	a, bytes, err := exec.Constant(op)
	if err != nil {
		return memory{}, err
	}
	m, err := d.allocate(bytes, "a constant")
	if err != nil {
		return m, err
	}
	d.constants = append(d.constants, m)
	for at := copy(m.bytes, a.Raw); at > 0 && at < len(m.bytes); at *= 2 {
		copy(m.bytes[at:], m.bytes[:at])
	}
	return m, nil
}
