package gpu

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/lower/program"
	lowerptx "blutrain/lower/ptx"
	"blutrain/runtime"
	"blutrain/runtime/ref"
)

// A step of training of every example, as compiled for GPUs, launch by launch in the emulator: gradients and parameters as
// the reference computes them, and nothing is read that wasn't written.
func TestProgramsInTheEmulator(t *testing.T) {
	for _, file := range examples(t) {
		for _, p := range []struct {
			precision, reference string
			tolerance            float64 // of the norm of what differs, relative to that of what is right
		}{{"fp32", "fp32", 1e-5}, {"fp32-strict", "fp32", 1e-5}, {"tf32", "fp32", 3e-3}, {"bf16", "bf16", 2e-2}} {
			for _, arch := range ptx.Targets {
				for _, products := range []string{"auto", "templates"} {
					if testing.Short() && (arch != ptx.SM90A || products == "auto") {
						continue
					}
					t.Run(fmt.Sprint(file, " ", p.precision, " ", arch, " ", products), func(t *testing.T) {
						t.Parallel()
						src, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
						require.NoError(t, err)
						want, err := driver.Compile(file, src, driver.Options{Target: "ref", Precision: p.reference, Set: small(t, file)})
						require.NoError(t, err)
						trainOnce(t, newDevice(t, file, src, driver.Options{Target: "cuda", Precision: p.precision, Arch: arch, Set: small(t, file)}, products), want.Artifact, p.tolerance)
					})
				}
			}
		}
	}
}

// One batch, one position, one head: of such dimensions views have any distance, of nothing too, and tensor maps one that drivers know.
func TestExtentsOfOne(t *testing.T) {
	const source = `model m(C = 32, V = 24) {
  param emb: f32[V, C] = normal(std: 1.0)
  param head: f32[V, C] = normal(std: 0.2)
  param a: f32[3*C, C] = normal(std: 0.2)
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let qkv = linear(emb[tokens], a)
    let q = rope(heads(qkv[:, :, 0:C], H))
    let k = rope(heads(qkv[:, :, C:2*C], H))
    let y = merge(attention(q, k, heads(qkv[:, :, 2*C:], H), causal: true))
    return cross_entropy(linear(y, head), targets)
  }
}
train m {
  minimize loss
  batch B = BATCH, S = LENGTH
  optimizer sgd(lr: 0.1)
}
`
	for _, n := range [][3]string{{"1", "1", "1"}, {"2", "1", "1"}, {"1", "1", "2"}, {"1", "5", "1"}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			src := []byte(strings.NewReplacer("BATCH", n[0], "LENGTH", n[1], "H)", n[2]+")").Replace(source))
			want, err := driver.Compile("m.blu", src, driver.Options{Target: "ref", Precision: "bf16"})
			require.NoError(t, err)
			o := driver.Options{Target: "cuda", Precision: "bf16", Arch: ptx.SM90A}
			_, err = driver.Compile("m.blu", src, o)
			require.NoError(t, err)
			trainOnce(t, newDevice(t, "m.blu", src, o, "templates"), want.Artifact, 2e-2)
		})
	}
}

// What one product in planes alone reads is computed where planes are made: gelu, in the forward pass and again in the backward pass.
func TestFunctionsInPlanes(t *testing.T) {
	set := map[string]float64{"V": 37, "T": 12, "L": 2, "H": 2, "C": 32, "B": 2, "S": 11}
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", "gpt2.blu"))
	require.NoError(t, err)
	want, err := driver.Compile("gpt2.blu", src, driver.Options{Target: "ref", Precision: "fp32", Set: set})
	require.NoError(t, err)
	d := newDevice(t, "gpt2.blu", src, driver.Options{Target: "cuda", Precision: "fp32", Arch: ptx.SM90A, Set: set}, "templates")
	met := map[string]bool{}
	for op := range d.module.Body().Ops() {
		if op.Is(ptx.Kernel) {
			met[strings.Split(ir.SymName(op), ".")[0]] = true
		}
	}
	require.True(t, met["gelu_gemm_nt_bias_residual_22x32x128"] && met["gelu_gemm_tn_accumulate_32x128x22"] && !met["gelu_2816"], "%v", met)
	trainOnce(t, d, want.Artifact, 1e-5)
}

