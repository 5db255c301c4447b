package driver

import (
	"fmt"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/ir"
	"blutrain/lower/buffers"
)

// Program reads the program of an artifact.
func Program(a *artifact.Artifact) (*ir.Op, error) {
	text, ok := a.File(artifact.ProgramName)
	if !ok {
		return nil, fmt.Errorf("the artifact has no %s", artifact.ProgramName)
	}
	return ReadModule(dialects.NewContext(), artifact.ProgramName, text)
}

// Peak says who holds a function's arena when most of it is held.
type Peak struct {
	Function string
	Bytes    int64
	During   string // the place in the source that runs then
	Holders  []Holder
}

// Holder is a place in the source and what it holds.
type Holder struct {
	At    string
	Bytes int64
	Count int64 // of pieces
}

// Peaks lists the functions that use the arena.
func Peaks(program *ir.Op) []Peak {
	var peaks []Peak
	for f := range program.Body().Ops() {
		d, ok := f.Attr(buffers.PeakAttr).(*ir.DictAttr)
		if !ok {
			continue
		}
		a := ir.Attrs(d.Entries)
		p := Peak{Function: ir.SymName(f), Bytes: a.IntOr("bytes", 0), During: a.Str("during")}
		if list, ok := a.Get("holders").(*ir.ArrayAttr); ok {
			for _, e := range list.Elems {
				if h, ok := e.(*ir.DictAttr); ok {
					a := ir.Attrs(h.Entries)
					p.Holders = append(p.Holders, Holder{a.Str("at"), a.IntOr("bytes", 0), a.IntOr("count", 0)})
				}
			}
		}
		peaks = append(peaks, p)
	}
	return peaks
}

// KernelUse is a kernel and how often each function launches it.
type KernelUse struct {
	Name     string
	Loc      *ir.Location
	Launches []int // by function, in the order of Kernels' second result
}

// Kernels lists the kernels of a program in its order, and the functions that launch kernels.
func Kernels(program *ir.Op) ([]KernelUse, []string) {
	var kernels []KernelUse
	var functions []string
	index := map[string]int{}
	for op := range program.Body().Ops() {
		if op.Is(exec.Func) {
			functions = append(functions, ir.SymName(op))
		} else if op.Has(ir.Symbol) && op.Body() != nil && !op.Has(ir.SymbolTable) {
			index[ir.SymName(op)] = len(kernels)
			kernels = append(kernels, KernelUse{Name: ir.SymName(op), Loc: op.Loc()})
		}
	}
	for i := range kernels {
		kernels[i].Launches = make([]int, len(functions))
	}
	f := -1
	for op := range program.Body().Ops() {
		if !op.Is(exec.Func) {
			continue
		}
		f++
		for o := range op.Body().Ops() {
			if k, ok := index[o.Attrs().Sym("kernel")]; ok && o.Is(exec.Launch) {
				kernels[k].Launches[f]++
			}
		}
	}
	return kernels, functions
}
