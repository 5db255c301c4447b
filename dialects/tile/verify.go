package tile

import (
	"slices"

	"blutrain/ir"
)

func verifyKernel(op *ir.Op) error {
	if err := verifyArguments(op); err != nil {
		return err
	}
	return verifyRefUses(op)
}

// verifyArguments holds a kernel's arguments to its grid and its number of outputs.
func verifyArguments(op *ir.Op) error {
	a := op.Attrs()
	grid, steps, outs := a.Ints("grid"), a.Ints("steps"), a.IntOr("outs", 0)
	if len(grid) != len(steps) {
		return op.Errorf("tile.kernel: %d grid extents and %d steps", len(grid), len(steps))
	}
	for i := range grid {
		if grid[i] < 0 || steps[i] < 1 {
			return op.Errorf("tile.kernel: axis %d has extent %d and step %d", i, grid[i], steps[i])
		}
	}
	body := op.Body()
	if body == nil || !body.Terminator().Is(End) {
		return op.Errorf("tile.kernel: the body ends with tile.end")
	}
	refs := len(body.Args()) - len(grid)
	if outs < 1 || int64(refs) < outs {
		return op.Errorf("tile.kernel: %d arguments for %d axes and %d outputs", len(body.Args()), len(grid), outs)
	}
	for i, v := range body.Args() {
		if i < refs && !memRef.OK(v.Type()) || i >= refs && !index.OK(v.Type()) {
			return op.Errorf("tile.kernel: argument %d has type %s; references come first, then one index for each axis", i, v.Type())
		}
	}
	return nil
}

// verifyRefUses: inputs are not written, outputs are written and not read.
func verifyRefUses(kernel *ir.Op) error {
	ins, outs := Refs(kernel)
	for i, v := range ins {
		for u := range v.Uses() {
			if writes(u) {
				return u.Owner().Errorf("%s: writes input %d of the kernel", u.Owner().Name(), i)
			}
		}
	}
	for i, v := range outs {
		if v.Unused() {
			return kernel.Errorf("tile.kernel: output %d is never stored", i)
		}
		for u := range v.Uses() {
			if !writes(u) {
				return u.Owner().Errorf("%s: reads output %d of the kernel", u.Owner().Name(), i)
			}
		}
		if err := verifyCoverage(kernel, i, v); err != nil {
			return err
		}
	}
	return nil
}

// writes reports whether the use of a reference stores to it.
func writes(u *ir.Use) bool {
	return u.Owner().Is(Store) && u.Index() == 1 || u.Owner().Is(ScatterAdd) && u.Index() == 3
}

func verifyLaunch(op *ir.Op) error {
	kernel := findKernel(op)
	if kernel == nil {
		return op.Errorf("tile.launch: there is no kernel %s", op.Attr("kernel"))
	}
	if verifyArguments(kernel) != nil {
		return nil // reported at the kernel
	}
	ins, outs := Refs(kernel)
	refs := slices.Concat(ins, outs)
	given := slices.Concat(op.Operands(), op.Results())
	if len(given) != len(refs) || op.NumResults() != 0 && op.NumResults() != len(outs) {
		return op.Errorf("tile.launch: %d operands and %d results for a kernel of %d inputs and %d outputs", op.NumOperands(), op.NumResults(), len(ins), len(outs))
	}
	for i, v := range given {
		want := refs[i].Type().(*ir.MemRefType)
		if t, onTensor := v.Type().(*ir.TensorType); onTensor {
			if t.Elem != want.Elem || !slices.Equal(t.Shape, want.Shape) || op.NumResults() == 0 {
				return op.Errorf("tile.launch: %s for reference %d, which is %s", t, i, want)
			}
		} else if !sameButOffset(v.Type(), want) {
			return op.Errorf("tile.launch: %s for reference %d, which is %s", v.Type(), i, want)
		}
	}
	return nil
}

