// Package host is the CPU device: it decodes the bytecode of an artifact, checks it, and runs it on a pool of workers with
// the routines of package prim. Nothing needs to be installed. The same artifact gives the same bits for any number of
// workers. It knows artifacts and the exec and host dialects; how they were compiled is none of its business.
package host

import (
	"fmt"
	"unsafe"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/host/prim"
)

// device is a program opened on the CPU: a runtime.Program.
type device struct {
	manifest *artifact.Manifest
	options  runtime.Options
	kernels  *prim.Kernels
	pool     *prim.Pool
	engine   *prim.Engine

	functions map[string]*function
	states    map[string]memory
	constants []memory
	arena     memory
	scratch   []memory // one a worker
	frames    []frame  // one a worker
	inUse     int64
}

// Open prepares an artifact's program to run on the CPU.
func Open(a *artifact.Artifact, opts runtime.Options) (runtime.Program, error) {
	text, ok := a.File(artifact.ProgramName)
	if !ok {
		return nil, fmt.Errorf("the artifact has no %s", artifact.ProgramName)
	}
	c := dialects.NewContext()
	module, err := ir.Parse(c, artifact.ProgramName, text)
	if err != nil {
		return nil, err
	}
	if err := ir.Verify(c, module); err != nil {
		return nil, err
	}
	d := &device{manifest: &a.Manifest, options: opts, functions: map[string]*function{}, states: map[string]memory{}}
	if err := d.load(module); err != nil {
		_ = d.Close()
		return nil, err
	}
	return d, nil
}

func (d *device) load(module *ir.Op) error {
	d.kernels = prim.Detect()
	d.pool = prim.NewPool(d.options.Threads)
	d.engine = prim.NewEngine(d.kernels, d.pool)
	for _, s := range d.manifest.States {
		m, err := d.allocate(s.Bytes(), "state "+s.Name)
		if err != nil {
			return err
		}
		d.states[s.Name] = m
	}
	if err := d.loadFunctions(module); err != nil {
		return err
	}
	return d.makeFrames()
}

func (d *device) allocate(n int64, what string) (memory, error) {
	m, err := allocate(n, what)
	if err != nil {
		return m, fmt.Errorf("%w (%d bytes are held already; --set with a smaller batch or model needs less)", err, d.inUse)
	}
	d.inUse += n
	return m, nil
}

// makeFrames allocates, for every worker, registers and scratch memory for the most demanding kernel.
func (d *device) makeFrames() error {
	var scratch int64
	var index, blocks int
	refs := 2 // a copy has two
	for _, f := range d.functions {
		for _, s := range f.steps {
			if k := s.kernel; k != nil {
				scratch = max(scratch, k.scratch)
				refs, index, blocks = max(refs, len(k.refs)), max(index, k.numIndex), max(blocks, k.numBlocks)
			}
		}
	}
	for w := range d.pool.N() {
		m, err := d.allocate(scratch, "scratch memory")
		if err != nil {
			return err
		}
		d.scratch = append(d.scratch, m)
		d.frames = append(d.frames, frame{
			d: d, k: d.kernels, worker: w, scratch: m.base(),
			refs: make([]unsafe.Pointer, refs), index: make([]int64, index), blocks: make([]block, blocks),
		})
	}
	return nil
}

// Manifest is the artifact's manifest.
func (d *device) Manifest() *artifact.Manifest { return d.manifest }

// MemoryInUse is the bytes allocated for states, arena, constants and scratch memory.
func (d *device) MemoryInUse() int64 { return d.inUse }

// Close gives the memory back and ends the workers.
func (d *device) Close() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	for _, m := range d.states {
		keep(m.free())
	}
	for _, ms := range [][]memory{d.constants, d.scratch, {d.arena}} {
		for _, m := range ms {
			keep(m.free())
		}
	}
	d.states, d.constants, d.scratch, d.arena, d.functions = nil, nil, nil, memory{}, nil
	if d.pool != nil {
		d.pool.Close()
		d.pool = nil
	}
	return first
}

// ReadState copies a state to dst.
func (d *device) ReadState(name string, dst []byte) error {
	m, err := d.state(name, len(dst))
	copy(dst, m.bytes)
	return err
}

// WriteState copies src to a state.
func (d *device) WriteState(name string, src []byte) error {
	m, err := d.state(name, len(src))
	if err != nil {
		return err
	}
	copy(m.bytes, src)
	return nil
}

func (d *device) state(name string, n int) (memory, error) {
	m, ok := d.states[name]
	if !ok {
		return memory{}, fmt.Errorf("no state %q", name)
	}
	s, _ := d.manifest.State(name)
	if int64(n) != s.Bytes() {
		return memory{}, fmt.Errorf("state %q has %d bytes, not %d", name, s.Bytes(), n)
	}
	return m, nil
}

// Call runs a function.
func (d *device) Call(fn string, in map[string]runtime.Array, scalars runtime.Scalars) (map[string]runtime.Array, error) {
	info, err := runtime.CheckCall(d.manifest, fn, in, scalars)
	if err != nil {
		return nil, err
	}
	f := d.functions[fn]
	if f == nil {
		return nil, fmt.Errorf("the program has no function %q", fn)
	}
	if d.options.Poison {
		poison(d.arena.bytes[:f.arena])
	}
	places, outputs := d.bind(info, in, scalars)
	if err := d.run(f, places); err != nil {
		return nil, fmt.Errorf("%s: %w", fn, err)
	}
	return outputs, nil
}

// bind gives inputs, outputs and scalars memory for one call.
func (d *device) bind(info *artifact.Function, in map[string]runtime.Array, scalars runtime.Scalars) (map[slotName]unsafe.Pointer, map[string]runtime.Array) {
	places := map[slotName]unsafe.Pointer{}
	outputs := map[string]runtime.Array{}
	for _, v := range info.Inputs {
		b := aligned(v.Bytes())
		copy(b, in[v.Name].Data)
		places[slotName{"input", v.Name}] = unsafe.Pointer(unsafe.SliceData(b))
	}
	for _, v := range info.Scalars {
		b := aligned(8)
		encodeScalar(b, v, scalars[v.Name])
		places[slotName{"scalar", v.Name}] = unsafe.Pointer(unsafe.SliceData(b))
	}
	for _, v := range info.Outputs {
		b := aligned(v.Bytes())
		if d.options.Poison {
			poison(b)
		}
		places[slotName{"output", v.Name}] = unsafe.Pointer(unsafe.SliceData(b))
		outputs[v.Name] = runtime.Array{DType: v.DType, Shape: v.Shape, Data: b}
	}
	return places, outputs
}

// aligned is n bytes whose first is at a multiple of eight: kernels read them as wider types.
func aligned(n int64) []byte {
	words := make([]uint64, max(1, (n+7)/8))
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*8)[:n]
}

// encodeScalar writes a number as the scalar's type.
func encodeScalar(dst []byte, v artifact.Value, x float64) {
	t := elementType(v.DType)
	copy(dst, ir.EncodeElement(nil, t, x))
}

// poison fills memory with bits that are NaN as float32, float64 and bfloat16, and an index far out of range as int32.
func poison(b []byte) {
	pattern := uint16(0x7fc0)
	for i := range b {
		b[i] = byte(pattern >> (8 * (i & 1)))
	}
}