// What a product multiplies is written by the product before it that reads what it is computed of, and attention's gradient adds up
// the gradients of biases: gelu and the sum over positions have no launches of their own.
func TestWrittenBesideGradients(t *testing.T) {
	set := map[string]float64{"V": 37, "T": 40, "L": 2, "H": 2, "C": 32, "B": 2, "S": 37}
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", "gpt2.blu"))
	require.NoError(t, err)
	for precision, names := range map[string][2]string{
		"bf16": {"gemm_nn_cast_gelu_gelu_grad_74x128x32", "cast_"}, "tf32": {"gemm_nn_gelu_grad_gelu_reduce_sum_74x128x32", ""},
	} {
		t.Run(precision, func(t *testing.T) {
			t.Parallel()
			want, err := driver.Compile("gpt2.blu", src, driver.Options{Target: "ref", Precision: strings.Replace(precision, "tf32", "fp32", 1), Set: set})
			require.NoError(t, err)
			d := newDevice(t, "gpt2.blu", src, driver.Options{Target: "cuda", Precision: precision, Arch: ptx.SM90A, Set: set}, "templates")
			met := map[string]bool{}
			for op := range d.module.Body().Ops() {
				if op.Is(ptx.Kernel) {
					met[strings.Split(ir.SymName(op), ".")[0]] = true
				}
			}
			require.True(t, met[names[0]] && met["attention_grad_reduce_sum_causal_2x2x37x16"], "%v", met)
			require.False(t, met[names[1]+"gelu_9472"] || met[names[1]+"reduce_sum_74x96"], "%v", met)
			trainOnce(t, d, want.Artifact, 2e-2)
		})
	}
}

// trainOnce runs a step on both, from the same parameters and inputs: normal numbers, and indices of what they choose among.
func trainOnce(t *testing.T, d *device, reference *artifact.Artifact, tolerance float64) {
	p, err := ref.Open(reference, runtime.Options{})
	require.NoError(t, err)
	defer p.Close()
	_, err = p.Call("init", nil, runtime.Scalars{"seed": 3})
	require.NoError(t, err)
	info, _ := p.Manifest().Function("accumulate")
	in := map[string]runtime.Array{}
	r := rand.New(rand.NewPCG(5, 6))
	for _, v := range info.Inputs {
		a := runtime.Array{DType: v.DType, Shape: v.Shape}
		below := 10
		if v.Below > 0 {
			below = int(v.Below)
		}
		for range ir.NumElements(v.Shape) {
			x := float64(r.IntN(below))
			if v.DType.IsFloat() {
				x = r.NormFloat64()
			}
			a.Data = append(a.Data, ir.EncodeElement(nil, elementOf(d.c, v.DType), x)...)
		}
		in[v.Name] = a
	}
	scalars := runtime.Scalars{"first": 1, "seed": 5, "step": 1, "lr": 1e-3}
	for i, fn := range []string{"accumulate", "accumulate", "apply"} {
		if i > 0 {
			scalars["first"] = 0
		}
		info, ok := p.Manifest().Function(fn)
		require.True(t, ok)
		given := runtime.Scalars{}
		for _, v := range info.Scalars {
			given[v.Name] = scalars[v.Name]
		}
		inputs := in
		if fn == "apply" { // no products; gradients that are nothing but rounding would move parameters as far as others
			inputs, tolerance = nil, 1e-5
		}
		for _, s := range p.Manifest().States {
			raw := make([]byte, s.Bytes())
			require.NoError(t, p.ReadState(s.Name, raw))
			d.states[s.Name].Write(0, raw)
		}
		if ir.LookupSymbol(d.module, artifact.Refresh) != nil {
			d.call(artifact.Refresh, &artifact.Function{}, nil, nil)
		}
		out, err := p.Call(fn, inputs, given)
		require.NoError(t, err)
		got := d.call(fn, info, inputs, given)
		for name, a := range out {
			d.close(fn+" "+name, floats(a.DType, a.Data), floats(a.DType, got[name].Data), tolerance)
		}
		for _, s := range p.Manifest().States {
			raw := make([]byte, s.Bytes())
			require.NoError(t, p.ReadState(s.Name, raw))
			d.close(fn+" "+s.Name, floats(s.DType, raw), floats(s.DType, d.states[s.Name].Data[:s.Bytes()]), tolerance)
		}
	}
}

// device is a GPU in the emulator, with a program.
type device struct {
	t      *testing.T
	c      *ir.Context
	module *ir.Op
	memory *emulate.Memory
	states map[string]*emulate.Buffer
	ready  map[*ir.Op]*emulate.Program
	errors *emulate.Buffer

	spare   int             // the most scratch memory that a launch has
	scratch *emulate.Buffer // of the call: a launch finds there what one before it left
}

func newDevice(t *testing.T, file string, src []byte, o driver.Options, products string) *device {
	o.CompileTo = "buffers"
	r, err := driver.Compile(file, src, o)
	require.NoError(t, err)
	require.NoError(t, program.Run(r.Ctx, r.Module))
	require.NoError(t, lowerptx.Run(r.Ctx, r.Module, lowerptx.Options{Target: o.Arch, Products: products}))
	require.NoError(t, ir.Verify(r.Ctx, r.Module))
	d := &device{t: t, c: r.Ctx, module: r.Module, memory: &emulate.Memory{}, states: map[string]*emulate.Buffer{}, ready: map[*ir.Op]*emulate.Program{}}
	for op := range r.Module.Body().Ops() {
		if op.Is(exec.State) {
			mt := op.Attr("type").(*ir.TypeAttr).Type.(*ir.MemRefType)
			d.states[ir.SymName(op)] = d.memory.Alloc(int(max(bytesOf(mt), 1)))
		}
		d.spare = max(d.spare, int(op.Attrs().IntOr(lowerptx.ScratchAttr, 0)))
	}
	d.errors = d.memory.Alloc(4096)
	return d
}