// sameButOffset reports whether a launch may hand memory of type t to a reference of type want: where the memory starts
// is the launch's business.
func sameButOffset(t ir.Type, want *ir.MemRefType) bool {
	m, ok := t.(*ir.MemRefType)
	return ok && m.Elem == want.Elem && m.Space == want.Space && slices.Equal(m.Shape, want.Shape) && slices.Equal(stridesOf(m), stridesOf(want))
}

func stridesOf(t *ir.MemRefType) []int64 {
	if s, ok := t.Layout.(*ir.StridedAttr); ok {
		return s.Strides
	}
	return ir.RowMajor(t.Shape)
}

// findKernel looks a launch's kernel up in the nearest symbol table around it.
func findKernel(launch *ir.Op) *ir.Op {
	p := launch.Parent()
	for p != nil && !p.Has(ir.SymbolTable) {
		p = p.Parent()
	}
	if p == nil {
		return nil
	}
	if k := ir.LookupSymbol(p, launch.Attrs().Sym("kernel")); k.Is(Kernel) {
		return k
	}
	return nil
}

func verifyLoad(op *ir.Op) error {
	return verifyWindow(op, op.Operand(0), op.NumOperands()-1, op.Result(0))
}

func verifyStore(op *ir.Op) error {
	return verifyWindow(op, op.Operand(1), op.NumOperands()-2, op.Operand(0))
}

// verifyWindow checks a load or store of a block at some number of offsets into a reference.
func verifyWindow(op *ir.Op, ref *ir.Value, offsets int, block *ir.Value) error {
	rank := int64(len(ref.Shape()))
	if int64(offsets) != rank {
		return op.Errorf("%s: %d offsets into a reference of %d dimensions", op.Name(), offsets, rank)
	}
	if block.Elem() != ref.Elem() {
		return op.Errorf("%s: a block of %s of a reference to %s", op.Name(), block.Elem(), ref.Elem())
	}
	row, col := Window(op)
	if row < -1 || col < -1 || row >= rank || col >= rank || row == col && row >= 0 {
		return op.Errorf("%s: rows along dimension %d and columns along %d of %d", op.Name(), row, col, rank)
	}
	rows, cols := extents(block)
	if row < 0 && rows != 1 || col < 0 && cols != 1 {
		return op.Errorf("%s: a block of %dx%d where there is one row or column", op.Name(), rows, cols)
	}
	return nil
}

func verifyScratch(op *ir.Op) error {
	if t := op.Result(0).Type().(*ir.MemRefType); t.Layout != nil || t.Space != nil {
		return op.Errorf("tile.scratch: scratch memory is row-major, not %s", t)
	}
	return nil
}

func verifyConstant(op *ir.Op) error { return wantExtents(op, "the result", op.Result(0), 1, 1) }

func verifyIota(op *ir.Op) error {
	axis, _ := op.Attrs().Int("axis")
	if axis != 0 && axis != 1 {
		return op.Errorf("tile.iota: no axis %d; rows are 0, columns 1", axis)
	}
	rows, cols := extents(op.Result(0))
	if axis == 0 && cols != 1 || axis == 1 && rows != 1 {
		return op.Errorf("tile.iota: a block of %dx%d does not count along axis %d alone", rows, cols, axis)
	}
	return nil
}

func verifyBroadcast(op *ir.Op) error {
	x, y := op.Operand(0), op.Result(0)
	xr, xc := extents(x)
	yr, yc := extents(y)
	if x.Elem() != y.Elem() || xr != 1 && xr != yr || xc != 1 && xc != yc {
		return op.Errorf("tile.broadcast: %s does not repeat to %s", x.Type(), y.Type())
	}
	return nil
}

func verifyRandom(op *ir.Op) error {
	if p, _ := op.Attrs().Int("pitch"); p < 0 {
		return op.Errorf("%s: negative pitch %d", op.Name(), p)
	}
	return wantExtents(op, "the seed", op.Operand(0), 1, 1)
}

