package prim

import (
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ./internal/asmgen .

// Kernels is the set of primitives for one instruction set. It is immutable.
type Kernels struct {
	isa       string
	tile      tileTable
	ops       opTable
	red       reduceTable
	philox    philoxWords
	boxMuller func(dst *float64, w0, w1 *uint32, n int) // n a multiple of 8
}

// ISA is the instruction set's name: "avx512", "avx2" or "go".
func (k *Kernels) ISA() string { return k.isa }

// ISAs names the instruction sets that this processor runs, the best first.
// "go", plain Go, is always the last.
func ISAs() []string { return append(nativeISAs(), "go") }

// Detect returns the primitives for the best instruction set of this processor.
func Detect() *Kernels { return kernels(ISAs()[0]) }

// ForISA returns the primitives for an instruction set by name, or an error if
// there is none of that name or this processor does not run it.
func ForISA(name string) (*Kernels, error) {
	if !slices.Contains(ISAs(), name) {
		return nil, fmt.Errorf("prim: instruction set %q is not one this processor runs (%s)",
			name, strings.Join(ISAs(), ", "))
	}
	return kernels(name), nil
}

func kernels(isa string) *Kernels {
	if k := nativeKernels(isa); k != nil {
		return k
	}
	return &Kernels{isa: "go", tile: goTile(), ops: opsGo(), red: goReduce(), philox: philoxGo, boxMuller: boxMullerGo}
}