// call runs a function.
func (d *device) call(fn string, info *artifact.Function, in map[string]runtime.Array, s runtime.Scalars) map[string]runtime.Array {
	f := ir.LookupSymbol(d.module, fn)
	ports := map[string]*emulate.Buffer{}
	port := func(space string, values []artifact.Value, data func(v artifact.Value) []byte) {
		for _, v := range values {
			b := d.memory.Alloc(int(max(v.Bytes(), 1)))
			if raw := data(v); raw != nil {
				b.Write(0, raw)
			}
			ports[space+" "+v.Name] = b
		}
	}
	port(mem.Input, info.Inputs, func(v artifact.Value) []byte { return in[v.Name].Data })
	port(mem.Output, info.Outputs, func(artifact.Value) []byte { return nil })
	port(mem.Scalar, info.Scalars, func(v artifact.Value) []byte {
		return ir.EncodeElement(nil, elementOf(d.c, v.DType), s[v.Name])
	})
	arena := d.memory.Alloc(int(max(f.Attrs().IntOr("arena", 0), 1)))
	d.scratch = d.memory.Alloc(max(d.spare, 1))
	refs := map[*ir.Value]any{}
	for op := range f.Body().Ops() {
		switch op.Def() {
		case exec.Ref:
			refs[op.Result(0)] = d.place(op, ports, arena)
		case exec.Launch:
			var params []any
			for _, v := range op.Operands() {
				params = append(params, refs[v])
			}
			d.launch(op, params)
		}
	}
	out := map[string]runtime.Array{}
	for _, v := range info.Outputs {
		out[v.Name] = runtime.Array{DType: v.DType, Shape: v.Shape, Data: ports[mem.Output+" "+v.Name].Data[:v.Bytes()]}
	}
	return out
}

// place is the address of a reference.
func (d *device) place(op *ir.Op, ports map[string]*emulate.Buffer, arena *emulate.Buffer) uint64 {
	a := op.Attrs()
	var b *emulate.Buffer
	switch space := a.Str("space"); space {
	case mem.State:
		b = d.states[a.Str("name")]
	case mem.Arena:
		b = arena
	case mem.Const:
		v := op.Attr("value").(*ir.DenseAttr)
		raw := []byte(v.Raw)
		if v.Splat {
			shape, _ := ir.Shape(v.Type)
			raw = slices.Repeat(raw, int(ir.NumElements(shape)))
		}
		b = d.memory.Alloc(len(raw))
		b.Write(0, raw)
	default:
		b = ports[space+" "+a.Str("name")]
	}
	require.NotNil(d.t, b, op.String())
	return b.Base + uint64(a.IntOr("offset", 0))
}

// launch runs a kernel and those that go with it.
func (d *device) launch(op *ir.Op, refs []any) {
	d.errors.Write(0, bytes.Repeat([]byte{0xff}, len(d.errors.Data)))
	l := &launcher{memory: d.memory, refs: refs, errors: d.errors, scratch: d.scratch}
	for name := op.Attrs().Sym("kernel"); name != ""; {
		kernel := ir.LookupSymbol(d.module, name)
		require.NotNil(d.t, kernel, name)
		if d.ready[kernel] == nil {
			p, err := emulate.Compile(kernel)
			require.NoError(d.t, err, name)
			d.ready[kernel] = p
		}
		params, blocks, err := l.parameters(kernel)
		require.NoError(d.t, err, name)
		require.NoError(d.t, d.ready[kernel].Launch(d.memory, blocks, params...), name)
		name = kernel.Attrs().Sym(lowerptx.ThenAttr)
	}
	require.Equal(d.t, bytes.Repeat([]byte{0xff}, len(d.errors.Data)), d.errors.Data, "an index is out of range")
}

// floats is the numbers of an array.
func floats(t formats.DType, data []byte) []float64 {
	c := ir.NewContext()
	elem := elementOf(c, t)
	size := int(ir.ByteSize(elem))
	var out []float64
	for i := 0; i < len(data); i += size {
		out = append(out, ir.DecodeElement(elem, string(data[i:i+size])))
	}
	return out
}

func elementOf(c *ir.Context, t formats.DType) ir.Type {
	switch t {
	case formats.F32:
		return c.F32()
	case formats.BF16:
		return c.Float(ir.BF16)
	case formats.F16:
		return c.Float(ir.F16)
	case formats.Bool:
		return c.I1()
	case formats.F64:
		return c.F64()
	}
	return c.Int(8 * int(t.Size()))
}

// close holds an array to another by the norm of what differs.
func (d *device) close(what string, want, got []float64, tolerance float64) {
	var norm, off float64
	for i := range want {
		norm += want[i] * want[i]
		off += (want[i] - got[i]) * (want[i] - got[i])
	}
	require.LessOrEqual(d.t, math.Sqrt(off), tolerance*math.Sqrt(norm)+1e-7*math.Sqrt(float64(len(want))), what)
}
