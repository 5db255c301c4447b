package tile

import (
	"fmt"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/ir"
)

// evalElementwise evaluates on blocks what the operation of that name does on tensors.
func evalElementwise(eval ir.EvalFunc) ir.EvalFunc {
	return func(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		rows, cols, err := actual(op, in)
		if err != nil {
			return nil, err
		}
		repeated := make([]ir.Datum, len(in))
		for i, d := range in {
			repeated[i] = repeat(d.(*ir.Tensor), rows, cols)
		}
		return eval(f, op, repeated)
	}
}

// actual is the actual extents of an elementwise operation: those of the operands that are not repeated, which agree.
func actual(op *ir.Op, in []ir.Datum) (rows, cols int64, err error) {
	got := [2]int64{1, 1}
	for i, d := range in {
		for k, n := range op.Operand(i).Shape() {
			a := d.(*ir.Tensor).Shape[k]
			if n == 1 || a == got[k] {
				continue
			}
			if got[k] != 1 {
				return 0, 0, fmt.Errorf("operand %d has %d of %d along axis %d, an operand before it %d", i, a, n, k, got[k])
			}
			got[k] = a
		}
	}
	// A block clipped to one is no repeated one: all that are not repeated must be.
	for i, d := range in {
		for k, n := range op.Operand(i).Shape() {
			if a := d.(*ir.Tensor).Shape[k]; n != 1 && a != got[k] {
				return 0, 0, fmt.Errorf("operand %d has %d of %d along axis %d, another %d", i, a, n, k, got[k])
			}
		}
	}
	return got[0], got[1], nil
}

func repeat(t *ir.Tensor, rows, cols int64) *ir.Tensor {
	if t.Shape[0] == rows && t.Shape[1] == cols {
		return t
	}
	b := newBlock(t.Elem, rows, cols)
	for r := range rows {
		for c := range cols {
			b.Data[r*cols+c] = t.Data[min(r, t.Shape[0]-1)*t.Shape[1]+min(c, t.Shape[1]-1)]
		}
	}
	return b
}

func evalConstant(_ *ir.Frame, op *ir.Op, _ []ir.Datum) ([]ir.Datum, error) {
	b := newBlock(op.Result(0).Elem(), 1, 1)
	b.Data[0] = op.Attrs().FloatOr("value", 0)
	return []ir.Datum{b}, nil
}

func evalIota(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	start, n := asIndex(in[0]), asIndex(in[1])
	rows, cols := n, int64(1)
	if op.Attrs().IntOr("axis", 0) == 1 {
		rows, cols = 1, n
	}
	b := newBlock(op.Result(0).Elem(), rows, cols)
	for i := range b.Data {
		b.Data[i] = float64(start + int64(i))
	}
	return []ir.Datum{b}, within(op, b)
}

// within checks that actual extents given by operands fit the type.
func within(op *ir.Op, b *ir.Tensor) error {
	rows, cols := extents(op.Result(0))
	if b.Shape[0] < 1 || b.Shape[1] < 1 || b.Shape[0] > rows || b.Shape[1] > cols {
		return fmt.Errorf("%dx%d elements for a block of at most %dx%d", b.Shape[0], b.Shape[1], rows, cols)
	}
	return nil
}

func evalBroadcast(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	x, rows, cols := in[0].(*ir.Tensor), asIndex(in[1]), asIndex(in[2])
	xr, xc := extents(op.Operand(0))
	if xr != 1 && x.Shape[0] != rows || xc != 1 && x.Shape[1] != cols {
		return nil, fmt.Errorf("%dx%d elements repeated to %dx%d", x.Shape[0], x.Shape[1], rows, cols)
	}
	y := repeat(x, rows, cols)
	return []ir.Datum{y}, within(op, y)
}

func evalGather(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	table, idx, at, col := in[0].(*reference), in[1].(*ir.Tensor), asIndex(in[2]), asIndex(in[3])
	_, cols := extents(op.Result(0))
	var y *ir.Tensor
	for r, v := range idx.Data {
		if v < 0 || v >= float64(table.shape[0]) {
			return nil, outOfRange(at+int64(r), v, table.shape[0])
		}
		w, err := windowAt(table, []int64{int64(v), col}, 0, 1, 1, cols)
		if err != nil {
			return nil, err
		}
		row, err := w.load(op.Result(0).Elem())
		if err != nil {
			return nil, err
		}
		if y == nil {
			y = newBlock(row.Elem, idx.Shape[0], w.cols)
		}
		copy(y.Data[int64(r)*w.cols:], row.Data)
	}
	return []ir.Datum{y}, nil
}

