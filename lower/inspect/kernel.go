package inspect

import (
	"cmp"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// Kernel is one kernel of the program.
type Kernel struct {
	Name      string
	Functions []Launches // which functions launch it how often, in the order of the program
	Flops     float64    // floating-point operations of products and attention in one launch
	Bytes     int64      // that one launch reads and writes, each reference once
	Grid      []int64    // extents of the grid, where the target has one
	Scratch   int64      // bytes of memory of its own that a launch works in
	Steps     int        // kernels that a launch starts, one after the other
	outs      int
}

// Launches is how often a function launches a kernel.
type Launches struct {
	Function string
	Count    int
}

// Launched is how often all functions launch it.
func (k *Kernel) Launched() (n int) {
	for _, l := range k.Functions {
		n += l.Count
	}
	return n
}

// kernels is the kernels of a program by name.
type kernels struct {
	program   *ir.Op
	reference map[string]*ir.Op // functions of reference.mlir by name
	known     map[string]*Kernel
	order     []*Kernel
}

func newKernels(program, reference *ir.Op) *kernels {
	ks := &kernels{program: program, reference: map[string]*ir.Op{}, known: map[string]*Kernel{}}
	if reference == nil {
		return ks
	}
	for op := range reference.Body().Ops() {
		if op.Has(ir.SymbolTable) && op.Body() != nil {
			for f := range op.Body().Ops() {
				if f.Is(fn.Func) {
					ks.reference[ir.SymName(f)] = f
				}
			}
		}
	}
	return ks
}

// maxSteps bounds the kernels of a launch: no more are counted, should they name each other in a circle.
const maxSteps = 100

// of is the kernel of a launch.
func (ks *kernels) of(launch *ir.Op) (*Kernel, error) {
	name := launch.Attrs().Sym("kernel")
	if k := ks.known[name]; k != nil {
		return k, nil
	}
	op := ir.LookupSymbol(ks.program, name)
	if op == nil {
		return nil, launch.Errorf("%s: the program has no kernel @%s", launch.Name(), name)
	}
	outs, ok := op.Attrs().Int("outs")
	if !ok || outs < 0 || outs > int64(launch.NumOperands()) {
		return nil, op.Errorf("%s @%s does not say how many of its %d references it writes", op.Name(), name, launch.NumOperands())
	}
	k := &Kernel{Name: name, outs: int(outs), Grid: op.Attrs().Ints("grid"), Bytes: bytesOf(launch)}
	for step := op; step != nil && k.Steps < maxSteps; step = ir.LookupSymbol(ks.program, step.Attrs().Sym("then")) {
		a := step.Attrs()
		k.Steps, k.Scratch = k.Steps+1, max(k.Scratch, a.IntOr("scratch", 0), a.IntOr("workspace", 0)*a.IntOr("blocks", 1))
	}
	implements := op.Attrs().Str("reference")
	if implements == "" {
		implements = name
	}
	if f := ks.reference[implements]; f != nil {
		ir.Walk(f, func(o *ir.Op) ir.WalkResult {
			k.Flops += blu.Flops(o)
			return ir.Advance
		})
	}
	ks.known[name] = k
	ks.order = append(ks.order, k)
	return k, nil
}

// launched counts a launch.
func (k *Kernel) launched(function string) {
	if n := len(k.Functions); n == 0 || k.Functions[n-1].Function != function {
		k.Functions = append(k.Functions, Launches{Function: function})
	}
	k.Functions[len(k.Functions)-1].Count++
}

// bytesOf is the bytes of all elements that a launch refers to; repeated ones count once.
func bytesOf(launch *ir.Op) (n int64) {
	for _, v := range launch.Operands() {
		t := v.Type().(*ir.MemRefType)
		strides, _ := mem.Layout(t)
		elements := int64(1)
		for i, d := range t.Shape {
			if strides[i] != 0 || d == 0 {
				elements *= d
			}
		}
		n += elements * ir.ByteSize(t.Elem)
	}
	return n
}

// sorted lists the kernels, those with the most work of all launches first.
func (ks *kernels) sorted() []Kernel {
	var out []Kernel
	for _, k := range ks.order {
		out = append(out, *k)
	}
	slices.SortStableFunc(out, func(a, b Kernel) int {
		na, nb := float64(a.Launched()), float64(b.Launched())
		return cmp.Or(cmp.Compare(nb*b.Flops, na*a.Flops), cmp.Compare(nb*float64(b.Bytes), na*float64(a.Bytes)), cmp.Compare(a.Name, b.Name))
	})
	return out
}
