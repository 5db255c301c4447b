package dtms

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// exchange evaluates a collective or Start: with the other ranks, or as the only one.
func exchange(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	if f.Interp.Exchange != nil {
		return f.Interp.Exchange(op, in)
	}
	if ranks := CallOf(op).Ranks; ranks > 1 {
		return nil, fmt.Errorf("%d ranks of group %s take part, and this program is evaluated alone", ranks, op.Attrs().Str("group"))
	}
	out, err := Combine(CallOf(op), [][]ir.Datum{in})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// Combine is what every rank gets from a collective, when in is what every rank of the group gives, in their order.
func Combine(c Call, in [][]ir.Datum) ([][]ir.Datum, error) {
	if c.Ranks != 0 && c.Ranks != int64(len(in)) {
		return nil, fmt.Errorf("%s of %d ranks in group %s, which has %d", c.Op, c.Ranks, c.Group, len(in))
	}
	out := make([][]ir.Datum, len(in))
	for k := range in[0] {
		xs := make([]*ir.Tensor, len(in))
		for r := range in {
			x, ok := in[r][k].(*ir.Tensor)
			if !ok {
				return nil, fmt.Errorf("operand %d is no tensor but a %T", k, in[r][k])
			}
			if r > 0 && !slices.Equal(x.Shape, xs[0].Shape) {
				return nil, fmt.Errorf("operand %d has shape %v on rank %d of group %s, %v on rank 0", k, x.Shape, r, c.Group, xs[0].Shape)
			}
			xs[r] = x
		}
		for r, y := range combine(c, xs) {
			out[r] = append(out[r], y)
		}
	}
	return out, nil
}

// combine does it for one operand.
func combine(c Call, xs []*ir.Tensor) []*ir.Tensor {
	n, shape := len(xs), xs[0].Shape
	ys := make([]*ir.Tensor, n)
	switch c.Op {
	case NameAllReduce:
		for r := range ys {
			ys[r] = &ir.Tensor{Shape: shape, Elem: xs[0].Elem, Data: sum(xs)}
		}
	case NameReduceScatter:
		total := sum(xs)
		for r := range ys {
			ys[r] = &ir.Tensor{Shape: shape[1:], Elem: xs[0].Elem, Data: slices.Clone(block(total, r, n))}
		}
	case NameAllGather:
		for r := range ys {
			ys[r] = &ir.Tensor{Shape: append([]int64{int64(n)}, shape...), Elem: xs[0].Elem}
			for _, x := range xs {
				ys[r].Data = append(ys[r].Data, x.Data...)
			}
		}
	case NameAllToAll:
		for r := range ys {
			ys[r] = &ir.Tensor{Shape: shape, Elem: xs[0].Elem}
			for _, x := range xs {
				ys[r].Data = append(ys[r].Data, block(x.Data, r, n)...)
			}
		}
	default: // permute
		for r := range ys {
			from := xs[((r-int(c.Shift))%n+n)%n]
			ys[r] = &ir.Tensor{Shape: shape, Elem: from.Elem, Data: slices.Clone(from.Data)}
		}
	}
	return ys
}

// sum adds tensors up, in their order.
func sum(xs []*ir.Tensor) []float64 {
	total := slices.Clone(xs[0].Data)
	for _, x := range xs[1:] {
		for i, v := range x.Data {
			total[i] += v
		}
	}
	return total
}

// block is the r-th of n equal parts.
func block(data []float64, r, n int) []float64 {
	size := len(data) / n
	return data[r*size : (r+1)*size]
}
