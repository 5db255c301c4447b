package host

import (
	"fmt"
	"slices"

	"blutrain/dialects/mem"
	"blutrain/ir"
)

// The functions instructions know by name.
var (
	Unaries = []string{
		"neg", "abs", "exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid", "sin", "cos", "sign", "floor", "not",
		"relu", "silu", "gelu_tanh", "gelu_erf", "silu_grad", "gelu_tanh_grad", "gelu_erf_grad", "square", "recip",
	}
	Binaries   = []string{"add", "sub", "mul", "div", "pow", "max", "min", "and", "or"}
	Predicates = []string{"eq", "ne", "lt", "le", "gt", "ge"}
	Reductions = []string{"sum", "max", "min", "argmax"}
)

// MaxElements bounds the elements of a block, so that sizes in bytes don't overflow.
const MaxElements = 1 << 40

func errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }

func verifyFn(names []string) func(*ir.Op) error {
	return func(op *ir.Op) error {
		if fn := op.Attrs().Str("fn"); !slices.Contains(names, fn) {
			return op.Errorf("%s: no function %q; there are %v", op.Name(), fn, names)
		}
		return verifyBlocks(op)
	}
}

// verifyBlocks holds every operand block to the destination's maxima, or 1 where it is repeated. A reduction's
// destination is the smaller one.
func verifyBlocks(op *ir.Op) error {
	last := op.NumOperands() - 1
	dst := op.Operand(last).Shape()
	for i := range last {
		if _, isBlock := op.Operand(i).Type().(*ir.DialectType); !isBlock {
			continue
		}
		for d, n := range op.Operand(i).Shape() {
			if n != dst[d] && n != 1 && dst[d] != 1 {
				return op.Errorf("%s: operand %d is %s, the destination %s", op.Name(), i, op.Operand(i).Type(), op.Operand(last).Type())
			}
		}
	}
	return nil
}

// AdamwScalars are the operands of host.adamw that are one number, AdamwNew those that it writes.
var (
	AdamwScalars = []int{4, 5, 6, 7, 8, 9, 10, 11, 15}
	AdamwNew     = []int{12, 13, 14}
)

func verifyAdamw(op *ir.Op) error {
	p := op.Operand(0).Shape()
	for i, v := range op.Operands() {
		want := p
		if slices.Contains(AdamwScalars, i) {
			want = []int64{1, 1}
		}
		if !slices.Equal(v.Shape(), want) {
			return op.Errorf("host.adamw: operand %d is %s, it must be %dx%d", i, v.Type(), want[0], want[1])
		}
	}
	return nil
}

func verifyKernel(op *ir.Op) error {
	grid, steps := op.Attrs().Ints("grid"), op.Attrs().Ints("steps")
	if len(grid) != len(steps) {
		return op.Errorf("host.kernel: %d grid extents and %d steps", len(grid), len(steps))
	}
	for i := range grid {
		if grid[i] < 0 || steps[i] < 1 {
			return op.Errorf("host.kernel: axis %d has extent %d and step %d", i, grid[i], steps[i])
		}
	}
	args := op.Body().Args()
	outs := op.Attrs().IntOr("outs", 0)
	if int64(len(args)) < int64(len(grid))+outs || outs < 0 {
		return op.Errorf("host.kernel: %d arguments for %d axes and %d outputs", len(args), len(grid), outs)
	}
	if s := op.Attrs().IntOr("scratch", 0); s < 0 {
		return op.Errorf("host.kernel: scratch of %d bytes", s)
	}
	for i, a := range args {
		_, isRef := a.Type().(*ir.MemRefType)
		if isRef != (i < len(args)-len(grid)) {
			return op.Errorf("host.kernel: argument %d has type %s; references come first, then one index an axis", i, a.Type())
		}
	}
	return nil
}

// BytesOf is the scratch memory that a host.scratch or host.memory takes.
func BytesOf(op *ir.Op) int64 {
	t := op.Result(0)
	if _, isRef := t.Type().(*ir.MemRefType); isRef {
		return ir.NumElements(t.Shape()) * ir.ByteSize(t.Elem())
	}
	return ir.NumElements(t.Shape()) * LaneBytes(t.Elem())
}

// LaneBytes is the size of an element in scratch memory: that in memory, but four bytes for truth values.
func LaneBytes(elem ir.Type) int64 {
	if i, ok := elem.(*ir.IntegerType); ok && i.Width == 1 {
		return 4
	}
	return ir.ByteSize(elem)
}

func verifyScratch(op *ir.Op) error {
	kernel := op.ParentOfKind(Kernel)
	off := op.Attrs().IntOr("offset", 0)
	if off < 0 || off%64 != 0 {
		return op.Errorf("%s: offset %d is not a multiple of 64", op.Name(), off)
	}
	n := int64(1)
	for _, d := range op.Result(0).Shape() {
		if d < 0 || d > 0 && n > MaxElements/d {
			return op.Errorf("%s: %s is of no size there can be", op.Name(), op.Result(0).Type())
		}
		n *= max(d, 1)
	}
	if t, isRef := op.Result(0).Type().(*ir.MemRefType); isRef && t.Layout != nil {
		return op.Errorf("%s: scratch memory is row-major, not %s", op.Name(), t)
	}
	if kernel != nil && off > kernel.Attrs().IntOr("scratch", 0)-BytesOf(op) {
		return op.Errorf("%s: %s at %d ends beyond the kernel's scratch memory of %d bytes", op.Name(), op.Result(0).Type(), off,
			kernel.Attrs().IntOr("scratch", 0))
	}
	return nil
}

func verifyWindow(op *ir.Op) error {
	ref := op.Operand(0).Type().(*ir.MemRefType)
	if n := op.NumOperands() - 3; n != len(ref.Shape) {
		return op.Errorf("host.window: %d offsets into a reference of %d dimensions", n, len(ref.Shape))
	}
	row, col := op.Attrs().IntOr("row", -1), op.Attrs().IntOr("col", -1)
	rank := int64(len(ref.Shape))
	if row < -1 || col < -1 || row >= rank || col >= rank || row == col && row >= 0 {
		return op.Errorf("host.window: rows along %d and columns along %d of %d dimensions", row, col, rank)
	}
	if op.Result(0).Elem() != ref.Elem {
		return op.Errorf("host.window: a block of %s of a reference to %s", op.Result(0).Elem(), ref.Elem)
	}
	return nil
}

// UnitStride reports whether the columns of a window lie next to each other.
func UnitStride(window *ir.Op) bool {
	col := window.Attrs().IntOr("col", -1)
	if col < 0 {
		return true
	}
	strides, _ := mem.Layout(window.Operand(0).Type().(*ir.MemRefType))
	return strides[col] == 1 || window.Result(0).Shape()[1] == 1
}
