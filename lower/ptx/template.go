package ptx

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/blublas"
	"blutrain/dialects/mem"
	"blutrain/dialects/tile"
	"blutrain/ir"
	"blutrain/lower/share"
)

// match is a kernel that is a matrix product, for which there are templates: one contraction, and what is done with each
// element of its result.
type match struct {
	l        *lowering // of functions of elements
	kernel   *ir.Op
	contract *ir.Op
	refs     []*ir.Value // inputs, then outputs
	used     []*ir.Value // those that the epilogue reads and writes
	align    []int64     // of their addresses, in bytes
	row, col *ir.Value   // where the block's rows and columns start
	batch    []*ir.Value // the axes of the grid that go through a batch
	ops      []*ir.Op    // the epilogue
	views    map[*ir.Op]view
	sums     map[*ir.Value]int // the parameter that sums of columns go to
	g        blublas.Gemm
	faithful bool          // precision fp32: planes may do what float32 does
	of       [2]*pointwise // what is multiplied instead of the operands' numbers; nil: those
	steps    [2]int        // the block of the general lowering
	err      error         // of the epilogue, while it is written
}

// view is how a load or store of the epilogue lies in memory.
type view struct {
	blublas.View
	elem     ir.Type
	fixed    int64 // bytes from the start of the reference
	align    int64 // of the start
	whole    bool  // both rows and columns count
	replaced bool  // results go where it reads
}

// matchProduct finds out whether a kernel is a product; nil where it is something else, or has an operand that templates
// don't read.
func matchProduct(c *ir.Context, kernel *ir.Op, align []int64) *match {
	ins, outs := tile.Refs(kernel)
	m := &match{kernel: kernel, refs: append(ins, outs...), align: align, views: map[*ir.Op]view{}, sums: map[*ir.Value]int{},
		l: &lowering{c: c, kernel: kernel, known: map[*ir.Block]map[any]*ir.Value{}}}
	for op := range kernel.Body().Ops() {
		switch {
		case op.Is(tile.Contract):
			if m.contract != nil {
				return nil
			}
			m.contract = op
		case op.Is(tile.Load), op.Is(tile.Store), op.Is(tile.Broadcast), op.Is(tile.Constant), op.Is(tile.Reduce), tile.ElementwiseOp(op.Def().Name) == op.Def():
			m.ops = append(m.ops, op)
		case op.Def().DialectName() == "arith", op.Has(ir.Terminator):
		default:
			return nil
		}
	}
	if m.contract == nil || !m.product() || !m.epilogue() {
		return nil
	}
	return m
}

// product reads the contraction.
func (m *match) product() bool {
	op := m.contract
	lhs, rhs, lhsAt, rhsAt := tile.ContractOperands(op)
	if len(lhs) != 1 || len(rhs) != 1 || op.Body() != nil || op.Result(0).Elem() != ir.Type(m.l.c.F32()) {
		return false
	}
	m.row, m.col = lhsAt[len(lhsAt)-1], rhsAt[len(rhsAt)-1]
	grid, steps := m.kernel.Attrs().Ints("grid"), m.kernel.Attrs().Ints("steps")
	for i, axis := range tile.Axes(m.kernel) {
		switch {
		case axis == m.row || axis == m.col:
		case grid[i] == 1:
		case steps[i] != 1 || len(m.batch) == blublas.MaxBatch:
			return false
		default:
			m.batch = append(m.batch, axis)
			m.g.Batch = append(m.g.Batch, blublas.Batch{Size: int(grid[i])})
		}
	}
	block := op.Result(0).Shape()
	m.steps = [2]int{int(block[0]), int(block[1])}
	shape := lhs[0].Shape()
	m.g.K = int(shape[len(shape)-1])
	var ok [2]bool
	m.g.A, m.g.M, ok[0] = m.operand(lhs[0], lhsAt, func(b *blublas.Batch) *int { return &b.A })
	m.g.B, m.g.N, ok[1] = m.operand(rhs[0], rhsAt, func(b *blublas.Batch) *int { return &b.B })
	m.g.Unaligned = [2]bool{m.alignOf(lhs[0])%16 != 0, m.alignOf(rhs[0])%16 != 0}
	if !ok[0] || !ok[1] || m.misses(m.row, m.g.M, block[0]) || m.misses(m.col, m.g.N, block[1]) {
		return false
	}
	m.g.Precision = precisionOf(op, lhs[0].Elem())
	m.faithful = m.g.Precision == blublas.FP32Strict && op.Attrs().Str("precision") == "fp32" && len(m.g.Batch) == 0
	return m.g.Precision != "" && m.g.M > 0 && m.g.N > 0 && m.g.K > 0
}

