package cuda

import (
	"errors"
	"runtime"
	"strings"
	"unsafe"
)

// Module is code loaded on a GPU.
type Module struct {
	c      *Context
	handle uintptr
	Name   string
	Log    string // what the driver's assembler said: registers, spills and warnings of each kernel
}

// Load assembles PTX for the GPU and loads it. The driver keeps what it assembled for the next time (CUDA_CACHE_PATH says
// where). It could also give out the code that it links from PTX (cuLinkCreate), but that ignores setmaxnreg: kernels whose
// warps share registers unequally then keep accumulators in local memory and take 20 times as long, measured on an H200
// with driver 580. The name is for messages.
func (c *Context) Load(name string, code []byte) (*Module, error) {
	m := &Module{c: c, Name: name}
	jit := newJIT()
	image := append(append([]byte(nil), code...), 0)
	err := c.do(func() result {
		return c.d.fn.ModuleLoadDataEx(&m.handle, &image[0], uint32(len(jit.options)), &jit.options[0], &jit.values[0])
	}, "loading %s on GPU %d (%s)", name, c.Device.Ordinal, c.Device.Name)
	runtime.KeepAlive(jit)
	m.Log = jit.text(jit.info[:], jitInfoSize)
	var e *Error
	if errors.As(err, &e) {
		e.Log = jit.text(jit.failure[:], jitFailureSize)
	}
	return m, err
}

// The driver's numbers for assembling options. Values are passed in a pointer's place; sizes come back there.
const (
	optInfoBuffer    = 3
	optInfoSize      = 4
	optFailureBuffer = 5
	optFailureSize   = 6
	optVerbose       = 12
)

const (
	jitInfoSize    = 1
	jitFailureSize = 3
)

type jit struct {
	options       []int32
	values        []uintptr
	info, failure [16384]byte
}

func newJIT() *jit {
	j := &jit{}
	j.options = []int32{optInfoBuffer, optInfoSize, optFailureBuffer, optFailureSize, optVerbose}
	j.values = []uintptr{uintptr(unsafe.Pointer(&j.info[0])), uintptr(len(j.info)), uintptr(unsafe.Pointer(&j.failure[0])), uintptr(len(j.failure)), 1}
	return j
}

// text is what the driver wrote to a buffer.
func (j *jit) text(buffer []byte, size int) string {
	n := min(int(uint32(j.values[size])), len(buffer))
	for n > 0 && buffer[n-1] == 0 {
		n--
	}
	return string(buffer[:n])
}

// performanceLoss is the first line in which the assembler warns of a slow kernel. It says nothing of what it had kept.
func (m *Module) performanceLoss() string {
	for line := range strings.Lines(m.Log) {
		if strings.Contains(line, "Potential Performance Loss") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// Close unloads the module.
func (m *Module) Close() error {
	return m.c.do(func() result { return m.c.d.fn.ModuleUnload(m.handle) }, "unloading %s", m.Name)
}

// Function is a kernel.
type Function struct {
	c         *Context
	handle    uintptr
	Name      string
	Registers int // of a thread
	Local     int // bytes of local memory a thread has: spills and arrays
}

// The driver's numbers for attributes of functions.
const (
	funcLocal     = 3
	funcRegisters = 4
	funcMaxShared = 8
)

// Function finds a kernel, which may use that many bytes of dynamic shared memory.
func (m *Module) Function(name string, shared int) (*Function, error) {
	c := m.c
	f := &Function{c: c, Name: name}
	symbol := nulTerminated(name)
	if err := c.do(func() result { return c.d.fn.ModuleGetFunction(&f.handle, m.handle, symbol) }, "looking for kernel %s in %s", name, m.Name); err != nil {
		return nil, err
	}
	if shared > 48<<10 {
		if err := c.do(func() result { return c.d.fn.FuncSetAttribute(f.handle, funcMaxShared, int32(shared)) },
			"giving kernel %s %d bytes of shared memory", name, shared); err != nil {
			return nil, err
		}
	}
	for _, a := range []struct {
		number int32
		to     *int
	}{{funcLocal, &f.Local}, {funcRegisters, &f.Registers}} {
		var v int32
		if err := c.do(func() result { return c.d.fn.FuncGetAttribute(&v, a.number, f.handle) }, "asking for an attribute of kernel %s", name); err != nil {
			return nil, err
		}
		*a.to = int(v)
	}
	return f, nil
}
