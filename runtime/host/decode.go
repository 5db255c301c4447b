package host

import (
	"fmt"
	"unsafe"

	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/ir"
	"blutrain/runtime/host/prim"
)

// kernel is a decoded host.kernel: a tree of instructions over numbered registers.
type kernel struct {
	name       string
	args       int // references among the arguments; those after them are scratch memory
	grid       []int64
	steps      []int64
	refs       []reference
	body       []instr
	numIndex   int
	numBlocks  int
	scratch    int64
	usesEngine bool // has a host.gemm, which runs on all workers by itself
}

// instr executes one instruction on a worker's frame.
type instr func(f *frame)

// reference is the type of one of a kernel's references.
type reference struct {
	shape, strides []int64
	elemBytes      int64
}

// frame is what one worker knows while it runs a grid point of a kernel.
type frame struct {
	d       *device
	k       *prim.Kernels
	worker  int
	refs    []unsafe.Pointer
	index   []int64
	blocks  []block
	scratch unsafe.Pointer
	temp    temp
	err     error
}

// fail stops the kernel after the current grid point. The first failure counts.
func (f *frame) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// decoder turns the operations of a kernel into instructions.
type decoder struct {
	k      *kernel
	regs   map[*ir.Value]int
	nested int
}

// decode translates a verified host.kernel.
func decode(op *ir.Op) (*kernel, error) {
	k := &kernel{
		name: ir.SymName(op), grid: op.Attrs().Ints("grid"), steps: op.Attrs().Ints("steps"),
		scratch: op.Attrs().IntOr("scratch", 0),
	}
	d := &decoder{k: k, regs: map[*ir.Value]int{}}
	for _, a := range op.Body().Args() {
		switch t := a.Type().(type) {
		case *ir.MemRefType:
			d.regs[a] = len(k.refs)
			strides, _ := mem.Layout(t)
			k.refs = append(k.refs, reference{t.Shape, strides, ir.ByteSize(t.Elem)})
		default:
			d.newIndex(a)
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
		return d.scratch(op), nil
	case host.Memory:
		return d.memory(op), nil
	case host.Window:
		return d.window(op), nil
	case host.Gemm:
		return d.gemm(op)
	}
	switch op.Def().DialectName() {
	case "arith":
		return d.arith(op)
	case "scf":
		return d.loop(op)
	case "host":
		return d.compute(op)
	}
	return nil, op.Errorf("%s has no instruction on this device", op.Name())
}

// arith decodes index arithmetic.
func (d *decoder) arith(op *ir.Op) (instr, error) {
	in := make([]int, op.NumOperands())
	for i, v := range op.Operands() {
		in[i] = d.regs[v]
	}
	if op.NumResults() != 1 || ir.Elem(op.Result(0).Type()) != op.Result(0).Type() {
		return nil, op.Errorf("%s has no instruction on this device", op.Name())
	}
	if _, ok := op.Result(0).Type().(*ir.IndexType); !ok {
		return nil, op.Errorf("%s of type %s has no instruction on this device", op.Name(), op.Result(0).Type())
	}
	dst := d.newIndex(op.Result(0))
	if op.Name() == "arith.constant" {
		a, ok := op.Attr("value").(*ir.IntegerAttr)
		if !ok {
			return nil, op.Errorf("arith.constant without an integer")
		}
		v := a.Value
		return func(f *frame) { f.index[dst] = v }, nil
	}
	if len(in) != 2 {
		return nil, op.Errorf("%s has no instruction on this device", op.Name())
	}
	x, y := in[0], in[1]
	switch op.Name() {
	case "arith.addi":
		return func(f *frame) { f.index[dst] = f.index[x] + f.index[y] }, nil
	case "arith.subi":
		return func(f *frame) { f.index[dst] = f.index[x] - f.index[y] }, nil
	case "arith.muli":
		return func(f *frame) { f.index[dst] = f.index[x] * f.index[y] }, nil
	case "arith.minsi":
		return func(f *frame) { f.index[dst] = min(f.index[x], f.index[y]) }, nil
	case "arith.maxsi":
		return func(f *frame) { f.index[dst] = max(f.index[x], f.index[y]) }, nil
	case "arith.divsi":
		return d.division(dst, x, y, func(a, b int64) int64 { return a / b }), nil
	case "arith.remsi":
		return d.division(dst, x, y, func(a, b int64) int64 { return a % b }), nil
	case "arith.ceildivsi":
		return d.division(dst, x, y, func(a, b int64) int64 { return -floorDiv(-a, b) }), nil
	case "arith.floordivsi":
		return d.division(dst, x, y, floorDiv), nil
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

func (d *decoder) division(dst, x, y int, div func(a, b int64) int64) instr {
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
	if op.Name() != "scf.for" || op.NumResults() != 0 || op.NumOperands() != 3 {
		return nil, op.Errorf("%s of this form has no instruction on this device", op.Name())
	}
	lo, hi, step := d.regs[op.Operand(0)], d.regs[op.Operand(1)], d.regs[op.Operand(2)]
	i := d.newIndex(op.Body().Arg(0))
	body, err := d.block(op.Body())
	if err != nil {
		return nil, err
	}
	return func(f *frame) {
		s := f.index[step]
		if s <= 0 {
			f.fail("loop with step %d", s)
			return
		}
		for v, end := f.index[lo], f.index[hi]; v < end && f.err == nil; v += s {
			f.index[i] = v
			for _, in := range body {
				in(f)
			}
		}
	}, nil
}

// scratch decodes a block in scratch memory.
func (d *decoder) scratch(op *ir.Op) instr {
	rows, cols := d.regs[op.Operand(0)], d.regs[op.Operand(1)]
	maxRows, maxCols := int(op.Result(0).Shape()[0]), int(op.Result(0).Shape()[1])
	off := op.Attrs().IntOr("offset", 0)
	dst := d.newBlock(op.Result(0))
	return func(f *frame) {
		r, c := int(f.index[rows]), int(f.index[cols])
		if r < 0 || c < 0 || r > maxRows || c > maxCols {
			f.fail("scratch block of %dx%d, at most %dx%d", r, c, maxRows, maxCols)
			r, c = 0, 0
		}
		f.blocks[dst] = block{unsafe.Add(f.scratch, off), r, c, maxCols, 1}
	}
}

// memory decodes a reference to scratch memory.
func (d *decoder) memory(op *ir.Op) instr {
	off := op.Attrs().IntOr("offset", 0)
	t := op.Result(0).Type().(*ir.MemRefType)
	strides, _ := mem.Layout(t)
	dst := len(d.k.refs)
	d.regs[op.Result(0)] = dst
	d.k.refs = append(d.k.refs, reference{t.Shape, strides, ir.ByteSize(t.Elem)})
	return func(f *frame) { f.refs[dst] = unsafe.Add(f.scratch, off) }
}

// window decodes a window of a reference. Every element is checked to lie within the reference.
func (d *decoder) window(op *ir.Op) instr {
	ref := d.regs[op.Operand(0)]
	t := d.k.refs[ref]
	rows, cols := d.regs[op.Operand(1)], d.regs[op.Operand(2)]
	offsets := make([]int, op.NumOperands()-3)
	for i := range offsets {
		offsets[i] = d.regs[op.Operand(i+3)]
	}
	rowDim, colDim := int(op.Attrs().IntOr("row", -1)), int(op.Attrs().IntOr("col", -1))
	rowStride, colStride := 0, 1
	if rowDim >= 0 {
		rowStride = int(t.strides[rowDim])
	}
	if colDim >= 0 {
		colStride = int(t.strides[colDim])
	}
	dst := d.newBlock(op.Result(0))
	return func(f *frame) {
		r, c := f.index[rows], f.index[cols]
		at, ok := int64(0), true
		for i, o := range offsets {
			extent := int64(1)
			switch i {
			case rowDim:
				extent = r
			case colDim:
				extent = c
			}
			v := f.index[o]
			ok = ok && v >= 0 && extent >= 0 && v+extent <= t.shape[i]
			at += v * t.strides[i]
		}
		ok = ok && (rowDim >= 0 || r == 1) && (colDim >= 0 || c == 1)
		if !ok {
			f.fail("window of %dx%d beyond a reference of %v", r, c, t.shape)
			r, c, at = 0, 0, 0
		}
		f.blocks[dst] = block{unsafe.Add(f.refs[ref], at*t.elemBytes), int(r), int(c), rowStride, colStride}
	}
}

// operands are the block registers of an operation's block operands.
func (d *decoder) operands(op *ir.Op) []int {
	regs := make([]int, op.NumOperands())
	for i, v := range op.Operands() {
		regs[i] = d.regs[v]
	}
	return regs
}
