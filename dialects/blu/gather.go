package blu

import (
	"fmt"
	"strings"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Gather takes rows of a table.
var Gather = define(ir.OpDef{
	Name:    "gather",
	Summary: "rows of a table by index",
	Description: "y[i..., :] = table[indices[i...], :]: the shape of the result is that of `indices` followed by that of a row. An index below 0 or beyond " +
		"the last row is a run-time error that names its position and value.",
	Operands: []ir.OperandDef{{Name: "table", Type: kinds.AnyTensor}, {Name: "indices", Type: kinds.IntTensor}},
	Results:  []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}},
	Traits:   ir.Pure | ir.Differentiable,
	Infer:    inferGather,
	Eval:     eval(evalGather),
})

// ScatterAdd sums rows by index.
var ScatterAdd = define(ir.OpDef{
	Name:    "scatter_add",
	Summary: "sums of rows by index, the gradient of gather",
	Description: "A table of `rows` rows, zero but for the sum, in each row, of the updates whose index says so; they are added in the order of the indices. " +
		"An index out of range is a run-time error that names its position and value.",
	Operands: []ir.OperandDef{{Name: "updates", Type: kinds.FloatTensor}, {Name: "indices", Type: kinds.IntTensor}},
	Attrs:    []ir.AttrDef{{Name: "rows", Kind: ir.I64Kind, Doc: "rows of the result"}},
	Results:  []ir.ResultDef{{Name: "table", Type: kinds.FloatTensor}},
	Traits:   ir.Pure | ir.Differentiable,
	Infer:    inferScatterAdd,
	Eval:     eval(evalScatterAdd),
})

func inferGather(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	table, indices := in.Operands[0], in.Operands[1]
	if err := wantRank("table", table, 1, "rows first"); err != nil {
		return nil, err
	}
	return []ir.Type{c.Tensor(concatShapes(indices.Shape(), table.Shape()[1:]), table.Elem())}, nil
}

func evalGather(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	table, indices := in[0], in[1]
	out := resultTensor(op, 0)
	width := ir.NumElements(table.Shape[1:])
	for i, v := range indices.Data {
		if err := checkIndex(indices, i, table.Shape[0]); err != nil {
			return nil, err
		}
		copy(out.Data[int64(i)*width:(int64(i)+1)*width], table.Data[int64(v)*width:])
	}
	return out, nil
}

func inferScatterAdd(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	updates, indices := in.Operands[0], in.Operands[1]
	rows, _ := in.Attrs.Int("rows")
	if rows < 0 {
		return nil, fmt.Errorf("rows is %d, it can't be negative", rows)
	}
	u, i := updates.Shape(), indices.Shape()
	if len(u) < len(i) {
		return nil, fmt.Errorf("updates is %s, indices is %s: updates needs a row for each index", ir.ShapeString(u), ir.ShapeString(i))
	}
	if err := equalShapes("the leading part of updates", u[:len(i)], "indices", i); err != nil {
		return nil, err
	}
	return []ir.Type{c.Tensor(concatShapes([]int64{rows}, u[len(i):]), updates.Elem())}, nil
}

func evalScatterAdd(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error) {
	updates, indices := in[0], in[1]
	out := resultTensor(op, 0)
	width := ir.NumElements(out.Shape[1:])
	for i, v := range indices.Data {
		if err := checkIndex(indices, i, out.Shape[0]); err != nil {
			return nil, err
		}
		row := out.Data[int64(v)*width : (int64(v)+1)*width]
		for k, u := range updates.Data[int64(i)*width : (int64(i)+1)*width] {
			row[k] += u
		}
	}
	return out, nil
}

// checkIndex says that the i-th index is none of rows.
func checkIndex(indices *ir.Tensor, i int, rows int64) error {
	if v := indices.Data[i]; v < 0 || v >= float64(rows) {
		return fmt.Errorf("index %d at position %s is out of range: the table has %d rows", int64(v), position(indices.Shape, i), rows)
	}
	return nil
}

// position writes the place of the i-th element in row-major order: [2, 0].
func position(shape []int64, i int) string {
	parts := make([]string, len(shape))
	for k := len(shape) - 1; k >= 0; k-- {
		parts[k] = itoa(i % int(shape[k]))
		i /= int(shape[k])
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
