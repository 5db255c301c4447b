// Package scf is the part of MLIR's dialect of structured control flow that is used: counted loops and branches with
// results.
package scf

import (
	"fmt"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Dialect is the table.
var Dialect = &ir.Dialect{Name: "scf", Summary: "structured control flow: loops and branches with results", Ops: []*ir.OpDef{For, If, Yield}}

// For is a counted loop.
var For = ir.Define("scf", ir.OpDef{
	Name:    "for",
	Summary: "a counted loop with values carried from one iteration to the next",
	Description: "The body runs for i = lower, lower + step, ... while i < upper. Its arguments are i and the carried values, which start as `inits`; " +
		"scf.yield gives those of the next iteration, and after the last one the results. The step must be positive.",
	Operands: []ir.OperandDef{
		{Name: "lower", Type: kinds.IndexLike, Doc: "first value"},
		{Name: "upper", Type: kinds.IndexLike, Doc: "bound, not reached"},
		{Name: "step", Type: kinds.IndexLike, Doc: "positive"},
		{Name: "inits", Type: kinds.Any, Arity: ir.Variadic, Doc: "carried values before the first iteration"},
	},
	Results: []ir.ResultDef{{Name: "results", Type: kinds.Any, Arity: ir.Variadic, Doc: "carried values after the last iteration"}},
	Regions: []ir.RegionDef{{Name: "body", Doc: "arguments: i, carried values"}},
	Verify:  verifyFor,
	Eval:    evalFor,
})

func verifyFor(op *ir.Op) error {
	lower := op.Operand(0).Type()
	for i, name := range []string{"lower", "upper", "step"} {
		if t := op.Operand(i).Type(); t != lower {
			return op.Errorf("scf.for: %s has type %s, lower has %s", name, t, lower)
		}
	}
	inits, body := op.Operands()[3:], op.Body()
	if len(inits) != op.NumResults() || len(inits)+1 != len(body.Args()) {
		return op.Errorf("scf.for: %d carried values, %d results, %d arguments of the body besides the first", len(inits), op.NumResults(), len(body.Args())-1)
	}
	if t := body.Arg(0).Type(); t != lower {
		return op.Errorf("scf.for: the body's first argument has type %s, lower has %s", t, lower)
	}
	for i, v := range inits {
		if t := body.Arg(i + 1).Type(); t != v.Type() || op.Result(i).Type() != v.Type() {
			return op.Errorf("scf.for: carried value %d has type %s before the loop, %s in the body, %s after it", i, v.Type(), t, op.Result(i).Type())
		}
	}
	return verifyYield(op, body)
}

// verifyYield checks that a block ends by giving op's results.
func verifyYield(op *ir.Op, b *ir.Block) error {
	y := b.Last()
	if !y.Is(Yield) {
		return y.Errorf("%s: expected scf.yield at the end of its body", op.Name())
	}
	if y.NumOperands() != op.NumResults() {
		return y.Errorf("scf.yield: gives %d values, %s has %d results", y.NumOperands(), op.Name(), op.NumResults())
	}
	for i := range y.NumOperands() {
		if got, want := y.Operand(i).Type(), op.Result(i).Type(); got != want {
			return y.Errorf("scf.yield: value %d has type %s, result %d of %s has %s", i, got, i, op.Name(), want)
		}
	}
	return nil
}

func evalFor(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	var bounds [3]int64
	for i := range bounds {
		b, ok := in[i].(*ir.Tensor)
		if !ok {
			return nil, fmt.Errorf("operand %d is %T, not a number", i, in[i])
		}
		bounds[i] = int64(b.Data[0])
	}
	lower, upper, step := bounds[0], bounds[1], bounds[2]
	if step <= 0 {
		return nil, fmt.Errorf("step %d is not positive", step)
	}
	carried := in[3:]
	for i := lower; i < upper; i += step {
		args := append([]ir.Datum{&ir.Tensor{Elem: op.Operand(0).Type(), Data: []float64{float64(i)}}}, carried...)
		var err error
		if carried, err = f.Run(op.Body(), args); err != nil {
			return nil, err
		}
	}
	return carried, nil
}

// If is a branch.
var If = ir.Define("scf", ir.OpDef{
	Name:        "if",
	Summary:     "runs one of two regions",
	Description: "The first region runs when the condition is true, the second otherwise; scf.yield gives the results. The second may be empty where there are no results.",
	Operands:    []ir.OperandDef{{Name: "condition", Type: kinds.I1}},
	Results:     []ir.ResultDef{{Name: "results", Type: kinds.Any, Arity: ir.Variadic}},
	Regions:     []ir.RegionDef{{Name: "then"}, {Name: "else", Arity: ir.Variadic}},
	Verify:      verifyIf,
	Eval:        evalIf,
})

func verifyIf(op *ir.Op) error {
	for i, r := range op.Regions() {
		if len(r.Blocks()) > 1 {
			return op.Errorf("scf.if: region %d has %d blocks, expected one", i, len(r.Blocks()))
		}
		switch b := r.First(); {
		case b == nil && op.NumResults() > 0:
			return op.Errorf("scf.if: has results, so it needs an else region")
		case b == nil:
		case len(b.Args()) > 0:
			return op.Errorf("scf.if: region %d has arguments", i)
		default:
			if err := verifyYield(op, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func evalIf(f *ir.Frame, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	c, ok := in[0].(*ir.Tensor)
	if !ok {
		return nil, fmt.Errorf("the condition is %T, not a number", in[0])
	}
	r := op.Region(0)
	if c.Data[0] == 0 {
		r = op.Region(1)
	}
	if r.First() == nil {
		return nil, nil
	}
	return f.Run(r.First(), nil)
}

// Yield ends the body of a loop or branch.
var Yield = ir.Define("scf", ir.OpDef{
	Name:     "yield",
	Summary:  "ends a body and gives its values to the operation around it",
	Operands: []ir.OperandDef{{Name: "results", Type: kinds.Any, Arity: ir.Variadic}},
	Traits:   ir.Terminator,
})
