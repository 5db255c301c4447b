// Package gpu tests what is compiled for GPUs on machines that have none.
package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/dialects/tile"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/lower/buffers"
	"blutrain/lower/kernels"
	lowerptx "blutrain/lower/ptx"
	"blutrain/lower/share"
	"blutrain/test/e2e"
)

// The checked-in tile kernels as PTX, emulated: the reference's values to float32 accuracy, no access outside memory and
// no conflict between threads.
func TestTileKernelsAsPTX(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "lit", "tile", "*.mlir"))
	require.NoError(t, err)
	files = append(files, filepath.Join("..", "e2e", "testdata", "products.mlir"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, name := range kernelNames(t, text) {
			if name == "gemm_bias_gelu" {
				continue // split planes with a body of its own
			}
			t.Run(name, func(t *testing.T) {
				c := dialects.NewContext()
				module, err := ir.Parse(c, file, text)
				require.NoError(t, err)
				emulateKernel(t, c, module, ir.LookupSymbol(module, name), general)
			})
		}
	}
}

// Every kernel of small examples as PTX, emulated, with sizes that blocks don't divide and blocks cut small.
func TestModelKernelsAsPTX(t *testing.T) {
	tiny := kernels.CUDA()
	tiny.BlockElems, tiny.RowElems, tiny.ColumnElems, tiny.Panels, tiny.PanelRows, tiny.ScatterCols = 48, 24, 6, 3, 2, 5
	tiny.PassElems, tiny.PanelElems, tiny.SumRows, tiny.Columns = 20, 40, 4, 5
	tiny.GemmRows, tiny.GemmCols, tiny.Queries, tiny.Keys = 12, 20, 6, 5
	for _, m := range []struct {
		file string
		set  map[string]float64
	}{
		{"gpt2.blu", map[string]float64{"V": 37, "T": 12, "L": 1, "H": 2, "C": 20, "B": 2, "S": 11}},
		{"gpt2.blu", map[string]float64{"V": 320, "T": 64, "L": 1, "H": 2, "C": 64, "B": 1, "S": 64}},
		{"llama.blu", map[string]float64{"V": 41, "L": 1, "H": 4, "K": 2, "C": 24, "F": 36, "B": 2, "S": 9}},
		{"mlp.blu", map[string]float64{"V": 13, "W": 3, "E": 7, "M": 18, "B": 3, "S": 10}},
		{"convnet.blu", small(t, "convnet.blu")},
		{"vit.blu", small(t, "vit.blu")},
	} {
		for name, target := range map[string]kernels.Target{"whole": kernels.CUDA(), "tiny": tiny} {
			if name == "tiny" && m.set["V"] > 100 || name == "whole" && m.set["V"] > 100 && testing.Short() {
				continue
			}
			t.Run(fmt.Sprint(m.file, m.set["V"], name), func(t *testing.T) {
				t.Parallel()
				r, all := tileKernels(t, m.file, m.set, "", target)
				for _, k := range all {
					t.Run(ir.SymName(k), func(t *testing.T) { emulateKernel(t, r.Ctx, r.Module, k, general) })
				}
			})
		}
	}
}

