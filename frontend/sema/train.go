package sema

import (
	"maps"
	"path"
	"slices"

	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
)

// checkTrain checks the train block and gives parameters their weight decay.
func (c *checker) checkTrain(p *Program) *Train {
	if c.train == nil {
		return nil
	}
	t := &Train{At: c.file.Range(c.train.Span), Batch: p.Batch, Accumulate: c.batch.accumulate}
	seen := map[string]syntax.Span{}
	once := func(word string, s syntax.Span) bool {
		if first, twice := seen[word]; twice {
			c.errorf(s, "%s is given twice", word).Note(c.file.Range(first), "it is first given here")
			return false
		}
		seen[word] = s
		return true
	}
	for _, clause := range c.train.Clauses {
		switch clause := clause.(type) {
		case *syntax.Minimize:
			if once("minimize", clause.Span) {
				t.Minimize = c.minimize(p, clause)
			}
		case *syntax.Batch:
			once("batch", clause.Span)
		case *syntax.Optimizer:
			if once("optimizer", clause.Span) {
				c.optimizer(p, t, clause.Call)
			}
		case *syntax.Clip:
			if once("clip", clause.Span) {
				t.ClipNorm = c.clip(clause)
			}
		}
	}
	for _, word := range []string{"minimize", "optimizer"} {
		if _, ok := seen[word]; !ok {
			c.errorf(c.train.Name.Span, "train %s: %s is missing", c.train.Name.Name, word)
		}
	}
	return t
}

// minimize finds the loss: a function of the model that returns a sum and a count.
func (c *checker) minimize(p *Program, clause *syntax.Minimize) *Function {
	name := clause.Func.Name
	decl := c.root.funcs[name]
	if decl == nil {
		c.errorf(clause.Func.Span, "model %s has no function %s%s", c.model.Name.Name, name,
			near.Suggest(name, slices.Sorted(maps.Keys(c.root.funcs))))
		return nil
	}
	i := slices.IndexFunc(p.Exports, func(f *Function) bool { return f.Name == name })
	if i < 0 {
		f := callable{decl, c.root}
		if len(c.head(decl).unbound()) == 0 && !c.callableFromOutside(f) && c.called[decl] {
			c.errorf(clause.Func.Span, "the batch does not give all sizes of %s", name).Note(c.file.Range(decl.Span), "%s is declared here", name)
		}
		return nil
	}
	fn := p.Exports[i]
	isScalar := func(t shape.Type) bool { return t.DType.IsFloat() && t.Rank() == 0 }
	t := fn.Type
	if !t.IsError() && (len(t.Elems) != 2 || !isScalar(t.Elems[0]) || !isScalar(t.Elems[1])) {
		c.errorf(clause.Func.Span, "a loss returns its sum and the number of terms, (f32, f32); %s returns %s", name, c.file.Text(decl.Result.Pos())).
			Note(c.file.Range(decl.Result.Pos()), "the result of %s is declared here", name)
	}
	return fn
}

func (c *checker) clip(clause *syntax.Clip) float64 {
	if clause.Norm.Name != "global_norm" {
		c.errorf(clause.Norm.Span, "expected global_norm, found %s", clause.Norm.Name)
	}
	v, _ := c.number(c.newEnv(nil), clause.Value, "the norm to clip at", methodParam{ok: positive, want: "be positive"})
	return v
}

// optimizer evaluates "adamw(lr: ..., betas: (a, b), eps: ..., weight_decay: x where ...)". What is common to all
// optimizers, and betas, is taken out before the numbers are read as those of any method.
func (c *checker) optimizer(p *Program, t *Train, call *syntax.Call) {
	name, _ := callee(call)
	env := c.newEnv(nil)
	rest := &syntax.Call{Span: call.Span, Fun: call.Fun}
	hasLR := false
	for _, a := range call.Args {
		if a.Name == nil {
			c.errorf(a.Span, "an argument of an optimizer needs its name, such as lr: %s", c.file.Text(a.Span))
			continue
		}
		if a.Where != nil && a.Name.Name != "weight_decay" {
			c.errorf(a.Where.Pos(), "where stands after weight_decay only")
		}
		switch a.Name.Name {
		case "lr":
			hasLR = true
			t.Schedule = c.schedule(env, a.Value)
		case "weight_decay":
			c.weightDecay(p, a)
		case "betas":
			if name != nil && c.optimizerParam(name.Name, a.Name) {
				rest.Args = append(rest.Args, c.betas(a)...)
			}
		default:
			if name != nil && !c.optimizerParam(name.Name, a.Name) {
				continue
			}
			b := *a
			b.Where = nil
			rest.Args = append(rest.Args, &b)
		}
	}
	if name == nil {
		c.errorf(call.Fun.Pos(), "expected an optimizer: adamw, sgd")
		return
	}
	m, ok := c.methodCall(env, rest, optimizers, "an optimizer")
	if ok && !hasLR {
		c.errorf(call.Fun.Pos(), "%s: lr is missing", name.Name)
	}
	t.Optimizer = m
}

