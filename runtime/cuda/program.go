package cuda

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/alloc"
	"blutrain/runtime/declared"
)

// program is an artifact opened on a GPU: a runtime.Program and a runtime.Tracer.
type program struct {
	manifest *artifact.Manifest
	artifact *artifact.Artifact
	options  runtime.Options
	ctx      *Context
	stream   *Stream
	pool     *alloc.Pool
	warn     func(string)

	kernels   map[string]*kernel
	functions map[string]*function
	states    map[string]Pointer
	arena     Pointer
	workspace Pointer
	errors    Pointer            // error records of the function that runs
	spare     int64              // bytes of workspace
	modules   map[string]*Module // by file
	guards    []guard
	network   *network                                 // nil where the program has no collectives
	self      func() (host, process string, err error) // peer.Config's
	copies    snapshots
	refresher runtime.Refresher
}

// OpenProgram prepares an artifact's program to run on a GPU, the one of that number.
func OpenProgram(a *artifact.Artifact, ordinal int, opts runtime.Options) (runtime.Program, error) {
	if err := opts.CheckMesh(&a.Manifest); err != nil {
		return nil, err
	}
	module, err := parseProgram(a)
	if err != nil {
		return nil, err
	}
	device, version, err := findDevice(ordinal)
	if err != nil {
		return nil, err
	}
	if err := suits(a.Manifest.Arch, device, version); err != nil {
		return nil, err
	}
	ctx, err := device.Open()
	if err != nil {
		return nil, err
	}
	p := &program{manifest: &a.Manifest, artifact: a, options: opts, ctx: ctx, kernels: map[string]*kernel{}, functions: map[string]*function{}, states: map[string]Pointer{}, modules: map[string]*Module{}, warn: warnOnce()}
	if err = p.load(module); err == nil {
		err = p.connect(opts.CallContext())
	}
	if err != nil {
		p.network.abort(err)
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// findDevice finds the GPU of a number, and says which CUDA its driver knows.
func findDevice(ordinal int) (device *Device, version int, err error) {
	driver, err := Open()
	if err != nil {
		return nil, 0, err
	}
	devices, err := driver.Devices()
	if err != nil {
		return nil, 0, err
	}
	if ordinal < 0 || ordinal >= len(devices) {
		return nil, 0, fmt.Errorf("there is no GPU %d: this machine has %d", ordinal, len(devices))
	}
	version, err = driver.Version()
	return devices[ordinal], version, err
}

func parseProgram(a *artifact.Artifact) (*ir.Op, error) {
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
	return module, declared.Check(&a.Manifest, module)
}

// oldestDriver is the first that knows the PTX version kernels are written in, 8.0.
const oldestDriver = 12000

// suits reports why a GPU or its driver can't run kernels made for an arch.
func suits(arch string, d *Device, driver int) error {
	need := map[string]int{"sm_80": 80, "sm_89": 89, "sm_90a": 90}[arch]
	have := 10*d.Major + d.Minor
	switch {
	case need == 0:
		return fmt.Errorf("the artifact was compiled for arch %q, which this program doesn't know", arch)
	case have < need || arch == "sm_90a" && have != 90:
		return fmt.Errorf("the artifact was compiled for %s; GPU %d (%s) is of compute capability %d.%d: %s", arch, d.Ordinal, d.Name, d.Major, d.Minor, advice(have))
	}
	return TooOld(driver)
}

// advice says what a GPU of a compute capability, as 90 for 9.0, can run.
func advice(have int) string {
	switch {
	case have < 80:
		return "8.0 and later are supported"
	case have < 89:
		return "compile it with --arch sm_80"
	case have == 90:
		return "compile it with --arch sm_90a"
	}
	return "compile it with --arch sm_89"
}

// warnOnce tells a person on standard error what it is given the first time.
func warnOnce() func(string) {
	var once sync.Once
	return func(text string) { once.Do(func() { fmt.Fprintln(os.Stderr, "warning: "+text) }) }
}

func (p *program) load(module *ir.Op) (err error) {
	if p.stream, err = p.ctx.NewStream(); err != nil {
		return err
	}
	b, err := newBacking(p.ctx)
	if err != nil {
		return err
	}
	if p.pool, err = alloc.New(b, 2*p.ctx.Device.Memory); err != nil {
		return err
	}
	for _, s := range p.manifest.States {
		what := map[artifact.Role]string{artifact.Param: "parameters", artifact.Gradient: "gradients", artifact.Optimizer: "optimizer state", artifact.Copy: "copies of parameters"}[s.Role]
		if what == "" {
			what = "other state"
		}
		if p.states[s.Name], err = p.alloc(s.Bytes(), what, "state "+s.Name); err != nil {
			return err
		}
		if err := p.zero(p.states[s.Name], s.Bytes()); err != nil {
			return err
		}
	}
	return p.loadProgram(module)
}

// alloc takes memory from the pool. Messages call all that one holder has by its name, and the piece by its own.
func (p *program) alloc(bytes int64, holder, name string) (Pointer, error) {
	if p.options.Guard {
		return p.guarded(bytes, holder, name)
	}
	return p.take(bytes, holder)
}

func (p *program) take(bytes int64, holder string) (Pointer, error) {
	at, err := p.pool.Alloc(bytes, holder)
	var out *alloc.Error
	if errors.As(err, &out) {
		free, total, infoErr := p.ctx.MemoryInfo()
		if infoErr == nil {
			err = fmt.Errorf("GPU %d (%s), %d of %d MiB free: %w; %s", p.ctx.Device.Ordinal, p.ctx.Device.Name, free>>20, total>>20, err, p.lean(holder, free))
		}
	}
	return Pointer(at), err
}

// What of a program's memory depends on the batch, as messages call it.
const (
	theArena   = "the arena"
	workspaces = "workspace of kernels"
	ports      = "inputs and outputs"
)

// lean says what helps where there is no memory for what a holder wants, so much of it being free.
func (p *program) lean(holder string, free int64) string {
	switch holder {
	case theArena, workspaces, ports:
		return fmt.Sprintf("bluc compile --memory-budget %dMiB, or a smaller batch (--set B=...), needs less", (free+p.pool.Mapped())>>20)
	}
	states := int64(0)
	for _, s := range p.manifest.States {
		states += s.Bytes()
	}
	return fmt.Sprintf("parameters, gradients and optimizer state alone are %d MiB, whatever the batch: a smaller model needs less, or bluc compile --mesh dp --zero 1 on several GPUs", states>>20)
}

// zero clears memory whose pieces are multiples of 256 bytes.
func (p *program) zero(at Pointer, bytes int64) error { return p.fill(at, 0, (bytes+3)/4) }

func (p *program) fill(at Pointer, word uint32, words int64) error {
	if words == 0 {
		return nil
	}
	return p.stream.Fill(at, word, words)
}

// loadProgram decodes kernels and functions, and allocates what they share.
func (p *program) loadProgram(module *ir.Op) error {
	arena, records := int64(0), 0
	for op := range module.Body().Ops() {
		switch {
		case op.Is(exec.Kernel):
			k, err := p.decodeKernel(op)
			if err != nil {
				return err
			}
			p.kernels[k.name] = k
		case op.Is(exec.Func):
			arena = max(arena, op.Attrs().IntOr("arena", 0))
		}
	}
	if err := p.chain(); err != nil {
		return err
	}
	var err error
	if p.arena, err = p.alloc(arena, theArena, theArena); err != nil {
		return err
	}
	for op := range module.Body().Ops() {
		if !op.Is(exec.Func) {
			continue
		}
		f, err := p.decodeFunction(op)
		if err != nil {
			return fmt.Errorf("function %s: %w", ir.SymName(op), err)
		}
		p.functions[f.name] = f
		p.spare = max(p.spare, f.room()) // not of candidates, which no function launches
		records = max(records, len(f.records))
	}
	if p.workspace, err = p.alloc(p.spare, workspaces, workspaces); err != nil {
		return err
	}
	p.errors, err = p.alloc(int64(8*records), "error records", "error records")
	return err
}

// chain finds the kernels that are launched together.
func (p *program) chain() error {
	for _, k := range p.kernels {
		if k.thenName == "" {
			continue
		}
		if k.then = p.kernels[k.thenName]; k.then == nil {
			return fmt.Errorf("kernel %s goes on with %s, which the program doesn't have", k.name, k.thenName)
		}
		if !slices.EqualFunc(k.refs, k.then.refs, alike) {
			return fmt.Errorf("kernel %s goes on with %s, which takes other references", k.name, k.thenName)
		}
	}
	for _, k := range p.kernels {
		n := 0
		for t := k; t != nil; t = t.then {
			if n++; n > len(p.kernels) {
				return fmt.Errorf("kernel %s goes on with itself", k.name)
			}
		}
	}
	return nil
}

// Manifest is the artifact's manifest.
func (p *program) Manifest() *artifact.Manifest { return p.manifest }

// MemoryInUse is the bytes of device memory that are mapped.
func (p *program) MemoryInUse() int64 { return p.pool.Mapped() }

// Close gives everything back. What a kernel did wrong was told when something waited for it, and is not told again by each call from then on.
func (p *program) Close() error {
	faults := []error{p.network.close(), p.copies.close()}
	for _, f := range p.functions {
		faults = append(faults, f.close())
	}
	for _, m := range p.modules {
		faults = append(faults, m.Close())
	}
	if p.stream != nil {
		faults = append(faults, p.stream.Close())
	}
	if p.pool != nil {
		faults = append(faults, p.pool.Close())
	}
	return errors.Join(slices.DeleteFunc(append(faults, p.ctx.Close()), byKernel)...)
}

// ReadState copies a state to dst.
func (p *program) ReadState(name string, dst []byte) error {
	at, err := p.state(name, len(dst))
	if err != nil {
		return err
	}
	return p.stream.Download(dst, at)
}

// WriteState copies src to a state.
func (p *program) WriteState(name string, src []byte) error {
	at, err := p.state(name, len(src))
	if err != nil {
		return err
	}
	if err := p.refresher.Writes(p.manifest, name); err != nil {
		return err
	}
	return p.stream.Upload(at, src)
}

// WriteStateAt implements runtime.StateWriter.
func (p *program) WriteStateAt(name string, at int64, src []byte) error {
	s, ok := p.manifest.State(name)
	if !ok {
		return fmt.Errorf("no state %q", name)
	}
	if at < 0 || at > s.Bytes() || int64(len(src)) > s.Bytes()-at {
		return fmt.Errorf("state %q has %d bytes, none for %d at %d", name, s.Bytes(), len(src), at)
	}
	if err := p.refresher.Writes(p.manifest, name); err != nil {
		return err
	}
	return p.stream.Upload(p.states[name]+Pointer(at), src)
}

func (p *program) state(name string, n int) (Pointer, error) {
	at, ok := p.states[name]
	if !ok {
		return 0, fmt.Errorf("no state %q", name)
	}
	if s, _ := p.manifest.State(name); int64(n) != s.Bytes() {
		return 0, fmt.Errorf("state %q has %d bytes, not %d", name, s.Bytes(), n)
	}
	return at, nil
}