// Products of the examples by templates, at every precision and for every arch, in one tile and in several.
func TestTemplatesAsPTX(t *testing.T) {
	for _, m := range []struct {
		file string
		set  map[string]float64
	}{
		{"gpt2.blu", map[string]float64{"V": 37, "T": 12, "L": 1, "H": 2, "C": 20, "B": 2, "S": 11}},
		{"llama.blu", map[string]float64{"V": 41, "L": 1, "H": 4, "K": 2, "C": 24, "F": 36, "B": 2, "S": 9}},
		{"mlp.blu", map[string]float64{"V": 13, "W": 3, "E": 7, "M": 18, "B": 3, "S": 10}},
		{"convnet.blu", small(t, "convnet.blu")},
		{"vit.blu", small(t, "vit.blu")},
		{"gpt2.blu", map[string]float64{"V": 200, "T": 80, "L": 1, "H": 2, "C": 144, "B": 2, "S": 80}},
	} {
		for _, precision := range []string{"fp32", "fp32-strict", "tf32", "bf16"} {
			for _, arch := range ptx.Targets {
				if precision == "fp32" && arch != ptx.SM90A {
					continue // the same as fp32-strict
				}
				if testing.Short() && (m.set["V"] > 100 || arch == ptx.SM89) {
					continue
				}
				t.Run(fmt.Sprint(m.file, m.set["V"], " ", precision, " ", arch), func(t *testing.T) {
					t.Parallel()
					r, all := tileKernels(t, m.file, m.set, precision, kernels.CUDA())
					for _, k := range all {
						if isProduct(k) || precision == "bf16" && arch == ptx.SM90A {
							t.Run(ir.SymName(k), func(t *testing.T) {
								emulateKernel(t, r.Ctx, r.Module, k, lowerptx.Options{Target: arch, Products: "templates"})
							})
						}
					}
				})
			}
		}
	}
}

func isProduct(kernel *ir.Op) (found bool) {
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		found = found || op.Is(tile.Contract)
		return ir.Advance
	})
	return found
}

// tileKernels compiles an example as far as kernels whose memory is planned.
func tileKernels(t *testing.T, file string, set map[string]float64, precision string, target kernels.Target) (r *driver.Result, all []*ir.Op) {
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
	require.NoError(t, err)
	r, err = driver.Compile(file, src, driver.Options{Target: "cuda", Precision: precision, Set: set, CompileTo: "graph"})
	require.NoError(t, err)
	require.NoError(t, kernels.Run(r.Ctx, r.Module, target))
	require.NoError(t, buffers.Run(r.Ctx, r.Module, buffers.Options{Align: 256}))
	for op := range r.Module.Body().Ops() {
		if op.Is(tile.Kernel) {
			all = append(all, op)
		}
	}
	return r, all
}

// general lowers every kernel without templates.
var general = lowerptx.Options{Target: ptx.SM90A, Products: "general"}

// emulateKernel evaluates a kernel, lowers it, and runs that.
func emulateKernel(t *testing.T, c *ir.Context, module, kernel *ir.Op, o lowerptx.Options) {
	emulateWithin(t, c, module, kernel, o, allowance{tolerance: tolerance})
}

// allowance is by how much results may be off.
type allowance struct {
	tolerance func(ir.Type) float64 // in proportion to the greatest
	rounded   bool                  // and by twice what rounding every intermediate result to float32 changes: a comparison, say
}

