package host

import (
	"fmt"
	"sync"
	"unsafe"

	"blutrain/artifact"
	"blutrain/dialects/exec"
	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/formats"
	"blutrain/ir"
)

// function is a decoded exec.func: steps in order.
type function struct {
	name  string
	arena int64
	steps []step
}

// step is a launch of a kernel, or, where kernel is nil, a copy of refs[0] to refs[1].
type step struct {
	kernel *kernel
	refs   []slot
	copy   [2]reference
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

// loadFunctions decodes the program's functions and the kernels they launch.
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
			arena = max(arena, op.Attrs().IntOr("arena", 0))
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
	return nil
}

func (d *device) decodeFunction(op *ir.Op, kernels map[string]*kernel) (*function, error) {
	f := &function{name: ir.SymName(op), arena: op.Attrs().IntOr("arena", 0)}
	slots := map[*ir.Value]slot{}
	for o := range op.Body().Ops() {
		switch o.Def() {
		case exec.Ref:
			s, err := d.slot(o, f)
			if err != nil {
				return nil, err
			}
			slots[o.Result(0)] = s
		case exec.Launch:
			k := kernels[o.Attrs().Sym("kernel")]
			if k == nil {
				return nil, o.Errorf("no kernel %s", o.Attr("kernel"))
			}
			if err := checkLaunch(o, k); err != nil {
				return nil, err
			}
			f.steps = append(f.steps, step{kernel: k, refs: gather(o, slots), loc: o.Loc()})
		case exec.Copy:
			f.steps = append(f.steps, step{refs: gather(o, slots), copy: [2]reference{refOf(o, 0), refOf(o, 1)}, loc: o.Loc()})
		case exec.End:
		default:
			return nil, o.Errorf("%s is no step of a program", o.Name())
		}
	}
	return f, nil
}

func gather(op *ir.Op, slots map[*ir.Value]slot) []slot {
	refs := make([]slot, op.NumOperands())
	for i := range refs {
		refs[i] = slots[op.Operand(i)]
	}
	return refs
}

func refOf(op *ir.Op, i int) reference {
	t := op.Operand(i).Type().(*ir.MemRefType)
	strides, _ := mem.Layout(t)
	return reference{t.Shape, strides, ir.ByteSize(t.Elem)}
}

// checkLaunch holds the launch's references to the kernel's arguments.
func checkLaunch(op *ir.Op, k *kernel) error {
	if op.NumOperands() != k.args {
		return op.Errorf("kernel %s takes %d references, not %d", k.name, k.args, op.NumOperands())
	}
	for i, want := range k.refs[:k.args] {
		if got := refOf(op, i); !got.equal(want) {
			return op.Errorf("kernel %s: reference %d is %v with strides %v, wants %v with strides %v", k.name, i, got.shape, got.strides, want.shape, want.strides)
		}
	}
	return nil
}

// slot finds the memory an exec.ref is about, and checks that all it can reach lies within it.
func (d *device) slot(op *ir.Op, f *function) (slot, error) {
	t := op.Result(0).Type().(*ir.MemRefType)
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
	strides, _ := mem.Layout(t)
	size := ir.ByteSize(t.Elem)
	if err := mem.CheckRange(t.Shape, strides, offset/size, bytes/size); err != nil {
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
	a, ok := op.Attr("value").(*ir.DenseAttr)
	if !ok {
		return memory{}, op.Errorf("the constant's value was left out")
	}
	shape, _ := ir.Shape(a.Type)
	n := int64(len(a.Raw))
	count := int64(1)
	if a.Splat {
		count = ir.NumElements(shape)
	}
	m, err := d.allocate(n*count, "a constant")
	if err != nil {
		return m, err
	}
	for i := range count {
		copy(m.bytes[i*n:], a.Raw)
	}
	d.constants = append(d.constants, m)
	return m, nil
}

// run executes the steps of a function.
func (d *device) run(f *function, bound map[slotName]unsafe.Pointer) error {
	for i := range f.steps {
		s := &f.steps[i]
		for w := range d.frames {
			for r, slot := range s.refs {
				base := slot.base
				if base == nil {
					base = bound[slot.name]
				}
				d.frames[w].refs[r] = unsafe.Add(base, slot.offset)
			}
		}
		if err := d.step(s); err != nil {
			if src := s.loc.Source(); src != nil {
				return fmt.Errorf("%s:%d:%d: %w", src.File, src.Line, src.Col, err)
			}
			return err
		}
	}
	return nil
}

func (d *device) step(s *step) error {
	if s.kernel == nil {
		copyStrided(d.frames[0].refs[0], d.frames[0].refs[1], s.copy[0], s.copy[1])
		return nil
	}
	k := s.kernel
	tasks := 1
	for i, n := range k.grid {
		tasks *= int((n + k.steps[i] - 1) / k.steps[i])
	}
	if k.usesEngine {
		for t := range tasks {
			if err := d.point(k, &d.frames[0], t); err != nil {
				return err
			}
		}
		return nil
	}
	var first firstError
	d.pool.Run(tasks, func(worker, task int) {
		if err := d.point(k, &d.frames[worker], task); err != nil {
			first.keep(task, err)
		}
	})
	return first.err
}

// firstError keeps the error of the lowest task, so that which one is reported does not depend on the workers.
type firstError struct {
	mu   sync.Mutex
	task int
	err  error
}

func (e *firstError) keep(task int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil || task < e.task {
		e.task, e.err = task, err
	}
}

// point runs one grid point of a kernel.
func (d *device) point(k *kernel, f *frame, task int) error {
	for i := len(k.grid) - 1; i >= 0; i-- {
		n := int((k.grid[i] + k.steps[i] - 1) / k.steps[i])
		f.index[i] = int64(task%n) * k.steps[i]
		task /= n
	}
	f.err = nil
	for _, in := range k.body {
		in(f)
		if f.err != nil {
			return fmt.Errorf("kernel %s: %w", k.name, f.err)
		}
	}
	return nil
}

func (r reference) equal(s reference) bool {
	if len(r.shape) != len(s.shape) || r.elemBytes != s.elemBytes {
		return false
	}
	for i := range r.shape {
		if r.shape[i] != s.shape[i] || r.shape[i] > 1 && r.strides[i] != s.strides[i] {
			return false
		}
	}
	return true
}

// copyStrided copies all elements of one place to another of the same shape.
func copyStrided(src, dst unsafe.Pointer, s, t reference) {
	if len(s.shape) == 0 {
		copy(unsafe.Slice((*byte)(dst), s.elemBytes), unsafe.Slice((*byte)(src), s.elemBytes))
		return
	}
	last := len(s.shape) == 1
	contiguous := last && s.strides[0] == 1 && t.strides[0] == 1
	if contiguous {
		n := s.shape[0] * s.elemBytes
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
		return
	}
	inner, outer := reference{s.shape[1:], s.strides[1:], s.elemBytes}, reference{t.shape[1:], t.strides[1:], t.elemBytes}
	for i := range s.shape[0] {
		copyStrided(unsafe.Add(src, i*s.strides[0]*s.elemBytes), unsafe.Add(dst, i*t.strides[0]*t.elemBytes), inner, outer)
	}
}

// elementType is the IR type of a stored element type.
func elementType(t formats.DType) ir.Type {
	c := ir.NewContext()
	switch t {
	case formats.F32:
		return c.F32()
	case formats.F64:
		return c.F64()
	case formats.BF16:
		return c.Float(ir.BF16)
	case formats.F16:
		return c.Float(ir.F16)
	case formats.Bool:
		return c.I1()
	}
	return c.Int(8 * int(t.Size()))
}