func verifyGather(op *ir.Op) error {
	table, idx, y := op.Operand(0), op.Operand(1), op.Result(0)
	if len(table.Shape()) != 2 || table.Elem() != y.Elem() {
		return op.Errorf("tile.gather: a table of two dimensions with elements of type %s is expected, not %s", y.Elem(), table.Type())
	}
	rows, _ := extents(y)
	return wantExtents(op, "the block of indices", idx, rows, 1)
}

func verifyPick(op *ir.Op) error {
	ref, idx, y := op.Operand(0), op.Operand(1), op.Result(0)
	rank := len(ref.Shape())
	if rank < 2 || op.NumOperands()-3 != rank-1 || ref.Elem() != y.Elem() {
		return op.Errorf("tile.pick: %d offsets into %s for a block of %s", op.NumOperands()-3, ref.Type(), y.Elem())
	}
	rows, _ := extents(y)
	if err := wantExtents(op, "the result", y, rows, 1); err != nil {
		return err
	}
	return wantExtents(op, "the block of indices", idx, rows, 1)
}

func verifyScatterAdd(op *ir.Op) error {
	x, idx, out := op.Operand(0), op.Operand(1), op.Operand(3)
	xs, is, os := x.Shape(), idx.Shape(), out.Shape()
	switch {
	case len(xs) != 2 || len(is) != 1 || len(os) != 2 || xs[0] != is[0] || xs[1] != os[1]:
		return op.Errorf("tile.scatter_add: rows of %s at %s into %s", x.Type(), idx.Type(), out.Type())
	case x.Elem() != out.Elem() || !intOf(32)(idx.Elem()):
		return op.Errorf("tile.scatter_add: elements of %s into %s, indices of type %s", x.Elem(), out.Elem(), idx.Elem())
	case op.NumOperands() == 5 && (op.Operand(4).Elem() != out.Elem() || !slices.Equal(op.Operand(4).Shape(), os)):
		return op.Errorf("tile.scatter_add: %s is no initial value of %s", op.Operand(4).Type(), out.Type())
	}
	if n, _ := op.Attrs().Int("cols"); n < 1 {
		return op.Errorf("tile.scatter_add: %d columns", n)
	}
	return nil
}

func verifyReduce(op *ir.Op) error {
	if k := op.Attrs().Str("kind"); !slices.Contains(Reductions, k) {
		return op.Errorf("tile.reduce: no kind %q; there are %v", k, Reductions)
	}
	if a, _ := op.Attrs().Int("axis"); a != 0 && a != 1 {
		return op.Errorf("tile.reduce: no axis %d; rows are 0, columns 1", a)
	}
	return nil
}

func inferReduce(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	x := in.Operands[0]
	rows, cols := extents(x)
	if in.Attrs.IntOr("axis", 0) == 0 {
		rows = 1
	} else {
		cols = 1
	}
	elem := x.Elem()
	if in.Attrs.Str("kind") == "argmax" {
		elem = c.I32()
	}
	return []ir.Type{Block(c, rows, cols, elem)}, nil
}

func inferTranspose(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	rows, cols := extents(in.Operands[0])
	return []ir.Type{Block(c, cols, rows, in.Operands[0].Elem())}, nil
}

// dotExtents is the sizes of a product of two blocks by their types.
func dotExtents(a, b *ir.Value, attrs ir.Attrs) (m, n, ka, kb int64) {
	m, ka = extents(a)
	if attrs.Bool("ta") {
		m, ka = ka, m
	}
	kb, n = extents(b)
	if attrs.Bool("tb") {
		kb, n = n, kb
	}
	return m, n, ka, kb
}

// accType is the type products of elements of type t are added in.
func accType(c *ir.Context, t ir.Type) ir.Type {
	if f, ok := t.(*ir.FloatType); ok && f.Kind == ir.F64 {
		return t
	}
	return c.F32()
}