// emulateWithin does so for results of which more is allowed to be off.
func emulateWithin(t *testing.T, c *ir.Context, module, kernel *ir.Op, o lowerptx.Options, a allowance) {
	ins, outs := tile.Refs(kernel)
	r := rand.New(rand.NewPCG(7, 8))
	low, high := integers(kernel, ins)
	var args []ir.Datum
	for i, v := range ins {
		x := e2e.Random(r, v.Type(), low[i], high[i])
		if ir.IsFloat(x.Elem) && (len(x.Data) == 1 || strings.HasPrefix(ir.SymName(kernel), "adamw")) {
			// A step, a rate, a norm, second moments: positive, or the problem is ill-conditioned.
			for k, v := range x.Data {
				x.Data[k] = 1 + math.Abs(v)
			}
		}
		stored(x)
		repeated(v.Type().(*ir.MemRefType), x)
		if tf32(kernel) {
			for k, v := range x.Data { // to 10 bits behind the leading one: products of tf32 are exact
				x.Data[k] = float64(math.Float32frombits(math.Float32bits(float32(v)) &^ 0x1fff))
			}
		}
		args = append(args, x)
	}
	shared := share.Shared(kernel)
	for i := range shared {
		shared[i][1] -= len(ins)
	}
	want, err := tile.RunShared(&ir.Interp{Ctx: c, Module: module}, kernel, args, shared)
	require.NoError(t, err)
	rounded := want
	if a.rounded {
		rounded, err = tile.RunShared(&ir.Interp{Ctx: c, Module: module, After: roundResults}, kernel, args, shared)
		require.NoError(t, err)
	}

	lowered := lowerCopy(t, c, module, kernel, ".emulated", o)

	m := &emulate.Memory{}
	var params []any
	buffers := make([]*emulate.Buffer, len(ins)+len(outs))
	for i, v := range append(ins, outs...) {
		t := v.Type().(*ir.MemRefType)
		buffers[i] = m.Alloc(int(bytesOf(t)))
		if i < len(ins) {
			fill(buffers[i], t, args[i].(*ir.Tensor))
		}
		params = append(params, buffers[i].Base)
	}
	for _, p := range shared {
		params[len(ins)+p[1]] = params[p[0]]
		buffers[len(ins)+p[1]] = buffers[p[0]]
	}
	errors := m.Alloc(4096)
	errors.Write(0, bytes.Repeat([]byte{0xff}, len(errors.Data)))
	launchChain(t, c, module, lowered, m, params, errors)
	require.Equal(t, ^uint64(0), binary.LittleEndian.Uint64(errors.Data), "an index is out of range")
	cancelled := roundings(args)
	for i, v := range outs {
		exact, got := want[i].(*ir.Tensor), read(buffers[len(ins)+i], v.Type().(*ir.MemRefType))
		slack := func(k int) float64 { return cancelled + 2*apart(rounded[i].(*ir.Tensor).Data[k], exact.Data[k]) }
		near(t, fmt.Sprint("out", i), exact, got, a.tolerance(v.Elem()), slack)
	}
}

// apart is how far two numbers are apart: not at all if neither is one, infinitely if one is.
func apart(x, y float64) float64 {
	switch {
	case x == y || math.IsNaN(x) && math.IsNaN(y):
		return 0
	case math.IsNaN(x) || math.IsNaN(y):
		return math.Inf(1)
	}
	return math.Abs(x - y)
}

// promised is how far functions may be off, in units of 2^-23 of their results: what TestFunctionsAreClose holds them to.
var promised = map[string]float64{"tile.tanh": 3, "tile.erf": 3, "tile.sin": 2, "tile.cos": 2}

// roundResults rounds what an operation results in to float32, and has functions be off by what they may, up or down by the last bit.
func roundResults(op *ir.Op, out []ir.Datum) error {
	off := promised[op.Name()] / (1 << 23)
	for _, d := range out {
		if x, ok := d.(*ir.Tensor); ok && ir.IsFloat(x.Elem) {
			for i, v := range x.Data {
				up := float64(math.Float32bits(float32(v))&1)*2 - 1
				x.Data[i] = float64(float32(v * (1 + up*off)))
			}
		}
	}
	return nil
}

// lowerCopy lowers a copy of a kernel, which is called as it is with a suffix.
func lowerCopy(t *testing.T, c *ir.Context, module, kernel *ir.Op, suffix string, o lowerptx.Options) *ir.Op {
	copied := kernel.Clone(c, map[*ir.Value]*ir.Value{})
	ir.NewBuilder(c, nil).Before(kernel).Insert(copied)
	name := ir.SymName(kernel)
	if kernel.Attr("tile.reference") == nil {
		copied.SetAttr("tile.reference", c.String(name))
	}
	copied.SetAttr("sym_name", c.String(name+suffix))
	require.NoError(t, lowerptx.Kernel(c, copied, o))
	return ir.LookupSymbol(module, name+suffix)
}

// tolerance is what results may be off by, relative to the greatest: a few roundings of sums, or one of what is stored.
func tolerance(elem ir.Type) float64 {
	if elem.String() == "bf16" {
		return 1.0 / 128
	}
	return 2e-5
}

