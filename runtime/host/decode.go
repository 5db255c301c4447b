package host

import (
	"fmt"
	"math"
	"unsafe"

	"blutrain/dialects/arith"
	"blutrain/dialects/host"
	"blutrain/dialects/scf"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/host/prim"
)

// kernel is a decoded host.kernel: a tree of instructions over numbered registers.
type kernel struct {
	name       string
	reference  string
	args, outs int // references among the arguments, and how many of them, from the end, are written
	grid       []int64
	steps      []int64
	counts     []int // grid points along each axis
	points     int
	refs       []reference // the arguments, then those to scratch memory
	constants  []constant
	body       []instr
	numIndex   int
	numBlocks  int
	scratch    int64
	usesEngine bool // has a host.gemm, which runs on all workers by itself
}

// constant is an index register that keeps its value.
type constant struct {
	reg   int
	value int64
}

// instr executes one instruction on a worker's frame.
type instr func(f *frame)

// frame is what one worker knows while it runs a grid point of a kernel.
type frame struct {
	d          *device
	k          *prim.Kernels
	worker     int
	refs       []unsafe.Pointer
	index      []int64
	blocks     []block
	scratch    unsafe.Pointer
	temp       temp
	traffic    *runtime.Traffic // nil: not counted
	iterations int              // of loops, in this grid point
	err        error
}

// fail stops the kernel after the current instruction. The first failure counts.
func (f *frame) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// Bounds on what a kernel may ask for, far beyond what kernels do, that keep a faulty program from running for ever.
const (
	maxPoints     = math.MaxInt32 // grid points of a launch
	maxIterations = 1 << 26       // iterations of loops in one grid point
)

// decoder turns the operations of a kernel into instructions.
type decoder struct {
	k    *kernel
	regs map[*ir.Value]int
	gemm *ir.Op // the host.gemm whose epilogue is decoded, or nil

}

// decode translates a verified host.kernel.
func decode(op *ir.Op) (*kernel, error) {
	k := &kernel{
		name: ir.SymName(op), grid: op.Attrs().Ints("grid"), steps: op.Attrs().Ints("steps"),
		outs: int(op.Attrs().IntOr("outs", 0)), scratch: op.Attrs().IntOr("scratch", 0),
	}
	if k.reference = op.Attrs().Str("reference"); k.reference == "" {
		k.reference = k.name
	}
	if err := k.count(op); err != nil {
		return nil, err
	}
	d := &decoder{k: k, regs: map[*ir.Value]int{}}
	for _, a := range op.Body().Args() {
		switch t := a.Type().(type) {
		case *ir.MemRefType:
			d.newRef(a, t)
		case *ir.IndexType:
			d.newIndex(a)
		default:
			return nil, op.Errorf("kernel %s: an argument of type %s", k.name, t)
		}
	}
	k.args = len(k.refs)
	body, err := d.block(op.Body())
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.name, err)
	}
	k.body = body
	return k, nil
}

// count finds the grid points along each axis and in all.
func (k *kernel) count(op *ir.Op) error {
	k.points = 1
	for i, n := range k.grid {
		c := (n-1)/k.steps[i] + 1
		if n == 0 {
			c = 0
		}
		if c > 0 && int64(k.points) > maxPoints/c {
			return op.Errorf("kernel %s: a grid of %v in steps of %v has more than %d points", k.name, k.grid, k.steps, int64(maxPoints))
		}
		k.counts = append(k.counts, int(c))
		k.points *= int(c)
	}
	return nil
}

func (d *decoder) newRef(v *ir.Value, t *ir.MemRefType) int {
	d.regs[v] = len(d.k.refs)
	d.k.refs = append(d.k.refs, referenceOf(t))
	return d.regs[v]
}

func (d *decoder) newIndex(v *ir.Value) int {
	d.regs[v] = d.k.numIndex
	d.k.numIndex++
	return d.regs[v]
}

func (d *decoder) newBlock(v *ir.Value) int {
	d.regs[v] = d.k.numBlocks
	d.k.numBlocks++
	return d.regs[v]
}

// indices are the registers of operands that must be indices.
func (d *decoder) indices(op *ir.Op, values ...*ir.Value) ([]int, error) {
	regs := make([]int, len(values))
	for i, v := range values {
		if _, ok := v.Type().(*ir.IndexType); !ok {
			return nil, op.Errorf("%s on %s has no instruction on this device", op.Name(), v.Type())
		}
		regs[i] = d.regs[v]
	}
	return regs, nil
}

