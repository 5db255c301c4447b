// Package e2e takes kernels and functions through the compiler's last phases and runs them on the CPU device: what its
// tests share. Tests here see both towers.
package e2e

import (
	stdbinary "encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/dialects/tile"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/lower/binary"
	"blutrain/lower/buffers"
	"blutrain/lower/host"
	"blutrain/lower/program"
	"blutrain/runtime"
	hostdevice "blutrain/runtime/host"
)

// Compile takes a module of the kernels phase to an artifact for the CPU. The module is consumed.
func Compile(t testing.TB, c *ir.Context, module *ir.Op) *artifact.Artifact {
	t.Helper()
	require.NoError(t, ir.Verify(c, module))
	require.NoError(t, buffers.Run(c, module, buffers.Options{Align: 64}))
	require.NoError(t, ir.Verify(c, module))
	require.NoError(t, host.Run(c, module))
	require.NoError(t, program.Run(c, module))
	require.NoError(t, ir.Verify(c, module), "%s", ir.Print(module, ir.PrintOptions{}))
	a, err := binary.Build(c, module, binary.Options{Compiler: "test", Target: "cpu", Precision: "fp32"})
	require.NoError(t, err)
	return a
}

// Open runs an artifact on the CPU with poisoned memory.
func Open(t testing.TB, a *artifact.Artifact, threads int) runtime.Program {
	t.Helper()
	p, err := hostdevice.Open(a, runtime.Options{Threads: threads, Poison: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// LaunchOnly makes a function that launches one kernel of the module: arguments in0, in1, ..., results out0, ...
func LaunchOnly(c *ir.Context, module, kernel *ir.Op) *ir.Op {
	ins, outs := tile.Refs(kernel)
	tensors := func(vs []*ir.Value) (ts []ir.Type) {
		for _, v := range vs {
			ts = append(ts, c.Tensor(stored(v), v.Elem()))
		}
		return ts
	}
	ports := func(kind, prefix string, n int) ir.Attr {
		var ds []ir.Attr
		for i := range n {
			ds = append(ds, c.Dict(ir.NamedAttr{Name: kind, Value: c.String(fmt.Sprint(prefix, i))}))
		}
		return c.Array(ds...)
	}
	inTypes, outTypes := tensors(ins), tensors(outs)
	f := ir.NewBuilder(c, module.Body()).CreateState(fn.Func, ir.OpState{Regions: 1, Attrs: []ir.NamedAttr{
		{Name: "sym_name", Value: c.String("f")},
		{Name: "function_type", Value: c.TypeAttr(c.Func(inTypes, outTypes))},
		{Name: "arg_attrs", Value: ports("blu.input", "in", len(ins))},
		{Name: "res_attrs", Value: ports("blu.output", "out", len(outs))},
	}})
	body := f.Region(0).AddBlock(inTypes...)
	b := blu.Builder{Builder: ir.NewBuilder(c, body)}
	args := slices.Clone(body.Args())
	for i, v := range ins {
		if IsTransposed(v) {
			args[i] = b.Transpose(args[i], []int64{1, 0})
		}
	}
	launch := b.CreateState(tile.Launch, ir.OpState{
		Operands: args, Results: outTypes, Attrs: []ir.NamedAttr{{Name: "kernel", Value: c.Symbol(ir.SymName(kernel))}},
	})
	b.CreateState(fn.Return, ir.OpState{Operands: launch.Results()})
	return f
}

// IsTransposed reports whether a kernel's argument wants a matrix stored with its rows and columns exchanged.
func IsTransposed(ref *ir.Value) bool {
	layout, ok := ref.Type().(*ir.MemRefType).Layout.(*ir.StridedAttr)
	return ok && len(layout.Strides) == 2 && layout.Strides[0] == 1
}

// stored is the shape of the tensor that a kernel's argument is given.
func stored(ref *ir.Value) []int64 {
	shape := slices.Clone(ref.Shape())
	if IsTransposed(ref) {
		slices.Reverse(shape)
	}
	return shape
}

// Transposed is a matrix with rows and columns exchanged.
func Transposed(x *ir.Tensor) *ir.Tensor {
	m, n := x.Shape[0], x.Shape[1]
	y := ir.NewTensor(x.Elem, n, m)
	for i := range m {
		for j := range n {
			y.Data[j*m+i] = x.Data[i*n+j]
		}
	}
	return y
}

// Random is a tensor of normal numbers, or of small integers from low to high for integer types.
func Random(r *rand.Rand, t ir.Type, low, high int) *ir.Tensor {
	shape, _ := ir.Shape(t)
	x := ir.NewTensor(ir.Elem(t), shape...)
	for i := range x.Data {
		switch {
		case ir.IsInteger(t):
			x.Data[i] = float64(low + r.IntN(high-low+1))
		default:
			x.Data[i] = float64(float32(r.NormFloat64()))
		}
	}
	return x
}

// Array is a reference tensor as a runtime array.
func Array(x *ir.Tensor) runtime.Array {
	a := runtime.Array{DType: DType(x.Elem), Shape: append([]int64{}, x.Shape...)}
	for _, v := range x.Data {
		a.Data = ir.EncodeElement(a.Data, x.Elem, v)
	}
	return a
}

// Tensor is a runtime array as a reference tensor with elements of that type.
func Tensor(a runtime.Array, elem ir.Type) *ir.Tensor {
	x := ir.NewTensor(elem, a.Shape...)
	size := int(a.DType.Size())
	raw := string(a.Data)
	for i := range x.Data {
		x.Data[i] = ir.DecodeElement(elem, raw[i*size:(i+1)*size])
	}
	return x
}

// DType is the stored type of an element type.
func DType(t ir.Type) formats.DType {
	switch t := t.(type) {
	case *ir.FloatType:
		return map[ir.FloatKind]formats.DType{ir.F64: formats.F64, ir.F32: formats.F32, ir.F16: formats.F16, ir.BF16: formats.BF16}[t.Kind]
	case *ir.IntegerType:
		return map[int]formats.DType{1: formats.Bool, 8: formats.I8, 16: formats.I16, 32: formats.I32, 64: formats.I64}[t.Width]
	}
	return formats.Invalid
}

// Floats is the elements of an array of float32.
func Floats(a runtime.Array) []float64 {
	le := stdbinary.LittleEndian
	x := make([]float64, len(a.Data)/4)
	for i := range x {
		x[i] = float64(math.Float32frombits(le.Uint32(a.Data[4*i:])))
	}
	return x
}
