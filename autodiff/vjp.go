package autodiff

import (
	"blutrain/ir"
)

// VJP makes a function called name, detached, from a function fn of module: its arguments are fn's and then one cotangent
// for each floating-point result; its results are fn's and then the gradient of sum(<cotangent, result>) by each argument
// that wrt lists. Calls are inlined.
func VJP(c *ir.Context, module, fn *ir.Op, name string, wrt []int) (*ir.Op, error) {
	f := newFunction(c, name, fn.Loc())
	args := f.inputs(fn)
	in := inliner{module: module}
	results, err := in.all(f.Builder.Builder, fn, args)
	if err != nil {
		return nil, err
	}
	var outputs, seeds, wanted []*ir.Value
	for _, v := range results {
		f.result(v)
	}
	f.flush()
	for _, v := range results {
		if ir.IsFloat(v.Type()) {
			outputs = append(outputs, v)
			seeds = append(seeds, f.arg(v.Type(), v.Loc()))
		}
	}
	for _, i := range wrt {
		wanted = append(wanted, args[i])
	}
	gradients, err := Backward(c, f.body, outputs, seeds, wanted)
	if err != nil {
		return nil, err
	}
	for _, d := range gradients {
		f.result(d)
	}
	return f.finish(), nil
}
