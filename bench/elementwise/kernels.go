package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"blutrain/bench/internal/gpu"
	codegen "blutrain/codegen/ptx"
	"blutrain/dialects"
	"blutrain/dialects/fn"
	"blutrain/dialects/ptx"
	"blutrain/dialects/tile"
	"blutrain/ir"
	lowerkernels "blutrain/lower/kernels"
	lowerptx "blutrain/lower/ptx"
	"blutrain/runtime/cuda"
)

// function is a compiled function: its kernels in the order of their launches.
type function struct {
	bytes   int64
	kernels []*kernel
}

// kernel is a kernel's text and what it is launched with.
type kernel struct {
	name, entry             string // in the program, in the text
	text                    []byte
	threads, blocks, shared int
	refs                    []ref
	errors                  bool
	workspace               int64 // bytes of a block
}

// compile lowers the function @f of a module as programs are lowered.
func compile(text string) (*function, error) {
	c := dialects.NewContext()
	module, err := ir.Parse(c, "elementwise.mlir", []byte(text))
	if err != nil {
		return nil, err
	}
	f := &function{}
	t := ir.LookupSymbol(module, "f").Attr("function_type").(*ir.TypeAttr).Type.(*ir.FunctionType)
	for _, types := range [][]ir.Type{t.Inputs, t.Results} {
		for _, x := range types {
			f.bytes += bytesOf(x)
		}
	}
	if err := lowerkernels.Run(c, module, lowerkernels.CUDA()); err != nil {
		return nil, err
	}
	for op := range ir.LookupSymbol(module, "f").Body().Ops() {
		if op.Is(fn.Return) || op.Has(ir.View) {
			continue
		}
		if !op.Is(tile.Launch) {
			return nil, fmt.Errorf("%s is no launch", op.Name())
		}
		k, err := lowered(c, module, op.Attrs().Sym("kernel"))
		if err != nil {
			return nil, err
		}
		f.kernels = append(f.kernels, k)
	}
	return f, nil
}

// ref is memory of a kernel.
type ref struct {
	bytes   int64
	indices bool // of the table
}

// timed is appended to the names of kernels.
const timed = ".timed"

// bytesOf is the size of a tensor, or of what a reference is of.
func bytesOf(t ir.Type) int64 {
	shape, _ := ir.Shape(t)
	return ir.NumElements(shape) * ir.ByteSize(ir.Elem(t))
}

// lowered lowers a copy of a kernel: it may be launched twice.
func lowered(c *ir.Context, module *ir.Op, name string) (*kernel, error) {
	original := ir.LookupSymbol(module, name)
	copied := original.Clone(c, map[*ir.Value]*ir.Value{})
	ir.NewBuilder(c, nil).Before(original).Insert(copied)
	copied.SetAttr("sym_name", c.String(name+timed))
	if err := lowerptx.Kernel(c, copied, lowerptx.Options{Target: ptx.SM90A}); err != nil {
		return nil, err
	}
	op := ir.LookupSymbol(module, name+timed)
	defer op.Erase()
	a := op.Attrs()
	if op.Attr(lowerptx.ParamsAttr) != nil || op.Attr(lowerptx.TableAttr) != nil || op.Attr(lowerptx.ThenAttr) != nil {
		return nil, fmt.Errorf("kernel %s is no loop", name)
	}
	text, err := codegen.Print(op)
	if err != nil {
		return nil, err
	}
	k := &kernel{
		name: name, entry: ptx.EntryName(op), text: text, threads: int(a.IntOr("threads", 0)), blocks: int(a.IntOr(lowerptx.BlocksAttr, 1)), shared: int(a.IntOr("shared", 0)),
		errors: op.Attr(lowerptx.ErrorsAttr) != nil, workspace: a.IntOr(lowerptx.WorkspaceAttr, 0),
	}
	ins, outs := tile.Refs(original)
	for _, v := range append(ins, outs...) {
		k.refs = append(k.refs, ref{bytesOf(v.Type()), v.Elem() == c.I32()})
	}
	return k, nil
}

// ready loads a kernel and gives it memory of its own, filled with normal numbers.
func (b *bench) ready(k *kernel) (run gpu.Run, owned []cuda.Pointer, err error) {
	f, err := b.gpu.LoadText(k.entry, k.text, k.shared)
	if err != nil {
		return run, nil, err
	}
	run = gpu.Run{F: f, Config: cuda.Config{Grid: k.blocks, Threads: k.threads, Shared: k.shared}}
	give := func(n int64, pattern []byte) error {
		p, err := b.gpu.Ctx.Alloc(n)
		if err != nil {
			return err
		}
		owned, run.Args = append(owned, p), append(run.Args, p)
		return b.fill(p, n, pattern)
	}
	numbers, indices := normals(), indices()
	for _, r := range k.refs {
		pattern := numbers
		if r.indices {
			pattern = indices
		}
		if err := give(r.bytes, pattern); err != nil {
			return run, owned, err
		}
	}
	if k.errors {
		if err := give(4096, bytes.Repeat([]byte{0xff}, 4096)); err != nil {
			return run, owned, err
		}
	}
	if k.workspace > 0 {
		err = give(k.workspace*int64(k.blocks), nil)
	}
	return run, owned, err
}

// fill writes a pattern again and again.
func (b *bench) fill(at cuda.Pointer, total int64, pattern []byte) error {
	filled := min(int64(len(pattern)), total)
	if filled == 0 {
		return nil
	}
	if err := b.gpu.Ctx.Upload(at, pattern[:filled]); err != nil {
		return err
	}
	for filled < total {
		n := min(filled, total-filled)
		if err := b.gpu.Stream.Copy(at+cuda.Pointer(filled), at, n); err != nil {
			return err
		}
		filled += n
	}
	return b.gpu.Stream.Synchronize()
}

func normals() []byte {
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	var raw []byte
	for range 1 << 18 {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(r.NormFloat64())))
	}
	return raw
}

// indices is rows of the table.
func indices() []byte {
	r := rand.New(rand.NewPCG(rand.Uint64(), 2))
	var raw []byte
	for range 1 << 18 {
		raw = binary.LittleEndian.AppendUint32(raw, uint32(r.IntN(table)))
	}
	return raw
}

// copies times copies by the driver that read and write so many bytes together.
func (b *bench) copies(n int64) ([]float64, error) {
	half := n / 2
	var places [2]cuda.Pointer
	for i := range places {
		var err error
		if places[i], err = b.gpu.Ctx.Alloc(half); err != nil {
			return nil, err
		}
	}
	if err := b.fill(places[0], half, normals()); err != nil {
		return nil, err
	}
	ms, err := b.gpu.TimeOf(func() error { return b.gpu.Stream.Copy(places[1], places[0], half) }, b.reps)
	if err != nil {
		return nil, err
	}
	return ms, b.gpu.Free(places[:]...)
}