// optimizerParam reports an argument that an optimizer does not have. What betas gives has names of its own within.
func (c *checker) optimizerParam(kind string, name *syntax.Ident) bool {
	row := findMethod(optimizers, kind)
	if row == nil {
		return false // reported with the optimizer
	}
	known := []string{"lr", "weight_decay"}
	for _, p := range row.params {
		known = append(known, p.name)
	}
	if kind == "adamw" {
		known = append(known[:2:2], "betas", "eps")
	}
	if slices.Contains(known, name.Name) {
		return true
	}
	c.errorf(name.Span, "%s has no argument %s%s", kind, name.Name, near.Suggest(name.Name, known))
	return false
}

// betas takes "betas: (a, b)" apart.
func (c *checker) betas(a *syntax.Arg) []*syntax.Arg {
	pair, ok := syntax.Unparen(a.Value).(*syntax.Tuple)
	if !ok || len(pair.Elems) != 2 {
		c.errorf(a.Value.Pos(), "adamw: betas must be two numbers, such as (0.9, 0.95)")
		return nil
	}
	var out []*syntax.Arg
	for i, n := range []string{"beta1", "beta2"} {
		s := pair.Elems[i].Pos()
		out = append(out, &syntax.Arg{Span: s, Name: &syntax.Ident{Span: s, Name: n}, Value: pair.Elems[i]})
	}
	return out
}

// schedule is a learning rate: a number, or a schedule.
func (c *checker) schedule(env *env, e syntax.Expr) Method {
	if name, call := callee(e); call != nil && (findMethod(schedules, name.Name) != nil || builtin.Lookup(name.Name) == nil) {
		m, _ := c.methodCall(env, e, schedules, "a schedule")
		return m
	}
	v, _ := c.number(env, e, "lr", rates[0])
	return Method{"constant", []NamedNumber{{"max", v}, {"warmup", 0}}}
}

// weightDecay gives the parameters for which the condition holds, or all, their decay.
func (c *checker) weightDecay(p *Program, a *syntax.Arg) {
	env := c.newEnv(nil)
	decay, ok := c.number(env, a.Value, "weight_decay", methodParam{ok: notNegative, want: "not be negative"})
	if !ok {
		return
	}
	for _, param := range p.Params {
		if a.Where != nil {
			env.consts = map[string]shape.Const{
				"rank": shape.IntOf(shape.Named("rank", int64(param.Type.Rank()))), "name": shape.StringOf(param.Name),
			}
			holds := c.constant(env, a.Where, "a condition on parameters")
			if holds.Kind == shape.NoConst {
				return
			}
			if holds.Kind != shape.BoolConst {
				c.errorf(a.Where.Pos(), "the condition of where must be true or false, this is %s", holds.Kind)
				return
			}
			if !holds.Bool {
				continue
			}
		}
		param.Decay = decay
	}
}

// matches is matches(name, "h.*.ln1_*") in the condition of a where: * stands for any characters, ? for one.
func (c *checker) matches(env *env, e *syntax.Call) value {
	bound, ok := c.bindArgs(e, "matches", []parameter{{name: "name", required: true}, {name: "pattern", required: true}})
	if !ok {
		return value{}
	}
	var text [2]string
	for i, b := range bound {
		v := c.constant(env, b[0].Value, "an argument of matches")
		if v.Kind != shape.StringConst {
			if v.Kind != shape.NoConst {
				c.errorf(b[0].Value.Pos(), "matches takes two strings, this is %s", v.Kind)
			}
			return value{}
		}
		text[i] = v.Str
	}
	match, err := path.Match(text[1], text[0])
	if err != nil {
		c.errorf(bound[1][0].Value.Pos(), "malformed pattern %q", text[1])
		return value{}
	}
	return constValue(shape.BoolOf(match))
}
