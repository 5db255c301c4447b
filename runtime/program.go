// Package runtime executes artifacts. It defines what every device offers, a Program, and the values that go in and out;
// the devices are in folders of their own (host, ref), and runtime/device opens an artifact on one of them. Nothing here
// knows how a program was compiled.
package runtime

import (
	"context"
	"fmt"
	"math"
	"slices"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/formats"
)

// Array is a tensor in host memory: little-endian elements in row-major order.
type Array struct {
	DType formats.DType
	Shape []int64
	Data  []byte
}

// Scalars are the run-time scalars of a call by name: lr, step, first, seed. Integers are exact to 2^53; a truth value is
// 0 or 1.
type Scalars map[string]float64

// Program is an artifact opened on a device. Its state (parameters, gradients, optimizer state) lives as long as it does.
// A Program serves one call at a time.
type Program interface {
	Manifest() *artifact.Manifest
	// Call runs a function and returns its outputs by name. State is updated in place; after an error, what the function
	// would have updated is undefined.
	Call(fn string, in map[string]Array, s Scalars) (map[string]Array, error)
	// ReadState copies a state's bytes to dst, WriteState from src; lengths must match the state's size.
	ReadState(name string, dst []byte) error
	WriteState(name string, src []byte) error
	// MemoryInUse is the bytes held for states, arena and constants.
	MemoryInUse() int64
	Close() error
}

// Options of opening an artifact.
type Options struct {
	Threads int  // workers of the CPU device; 0: GOMAXPROCS
	Poison  bool // fill the arena, outputs and what kernels work in with NaN bits before each call, to find reads of what was never written
	Guard   bool // find what touches memory beyond a piece of it, by the kernel's name: pages that may not be touched around each, or bytes behind it that are looked at after each launch

	Helpers Helpers // other processes that make machine code beside this one, for devices that have to

	Mesh    *dtms.Mesh      // this rank's place among those that run the program; nil: it is the only one
	Between GPUEngine       // what moves memory between the GPUs of ranks; "" is AutoEngine
	Apart   bool            // without a mesh: open a program of several ranks for what each rank computes by itself, logits say
	Context context.Context // its end is that of collectives under way, too; nil: nothing ends them but their deadlines
}

// GPUEngine is what moves memory between the GPUs of ranks.
type GPUEngine string

// The engines. Which is faster was measured on two GPUs: bench/NOTES.md, sums by copy engines.
const (
	AutoEngine GPUEngine = "auto" // copies for programs that only sum, by all-reduce, between two GPUs that reach each other's memory; NCCL for all others
	NCCLEngine GPUEngine = "nccl"
	PeerEngine GPUEngine = "peer" // copies into each other's memory for all that they can do, NCCL for the rest
)

// Linked is a Program whose ranks exchange memory between devices.
type Linked interface {
	// Links says what moves it, and in brackets why it isn't what would be faster; "" where nothing is moved.
	Links() string
}

// Helpers are processes that make machine code of kernels' text where this one's driver makes it of one after the other.
type Helpers struct {
	Command []string // the program and its arguments, to which the number of the GPU is added: it runs cuda.Assemble; none: no helpers
	Most    int
}

// CheckCall holds a call to the ranks that the program is opened on, and its arguments to what the manifest says of the function: for
// devices, before they run it.
func (o Options) CheckCall(m *artifact.Manifest, fn string, in map[string]Array, s Scalars) (*artifact.Function, error) {
	f, ok := m.Function(fn)
	if !ok {
		return nil, fmt.Errorf("no function %q; there are %v", fn, functionNames(m))
	}
	if err := o.checkRanks(m, f); err != nil {
		return nil, err
	}
	for _, v := range f.Inputs {
		a, ok := in[v.Name]
		if !ok {
			return nil, fmt.Errorf("%s: input %q is missing", fn, v.Name)
		}
		if a.DType != v.DType || !slices.Equal(a.Shape, v.Shape) {
			return nil, fmt.Errorf("%s: input %q is %s, wants %s", fn, v.Name, a.DType.Of(a.Shape), v.DType.Of(v.Shape))
		}
		if int64(len(a.Data)) != v.Bytes() {
			return nil, fmt.Errorf("%s: input %q has %d bytes, not %d", fn, v.Name, len(a.Data), v.Bytes())
		}
	}
	for name := range in {
		if !slices.ContainsFunc(f.Inputs, func(v artifact.Value) bool { return v.Name == name }) {
			return nil, fmt.Errorf("%s: no input %q", fn, name)
		}
	}
	for _, v := range f.Scalars {
		if m.IsMeshScalar(v.Name) {
			continue // the device knows it
		}
		x, ok := s[v.Name]
		if !ok {
			return nil, fmt.Errorf("%s: scalar %q is missing", fn, v.Name)
		}
		if most, wants := scalarRange(v.DType); most > 0 && (x != math.Trunc(x) || x < -most || x > most || v.DType == formats.Bool && x < 0) {
			return nil, fmt.Errorf("%s: scalar %q is %v, wants %s", fn, v.Name, x, wants)
		}
	}
	return f, nil
}

// scalarRange is the largest magnitude of a scalar of a type that is not a float's, and what it is called.
func scalarRange(d formats.DType) (most float64, name string) {
	switch d {
	case formats.Bool:
		return 1, "0 or 1"
	case formats.I64:
		return 1 << 53, "a whole number up to 2^53"
	}
	if d.IsFloat() {
		return 0, ""
	}
	return float64(int64(1)<<(8*d.Size()-1) - 1), "a whole number that fits " + d.String()
}

func functionNames(m *artifact.Manifest) (names []string) {
	for _, f := range m.Functions {
		names = append(names, f.Name)
	}
	return names
}
