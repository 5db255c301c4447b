package tile

import (
	"fmt"
	"math"
	"slices"

	"blutrain/ir"
)

// reference is what a memref is during evaluation: a strided view of float64 elements.
type reference struct {
	data    []float64
	shape   []int64
	strides []int64
	offset  int64
	stored  []bool // of an output: which elements have been stored; nil otherwise
	output  bool
}

// at is the place in data of the element with that index.
func (r *reference) at(index []int64) int64 {
	p := r.offset
	for d, i := range index {
		p += i * r.strides[d]
	}
	return p
}

// newReference views data as a memref type says.
func newReference(t *ir.MemRefType, data []float64) *reference {
	r := &reference{data: data, shape: t.Shape, strides: ir.RowMajor(t.Shape)}
	if s, ok := t.Layout.(*ir.StridedAttr); ok {
		r.strides, r.offset = s.Strides, s.Offset
	}
	return r
}

// evalLaunch runs a kernel on tensors. Whatever layout the kernel's references have, the tensors are row-major: the layout
// is where memory differs, not meaning.
func evalLaunch(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	kernel := f.Interp.Symbol(op.Attrs().Sym("kernel"))
	if !kernel.Is(Kernel) {
		return nil, fmt.Errorf("there is no kernel %s", op.Attr("kernel"))
	}
	if op.NumResults() == 0 {
		return nil, fmt.Errorf("launches on memory are run by a runtime; the reference evaluates launches on tensors")
	}
	return Run(f.Interp, kernel, in)
}

// Run evaluates a kernel on tensors, one for each input, and returns its outputs. It fails when an output is not stored
// exactly once everywhere.
func Run(interp *ir.Interp, kernel *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	return RunShared(interp, kernel, in, nil)
}

// RunShared is Run with inputs and outputs that are the same memory: pairs of an input's number and an output's. Outputs
// that share memory hold the input's elements at first; the tensors given are not changed.
func RunShared(interp *ir.Interp, kernel *ir.Op, in []ir.Datum, shared [][2]int) ([]ir.Datum, error) {
	ins, outs := Refs(kernel)
	if len(in) != len(ins) {
		return nil, fmt.Errorf("%d inputs for a kernel of %d", len(in), len(ins))
	}
	refs := make([]*reference, len(ins), len(ins)+len(outs))
	for i, v := range ins {
		t, ok := in[i].(*ir.Tensor)
		if !ok || !slices.Equal(t.Shape, v.Shape()) {
			return nil, fmt.Errorf("input %d is no tensor of shape %s", i, ir.ShapeString(v.Shape()))
		}
		refs[i] = &reference{data: t.Data, shape: t.Shape, strides: ir.RowMajor(t.Shape)}
	}
	results := make([]ir.Datum, len(outs))
	for i, v := range outs {
		t := ir.NewTensor(v.Elem(), v.Shape()...)
		for _, pair := range shared {
			if pair[1] == i {
				copy(t.Data, refs[pair[0]].data)
				refs[pair[0]].data = t.Data
			}
		}
		results[i] = t
		refs = append(refs, &reference{data: t.Data, shape: t.Shape, strides: ir.RowMajor(t.Shape), output: true, stored: make([]bool, len(t.Data))})
	}
	args := make([]ir.Datum, len(refs))
	for i, r := range refs {
		args[i] = r
	}
	if err := runGrid(interp, kernel, args); err != nil {
		return nil, err
	}
	for i, r := range refs[len(ins):] {
		if p := slices.Index(r.stored, false); p >= 0 {
			return nil, kernel.Errorf("kernel %s: element %d of output %d is never stored", ir.SymName(kernel), p, i)
		}
	}
	return results, nil
}

// runGrid runs the body for every grid point.
func runGrid(interp *ir.Interp, kernel *ir.Op, refs []ir.Datum) error {
	grid, steps := kernel.Attrs().Ints("grid"), kernel.Attrs().Ints("steps")
	if slices.Contains(grid, 0) {
		return nil
	}
	at := make([]int64, len(grid))
	for {
		args := slices.Clone(refs)
		for _, i := range at {
			args = append(args, indexDatum(interp.Ctx, i))
		}
		if _, err := interp.NewFrame().Run(kernel.Body(), args); err != nil {
			return err
		}
		d := len(grid) - 1
		for ; d >= 0; d-- {
			if at[d] += steps[d]; at[d] < grid[d] {
				break
			}
			at[d] = 0
		}
		if d < 0 {
			return nil
		}
	}
}

