// Package host is the CPU device: it decodes the bytecode of an artifact, checks it, and runs it on a pool of workers with
// the routines of package prim. Nothing needs to be installed. The same artifact gives the same bits for any number of
// workers. It knows artifacts and the exec and host dialects; how they were compiled is none of its business.
//
// A program is not trusted to stay within its memory. What can be checked when it is opened is checked then: places
// against the storage they are in, launches against kernels, instructions against the element types they have routines
// for. The rest, windows at offsets that are computed, is checked when it happens.
package host

import (
	"fmt"
	"unsafe"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/collective"
	"blutrain/runtime/declared"
	"blutrain/runtime/host/prim"
)

// device is a program opened on the CPU: a runtime.Tracer.
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
	buffers   []memory           // for snapshots
	scratch   []memory           // one a worker
	frames    []frame            // one a worker
	flights   collective.Flights // of the call that runs
	inUse     int64
	refresher runtime.Refresher
}

// Open prepares an artifact's program to run on the CPU. The result is a runtime.Tracer, too.
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
	if err := declared.Check(&a.Manifest, module); err != nil {
		return nil, err
	}
	d := &device{manifest: &a.Manifest, options: opts, functions: map[string]*function{}, states: map[string]memory{}}
	if err := opts.CheckMesh(&a.Manifest); err != nil {
		return nil, err
	}
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
	m, err := allocate(n, d.options.Guard, what)
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
			refs = max(refs, len(s.refs))
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
	for _, ms := range [][]memory{d.constants, d.scratch, d.buffers, {d.arena}} {
		for _, m := range ms {
			keep(m.free())
		}
	}
	d.states, d.constants, d.scratch, d.buffers, d.arena, d.functions = nil, nil, nil, nil, memory{}, nil
	if d.pool != nil {
		d.pool.Close()
		d.pool = nil
	}
	return first
}