// misses reports whether a block's place doesn't go through all of an extent: nothing is known of such kernels.
func (m *match) misses(at *ir.Value, extent int, block int64) bool {
	for i, axis := range tile.Axes(m.kernel) {
		if axis == at {
			return m.kernel.Attrs().Ints("grid")[i] != int64(extent) || m.kernel.Attrs().Ints("steps")[i] != block
		}
	}
	n, ok := constant(at)
	return !ok || n != 0 || int64(extent) > block
}

// precisionOf is how a contraction of such elements is computed; "" where templates can't.
func precisionOf(op *ir.Op, elem ir.Type) blublas.Precision {
	switch elem.String() {
	case "bf16":
		return blublas.BF16
	case "f32":
		switch op.Attrs().Str("precision") {
		case "tf32":
			return blublas.TF32
		case "bf16": // its operands should have been rounded
			return ""
		}
		return blublas.FP32Strict
	}
	return ""
}

// operand reads how an operand lies in memory.
func (m *match) operand(v *ir.Value, at []*ir.Value, stride func(*blublas.Batch) *int) (o blublas.Operand, extent int, ok bool) {
	strides, _ := mem.Layout(v.Type().(*ir.MemRefType))
	size := ir.ByteSize(v.Elem())
	for d, offset := range at[:len(at)-1] {
		i := m.batchOf(offset)
		switch n, isConst := constant(offset); {
		case i >= 0:
			*stride(&m.g.Batch[i]) += int(strides[d])
		case isConst && n == 0:
		case m.single(offset):
		default:
			return o, 0, false
		}
	}
	n := len(strides)
	extent, depth := int(v.Shape()[n-2]), int(v.Shape()[n-1])
	row, k := int(strides[n-2]), int(strides[n-1])
	switch { // a single row, or a single column, may lie either way
	case k == 1 && (depth > 1 || row != 1) || depth == 1 && row != 1:
		if o.Pitch = row; extent == 1 {
			o.Pitch = padded(depth, int(size))
		}
	case row == 1 || extent == 1:
		o.MNMajor = true
		if o.Pitch = k; depth == 1 {
			o.Pitch = padded(extent, int(size))
		}
	default:
		return o, 0, false
	}
	return o, extent, true
}

// padded is the least number of elements that is n or more and a multiple of 16 bytes; of 128, a cache's line, where rows are
// long.
func padded(n, size int) int {
	to := 16 / size
	if n*size >= 64*128 {
		to = 128 / size
	}
	return (n + to - 1) / to * to
}

// alignOf is what addresses of a reference are multiples of, in bytes.
func (m *match) alignOf(v *ir.Value) int64 {
	for i, r := range m.refs {
		if r == v && m.align != nil {
			return m.align[i]
		}
	}
	return Alignment
}

// batchOf is the number of a grid axis among those of the batch, or -1.
func (m *match) batchOf(v *ir.Value) int {
	for i, axis := range m.batch {
		if axis == v {
			return i
		}
	}
	return -1
}

// single reports whether an offset is that of a grid axis of one point.
func (m *match) single(v *ir.Value) bool {
	for i, axis := range tile.Axes(m.kernel) {
		if axis == v {
			return v != m.row && v != m.col && m.kernel.Attrs().Ints("grid")[i] == 1
		}
	}
	return false
}

// epilogue reads what is done with the product.
func (m *match) epilogue() bool {
	var fetched, columns []*ir.Op
	stores := false
	for _, op := range m.ops {
		switch {
		case op.Is(tile.Load):
			v, ok := m.viewOf(op, op.Operand(0), op.Operands()[1:], op.Result(0))
			if !ok {
				return false
			}
			v.replaced = m.replaced(op.Operand(0))
			if m.views[op] = v; v.whole {
				fetched = append(fetched, op)
			} else if m.source(v) {
				columns = append(columns, op)
			}
		case op.Is(tile.Reduce):
			if !m.columnSums(op) {
				return false
			}
		case op.Is(tile.Store) && op.Operand(0).DefinedBy(tile.Reduce):
		case op.Is(tile.Store):
			v, ok := m.viewOf(op, op.Operand(1), op.Operands()[2:], op.Operand(0))
			if s := op.Operand(0).Shape(); !ok || s[0] != int64(m.steps[0]) || s[1] != int64(m.steps[1]) {
				return false
			}
			m.views[op] = v
			stores = true
		}
	}
	m.g.Epilogue = blublas.Epilogue{Kind: m.kind(), Reads: len(fetched), Sums: len(m.sums) > 0, Ragged: m.ragged(), Sources: m.sources, Results: m.results, Apply: m.apply, Fetch: func(p *blublas.Point) {
		for _, op := range fetched {
			m.load(p, op)
		}
		for _, op := range columns {
			if p.Near(m.views[op].read()) {
				m.load(p, op)
			}
		}
	}}
	for i := range m.used {
		m.g.Epilogue.Params = append(m.g.Epilogue.Params, fmt.Sprint("ref.", i))
	}
	return stores
}

