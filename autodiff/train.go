package autodiff

import (
	"fmt"
	"slices"

	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// Names of the functions a training run calls; a model may not use them for its own.
const (
	Init       = "init"       // (seed): parameters and optimizer state
	Accumulate = "accumulate" // one micro-batch: adds to the gradient sums, the loss sum and the count
	Apply      = "apply"      // one optimizer step from the sums
	Eval       = "eval"       // one batch: loss sum and count
)

// Names of the storages that hold what a step sums up.
const (
	lossSum = "loss_sum"
	count   = "count"
)

// trainingScalar is the run-time scalar by which a model's function asks whether it trains. Here that is known: accumulate
// does, all others do not.
const trainingScalar = "training"

func gradName(param string) string { return "grads/" + param }

// Train turns a model, a module as the frontend makes it, into the programs of its functions: straight-line, parameters
// and optimizer state as arguments and results that name their storage. Every exported function of the model becomes
// one, and init; with a train block also accumulate, apply and eval. A function that draws random numbers has an argument
// seed; of one that asks whether it trains (by an argument with the role of the scalar "training") accumulate is the
// version that does, and the others are versions that don't.
//
//	init(seed) -> parameters, optimizer state
//	accumulate(parameters, gradients, loss_sum, count, inputs, first) -> gradients', loss_sum', count'
//	apply(parameters, optimizer state, gradients, loss_sum, count, lr, step) -> parameters', optimizer state', loss, grad_norm
//	eval(parameters, inputs) -> loss_sum, count
//
// The gradients are those of the loss's sum. Where first holds, sums start anew. apply divides by the count.
func Train(c *ir.Context, module *ir.Op) error {
	t := &trainer{c: c, module: module}
	if err := t.read(); err != nil {
		return err
	}
	fns, err := t.functions()
	if err != nil {
		return err
	}
	t.replaceFunctions(fns)
	module.SetAttr("blu.phase", c.String("train"))
	return nil
}

// trainer holds what a model says.
type trainer struct {
	c        *ir.Context
	module   *ir.Op
	params   []param
	exported []*ir.Op
	minimize *ir.Op // nil without a train block
	optimizer
	clip float64 // 0: none
}

// param is a parameter of the model.
type param struct {
	name  string
	typ   *ir.TensorType
	op    *ir.Op
	decay float64
}

// read collects the parameters, the functions and the train block.
func (t *trainer) read() error {
	for op := range t.module.Body().Ops() {
		if err := t.checkName(op); err != nil {
			return err
		}
		switch {
		case op.Is(blu.Param):
			p, err := readParam(op)
			if err != nil {
				return err
			}
			t.params = append(t.params, p)
		case op.Is(fn.Func) && !ir.IsPrivate(op):
			t.exported = append(t.exported, op)
		}
	}
	if d, ok := t.module.Attr("blu.train").(*ir.DictAttr); ok {
		return t.readTrain(ir.Attrs(d.Entries))
	}
	return nil
}

// checkName refuses a parameter, or a function that can be called, with a name of what the compiler makes of a model.
func (t *trainer) checkName(op *ir.Op) error {
	if ir.IsPrivate(op) {
		return nil
	}
	name := ir.SymName(op)
	what := map[bool]string{true: "parameter", false: "function"}[op.Is(blu.Param)]
	switch {
	case slices.Contains([]string{Init, Accumulate, blu.AccumulateLast, Apply, Eval, blu.Refresh}, name):
		return op.Errorf("a model's %s can't be called %s: the compiler makes a function of that name", what, name)
	case t.module.Attr("blu.train") != nil && (name == lossSum || name == count):
		return op.Errorf("a model's %s can't be called %s: training adds up in a state of that name", what, name)
	}
	return nil
}

func readParam(op *ir.Op) (param, error) {
	at := op.Attrs()
	typ, ok := at.Get("type").(*ir.TypeAttr)
	if !ok {
		return param{}, op.Errorf("parameter %s has no type", ir.SymName(op))
	}
	tensor, ok := typ.Type.(*ir.TensorType)
	if !ok {
		return param{}, op.Errorf("parameter %s is a %s, not a tensor", ir.SymName(op), typ.Type)
	}
	return param{ir.SymName(op), tensor, op, at.FloatOr("weight_decay", 0)}, nil
}

func (t *trainer) readTrain(at ir.Attrs) error {
	name := at.Sym("minimize")
	if t.minimize = ir.LookupSymbol(t.module, name); t.minimize == nil {
		return t.module.Errorf("train: there is no function %s to minimize", name)
	}
	if err := checkLoss(t.minimize); err != nil {
		return err
	}
	for _, p := range t.params {
		if !ir.IsFloat(p.typ) {
			return p.op.Errorf("parameter %s can't be trained: its elements are %s, and only floating-point values have a gradient", p.name, p.typ.Elem)
		}
	}
	opt, _ := at.Get("optimizer").(*ir.DictAttr)
	if opt == nil {
		return t.module.Errorf("train: no optimizer is given")
	}
	t.clip = at.FloatOr("clip_norm", 0)
	var err error
	t.optimizer, err = t.readOptimizer(opt.Entries)
	return err
}

// checkLoss holds what is minimized to a sum and a count.
func checkLoss(fn *ir.Op) error {
	end := fn.Body().Terminator()
	ok := end != nil && end.NumOperands() == 2
	for i := 0; ok && i < 2; i++ {
		t := end.Operand(i).Type()
		shape, shaped := ir.Shape(t)
		ok = shaped && len(shape) == 0 && ir.IsFloat(t)
	}
	if !ok {
		return fn.Errorf("%s can't be minimized: it must return two scalars, the sum of the losses and how many were summed", ir.SymName(fn))
	}
	return nil
}

// functions builds every function of the result.
func (t *trainer) functions() ([]*ir.Op, error) {
	var fns []*ir.Op
	builders := []func() (*ir.Op, error){t.buildInit}
	if t.minimize != nil {
		builders = append(builders, t.buildAccumulate, t.buildApply, t.buildEval)
	}
	for _, fn := range t.exported {
		builders = append(builders, func() (*ir.Op, error) { return t.buildExported(fn) })
	}
	for _, build := range builders {
		fn, err := build()
		if err != nil {
			return nil, err
		}
		fns = append(fns, fn)
	}
	return fns, nil
}

// replaceFunctions puts the new functions in the place of the model's, and declares their storage.
func (t *trainer) replaceFunctions(fns []*ir.Op) {
	body := t.module.Body()
	for op := range body.Ops() {
		if op.Is(fn.Func) {
			op.Erase()
		}
	}
	if t.minimize != nil {
		t.declareStates()
	}
	for _, fn := range fns {
		body.Append(fn)
	}
}

func (t *trainer) declareStates() {
	scalar := t.c.Tensor(nil, t.c.F32())
	for _, p := range t.params {
		t.declare(gradName(p.name), p.typ, blu.RoleGradient, p.op.Loc())
	}
	for _, p := range t.params {
		for _, s := range t.states(p) {
			t.declare(s, p.typ, blu.RoleOptimizer, p.op.Loc())
		}
	}
	t.declare(lossSum, scalar, blu.RoleAccumulator, t.module.Loc())
	t.declare(count, scalar, blu.RoleAccumulator, t.module.Loc())
}

// declare adds a storage to the module. The optimizer's is kept in checkpoints.
func (t *trainer) declare(name string, typ ir.Type, role string, loc *ir.Location) {
	b := blu.On(ir.NewBuilder(t.c, t.module.Body()).At(loc))
	b.State(name, typ, role, role == blu.RoleOptimizer, nil, nil)
}

// readParams makes every parameter an argument of f.
func (t *trainer) readParams(f *function) []*ir.Value {
	vs := make([]*ir.Value, len(t.params))
	for i, p := range t.params {
		vs[i] = f.state(p.name, p.typ, p.op.Loc())
		f.params[p.name] = vs[i]
	}
	return vs
}

// body copies a function of the model into f, which has the parameters as arguments already.
func (t *trainer) body(f *function, model *ir.Op, training float64) ([]*ir.Value, error) {
	in := inliner{module: t.module, params: f.params}
	return in.all(f.Builder.Builder, model, f.inputsBut(model, map[string]float64{trainingScalar: training}))
}

func (t *trainer) buildExported(model *ir.Op) (*ir.Op, error) {
	f := newFunction(t.c, ir.SymName(model), model.Loc())
	t.readParams(f)
	outs, err := t.body(f, model, 0)
	if err != nil {
		return nil, err
	}
	for i, v := range outs {
		f.result(v, roles(model, "res_attrs", i)...)
	}
	return f.finishInference()
}

func (t *trainer) buildEval() (*ir.Op, error) {
	f := newFunction(t.c, Eval, t.minimize.Loc())
	t.readParams(f)
	outs, err := t.body(f, t.minimize, 0)
	if err != nil {
		return nil, err
	}
	f.output(lossSum, outs[0])
	f.output(count, outs[1])
	return f.finishInference()
}

// finishInference finishes a function that does not train: what only training does, and the arguments only that uses, are
// folded away.
func (f *function) finishInference() (*ir.Op, error) {
	f.flush()
	if _, err := rewrite.Greedy(f.Ctx, f.op, nil, rewrite.Options{}); err != nil {
		return nil, err
	}
	f.dropUnused()
	return f.finish(), nil
}

func (t *trainer) buildAccumulate() (*ir.Op, error) {
	f := newFunction(t.c, Accumulate, t.minimize.Loc())
	params := t.readParams(f)
	var sums []*ir.Value
	for _, p := range t.params {
		sums = append(sums, f.state(gradName(p.name), p.typ, p.op.Loc()))
	}
	scalar := t.c.Tensor(nil, t.c.F32())
	sums = append(sums, f.state(lossSum, scalar, f.Loc), f.state(count, scalar, f.Loc))
	loss, err := t.body(f, t.minimize, 1)
	if err != nil {
		return nil, err
	}
	first := f.scalar("first", t.c.I1())

	one := f.Splat(loss[0].Type(), 1)
	f.write(lossSum, f.accumulate(sums[len(params)], loss[0], first))
	f.write(count, f.accumulate(sums[len(params)+1], loss[1], first))
	gradients, err := Backward(t.c, f.body, loss[:1], []*ir.Value{one}, params)
	if err != nil {
		return nil, t.blame(err)
	}
	for i, p := range t.params {
		f.write(gradName(p.name), f.accumulate(sums[i], gradients[i], first))
	}
	return f.finish(), nil
}

// accumulate adds x, in the type of the sum, unless first.
func (f *function) accumulate(sum, x, first *ir.Value) *ir.Value {
	if x.Type() != sum.Type() {
		x = f.Cast(x, sum.Type())
	}
	return f.Accumulate(sum, x, first)
}

// blame adds to an error of differentiation for which function it was done.
func (t *trainer) blame(err error) error {
	if e, ok := err.(*ir.Error); ok {
		e.Notes = append(e.Notes, ir.Note{Loc: t.minimize.Loc(), Msg: fmt.Sprintf("%s is minimized", ir.SymName(t.minimize))})
	}
	return err
}
