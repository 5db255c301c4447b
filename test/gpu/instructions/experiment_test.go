// Package instructions holds the emulator and the GPU against each other: small kernels, each of one instruction or a few
// that need each other, on inputs at the edges and random ones. What the emulator computes is what the GPU must. Without a
// GPU the kernels run in the emulator and through the assembler alone.
package instructions

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
)

// experiment is a kernel with what it reads and how its results are compared. Its parameters are the addresses of the
// input and of the output, then tensor maps.
type experiment struct {
	name    string
	threads int // of a block: 0 for 128
	blocks  int // 0 for 1
	cluster int
	shared  int
	in      []byte
	out     int // bytes, which hold `filler` at first
	elem    string
	maps    []tensor
	body    func(b *body)
	// bound is how far a result may be from the emulator's; nil where the bits must be equal (a NaN is a NaN).
	bound func(i int, want float64) float64
}

const filler = 0xA5

// tensor is a tensor map of the input, or of the output.
type tensor struct {
	element    string
	output     bool
	dims       []int
	strides    []int
	box        []int
	swizzle    int
	driverName int // of the element
}

// body is a kernel being made.
type body struct {
	*ptx.Builder
	in, out, tid, index *ir.Value // index: of the thread in the grid
	maps                []*ir.Value
	lane                *ir.Value
}

func (e *experiment) defaults() {
	if e.threads == 0 {
		e.threads = 128
	}
	e.blocks, e.cluster = max(e.blocks, 1), max(e.cluster, 1)
}

// build makes the kernel.
func (e *experiment) build(t testing.TB, number int) *ir.Op {
	e.defaults()
	c := ir.NewContext(ptx.Dialect)
	types := []ir.Type{c.I64(), c.I64()}
	for range e.maps {
		types = append(types, ptx.TensorMap(c))
	}
	cfg := ptx.Config{Name: fmt.Sprintf("experiment_%d", number), Target: ptx.SM90A, Threads: e.threads, BlocksPerSM: 1, Cluster: e.cluster, Shared: e.shared}
	b := &body{Builder: ptx.NewKernel(ir.NewBuilder(c, nil), cfg, types...)}
	args := b.Kernel.Body().Args()
	b.in, b.out, b.maps = args[0], args[1], args[2:]
	b.tid = b.Special("tid.x")
	b.lane = b.Binary(ptx.And, b.tid, b.I32(31))
	b.index = b.Add(b.MulI(b.Special("ctaid.x"), e.threads), b.tid)
	e.body(b)
	b.CreateState(ptx.Return, ir.OpState{})
	require.NoError(t, ir.Verify(c, b.Kernel), e.name)
	return b.Kernel
}

// emulate runs the kernel in the emulator and gives the output.
func (e *experiment) emulate(t testing.TB, kernel *ir.Op) []byte {
	m := &emulate.Memory{}
	in, out := m.Alloc(max(len(e.in), 16)), m.Alloc(e.out)
	in.Write(0, e.in)
	out.Write(0, filled(e.out))
	params := []any{in.Base, out.Base}
	for _, d := range e.maps {
		base := in.Base
		if d.output {
			base = out.Base
		}
		params = append(params, &emulate.TensorMap{Element: d.element, Base: base, Dims: d.dims, Strides: d.strides, Box: d.box, Swizzle: emulate.Swizzle(d.swizzle)})
	}
	require.NoError(t, emulate.Launch(m, kernel, e.blocks, params...), e.name)
	return out.Data
}

func filled(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = filler
	}
	return p
}

// size is the bytes of an element of the output.
func (e *experiment) size() int {
	return map[string]int{"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u32": 4, "f32": 4, "u64": 8, "f64": 8}[e.elem]
}

// number is an element of the output.
func (e *experiment) number(p []byte) float64 {
	switch e.elem {
	case "u8":
		return float64(p[0])
	case "u16":
		return float64(binary.LittleEndian.Uint16(p))
	case "f16":
		return ir.F16Value(binary.LittleEndian.Uint16(p))
	case "bf16":
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(p)) << 16))
	case "u32":
		return float64(binary.LittleEndian.Uint32(p))
	case "f32":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(p)))
	case "u64":
		return float64(binary.LittleEndian.Uint64(p))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(p))
}

// comparison is how two outputs differ.
type comparison struct {
	elements, same int     // same: bit by bit
	wrong          int     // more than is allowed
	first          string  // of the wrong ones
	worst          float64 // distance over the bound
}

func (e *experiment) compare(want, got []byte) comparison {
	size := e.size()
	c := comparison{elements: len(want) / size}
	for i := range c.elements {
		w, g := want[i*size:(i+1)*size], got[i*size:(i+1)*size]
		x, y := e.number(w), e.number(g)
		if string(w) == string(g) || math.IsNaN(x) && math.IsNaN(y) {
			c.same++
			continue
		}
		if e.bound != nil {
			if allowed := e.bound(i, x); math.Abs(x-y) <= allowed {
				c.worst = max(c.worst, math.Abs(x-y)/allowed)
				continue
			}
		}
		if c.wrong++; c.wrong == 1 {
			c.first = fmt.Sprintf("[%d] want %x (%g), got %x (%g)", i, reversed(w), x, reversed(g), y)
		}
	}
	return c
}

func reversed(p []byte) []byte {
	q := make([]byte, len(p))
	for i := range p {
		q[len(p)-1-i] = p[i]
	}
	return q
}

// at is the address of an element.
func (b *body) at(base, index *ir.Value, size int) *ir.Value { return b.MulWide(index, size, base) }

func (b *body) load(address *ir.Value, t ir.Type, n int) *ir.Value {
	return b.Load(address, t, n, ptx.Access{Space: "global"})
}

func (b *body) store(address, x *ir.Value) { b.Store(address, x, ptx.Access{Space: "global"}) }

func (b *body) loadShared(address *ir.Value, t ir.Type, n, offset int) *ir.Value {
	return b.Load(address, t, n, ptx.Access{Space: "shared", Offset: offset})
}

func (b *body) storeShared(address, x *ir.Value, offset int) {
	b.Store(address, x, ptx.Access{Space: "shared", Offset: offset})
}

func (b *body) sync() { b.Do(ptx.Sync, nil) }

// stage copies n bytes of input (a multiple of 4) to shared memory, all threads together.
func (b *body) stage(threads, n int) {
	base := b.SharedBase()
	b.For(b.tid, b.I32(n/4), b.I32(threads), false, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
		b.storeShared(b.Add(base, b.MulI(i, 4)), b.load(b.at(b.in, i, 4), b.Ctx.I32(), 1), 0)
		return nil
	})
}

// dump copies n bytes of shared memory to the output, each block to its part.
func (b *body) dump(threads, n int) {
	base := b.SharedBase()
	first := b.MulI(b.Special("ctaid.x"), n/4)
	b.For(b.tid, b.I32(n/4), b.I32(threads), false, nil, func(i *ir.Value, _ []*ir.Value) []*ir.Value {
		b.store(b.at(b.out, b.Add(first, i), 4), b.loadShared(b.Add(base, b.MulI(i, 4)), b.Ctx.I32(), 1, 0))
		return nil
	})
}

func random() *rand.Rand { return rand.New(rand.NewPCG(11, 12)) }

// words is n random words.
func words(n int) []byte {
	r := random()
	var p []byte
	for range n {
		p = binary.LittleEndian.AppendUint32(p, r.Uint32())
	}
	return p
}