func tf32(kernel *ir.Op) (found bool) {
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		found = found || op.Is(tile.Contract) && op.Attrs().Str("precision") == "tf32"
		return ir.Advance
	})
	return found
}

// launchChain runs a kernel, and those that are launched with it, and erases them.
func launchChain(t *testing.T, c *ir.Context, module, kernel *ir.Op, m *emulate.Memory, refs []any, errors *emulate.Buffer) {
	l := &launcher{memory: m, refs: refs, errors: errors}
	for kernel != nil {
		require.NoError(t, ir.Verify(c, kernel))
		params, blocks, err := l.parameters(kernel)
		require.NoError(t, err)
		require.NoError(t, emulate.Launch(m, kernel, blocks, params...), ir.SymName(kernel))
		then := kernel.Attrs().Sym(lowerptx.ThenAttr)
		kernel.Erase()
		if kernel = nil; then != "" {
			kernel = ir.LookupSymbol(module, then)
			require.NotNil(t, kernel, then)
		}
	}
}

// launcher finds the parameters of the kernels of one launch.
type launcher struct {
	memory  *emulate.Memory
	refs    []any // addresses of the references
	errors  *emulate.Buffer
	scratch *emulate.Buffer
}

// parameters is what a kernel is launched with, and in how many blocks.
func (l *launcher) parameters(kernel *ir.Op) (params []any, blocks int, err error) {
	a := kernel.Attrs()
	if n, ok := a.Int(lowerptx.ScratchAttr); ok && l.scratch == nil {
		l.scratch = l.memory.Alloc(int(n))
	}
	list, err := exec.Params(kernel, lowerptx.ParamsAttr)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case list != nil:
		for _, p := range list {
			params = append(params, parameter(p, l.refs, l.scratch))
		}
	case a.Bool(lowerptx.TableAttr):
		table := l.memory.Alloc(8 * len(l.refs))
		for i, p := range l.refs {
			table.Write(8*i, binary.LittleEndian.AppendUint64(nil, p.(uint64)))
		}
		params = []any{table.Base}
	default:
		params = slices.Clone(l.refs)
	}
	if kernel.Attr(lowerptx.ErrorsAttr) != nil {
		params = append(params, l.errors.Base)
	}
	blocks = int(a.IntOr(lowerptx.BlocksAttr, 1))
	if n, ok := a.Int(lowerptx.WorkspaceAttr); ok {
		params = append(params, l.memory.Alloc(int(n)*blocks).Base)
	}
	return params, blocks, nil
}

func parameter(p exec.Param, refs []any, scratch *emulate.Buffer) any {
	if p.Value != nil {
		return uint64(*p.Value)
	}
	var at uint64
	if p.Ref >= 0 {
		at = refs[p.Ref].(uint64)
	} else {
		at = scratch.Base
	}
	at += uint64(p.Offset)
	if p.Map == nil {
		return at
	}
	m := &emulate.TensorMap{Element: p.Map.Elem, Base: at, Swizzle: 128}
	for i, n := range p.Map.Dims {
		m.Dims, m.Box = append(m.Dims, int(n)), append(m.Box, int(p.Map.Box[i]))
	}
	for _, n := range p.Map.Strides {
		m.Strides = append(m.Strides, int(n))
	}
	return m
}

// stored rounds a tensor's numbers to what its element type holds.
func stored(x *ir.Tensor) {
	truth := x.Elem.String() == "i1"
	for i, v := range x.Data {
		if truth {
			v = math.Mod(v, 2)
		}
		x.Data[i] = ir.DecodeElement(x.Elem, string(ir.EncodeElement(nil, x.Elem, v)))
	}
}

