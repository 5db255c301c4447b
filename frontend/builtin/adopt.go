package builtin

import (
	"blutrain/frontend/shape"
)

// Adopt gives the constants among the adopting arguments the element type of the tensors among them. It reports
// tensors of different element types, and constants that the type cannot hold. When no argument is a tensor it
// changes nothing and returns false: the call must fold.
func (c *Call) Adopt() (dtype shape.DType, ok bool) {
	var first *Arg
	var firstName string
	for i, p := range c.Row.Params {
		a := &c.Args[i]
		if !p.Adopts || !a.Type.IsTensor() {
			continue
		}
		if first == nil {
			first, firstName = a, p.Name
			continue
		}
		if a.Type.DType != first.Type.DType {
			d := c.failAt(a.At, "%s is %s, %s is %s: mixing dtypes needs a cast",
				c.tell(firstName, first), first.Type.DType, c.tell(p.Name, a), a.Type.DType)
			c.notes(d, firstName)
			return shape.NoDType, false
		}
	}
	if first == nil {
		return shape.NoDType, false
	}
	dtype = first.Type.DType
	for i, p := range c.Row.Params {
		a := &c.Args[i]
		if !p.Adopts || !a.IsConst() {
			continue
		}
		if err := a.Const.Fits(dtype); err != nil {
			c.failAt(a.At, "%s", err)
			return shape.NoDType, false
		}
		a.Type = shape.Tensor(dtype)
	}
	return dtype, true
}

// tell names an argument: as the person wrote it where that is a name, else by its parameter.
func (c *Call) tell(param string, a *Arg) string {
	if a.Text != "" {
		return a.Text
	}
	return param
}

// joint is the shape of tensors combined element by element. Dimensions must be equal or 1; a scalar fits all; a
// value that lacks only the batch dimension is shared by the whole batch. Any other difference of rank is an error.
func (c *Call) joint(names ...string) ([]shape.Int, bool) {
	var dims []shape.Int
	wide := names[0]
	for i, n := range names {
		t := c.typ(n)
		if i == 0 {
			dims = t.Dims
			continue
		}
		joined, ok := c.join(wide, dims, n, t.Dims)
		if !ok {
			return nil, false
		}
		if len(t.Dims) > len(dims) {
			wide = n
		}
		dims = joined
	}
	return dims, true
}

func (c *Call) join(aName string, a []shape.Int, bName string, b []shape.Int) ([]shape.Int, bool) {
	switch {
	case len(a) == 0:
		return b, true
	case len(b) == 0:
		return a, true
	case len(a) == len(b)+1 && a[0].Batch:
		b = append([]shape.Int{a[0]}, b...)
	case len(b) == len(a)+1 && b[0].Batch:
		a = append([]shape.Int{b[0]}, a...)
	case len(a) != len(b):
		c.clash(bName, []string{aName}, "%s is %v, %s is %v: the ranks differ; add dimensions with unsqueeze or broadcast",
			c.tell(aName, c.arg(aName)), c.typ(aName), c.tell(bName, c.arg(bName)), c.typ(bName))
		return nil, false
	}
	out := make([]shape.Int, len(a))
	for i := range a {
		switch {
		case a[i].N == b[i].N:
			out[i] = preferNamed(a[i], b[i])
		case b[i].N == 1:
			out[i] = a[i]
		case a[i].N == 1:
			out[i] = b[i]
		default:
			c.clash(bName, []string{aName}, "%s has %v in dimension %d, %s has %v; %v and %v",
				c.tell(aName, c.arg(aName)), a[i], i, c.tell(bName, c.arg(bName)), b[i], c.typ(aName), c.typ(bName))
			return nil, false
		}
	}
	return out, true
}

// preferNamed takes of two equal sizes the one that a person can read more from.
func preferNamed(a, b shape.Int) shape.Int {
	if b.Batch || b.IsNamed() && !a.IsNamed() && !a.Batch {
		return b
	}
	return a
}