// block decodes the operations of a block up to its terminator.
func (d *decoder) block(b *ir.Block) ([]instr, error) {
	var code []instr
	for op := range b.Ops() {
		if op.Has(ir.Terminator) {
			break
		}
		in, err := d.op(op)
		if err != nil {
			return nil, err
		}
		if in != nil {
			code = append(code, in)
		}
	}
	return code, nil
}

func (d *decoder) op(op *ir.Op) (instr, error) {
	switch op.Def() {
	case host.Scratch:
		return d.scratch(op)
	case host.Memory:
		return d.memory(op)
	case host.Window:
		return d.window(op)
	case host.Gemm:
		return d.product(op)
	case arith.Constant:
		return nil, d.constant(op)
	case scf.For:
		return d.loop(op)
	}
	switch op.Def().DialectName() {
	case "arith":
		return d.arith(op)
	case "host":
		return d.compute(op)
	}
	return nil, op.Errorf("%s has no instruction on this device", op.Name())
}

// constant decodes an index that is known: a register that is set once a launch.
func (d *decoder) constant(op *ir.Op) error {
	if _, err := d.indices(op, op.Result(0)); err != nil {
		return err
	}
	a, ok := op.Attr("value").(*ir.IntegerAttr)
	if !ok {
		return op.Errorf("arith.constant without an integer")
	}
	d.k.constants = append(d.k.constants, constant{d.newIndex(op.Result(0)), a.Value})
	return nil
}

// arith decodes index arithmetic.
func (d *decoder) arith(op *ir.Op) (instr, error) {
	if op.NumResults() != 1 || op.NumOperands() != 2 {
		return nil, op.Errorf("%s has no instruction on this device", op.Name())
	}
	in, err := d.indices(op, op.Operand(0), op.Operand(1), op.Result(0))
	if err != nil {
		return nil, err
	}
	x, y, dst := in[0], in[1], d.newIndex(op.Result(0))
	switch op.Def() {
	case arith.Addi:
		return func(f *frame) { f.index[dst] = f.index[x] + f.index[y] }, nil
	case arith.Subi:
		return func(f *frame) { f.index[dst] = f.index[x] - f.index[y] }, nil
	case arith.Muli:
		return func(f *frame) { f.index[dst] = f.index[x] * f.index[y] }, nil
	case arith.Minsi:
		return func(f *frame) { f.index[dst] = min(f.index[x], f.index[y]) }, nil
	case arith.Maxsi:
		return func(f *frame) { f.index[dst] = max(f.index[x], f.index[y]) }, nil
	case arith.Divsi:
		return division(dst, x, y, func(a, b int64) int64 { return a / b }), nil
	case arith.Remsi:
		return division(dst, x, y, func(a, b int64) int64 { return a % b }), nil
	case arith.Ceildivsi:
		return division(dst, x, y, func(a, b int64) int64 { return -floorDiv(-a, b) }), nil
	case arith.Floordivsi:
		return division(dst, x, y, floorDiv), nil
	}
	return nil, op.Errorf("%s has no instruction on this device", op.Name())
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

func division(dst, x, y int, div func(a, b int64) int64) instr {
	return func(f *frame) {
		if f.index[y] == 0 {
			f.fail("division of an index by zero")
			f.index[dst] = 0
			return
		}
		f.index[dst] = div(f.index[x], f.index[y])
	}
}

// loop decodes scf.for without carried values.
func (d *decoder) loop(op *ir.Op) (instr, error) {
	if op.NumResults() != 0 || op.NumOperands() != 3 {
		return nil, op.Errorf("scf.for with carried values has no instruction on this device")
	}
	bounds, err := d.indices(op, op.Operands()...)
	if err != nil {
		return nil, err
	}
	lo, hi, step := bounds[0], bounds[1], bounds[2]
	i := d.newIndex(op.Body().Arg(0))
	body, err := d.block(op.Body())
	if err != nil {
		return nil, err
	}
	return func(f *frame) {
		s := f.index[step]
		if s <= 0 {
			f.fail("a loop with step %d", s)
			return
		}
		for v, end := f.index[lo], f.index[hi]; v < end && f.iterate(); v += s {
			f.index[i] = v
			for _, in := range body {
				if in(f); f.err != nil {
					return
				}
			}
			if v > math.MaxInt64-s {
				return
			}
		}
	}, nil
}

// iterate counts an iteration of a loop, and reports whether there may be another.
func (f *frame) iterate() bool {
	if f.iterations++; f.iterations > maxIterations {
		f.fail("more than %d iterations of loops", maxIterations)
	}
	return f.err == nil
}