// kind says what of the epilogue its time depends on: the elements of whole matrices that it reads and writes, and functions that take more
// than an instruction or two.
func (m *match) kind() string {
	var reads, functions, writes []string
	for _, op := range m.ops {
		v := m.views[op]
		switch name := op.Def().Name; {
		case op.Is(tile.Load) && v.whole:
			reads = append(reads, v.elem.String())
		case op.Is(tile.Store) && v.whole:
			writes = append(writes, v.elem.String())
		case tile.ElementwiseOp(name) == op.Def() && !slices.Contains(cheap, name):
			functions = append(functions, name)
		}
	}
	var words []string
	for _, of := range []struct {
		name string
		list []string
	}{{"reads", reads}, {"does", functions}, {"writes", writes}} {
		if len(of.list) > 0 {
			words = append(words, of.name+"="+strings.Join(of.list, ","))
		}
	}
	return strings.Join(words, " ")
}

// cheap lists elementwise operations of an instruction or two.
var cheap = []string{"neg", "abs", "sign", "floor", "not", "add", "sub", "mul", "max", "min", "and", "or", "compare", "select", "cast"}

// sources lists what the epilogue reads that the copy engine can bring.
func (m *match) sources(int) (sources []blublas.Read) {
	for _, op := range m.ops {
		if v, ok := m.views[op]; ok && op.Is(tile.Load) && m.source(v) && spared(op) == nil && !slices.Contains(sources, v.read()) {
			sources = append(sources, v.read())
		}
	}
	return sources
}

// spared is the condition, a single one that is loaded, under which nothing uses what an operation loads; nil: there is none. A sum's first
// term replaces what is there.
func spared(load *ir.Op) *ir.Op {
	for v := load.Result(0); ; {
		use := onlyUse(v)
		if use == nil {
			return nil
		}
		op := use.Owner()
		if op.Name() == "tile.select" {
			condition := op.Operand(0).Op()
			if use.Index() == 2 && condition.Is(tile.Load) && ir.NumElements(condition.Result(0).Shape()) == 1 {
				return condition
			}
			return nil
		}
		if tile.ElementwiseOp(op.Def().Name) != op.Def() {
			return nil
		}
		v = op.Result(0)
	}
}

// onlyUse is the only use of a value; nil: it has none, or several.
func onlyUse(v *ir.Value) (only *ir.Use) {
	for u := range v.Uses() {
		if only != nil {
			return nil
		}
		only = u
	}
	return only
}

// results lists what the epilogue writes, where the copy engine could store all of it and bring all matrices that are read, and whole rows
// aren't better.
func (m *match) results(_, k int) (results []blublas.Read) {
	fit := len(m.sums) <= 1
	for _, op := range m.ops {
		v, ok := m.views[op]
		switch {
		case !ok || op.Is(tile.Load) && !v.whole:
		case !v.whole || !m.source(v) || op.Is(tile.Load) && spared(op) != nil:
			fit = false
		case op.Is(tile.Store):
			results = append(results, v.read())
		}
	}
	if !fit || blublas.ByRows(results, k) {
		return nil
	}
	return results
}

// source reports whether the copy engine can bring what a load reads: a matrix, or an element for each column.
func (m *match) source(v view) bool {
	size := ir.ByteSize(v.elem)
	return (size == 2 || size == 4) && int64(v.Col) == size && (v.whole || v.Row == 0 && !v.replaced) && v.Batch == [blublas.MaxBatch]int{} &&
		gcd(gcd(v.align, v.fixed), int64(v.Row))%16 == 0
}

// replaced reports whether the kernel writes its results to where it reads.
func (m *match) replaced(ref *ir.Value) bool {
	ins, _ := tile.Refs(m.kernel)
	return slices.ContainsFunc(share.Shared(m.kernel), func(pair [2]int) bool { return ins[pair[0]] == ref })
}

