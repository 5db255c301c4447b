package host

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"blutrain/runtime"
	"blutrain/runtime/collective"
	"blutrain/runtime/host/prim"
)

// run executes the steps of a function. However it ends, no collective is under way then.
func (d *device) run(f *function, bound map[slotName][]byte, visit runtime.Visitor) (err error) {
	d.flights = collective.Flights{}
	defer func() {
		if err != nil {
			if f.collective {
				err = d.options.Failed(f.name, err)
			} else {
				err = fmt.Errorf("%s: %w", f.name, err)
			}
			d.flights.End()
		}
	}()
	for i := range f.steps {
		s := &f.steps[i]
		d.place(s, bound)
		var err error
		if visit == nil {
			err = d.step(s)
		} else {
			err = d.visit(s, visit)
		}
		if err != nil {
			if at := location(s.loc); at != "" {
				return fmt.Errorf("%s: %w", at, err)
			}
			return err
		}
	}
	return nil
}

// place tells every worker where a step's references are.
func (d *device) place(s *step, bound map[slotName][]byte) {
	for r, slot := range s.refs {
		base := slot.base
		if base == nil {
			base = pointer(bound[slot.name])
		}
		for w := range d.frames {
			d.frames[w].refs[r] = unsafe.Add(base, slot.offset)
		}
	}
}

// step executes a step. A routine that refuses its operands by a panic, before it touches memory, ends the step as any
// other error does, and so does one that touches memory which may not be touched.
func (d *device) step(s *step) (err error) {
	switch {
	case s.begin != nil:
		return d.begin(s)
	case s.wait != nil:
		_, err := d.flights.Land(s.wait.ID)
		return err
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%s: %v", s.name(), prim.Fault(v))
		}
	}()
	if s.kernel == nil {
		d.copy(s)
		return nil
	}
	return d.launch(s.kernel)
}

// name is what a step that moves or computes is called.
func (s *step) name() string {
	if s.kernel == nil {
		return "a copy"
	}
	return "kernel " + s.kernel.name
}

// launch runs all grid points of a kernel.
func (d *device) launch(k *kernel) error {
	for w := range d.frames {
		d.frames[w].start(k)
	}
	if k.usesEngine || k.points == 1 {
		for t := range k.points {
			if err := k.point(&d.frames[0], t); err != nil {
				return err
			}
		}
		return nil
	}
	var first firstError
	d.pool.Run(k.points, func(worker, task int) {
		if first.before(task) {
			return
		}
		if err := k.point(&d.frames[worker], task); err != nil {
			first.keep(task, err)
		}
	})
	return first.err
}

// start gives a frame the constants of the kernel it is going to run.
func (f *frame) start(k *kernel) {
	for _, c := range k.constants {
		f.index[c.reg] = c.value
	}
}

// point runs one grid point.
func (k *kernel) point(f *frame, task int) error {
	for i := len(k.grid) - 1; i >= 0; i-- {
		n := k.counts[i]
		f.index[i] = int64(task%n) * k.steps[i]
		task /= n
	}
	f.err, f.iterations = nil, 0
	for _, in := range k.body {
		in(f)
		if f.err != nil {
			return fmt.Errorf("kernel %s: %w", k.name, f.err)
		}
	}
	return nil
}

// firstError keeps the error of the lowest task, so that which one is reported does not depend on the workers: tasks are
// taken in order, and those after a failed one need not run.
type firstError struct {
	failed atomic.Int64 // the lowest failed task plus 1; 0: none
	mu     sync.Mutex
	err    error
}

func (e *firstError) keep(task int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if lowest := e.failed.Load(); lowest == 0 || int64(task) < lowest-1 {
		e.failed.Store(int64(task) + 1)
		e.err = err
	}
}

// before reports whether a task before this one has failed.
func (e *firstError) before(task int) bool {
	lowest := e.failed.Load()
	return lowest != 0 && lowest <= int64(task)
}

// copyPiece is about how many bytes a task of a copy moves.
const copyPiece = 1 << 18

// copy copies all elements of a step's first place to its second, of the same shape. The outermost dimension that is
// worth it is cut among the workers.
func (d *device) copy(s *step) {
	src, dst := d.frames[0].refs[0], d.frames[0].refs[1]
	from, to := collapse(s.types[0], s.types[1])
	if from.elements() == 0 {
		return
	}
	if len(from.shape) == 0 {
		copyStrided(src, dst, from, to)
		return
	}
	each := max(1, copyPiece/(from.elements()/from.shape[0]*from.elemBytes))
	tasks := (from.shape[0] + each - 1) / each
	d.pool.Run(int(tasks), func(_, task int) {
		i := int64(task) * each
		n := min(each, from.shape[0]-i)
		copyStrided(unsafe.Add(src, i*from.strides[0]*from.elemBytes), unsafe.Add(dst, i*to.strides[0]*to.elemBytes), from.first(n), to.first(n))
	})
}

// first is the reference of the first n along the outermost dimension.
func (r reference) first(n int64) reference {
	r.shape = append([]int64{n}, r.shape[1:]...)
	return r
}

// collapse merges dimensions that follow each other without gaps in both places, and drops those of extent 1.
func collapse(s, t reference) (reference, reference) {
	a, b := reference{elem: s.elem, elemBytes: s.elemBytes}, reference{elem: t.elem, elemBytes: t.elemBytes}
	for i, n := range s.shape {
		last := len(a.shape) - 1
		switch {
		case n == 1:
		case last >= 0 && a.strides[last] == n*s.strides[i] && b.strides[last] == n*t.strides[i]:
			a.shape[last], b.shape[last] = a.shape[last]*n, b.shape[last]*n
			a.strides[last], b.strides[last] = s.strides[i], t.strides[i]
		default:
			a.shape, b.shape = append(a.shape, n), append(b.shape, n)
			a.strides, b.strides = append(a.strides, s.strides[i]), append(b.strides, t.strides[i])
		}
	}
	return a, b
}

// copyStrided copies all elements of one place to another of the same shape.
func copyStrided(src, dst unsafe.Pointer, s, t reference) {
	switch {
	case len(s.shape) == 0:
		copy(unsafe.Slice((*byte)(dst), s.elemBytes), unsafe.Slice((*byte)(src), s.elemBytes))
		return
	case len(s.shape) == 1 && s.strides[0] == 1 && t.strides[0] == 1:
		n := s.shape[0] * s.elemBytes
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
		return
	}
	inner, outer := s, t
	inner.shape, inner.strides, outer.shape, outer.strides = s.shape[1:], s.strides[1:], t.shape[1:], t.strides[1:]
	for i := range s.shape[0] {
		copyStrided(unsafe.Add(src, i*s.strides[0]*s.elemBytes), unsafe.Add(dst, i*t.strides[0]*t.elemBytes), inner, outer)
	}
}