// repeated gives elements of an input that are the same place in memory, as those of a repeated row are, the same value.
func repeated(t *ir.MemRefType, x *ir.Tensor) {
	first := map[int64]int{}
	eachElement(t, func(i int, at int64) {
		if _, ok := first[at]; !ok {
			first[at] = i
		}
		x.Data[i] = x.Data[first[at]]
	})
}

// integers is the range of random integers for each input: indices stay within what they index.
func integers(kernel *ir.Op, ins []*ir.Value) (low, high []int) {
	n := 9
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		switch op.Def() {
		case tile.Gather:
			n = min(n, int(op.Operand(0).Shape()[0])-1)
		case tile.Pick:
			s := op.Operand(0).Shape()
			n = min(n, int(s[len(s)-1])-1)
		case tile.ScatterAdd:
			n = int(op.Operand(3).Shape()[0]) - 1
		}
		return ir.Advance
	})
	for range ins {
		low, high = append(low, 0), append(high, n)
	}
	return low, high
}

// bytesOf is the memory that a reference reaches over.
func bytesOf(t *ir.MemRefType) int64 {
	strides, _ := mem.Layout(t)
	n := int64(1)
	for i, s := range strides {
		n += (t.Shape[i] - 1) * s
	}
	return n * ir.ByteSize(t.Elem)
}

// eachElement calls f for every element of a reference with its place in bytes.
func eachElement(t *ir.MemRefType, f func(i int, at int64)) {
	strides, _ := mem.Layout(t)
	for i := range ir.NumElements(t.Shape) {
		at, rest := int64(0), i
		for d := len(t.Shape) - 1; d >= 0; d-- {
			at += rest % t.Shape[d] * strides[d]
			rest /= t.Shape[d]
		}
		f(int(i), at*ir.ByteSize(t.Elem))
	}
}

func fill(b *emulate.Buffer, t *ir.MemRefType, x *ir.Tensor) {
	eachElement(t, func(i int, at int64) { b.Write(int(at), ir.EncodeElement(nil, t.Elem, x.Data[i])) })
}

func read(b *emulate.Buffer, t *ir.MemRefType) *ir.Tensor {
	x := ir.NewTensor(t.Elem, t.Shape...)
	eachElement(t, func(i int, at int64) {
		x.Data[i] = ir.DecodeElement(t.Elem, string(b.Data[at:at+ir.ByteSize(t.Elem)]))
	})
	return x
}

func kernelNames(t *testing.T, text []byte) (names []string) {
	module, err := ir.Parse(dialects.NewContext(), "kernels.mlir", text)
	require.NoError(t, err)
	for op := range module.Body().Ops() {
		if op.Is(tile.Kernel) {
			names = append(names, ir.SymName(op))
		}
	}
	return names
}

// greatest is the largest finite magnitude in a tensor.
func greatest(x *ir.Tensor) (m float64) {
	for _, v := range x.Data {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			m = max(m, math.Abs(v))
		}
	}
	return m
}

// roundings is what a result that cancels may be off by: two roundings to float32 of the greatest number that went in. The
// mean of a row that was normalized before is such a result: exact, it is nearly 0.
func roundings(args []ir.Datum) (e float64) {
	for _, a := range args {
		if x, ok := a.(*ir.Tensor); ok && ir.IsFloat(x.Elem) {
			e = max(e, 2*greatest(x)/(1<<24))
		}
	}
	return e
}

// near holds a tensor to another, relative to the greatest number in it and to an absolute slack for each element; NaN is where it should be.
func near(t *testing.T, what string, want, got *ir.Tensor, tolerance float64, slack func(i int) float64) {
	t.Helper()
	scale := greatest(want)
	for i := range want.Data {
		w, g := want.Data[i], got.Data[i]
		if w == g || math.IsNaN(w) && math.IsNaN(g) {
			continue
		}
		require.LessOrEqual(t, math.Abs(w-g), tolerance*(scale+1e-6)+slack(i), "%s[%d]: want %g, got %g", what, i, w, g)
	}
}
