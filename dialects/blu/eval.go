package blu

import (
	"errors"
	"fmt"

	"blutrain/ir"
)

// Reference evaluations are written as plain functions of tensors; these turn them into what a table entry holds.

// eval is for operations with one result.
func eval(fn func(op *ir.Op, in []*ir.Tensor) (*ir.Tensor, error)) ir.EvalFunc {
	return evalMany(func(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error) {
		out, err := fn(op, in)
		return []*ir.Tensor{out}, err
	})
}

// evalMany is for operations with any number of results.
func evalMany(fn func(op *ir.Op, in []*ir.Tensor) ([]*ir.Tensor, error)) ir.EvalFunc {
	return func(_ *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
		tensors := make([]*ir.Tensor, len(in))
		for i, d := range in {
			t, ok := d.(*ir.Tensor)
			if !ok {
				return nil, fmt.Errorf("operand %d is no tensor but a %T", i, d)
			}
			tensors[i] = t
		}
		results, err := fn(op, tensors)
		if err != nil {
			return nil, err
		}
		out := make([]ir.Datum, len(results))
		for i, t := range results {
			out[i] = t
		}
		return out, nil
	}
}

// resultTensor is a tensor of zeros of the type of the i-th result.
func resultTensor(op *ir.Op, i int) *ir.Tensor {
	v := op.Result(i)
	return ir.NewTensor(v.Elem(), v.Shape()...)
}

// like is a tensor of zeros with the shape of x and the element type of the i-th result: elementwise operations keep the
// shape they are given, so that constant folding can ask them about a single element.
func like(x *ir.Tensor, op *ir.Op, i int) *ir.Tensor {
	return ir.NewTensor(op.Result(i).Elem(), x.Shape...)
}

// TensorOf is the value of a constant.
func TensorOf(a *ir.DenseAttr) *ir.Tensor {
	shape, _ := ir.Shape(a.Type)
	elem := ir.Elem(a.Type)
	t := ir.NewTensor(elem, shape...)
	size := int(ir.ByteSize(elem))
	for i := range t.Data {
		at := 0
		if !a.Splat {
			at = i * size
		}
		t.Data[i] = ir.DecodeElement(elem, a.Raw[at:])
	}
	return t
}

// DenseOf is the constant of a tensor's value, rounded to its element type.
func DenseOf(c *ir.Context, t *ir.Tensor) *ir.DenseAttr {
	raw := make([]byte, 0, int64(len(t.Data))*ir.ByteSize(t.Elem))
	for _, v := range t.Data {
		raw = ir.EncodeElement(raw, t.Elem, v)
	}
	return c.Dense(c.Tensor(t.Shape, t.Elem), raw)
}

// round is v as an element of type t holds it.
func round(t ir.Type, v float64) float64 {
	var buf [8]byte
	return ir.DecodeElement(t, string(ir.EncodeElement(buf[:0], t, v)))
}

// splitAt sees a shape as [outer, n, inner] around an axis.
func splitAt(shape []int64, axis int64) (outer, n, inner int64) {
	return ir.NumElements(shape[:axis]), shape[axis], ir.NumElements(shape[axis+1:])
}

// located makes an error of op out of any error; nil stays nil.
func located(op *ir.Op, err error) error {
	if err == nil {
		return nil
	}
	var e *ir.Error
	if errors.As(err, &e) {
		return err
	}
	return op.Errorf("%s: %v", op.Name(), err)
}

// eachRun visits a strided view in row-major order of its shape, a run along the last axis at a time: n elements that are,
// in order, the elements at, at+1, ... of the shape, and the elements offset, offset+step, ... of what is viewed.
func eachRun(shape, strides []int64, offset int64, visit func(at, n int, offset, step int64)) {
	total := int(ir.NumElements(shape))
	if total == 0 {
		return
	}
	n, step := 1, int64(0)
	outer := max(len(shape)-1, 0)
	if len(shape) > 0 {
		n, step = int(shape[outer]), strides[outer]
	}
	index := make([]int64, outer)
	for at := 0; at < total; at += n {
		visit(at, n, offset, step)
		for i := outer - 1; i >= 0; i-- {
			index[i]++
			offset += strides[i]
			if index[i] < shape[i] {
				break
			}
			offset -= index[i] * strides[i]
			index[i] = 0
		}
	}
}

// gatherStrided copies a strided view of src into dst, which is row-major with that shape.
func gatherStrided(dst, src []float64, shape, strides []int64, offset int64) {
	eachRun(shape, strides, offset, func(at, n int, offset, step int64) {
		for i := range dst[at : at+n] {
			dst[at+i] = src[offset]
			offset += step
		}
	})
}

// scatterStrided copies src, row-major with that shape, into a strided view of dst.
func scatterStrided(dst, src []float64, shape, strides []int64, offset int64) {
	eachRun(shape, strides, offset, func(at, n int, offset, step int64) {
		for _, v := range src[at : at+n] {
			dst[offset] = v
			offset += step
		}
	})
}
