package cuda

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"blutrain/artifact"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// kernel is a declared kernel and, once a function that launches it has run, its code.
type kernel struct {
	name, reference string
	copies          bool
	file, entry     string
	refs            []*ir.MemRefType
	outs            int
	blocks, threads int
	shared, cluster int
	params          []exec.Param // nil: the references, in order
	scratch         int64
	thenName        string
	then            *kernel // launched next on the same references; nil: none
	workspace       int64
	hasWorkspace    bool
	listed          bool // addresses of references are in memory, not parameters
	records         []record
	location        string
	code            *Function
}

// record is what an error record is about.
type record struct {
	kernel *kernel
	step   int
	what   string
	extent int64
}

// function is a decoded exec.func.
type function struct {
	p       *program
	name    string
	steps   []step
	records []record
	ports   map[port]*memory
	inputs  []*memory
	outputs []*memory
	ready   bool
	parts   []part
	meets   bool       // other ranks take part in it
	flying  []*meeting // of the call that runs
	status  *pinned    // error records after a call
	own     Pointer    // workspace of its own; 0: it works in the program's
}

// port names memory that a call gives values to or takes them from.
type port struct{ space, name string }

// memory is device memory of a port and the host memory it is copied from or to.
type memory struct {
	value artifact.Value
	at    Pointer
	host  *pinned
}

// step is a launch, or the beginning or the end of a collective.
type step struct {
	kernel   *kernel
	begin    *meeting // sources first among the references
	wait     *meeting
	refs     []place
	flops    float64
	location string
	record   int     // number of its first error record
	params   [][]any // of its kernel, and of those that are launched with it
}

// place is an address: a fixed one, or an offset in what a port has.
type place struct {
	base   Pointer
	port   *port
	offset int64
}

func (p *program) decodeKernel(op *ir.Op) (*kernel, error) {
	a := op.Attrs()
	k := &kernel{
		name: ir.SymName(op), file: a.Str("file"), entry: a.Str("entry"), outs: int(a.IntOr("outs", 0)), blocks: int(a.IntOr("blocks", 0)),
		threads: int(a.IntOr("threads", 0)), shared: int(a.IntOr("shared", 0)), workspace: a.IntOr("workspace", 0), location: location(op.Loc()),
	}
	_, k.hasWorkspace = a.Int("workspace")
	k.listed = a.Bool("table")
	k.cluster, k.scratch, k.thenName = int(a.IntOr("cluster", 1)), a.IntOr("scratch", 0), a.Sym("then")
	var err error
	if k.params, err = exec.Params(op, "params"); err != nil {
		return nil, op.Errorf("exec.kernel: %v", err)
	}
	k.reference = k.name
	if s, ok := op.Attr("reference").(*ir.StringAttr); ok {
		k.reference, k.copies = s.Value, s.Value == ""
	}
	for _, t := range op.Attr("refs").(*ir.ArrayAttr).Elems {
		k.refs = append(k.refs, t.(*ir.TypeAttr).Type.(*ir.MemRefType))
	}
	if list, ok := op.Attr("errors").(*ir.ArrayAttr); ok {
		for _, e := range list.Elems {
			d, ok := e.(*ir.DictAttr)
			if !ok {
				return nil, op.Errorf("exec.kernel: error records are dictionaries")
			}
			r := ir.Attrs(d.Entries)
			k.records = append(k.records, record{kernel: k, what: r.Str("what"), extent: r.IntOr("extent", 0)})
		}
	}
	if _, ok := p.artifact.File(k.file); !ok {
		return nil, op.Errorf("exec.kernel: the artifact has no file %q", k.file)
	}
	return k, nil
}

// location is the place in the source, file:line:col, or "".
func location(l *ir.Location) string {
	s := l.Source()
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%s:%d:%d", s.File, s.Line, s.Col)
}

func (p *program) decodeFunction(op *ir.Op) (*function, error) {
	f := &function{p: p, name: ir.SymName(op), ports: map[port]*memory{}}
	written := func(launch *ir.Op) int {
		if k := p.kernels[launch.Attrs().Sym("kernel")]; k != nil {
			return k.outs
		}
		return 0 // decoding the launch says that there is none
	}
	if err := exec.CheckFlights(op, written); err != nil {
		return nil, err
	}
	arena := op.Attrs().IntOr("arena", 0)
	places := map[*ir.Value]place{}
	for o := range op.Body().Ops() {
		switch o.Def() {
		case exec.Ref:
			at, err := p.place(o, f, arena)
			if err != nil {
				return nil, err
			}
			places[o.Result(0)] = at
		case exec.Launch:
			s, err := p.decodeLaunch(o, places)
			if err != nil {
				return nil, err
			}
			s.record = len(f.records)
			for _, r := range s.kernel.records {
				r.step = len(f.steps)
				f.records = append(f.records, r)
			}
			f.steps = append(f.steps, s)
		case exec.Collective:
			s, err := p.decodeCollective(o, places)
			if err != nil {
				return nil, err
			}
			f.steps, f.meets = append(f.steps, s), true
		case exec.Wait:
			f.steps = append(f.steps, f.decodeWait(o))
		case exec.End:
		default:
			return nil, o.Errorf("%s is no step of a program for GPUs", o.Name())
		}
	}
	return f, nil
}

