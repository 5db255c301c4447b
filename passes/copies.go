package passes

import (
	"blutrain/dialects/blu"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// keepCopies has a program keep those parameters in bfloat16 beside float32 that products of precision bf16 multiply: a state
// bf16/NAME with the role of a copy, not in checkpoints, since it follows from the parameter. Products read that, through
// the views they read the parameter through; what else uses the parameter has it in float32. Whoever writes the parameter writes the
// copy, rounded as products would round it, so that no result changes: the number is rounded once a step and not in every call, by
// what has it at hand.
//
//	refresh(parameters) -> copies
//
// It comes last of what estimates and simplifies a program of tensors: widening is written, and never done.
func keepCopies(s *State, module *ir.Op) error {
	c := &copier{s: s, module: module, b: blu.On(ir.NewBuilder(s.Ctx, nil)), params: map[string]bool{}}
	for op := range module.Body().Ops() {
		if op.Is(blu.Param) && ir.Elem(op.Attr("type").(*ir.TypeAttr).Type) == ir.Type(s.Ctx.F32()) {
			c.params[ir.SymName(op)] = true
		}
	}
	copied := c.multiplied()
	if len(copied) == 0 {
		return nil
	}
	if f := ir.LookupSymbol(module, blu.Refresh); f != nil {
		return f.Errorf("a model's function can't be called %s: a program that keeps copies of parameters has one of that name", blu.Refresh)
	}
	for _, f := range c.functions() {
		s.Visit(f)
		c.read(f, copied)
		c.write(f, copied)
	}
	c.declare(copied)
	return nil
}

// copier is a run of the pass.
type copier struct {
	s      *State
	module *ir.Op
	b      *blu.Builder
	params map[string]bool // those of float32
}

// functions lists the functions that can be called.
func (c *copier) functions() (list []*ir.Op) {
	for op := range c.module.Body().Ops() {
		if op.Is(fn.Func) && op.Body() != nil && !ir.IsPrivate(op) {
			list = append(list, op)
		}
	}
	return list
}

// multiplied finds the parameters that products round.
func (c *copier) multiplied() map[string]bool {
	found := map[string]bool{}
	for _, f := range c.functions() {
		params := arguments(f, c.params)
		c.rounded(f, func(op *ir.Op, i int) {
			if name := params[viewed(op.Operand(i))]; name != "" {
				found[name] = true
			}
		})
	}
	return found
}

// arguments is those of a function that are parameters of a set, and their names.
func arguments(f *ir.Op, set map[string]bool) map[*ir.Value]string {
	names := map[*ir.Value]string{}
	for i, a := range f.Body().Args() {
		if p := blu.ArgPort(f, i); p.Kind == blu.StateAttr && set[p.Name] {
			names[a] = p.Name
		}
	}
	return names
}

// rounded visits the operands that products round to bfloat16.
func (c *copier) rounded(f *ir.Op, visit func(product *ir.Op, operand int)) {
	c.s.Walk(f, func(op *ir.Op) ir.WalkResult {
		for _, i := range blu.ProductOperands(op) {
			if rounds(op, i) {
				visit(op, i)
			}
		}
		return ir.Advance
	})
}

// viewed is what a value is a view of, or the value.
func viewed(v *ir.Value) *ir.Value {
	for v.Op() != nil && v.Op().Has(ir.View) {
		v = v.Op().Operand(0)
	}
	return v
}

// read has the products of a function read copies.
func (c *copier) read(f *ir.Op, copied map[string]bool) {
	r := &copyReader{copier: c, f: f, names: arguments(f, copied), wide: map[*ir.Value]*ir.Value{}}
	c.rounded(f, func(op *ir.Op, i int) {
		if v := op.Operand(i); r.names[viewed(v)] != "" {
			c.b.Before(op)
			op.SetOperand(i, r.view(v))
		}
	})
	rewrite.EraseDead(f) // views that nothing else looks through
}

// copyReader is work on a function whose products are to read copies.
type copyReader struct {
	*copier
	f     *ir.Op
	names map[*ir.Value]string    // of its arguments that are parameters with copies
	wide  map[*ir.Value]*ir.Value // of a parameter, or a view of one: of the copy, in float32
}

// view is a parameter, or a view of one, of the copy instead.
func (r *copyReader) view(v *ir.Value) *ir.Value {
	if w := r.wide[v]; w != nil {
		return w
	}
	if name := r.names[v]; name != "" {
		narrow := blu.AddArg(r.s.Ctx, r.f, copyPort(name), r.copyType(v), v.Loc())
		r.b.At(v.Loc())
		r.wide[v] = r.b.CastTo(narrow, r.s.Ctx.F32())
	} else {
		op := v.Op()
		r.wide[v] = r.b.Insert(op.Clone(r.s.Ctx, map[*ir.Value]*ir.Value{op.Operand(0): r.view(op.Operand(0))})).Result(0)
	}
	return r.wide[v]
}

// write has a function that writes parameters write their copies, right behind them: what computes a parameter has it at hand.
func (c *copier) write(f *ir.Op, copied map[string]bool) {
	end := f.Body().Terminator()
	for i := end.NumOperands() - 1; i >= 0; i-- {
		if p := blu.ResultPort(f, i); p.Kind == blu.StateAttr && copied[p.Name] {
			v := end.Operand(i)
			c.b.Before(end).At(v.Loc())
			blu.InsertResult(c.s.Ctx, f, i+1, copyPort(p.Name), c.b.CastTo(v, c.s.Ctx.Float(ir.BF16)))
		}
	}
}

// declare declares the copies, and the function that writes them.
func (c *copier) declare(copied map[string]bool) {
	x := c.s.Ctx
	f := x.NewOp(fn.Func, ir.OpState{Loc: c.module.Loc(), Regions: 1, Attrs: []ir.NamedAttr{{Name: "sym_name", Value: x.String(blu.Refresh)}}})
	end := ir.NewBuilder(x, f.Region(0).AddBlock()).At(c.module.Loc()).CreateState(fn.Return, ir.OpState{})
	first := c.functions()[0]
	for op := range c.module.Body().Ops() {
		name := ir.SymName(op)
		if !op.Is(blu.Param) || !copied[name] {
			continue
		}
		param := blu.AddArg(x, f, blu.Port{Kind: blu.StateAttr, Name: name}, op.Attr("type").(*ir.TypeAttr).Type, op.Loc())
		c.b.Before(end).At(op.Loc())
		blu.InsertResult(x, f, end.NumOperands(), copyPort(name), c.b.CastTo(param, x.Float(ir.BF16)))
		c.b.Before(first)
		c.b.State(copyName(name), c.copyType(param), blu.RoleCopy, false, x.Symbol(name), nil)
	}
	c.module.Body().Append(f)
}

func copyName(param string) string { return "bf16/" + param }

func copyPort(param string) blu.Port { return blu.Port{Kind: blu.StateAttr, Name: copyName(param)} }

func (c *copier) copyType(param *ir.Value) ir.Type {
	return c.s.Ctx.Tensor(param.Shape(), c.s.Ctx.Float(ir.BF16))
}
