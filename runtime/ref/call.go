package ref

import (
	"fmt"
	"maps"
	"math"

	"blutrain/artifact"
	"blutrain/dialects/blu"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/collective"
)

// function is a function of the program with what its arguments and results are for.
type function struct {
	manifest *artifact.Function
	body     *ir.Block
	args     []blu.Port
	results  []blu.Port
	dead     map[*ir.Op][]*ir.Value // the values that nothing needs after an operation
	specs    map[*ir.Op]collective.Spec
}

// bind finds a function of the manifest in the program and holds its interface to what the manifest says.
func (d *device) bind(f *artifact.Function) (*function, error) {
	op := ir.LookupSymbol(d.module, f.Name)
	if op == nil || op.Name() != "func.func" || op.Body() == nil {
		return nil, fmt.Errorf("it is not in the program")
	}
	fn := &function{manifest: f, body: op.Body()}
	typ := ir.FuncType(op)
	var err error
	for i, t := range typ.Inputs {
		p := blu.ArgPort(op, i)
		if err := d.checkPort(p, t, f); err != nil {
			return nil, fmt.Errorf("argument %d: %w", i, err)
		}
		fn.args = append(fn.args, p)
	}
	written := map[blu.Port]bool{}
	for i, t := range typ.Results {
		p := blu.ResultPort(op, i)
		if err := d.checkPort(p, t, f); err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
		if written[p] {
			return nil, fmt.Errorf("result %d: %q is given twice", i, p.Name)
		}
		written[p] = true
		fn.results = append(fn.results, p)
	}
	for _, o := range f.Outputs {
		if !written[blu.Port{Kind: blu.OutputAttr, Name: o.Name}] {
			return nil, fmt.Errorf("output %q is not among its results", o.Name)
		}
	}
	fn.dead = lastUses(fn.body)
	fn.specs, err = d.collectives(fn.body)
	return fn, err
}

// checkPort holds the type of an argument or result to the entry of the manifest that it stands for.
func (d *device) checkPort(p blu.Port, t ir.Type, f *artifact.Function) error {
	if p.Kind == "" {
		return fmt.Errorf("nothing says what it is for")
	}
	var v *artifact.Value
	find := func(values []artifact.Value) {
		for i := range values {
			if values[i].Name == p.Name {
				v = &values[i]
			}
		}
	}
	switch p.Kind {
	case blu.StateAttr:
		if s, ok := d.manifest.State(p.Name); ok {
			v = &s.Value
		}
	case blu.InputAttr:
		find(f.Inputs)
	case blu.ScalarAttr:
		find(f.Scalars)
	case blu.OutputAttr:
		find(f.Outputs)
	}
	if v == nil {
		return fmt.Errorf("the manifest has no %s %q", p.Kind, p.Name)
	}
	elem, err := elemType(d.ctx, v.DType)
	if err != nil {
		return err
	}
	if want := d.ctx.Tensor(v.Shape, elem); t != want {
		return fmt.Errorf("%q is a %s, the manifest says %s", p.Name, t, want)
	}
	return nil
}

// lastUses tells, for each operation of a block, which values are used for the last time by it or made in vain.
func lastUses(b *ir.Block) map[*ir.Op][]*ir.Value {
	last := map[*ir.Op][]*ir.Value{}
	seen := map[*ir.Value]bool{}
	if end := b.Terminator(); end != nil {
		for _, v := range end.Operands() {
			seen[v] = true
		}
	}
	for op := range b.OpsReversed() {
		note := func(vs []*ir.Value) {
			for _, v := range vs {
				if !seen[v] {
					seen[v] = true
					last[op] = append(last[op], v)
				}
			}
		}
		note(op.Results())
		ir.Walk(op, func(inner *ir.Op) ir.WalkResult { // what its regions use is used by it
			note(inner.Operands())
			return ir.Advance
		})
	}
	return last
}

// Call evaluates a function. Values are dropped after their last use. After an error no state has changed.
func (d *device) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	out, states, err := d.call(fn, in, s, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(d.states, states)
	arrays := make(map[string]runtime.Array, len(out))
	for _, v := range d.functions[fn].manifest.Outputs {
		t := out[v.Name]
		arrays[v.Name] = runtime.Array{DType: v.DType, Shape: t.Shape, Data: encode(nil, t)}
	}
	return arrays, nil
}

// CallChanged evaluates a function with changed arguments and results of operations. It gives the outputs, and the states as a
// call would leave them, but leaves them as they are.
func (d *device) CallChanged(fn string, in map[string]runtime.Array, s runtime.Scalars, change Change) (out, states map[string]*ir.Tensor, err error) {
	return d.call(fn, in, s, change)
}

func (d *device) call(fn string, in map[string]runtime.Array, s runtime.Scalars, change Change) (out, states map[string]*ir.Tensor, err error) {
	if _, err := d.options.CheckCall(d.manifest, fn, in, s); err != nil {
		return nil, nil, err
	}
	if err := d.refresher.Calls(d, fn); err != nil {
		return nil, nil, err
	}
	f := d.functions[fn]
	args := make([]ir.Datum, len(f.args))
	for i, p := range f.args {
		if args[i], err = d.argument(p, f.body.Arg(i), in, s); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", fn, err)
		}
	}
	var lost error // of a collective, whose ranks evaluation would forget
	results, err := evaluate(&ir.Interp{Ctx: d.ctx, Module: d.module, Exchange: d.exchange(f, &lost)}, f.body, args, f.dead, change)
	if err != nil {
		if lost != nil {
			err = lost
		}
		if len(f.specs) > 0 {
			err = d.options.Failed(fn, err)
		}
		return nil, nil, err
	}
	out, states = map[string]*ir.Tensor{}, map[string]*ir.Tensor{}
	for i, p := range f.results {
		if p.Kind == blu.StateAttr {
			states[p.Name] = results[i].(*ir.Tensor)
		} else {
			out[p.Name] = results[i].(*ir.Tensor)
		}
	}
	return out, states, nil
}

// argument is the value of one argument of a checked call.
func (d *device) argument(p blu.Port, v *ir.Value, in map[string]runtime.Array, s runtime.Scalars) (*ir.Tensor, error) {
	switch p.Kind {
	case blu.StateAttr:
		return d.states[p.Name], nil
	case blu.InputAttr:
		return decode(v.Elem(), in[p.Name]), nil
	}
	x := d.options.Scalar(d.manifest, s, p.Name)
	if ir.IsInteger(v.Type()) && x != math.Trunc(x) {
		return nil, fmt.Errorf("scalar %q is %v, which is no %s", p.Name, x, v.Elem())
	}
	t := ir.NewTensor(v.Elem())
	t.Data[0] = x
	return t, nil
}
