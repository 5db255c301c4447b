package sema

import (
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
)

// block runs statements, what is static in them with them: loops are unrolled, and of an if the branch that is taken
// is all there is. result is the type that return must give.
func (c *checker) block(env *env, b *syntax.Block, result shape.Type) {
	for _, s := range b.Stmts {
		if env.done || !c.spend(s) {
			return
		}
		switch s := s.(type) {
		case *syntax.Let:
			c.let(env, s)
		case *syntax.Assign:
			c.assign(env, s)
		case *syntax.For:
			c.loop(env, s, result)
		case *syntax.If:
			c.branch(env, s, result)
		case *syntax.Return:
			c.ret(env, s, result)
		}
	}
}

// spend counts statements, so that a check ends in bounded time.
func (c *checker) spend(s syntax.Node) bool {
	c.statements++
	if c.statements == maxStatements {
		c.errorf(s.Pos(), "the program has more than %d statements when its loops are unrolled", maxStatements)
	}
	return c.statements < maxStatements
}

func (c *checker) let(env *env, s *syntax.Let) {
	if !s.Tuple {
		c.define(env, s.Names[0], c.expr(env, s.Value, 0))
		return
	}
	v := c.expr(env, s.Value, len(s.Names))
	elems, ok := c.takeApart(env, s, v)
	if !ok {
		elems = make([]value, len(s.Names))
	}
	for i, n := range s.Names {
		c.define(env, n, elems[i])
	}
}

// takeApart is a tuple as its elements.
func (c *checker) takeApart(env *env, s *syntax.Let, v value) (elems []value, ok bool) {
	switch {
	case v.kind == vError:
		return nil, false
	case v.kind == vTuple:
		elems = v.elems
	case v.kind == vConst && v.con.Kind == shape.ListConst:
		for _, e := range v.con.List {
			elems = append(elems, constValue(e))
		}
	case v.kind == vTensor && v.x.Type().IsTuple():
		let := &Let{Value: v.x}
		for i, t := range v.x.Type().Elems {
			x := &Var{Type: t, At: v.x.At()}
			if i < len(s.Names) {
				x.Name, x.At = s.Names[i].Name, c.file.Range(s.Names[i].Span)
			}
			let.Vars = append(let.Vars, x)
			elems = append(elems, tensorValue(&Use{typed{t, x.At}, x}))
		}
		if len(elems) == len(s.Names) {
			env.fn.Body = append(env.fn.Body, let)
		}
	default:
		c.errorf(s.Value.Pos(), "this is %s, and cannot be taken apart into %d names", v.describe(), len(s.Names))
		return nil, false
	}
	if len(elems) != len(s.Names) {
		c.errorf(s.Names[0].Span, "%d names for a tuple of %d", len(s.Names), len(elems))
		return nil, false
	}
	return elems, true
}

// define gives a name a value. The value of a tensor is computed here, once.
func (c *checker) define(env *env, name syntax.Ident, v value) {
	if name.Name == "_" {
		c.keep(env, "_", name.Span, v)
		return
	}
	env.scopes[len(env.scopes)-1][name.Name] = &local{value: c.keep(env, name.Name, name.Span, v), at: name.Span}
}

// keep computes the tensors of a value into variables.
func (c *checker) keep(env *env, name string, at syntax.Span, v value) value {
	switch v.kind {
	case vTensor:
		if use, isUse := v.x.(*Use); isUse && use.Var.Name == name {
			return v
		}
		x := &Var{Name: name, At: c.file.Range(at), Type: v.x.Type()}
		env.fn.Body = append(env.fn.Body, &Let{[]*Var{x}, v.x})
		return tensorValue(&Use{typed{x.Type, x.At}, x})
	case vTuple:
		out := value{kind: vTuple}
		for _, e := range v.elems {
			out.elems = append(out.elems, c.keep(env, name, at, e))
		}
		return out
	}
	v.text, v.decl = "", nil
	return v
}