func outOfRange(position int64, index float64, n int64) error {
	return fmt.Errorf("index %.0f at position %d is out of range: there are %d rows", index, position, n)
}

func evalPick(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	ref, idx, at, offsets := in[0].(*reference), in[1].(*ir.Tensor), asIndex(in[2]), asIndices(in[3:])
	ignore, ignores := op.Attrs().Int("ignore")
	n := last(ref.shape)
	row := len(offsets) - 1
	y := newBlock(op.Result(0).Elem(), idx.Shape[0], 1)
	for r, v := range idx.Data {
		if ignores && v == float64(ignore) {
			continue
		}
		if v < 0 || v >= float64(n) {
			return nil, fmt.Errorf("index %.0f at position %d is out of range: a row has %d elements", v, at+int64(r), n)
		}
		place := append(slices.Clone(offsets), int64(v))
		place[row] += int64(r)
		if place[row] >= ref.shape[row] {
			return nil, fmt.Errorf("row %d of %d", place[row], ref.shape[row])
		}
		y.Data[r] = ref.data[ref.at(place)]
	}
	return []ir.Datum{y}, nil
}

func evalScatterAdd(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	x, idx, col, out := in[0].(*reference), in[1].(*reference), asIndex(in[2]), in[3].(*reference)
	cols := min(op.Attrs().IntOr("cols", 1), out.shape[1]-col)
	sum := make([]float64, out.shape[0]*cols)
	if len(in) == 5 {
		init := in[4].(*reference)
		for i := range sum {
			sum[i] = init.data[init.at([]int64{int64(i) / cols, col + int64(i)%cols})]
		}
	}
	for r := range x.shape[0] {
		v := idx.data[idx.at([]int64{r})]
		if v < 0 || v >= float64(out.shape[0]) {
			return nil, outOfRange(r, v, out.shape[0])
		}
		for c := range cols {
			sum[int64(v)*cols+c] += x.data[x.at([]int64{r, col + c})]
		}
	}
	for i, v := range sum {
		if err := out.set(out.at([]int64{int64(i) / cols, col + int64(i)%cols}), v); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func evalReduce(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	x, kind := in[0].(*ir.Tensor), op.Attrs().Str("kind")
	n, m, step, stride := x.Shape[0], x.Shape[1], x.Shape[1], int64(1) // axis 1: n results over m elements
	y := newBlock(op.Result(0).Elem(), n, 1)
	if op.Attrs().IntOr("axis", 0) == 0 {
		n, m, step, stride = m, n, 1, m
		y = newBlock(op.Result(0).Elem(), 1, n)
	}
	for i := range n {
		y.Data[i] = reduceLine(kind, x.Data[i*step:], m, stride)
	}
	return []ir.Datum{y}, nil
}

// reduceLine reduces n elements that lie a stride apart.
func reduceLine(kind string, x []float64, n, stride int64) float64 {
	acc, best := x[0], int64(0)
	for i := int64(1); i < n; i++ {
		v := x[i*stride]
		switch kind {
		case "sum":
			acc += v
		case "max":
			acc = max(acc, v)
		case "min":
			acc = min(acc, v)
		case "argmax":
			if v > acc || v != v && acc == acc {
				acc, best = v, i
			}
		}
	}
	if kind == "argmax" {
		return float64(best)
	}
	return acc
}

func evalTranspose(_ *ir.Frame, _ *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	return []ir.Datum{transposed(in[0].(*ir.Tensor))}, nil
}

func transposed(x *ir.Tensor) *ir.Tensor {
	rows, cols := x.Shape[0], x.Shape[1]
	y := newBlock(x.Elem, cols, rows)
	for r := range rows {
		for c := range cols {
			y.Data[c*rows+r] = x.Data[r*cols+c]
		}
	}
	return y
}

func evalDot(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	a, b := in[0].(*ir.Tensor), in[1].(*ir.Tensor)
	if op.Attrs().Bool("ta") {
		a = transposed(a)
	}
	if !op.Attrs().Bool("tb") {
		b = transposed(b)
	}
	y, err := product(op.Result(0).Elem(), a, b)
	if err != nil || len(in) == 2 {
		return []ir.Datum{y}, err
	}
	acc := in[2].(*ir.Tensor)
	if !slices.Equal(acc.Shape, y.Shape) {
		return nil, fmt.Errorf("a product of %s added to %s", ir.ShapeString(y.Shape), ir.ShapeString(acc.Shape))
	}
	for i, v := range acc.Data {
		y.Data[i] += v
	}
	return []ir.Datum{y}, nil
}

// product is a b^T: every row of a with every row of b.
func product(elem ir.Type, a, b *ir.Tensor) (*ir.Tensor, error) {
	k := a.Shape[1]
	if b.Shape[1] != k {
		return nil, fmt.Errorf("contracts %d elements with %d", k, b.Shape[1])
	}
	y := newBlock(elem, a.Shape[0], b.Shape[0])
	for i := range a.Shape[0] {
		for j := range b.Shape[0] {
			sum := 0.0
			for t := range k {
				sum += a.Data[i*k+t] * b.Data[j*k+t]
			}
			y.Data[i*b.Shape[0]+j] = sum
		}
	}
	return y, nil
}

func evalContract(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	var groups [4][]ir.Datum
	for i := range groups {
		n := len(op.OperandGroup(i))
		groups[i], in = in[:n], in[n:]
	}
	lhs, rhs, lhsAt, rhsAt := groups[0], groups[1], asIndices(groups[2]), asIndices(groups[3])
	m, n := extents(op.Result(0))
	depth := last(lhs[0].(*reference).shape)
	step := op.Attrs().IntOr("step", max(depth, 1))
	if depth == 0 {
		return nil, fmt.Errorf("contracts nothing")
	}
	var acc *ir.Tensor
	for k := int64(0); k < depth; k += step {
		blocks, err := planes(lhs, lhsAt, m, k, step)
		if err != nil {
			return nil, err
		}
		right, err := planes(rhs, rhsAt, n, k, step)
		if err != nil {
			return nil, err
		}
		part, err := contractStep(f, op, append(blocks, right...))
		if err != nil {
			return nil, err
		}
		if acc == nil {
			acc = newBlock(part.Elem, part.Shape[0], part.Shape[1])
		}
		for i, v := range part.Data {
			acc.Data[i] += v
		}
	}
	return []ir.Datum{acc}, nil
}

// planes loads the blocks of one step of k from every plane of an operand.
func planes(refs []ir.Datum, at []int64, rows, k, step int64) ([]ir.Datum, error) {
	var out []ir.Datum
	for _, d := range refs {
		ref := d.(*reference)
		rank := int64(len(ref.shape))
		w, err := windowAt(ref, append(slices.Clone(at), k), rank-2, rank-1, rows, step)
		if err != nil {
			return nil, err
		}
		b, err := w.load(nil)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

func contractStep(f *ir.Frame, op *ir.Op, blocks []ir.Datum) (*ir.Tensor, error) {
	if op.Body() == nil {
		return product(op.Result(0).Elem(), blocks[0].(*ir.Tensor), blocks[1].(*ir.Tensor))
	}
	for i, a := range op.Body().Args() {
		blocks[i].(*ir.Tensor).Elem = a.Elem()
	}
	out, err := f.Run(op.Body(), blocks)
	if err != nil {
		return nil, err
	}
	return out[0].(*ir.Tensor), nil
}

func evalRandomUniform(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	return evalRandom(op, in, blu.UniformAt)
}

func evalRandomNormal(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	mean, std := op.Attrs().FloatOr("mean", 0), op.Attrs().FloatOr("std", 1)
	return evalRandom(op, in, func(seed, stream, i uint64) float64 { return mean + std*blu.NormalAt(seed, stream, i) })
}

// evalRandom draws each element by its number, rounded to the block's type as blu's numbers are.
func evalRandom(op *ir.Op, in []ir.Datum, at func(seed, stream, i uint64) float64) ([]ir.Datum, error) {
	seed, start := uint64(int64(in[0].(*ir.Tensor).Data[0])), asIndex(in[1])
	stream, pitch := uint64(op.Attrs().IntOr("stream", 0)), op.Attrs().IntOr("pitch", 0)
	elem := op.Result(0).Elem()
	y := newBlock(elem, asIndex(in[2]), asIndex(in[3]))
	for i := range y.Data {
		r, c := int64(i)/y.Shape[1], int64(i)%y.Shape[1]
		v := at(seed, stream, uint64(start+r*pitch+c))
		y.Data[i] = ir.DecodeElement(elem, string(ir.EncodeElement(nil, elem, v)))
	}
	return []ir.Datum{y}, within(op, y)
}
