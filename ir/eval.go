package ir

import "fmt"

// Datum is a value during reference evaluation: a *Tensor for tensors and scalars, or what a dialect defines for its own
// types.
type Datum any

// Tensor is the reference value of a tensor or, with no dimensions, of a scalar: row-major, every element a float64
// whatever its type (integers up to 2^53 and truth values 0 and 1 are exact). float32 values are not rounded: the
// reference says what the program means, the targets say how well they compute it. Casts to types narrower than float32
// do round.
type Tensor struct {
	Shape []int64
	Elem  Type
	Data  []float64
}

// NewTensor makes a tensor of zeros.
func NewTensor(elem Type, shape ...int64) *Tensor {
	return &Tensor{Shape: shape, Elem: elem, Data: make([]float64, NumElements(shape))}
}

// EvalFunc computes an operation's results from its operands' values. An error it returns is given the operation's
// location by the caller.
type EvalFunc func(f *Frame, op *Op, in []Datum) ([]Datum, error)

// Interp evaluates functions of a module with the reference semantics of its operations.
type Interp struct {
	Ctx    *Context
	Module *Op // symbols are looked up in it
	// Before is called before each operation, unless nil; an error it returns stops the evaluation.
	Before func(op *Op, in []Datum) error
	// After is called after each operation, unless nil.
	After func(op *Op, out []Datum) error
	// Exchange computes the results of operations that many programs do together, from what this one has; nil where it is
	// alone.
	Exchange func(op *Op, in []Datum) ([]Datum, error)
	symbols  map[string]*Op
}

// Frame is the values known while the operations of one function, and the regions within it, are evaluated.
type Frame struct {
	Interp *Interp
	values map[*Value]Datum
}

// NewFrame makes a frame without values.
func (in *Interp) NewFrame() *Frame { return &Frame{in, map[*Value]Datum{}} }

// Symbol finds an operation of the module by sym_name, or nil.
func (in *Interp) Symbol(name string) *Op {
	if in.symbols == nil {
		in.symbols = map[string]*Op{}
		for op := range in.Module.Body().Ops() {
			if s := SymName(op); s != "" {
				in.symbols[s] = op
			}
		}
	}
	return in.symbols[name]
}

// Call evaluates the body of the function-like symbol with that name: its single block, whose terminator's operands are
// the results.
func (in *Interp) Call(name string, args ...Datum) ([]Datum, error) {
	fn := in.Symbol(name)
	if fn == nil {
		return nil, fmt.Errorf("no function %q", name)
	}
	return in.NewFrame().Run(fn.Body(), args)
}

// Run evaluates a block with the given arguments and returns the operands of its terminator.
func (f *Frame) Run(b *Block, args []Datum) ([]Datum, error) {
	if len(args) != len(b.args) {
		return nil, fmt.Errorf("%d arguments for a block of %d", len(args), len(b.args))
	}
	for i, a := range b.args {
		f.values[a] = args[i]
	}
	for op := b.first; op != nil; op = op.next {
		in := make([]Datum, len(op.operands))
		for i := range op.operands {
			d, ok := f.values[op.operands[i].value]
			if !ok {
				return nil, op.Errorf("%s: operand %d has no value yet", op.Name(), i)
			}
			in[i] = d
		}
		if op.Has(Terminator) {
			return in, nil
		}
		if err := f.step(op, in); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// Set gives a value a datum: for operations that evaluate their regions in a way of their own.
func (f *Frame) Set(v *Value, d Datum) { f.values[v] = d }

// Get is a value's datum.
func (f *Frame) Get(v *Value) (Datum, bool) { d, ok := f.values[v]; return d, ok }

func (f *Frame) step(op *Op, in []Datum) error {
	if op.def.Eval == nil {
		return op.Errorf("%s has no reference evaluation", op.Name())
	}
	if f.Interp.Before != nil {
		if err := f.Interp.Before(op, in); err != nil {
			return err
		}
	}
	out, err := op.def.Eval(f, op, in)
	if err != nil {
		if e, located := err.(*Error); located {
			return e
		}
		return op.Errorf("%s: %v", op.Name(), err)
	}
	if len(out) != len(op.results) {
		return op.Errorf("%s: evaluation gave %d results, not %d", op.Name(), len(out), len(op.results))
	}
	for i := range op.results {
		f.values[&op.results[i]] = out[i]
	}
	if f.Interp.After != nil {
		return f.Interp.After(op, out)
	}
	return nil
}