// read is what the copy engine moves of a view.
func (v view) read() blublas.Read { return blublas.Read{View: v.View, Offset: v.fixed} }

// ragged reports whether all that is read and written in whole rows may be moved 4 elements at a time, though rows are no multiples
// of 4 elements: what follows a row is between it and the next.
func (m *match) ragged() bool {
	for _, v := range m.views {
		if v.whole && m.together(v, 4) < 4 {
			return false
		}
	}
	return m.g.N%4 != 0 && m.g.N > 4
}

// param is the number of a reference among the epilogue's parameters.
func (m *match) param(ref *ir.Value) int {
	i := slices.Index(m.used, ref)
	if i < 0 {
		i = len(m.used)
		m.used = append(m.used, ref)
	}
	return i
}

// columnSums reads a sum of the block's rows, which is stored as a row of a matrix of its own for every block: that is what
// templates do, for blocks of as many rows.
func (m *match) columnSums(op *ir.Op) bool {
	y, x := op.Result(0), op.Operand(0).Shape()
	if op.Attrs().Str("kind") != "sum" || op.Attrs().IntOr("axis", 0) != 0 || y.Elem() != ir.Type(m.l.c.F32()) || !y.HasOneUse() || len(m.batch) > 0 ||
		x[0] != int64(m.steps[0]) || x[1] != int64(m.steps[1]) || m.steps[0] != m.g.SumRows() && m.steps[0] < m.g.M {
		return false
	}
	for u := range y.Uses() {
		store := u.Owner()
		if !store.Is(tile.Store) || u.Index() != 0 {
			return false
		}
		ref, at := store.Operand(1), store.Operands()[2:]
		t := ref.Type().(*ir.MemRefType)
		strides, _ := mem.Layout(t)
		blocks := int64((m.g.M + m.g.SumRows() - 1) / m.g.SumRows())
		if len(at) != 2 || !slices.Equal(t.Shape, []int64{blocks, int64(m.g.N)}) || strides[1] != 1 || blocks > 1 && strides[0] != int64(m.g.N) || !sameIndex(at[1], m.col) || !m.blockOf(at[0]) {
			return false
		}
		m.sums[y] = m.param(ref)
	}
	return true
}

// blockOf reports whether an index is the number of the block along the rows.
func (m *match) blockOf(v *ir.Value) bool {
	if n, ok := constant(v); ok {
		return n == 0 && m.g.M <= m.steps[0]
	}
	if op := v.Op(); op != nil && op.Name() == "arith.divsi" && op.Operand(0) == m.row {
		n, ok := constant(op.Operand(1))
		return ok && n == int64(m.steps[0])
	}
	return v == m.row && m.g.M <= m.steps[0]
}

// viewOf reads where a block lies: each dimension goes along the product's rows, its columns or a batch, or is fixed.
func (m *match) viewOf(op *ir.Op, ref *ir.Value, at []*ir.Value, block *ir.Value) (v view, ok bool) {
	t := ref.Type().(*ir.MemRefType)
	strides, _ := mem.Layout(t)
	size := ir.ByteSize(t.Elem)
	v.elem, v.align = t.Elem, m.alignOf(ref)
	v.Param = m.param(ref)
	row, col := tile.Window(op)
	shape := block.Shape()
	for d, o := range at {
		stride := strides[d] * size
		if stride >= 1<<31 {
			return v, false
		}
		n, isConst := constant(o)
		i := m.batchOf(o)
		switch {
		case int64(d) == row && shape[0] > 1:
			if !sameIndex(o, m.row) {
				return v, false
			}
			v.Row += int(stride)
		case int64(d) == col && shape[1] > 1:
			if !sameIndex(o, m.col) {
				return v, false
			}
			v.Col += int(stride)
		case isConst:
			v.fixed += n * stride
		case o == m.row:
			v.Row += int(stride)
		case o == m.col:
			v.Col += int(stride)
		case i >= 0:
			v.Batch[i] += int(stride)
		case !m.single(o):
			return v, false
		}
	}
	v.whole = shape[0] > 1 && shape[1] > 1 || v.Row != 0 && v.Col != 0
	return v, true
}

// sameIndex reports whether two offsets are one, or the same number.
func sameIndex(v, w *ir.Value) bool {
	x, okX := constant(v)
	y, okY := constant(w)
	return v == w || okX && okY && x == y
}