// Indices are scalars: tensors without dimensions.
func indexDatum(c *ir.Context, i int64) *ir.Tensor {
	return &ir.Tensor{Elem: c.Index(), Data: []float64{float64(i)}}
}

func asIndex(d ir.Datum) int64 { return int64(d.(*ir.Tensor).Data[0]) }

func asIndices(ds []ir.Datum) []int64 {
	out := make([]int64, len(ds))
	for i, d := range ds {
		out[i] = asIndex(d)
	}
	return out
}

// A block is a tensor of its actual rows and columns.
func newBlock(elem ir.Type, rows, cols int64) *ir.Tensor { return ir.NewTensor(elem, rows, cols) }

// window is a load or store at work: where its block lies in the reference.
type window struct {
	ref        *reference
	base       int64
	rows, cols int64
	rowStride  int64
	colStride  int64
}

// windowAt finds the clipped window of at most rows x cols at the offsets.
func windowAt(ref *reference, offsets []int64, row, col, rows, cols int64) (window, error) {
	w := window{ref: ref, rows: 1, cols: 1}
	for d, o := range offsets {
		if o < 0 || o >= ref.shape[d] {
			return w, fmt.Errorf("offset %d lies outside dimension %d of %d elements", o, d, ref.shape[d])
		}
	}
	w.base = ref.at(offsets)
	if row >= 0 {
		w.rows, w.rowStride = min(rows, ref.shape[row]-offsets[row]), ref.strides[row]
	}
	if col >= 0 {
		w.cols, w.colStride = min(cols, ref.shape[col]-offsets[col]), ref.strides[col]
	}
	return w, nil
}

func (w window) at(r, c int64) int64 { return w.base + r*w.rowStride + c*w.colStride }

func (w window) load(elem ir.Type) (*ir.Tensor, error) {
	if w.ref.output {
		return nil, fmt.Errorf("reads an output")
	}
	b := newBlock(elem, w.rows, w.cols)
	i := 0
	for r := range w.rows {
		for c := range w.cols {
			b.Data[i] = w.ref.data[w.at(r, c)]
			i++
		}
	}
	return b, nil
}

func (w window) store(b *ir.Tensor) error {
	if b.Shape[0] != w.rows || b.Shape[1] != w.cols {
		return fmt.Errorf("a block of %dx%d where there is room for %dx%d", b.Shape[0], b.Shape[1], w.rows, w.cols)
	}
	for r := range w.rows {
		for c := range w.cols {
			if err := w.ref.set(w.at(r, c), b.Data[r*w.cols+c]); err != nil {
				return err
			}
		}
	}
	return nil
}

// set stores one element, of an output for the first time.
func (r *reference) set(p int64, v float64) error {
	if r.stored != nil {
		if r.stored[p] {
			return fmt.Errorf("element %d of the output is stored twice", p)
		}
		r.stored[p] = true
	}
	r.data[p] = v
	return nil
}

func evalLoad(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	row, col := Window(op)
	rows, cols := extents(op.Result(0))
	w, err := windowAt(in[0].(*reference), asIndices(in[1:]), row, col, rows, cols)
	if err != nil {
		return nil, err
	}
	b, err := w.load(op.Result(0).Elem())
	return []ir.Datum{b}, err
}

func evalStore(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	row, col := Window(op)
	rows, cols := extents(op.Operand(0))
	w, err := windowAt(in[1].(*reference), asIndices(in[2:]), row, col, rows, cols)
	if err != nil {
		return nil, err
	}
	return nil, w.store(in[0].(*ir.Tensor))
}

// evalScratch fills scratch memory with NaN, so that reading what was not stored shows.
func evalScratch(_ *ir.Frame, op *ir.Op, _ []ir.Datum) ([]ir.Datum, error) {
	t := op.Result(0).Type().(*ir.MemRefType)
	r := newReference(t, make([]float64, ir.NumElements(t.Shape)))
	for i := range r.data {
		r.data[i] = math.NaN()
	}
	return []ir.Datum{r}, nil
}