func inferDot(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	m, n, _, _ := dotExtents(in.Operands[0], in.Operands[1], in.Attrs)
	return []ir.Type{Block(c, m, n, accType(c, in.Operands[0].Elem()))}, nil
}

func verifyDot(op *ir.Op) error {
	a, b := op.Operand(0), op.Operand(1)
	m, n, ka, kb := dotExtents(a, b, op.Attrs())
	if ka != kb {
		return op.Errorf("tile.dot: contracts %d elements with %d", ka, kb)
	}
	if a.Elem() != b.Elem() {
		return op.Errorf("tile.dot: products of %s and %s", a.Elem(), b.Elem())
	}
	if op.NumOperands() == 3 {
		if op.Operand(2).Elem() != op.Result(0).Elem() {
			return op.Errorf("tile.dot: adds %s to %s", op.Result(0).Elem(), op.Operand(2).Elem())
		}
		return wantExtents(op, "what is added to", op.Operand(2), m, n)
	}
	return nil
}

func verifyContract(op *ir.Op) error {
	lhs, rhs, lhsAt, rhsAt := ContractOperands(op)
	if len(lhs) == 0 || len(rhs) == 0 {
		return op.Errorf("tile.contract: wants a plane of each operand at least")
	}
	for _, side := range []struct {
		name   string
		planes []*ir.Value
		at     []*ir.Value
	}{{"lhs", lhs, lhsAt}, {"rhs", rhs, rhsAt}} {
		shape := side.planes[0].Shape()
		if len(shape) < 2 || len(side.at) != len(shape)-1 {
			return op.Errorf("tile.contract: %d offsets in %s, which has %d dimensions", len(side.at), side.name, len(shape))
		}
		for _, p := range side.planes {
			if !slices.Equal(p.Shape(), shape) {
				return op.Errorf("tile.contract: planes of %s of different shapes %s and %s", side.name, ir.ShapeString(shape), ir.ShapeString(p.Shape()))
			}
		}
	}
	if kl, kr := last(lhs[0].Shape()), last(rhs[0].Shape()); kl != kr {
		return op.Errorf("tile.contract: contracts %d elements with %d", kl, kr)
	}
	if s, given := op.Attrs().Int("step"); given && s < 1 {
		return op.Errorf("tile.contract: step of %d", s)
	}
	return verifyContractBody(op, lhs, rhs)
}

func verifyContractBody(op *ir.Op, lhs, rhs []*ir.Value) error {
	body := op.Body()
	if body == nil {
		if len(lhs) != 1 || len(rhs) != 1 || lhs[0].Elem() != rhs[0].Elem() {
			return op.Errorf("tile.contract: wants a region that combines its operands")
		}
		return nil
	}
	step, given := op.Attrs().Int("step")
	if !given {
		return op.Errorf("tile.contract: a region needs a step")
	}
	m, n := extents(op.Result(0))
	planes := slices.Concat(lhs, rhs)
	if len(body.Args()) != len(planes) {
		return op.Errorf("tile.contract: region of %d arguments for %d planes", len(body.Args()), len(planes))
	}
	for i, a := range body.Args() {
		want := m
		if i >= len(lhs) {
			want = n
		}
		if !IsBlock(a.Type()) || a.Elem() != planes[i].Elem() || !slices.Equal(a.Shape(), []int64{want, step}) {
			return op.Errorf("tile.contract: argument %d of the region is %s, expected a block of %dx%d %s", i, a.Type(), want, step, planes[i].Elem())
		}
	}
	y := body.Terminator()
	if !y.Is(Yield) || y.Operand(0).Type() != op.Result(0).Type() {
		return op.Errorf("tile.contract: the region yields a block of the result's type, %s", op.Result(0).Type())
	}
	return nil
}

func last(shape []int64) int64 { return shape[len(shape)-1] }