// assign gives a name another value of the same type. A number may become a tensor, as a sum does that begins at 0.
func (c *checker) assign(env *env, s *syntax.Assign) {
	v := c.expr(env, s.Value, 0)
	l := env.local(s.Name.Name)
	if l == nil || l.value.hasError() || v.hasError() {
		return // reported
	}
	old := l.value
	switch {
	case old.kind == vConst && v.kind == vConst && old.con.Kind == v.con.Kind:
	case old.kind == vConst && old.con.IsNumber() && (v.kind == vTensor && v.x.Type().IsTensor() || v.kind == vConst && v.con.IsNumber()):
	case old.kind == vTensor && (v.kind == vTensor || v.kind == vConst || v.kind == vTuple):
		x, why := c.coerce(s.Value.Pos(), v, old.x.Type())
		if x == nil {
			c.errorf(s.Value.Pos(), "%s keeps its type: %s", s.Name.Name, why).
				Note(c.file.Range(l.at), "%s is declared here; another let gives another name", s.Name.Name)
			return
		}
		v = tensorValue(x)
	case old.kind == vTuple && v.kind == vTuple && shape.Same(old.typ(), v.typ()):
	default:
		c.errorf(s.Value.Pos(), "%s keeps its type: it is %s, this is %s", s.Name.Name, old.describe(), v.describe()).
			Note(c.file.Range(l.at), "%s is declared here; another let gives another name", s.Name.Name)
		return
	}
	l.value = c.keep(env, s.Name.Name, s.Name.Span, v)
}

func (c *checker) loop(env *env, s *syntax.For, result shape.Type) {
	low := c.expr(env, s.Over, 0)
	if s.High == nil {
		if low.kind != vLayers {
			if !low.hasError() {
				c.errorf(s.Over.Pos(), "a loop goes over layers or over a range such as 0..N, this is %s", low.describe())
			}
			c.runOnce(env, s, value{}, result)
			return
		}
		c.iterate(env, s, 0, low.layers.count, result, func(i int64) value { return c.instance(low, i) })
		return
	}
	from, okFrom := c.bound(env, s.Over, low)
	to, okTo := c.bound(env, s.High, c.expr(env, s.High, 0))
	if !okFrom || !okTo {
		c.runOnce(env, s, value{}, result)
		return
	}
	c.iterate(env, s, from, to, result, func(i int64) value { return constValue(shape.IntOf(shape.Named(s.Name.Name, i))) })
}

func (c *checker) bound(env *env, e syntax.Expr, v value) (int64, bool) {
	con, isConst := v.constant()
	if v.hasError() {
		return 0, false
	}
	if !isConst || con.Kind != shape.IntConst {
		c.errorf(e.Pos(), "the end of a range is an integer that is known when the model is compiled, this is %s", v.describe())
		return 0, false
	}
	return con.Int.N, true
}

// iterate runs a loop's body for each i, until one iteration has errors.
func (c *checker) iterate(env *env, s *syntax.For, from, to int64, result shape.Type, at func(i int64) value) {
	for i := from; i < to && !env.done; i++ {
		before := len(c.diags)
		if !c.spend(s) {
			return
		}
		c.runOnce(env, s, at(i), result)
		if len(c.diags) > before {
			return
		}
	}
}

func (c *checker) runOnce(env *env, s *syntax.For, v value, result shape.Type) {
	env.push()
	env.scopes[len(env.scopes)-1][s.Name.Name] = &local{value: v, at: s.Name.Span}
	c.block(env, s.Body, result)
	env.pop()
}

func (c *checker) branch(env *env, s *syntax.If, result shape.Type) {
	cond := c.constant(env, s.Cond, "the condition of an if")
	if cond.Kind != shape.BoolConst {
		if cond.Kind != shape.NoConst {
			c.errorf(s.Cond.Pos(), "the condition of an if must be true or false, this is %s", cond.Kind)
		}
		return
	}
	env.push()
	defer env.pop()
	switch {
	case cond.Bool:
		c.block(env, s.Then, result)
	case s.Else != nil:
		if again, isIf := s.Else.(*syntax.If); isIf {
			c.branch(env, again, result)
		} else {
			c.block(env, s.Else.(*syntax.Block), result)
		}
	}
}

func (c *checker) ret(env *env, s *syntax.Return, result shape.Type) {
	env.done = true
	parts := 0
	if result.IsTuple() {
		parts = len(result.Elems)
	}
	v := c.expr(env, s.Value, parts)
	if result.IsError() || v.hasError() {
		return
	}
	x, why := c.coerce(s.Value.Pos(), v, result)
	if x == nil {
		c.errorf(s.Value.Pos(), "return: %s", why)
		return
	}
	env.fn.Result = x
}