func (p *program) decodeLaunch(op *ir.Op, places map[*ir.Value]place) (step, error) {
	k := p.kernels[op.Attrs().Sym("kernel")]
	if k == nil {
		return step{}, op.Errorf("no kernel %s", op.Attr("kernel"))
	}
	s := step{kernel: k, location: location(op.Loc()), flops: float64(op.Attrs().IntOr("flops", 0))}
	if op.NumOperands() != len(k.refs) {
		return s, op.Errorf("kernel %s takes %d references, not %d", k.name, len(k.refs), op.NumOperands())
	}
	for i, v := range op.Operands() {
		if !alike(v.Type().(*ir.MemRefType), k.refs[i]) {
			return s, op.Errorf("kernel %s: reference %d is %s, wants %s", k.name, i, v.Type(), k.refs[i])
		}
		s.refs = append(s.refs, places[v])
	}
	return s, nil
}

// alike reports whether two references have the same elements, extents, and strides where these matter.
func alike(x, y *ir.MemRefType) bool {
	xs, _ := mem.Layout(x)
	ys, _ := mem.Layout(y)
	if x.Elem != y.Elem || !slices.Equal(x.Shape, y.Shape) {
		return false
	}
	for i, n := range x.Shape {
		if n > 1 && xs[i] != ys[i] {
			return false
		}
	}
	return true
}

// place finds the memory an exec.ref is about, and checks that all it can reach lies within it.
func (p *program) place(op *ir.Op, f *function, arena int64) (place, error) {
	t := op.Result(0).Type().(*ir.MemRefType)
	space, name, offset := op.Attrs().Str("space"), op.Attrs().Str("name"), op.Attrs().IntOr("offset", 0)
	at, bytes := place{offset: offset}, int64(-1)
	switch space {
	case mem.State:
		if s, ok := p.manifest.State(name); ok {
			at.base, bytes = p.states[name], s.Bytes()
		}
	case mem.Arena:
		at.base, bytes = p.arena, arena
	case mem.Const:
		var err error
		if at.base, bytes, err = p.constant(op); err != nil {
			return at, err
		}
	default:
		if v, ok := p.value(f.name, space, name); ok {
			at.port, bytes = &port{space, name}, v.Bytes()
		}
	}
	if bytes < 0 {
		return at, op.Errorf("function %s has no %s %q", f.name, space, name)
	}
	strides, _ := mem.Layout(t)
	size := ir.ByteSize(t.Elem)
	if err := mem.CheckRange(t.Shape, strides, offset/size, bytes/size); err != nil {
		return at, op.Errorf("%s %s: %v", space, name, err)
	}
	return at, nil
}

// value is an input, output or scalar of a function.
func (p *program) value(fn, space, name string) (artifact.Value, bool) {
	info, _ := p.manifest.Function(fn)
	if info == nil {
		return artifact.Value{}, false
	}
	for _, v := range map[string][]artifact.Value{mem.Input: info.Inputs, mem.Output: info.Outputs, mem.Scalar: info.Scalars}[space] {
		if v.Name == name {
			return v, true
		}
	}
	return artifact.Value{}, false
}

// constant puts a constant into device memory. Equal elements, which programs seldom refer to (copies of them are kernels that fill), are
// filled in where a word of 32 bits says them.
func (p *program) constant(op *ir.Op) (Pointer, int64, error) {
	a, n, err := exec.Constant(op)
	if err != nil {
		return 0, 0, err
	}
	at, err := p.alloc(n, "constants", "a constant")
	if err != nil || n == 0 {
		return at, n, err
	}
	if word, ok := equalWords(a); ok {
		return at, n, p.fill(at, word, (n+3)/4)
	}
	return at, n, p.stream.Upload(at, bytes.Repeat([]byte(a.Raw), int(n)/len(a.Raw)))
}

// equalWords is the 32 bits that a constant of equal elements is made of, if it is.
func equalWords(a *ir.DenseAttr) (uint32, bool) {
	if !a.Splat || len(a.Raw) == 8 && a.Raw[:4] != a.Raw[4:] {
		return 0, false
	}
	return binary.LittleEndian.Uint32(bytes.Repeat([]byte(a.Raw), 4)), true
}

// failed says where in the source a kernel comes from.
func (k *kernel) failed(err error) error {
	if err == nil || k.location == "" {
		return err
	}
	return fmt.Errorf("%s: %w", k.location, err)
}

func (f *function) close() error {
	var faults []error
	for _, p := range f.parts {
		if p.graph != nil {
			faults = append(faults, p.graph.close())
		}
	}
	for _, s := range f.steps {
		if s.begin != nil && s.begin.done != nil {
			faults = append(faults, s.begin.done.Close())
		}
	}
	for _, m := range f.ports {
		if m.host != nil {
			faults = append(faults, m.host.free())
		}
	}
	if f.status != nil {
		faults = append(faults, f.status.free())
	}
	return errors.Join(faults...)
}
