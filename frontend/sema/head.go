package sema

import (
	"slices"

	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
)

// head is what a function's declaration says, whatever it is called with.
type head struct {
	decl *syntax.Func
	// free are the names that the parameters' types bind: every name in them that is neither an argument of the
	// model nor a static parameter. bound are those that a call can bind, for they stand alone as a dimension.
	free, bound []syntax.Ident
	static      []syntax.Ident // parameters that are constants
	broken      bool           // has errors, and so no instances
}

// unbound are the sizes that no call can bind.
func (h *head) unbound() (names []syntax.Ident) {
	for _, f := range h.free {
		if !slices.ContainsFunc(h.bound, func(b syntax.Ident) bool { return b.Name == f.Name }) {
			names = append(names, f)
		}
	}
	return names
}

// callable is a function of the file with the module it belongs to.
type callable struct {
	decl *syntax.Func
	mod  *module
}

// name is what errors and the IR call a function.
func (c callable) name() string {
	if c.mod == nil || c.mod.name == "" {
		return c.decl.Name.Name
	}
	return c.mod.name + "." + c.decl.Name.Name
}

// allFuncs lists the functions of the file in source order.
func (c *checker) allFuncs() (all []callable) {
	for _, f := range c.helpers {
		all = append(all, callable{f, nil})
	}
	for _, m := range c.allModules() {
		for _, f := range m.funcs {
			all = append(all, callable{f, m})
		}
	}
	slices.SortFunc(all, func(a, b callable) int { return a.decl.Start.Offset - b.decl.Start.Offset })
	return all
}

// head analyses a function's declaration, once.
func (c *checker) head(f *syntax.Func) *head {
	if h := c.heads[f]; h != nil {
		return h
	}
	h := &head{decl: f}
	c.heads[f] = h
	static := map[string]bool{}
	for _, p := range f.Params {
		if t, ok := p.Type.(*syntax.TensorType); ok && isStatic(t) {
			static[p.Name.Name] = true
			h.static = append(h.static, p.Name)
		}
	}
	has := func(list []syntax.Ident, name string) bool {
		return slices.ContainsFunc(list, func(i syntax.Ident) bool { return i.Name == name })
	}
	for _, p := range f.Params {
		t, ok := p.Type.(*syntax.TensorType)
		if !ok {
			continue
		}
		for _, d := range t.Dims {
			names(d, func(n *syntax.Name) {
				if _, isArg := c.args[n.Name]; isArg || static[n.Name] {
					return
				}
				id := syntax.Ident{Span: n.Span, Name: n.Name}
				if !has(h.free, n.Name) {
					h.free = append(h.free, id)
				}
				if _, alone := d.(*syntax.Name); alone && !has(h.bound, n.Name) {
					h.bound = append(h.bound, id)
				}
			})
		}
	}
	return h
}

func isStatic(t *syntax.TensorType) bool {
	return t.Elem.Name == "int" || t.Elem.Name == "float"
}

// names calls f for every name in a size.
func names(e syntax.Expr, f func(*syntax.Name)) {
	switch e := e.(type) {
	case *syntax.Name:
		f(e)
	case *syntax.Unary:
		names(e.X, f)
	case *syntax.Binary:
		names(e.X, f)
		names(e.Y, f)
	case *syntax.Paren:
		names(e.X, f)
	case *syntax.Call:
		for _, a := range e.Args {
			names(a.Value, f)
		}
	}
}

// evalType computes a tensor or tuple type. Errors are reported; ok tells whether there were none.
func (c *checker) evalType(env *env, t syntax.Type) (shape.Type, bool) {
	if tuple, isTuple := t.(*syntax.TupleType); isTuple {
		out, ok := shape.Type{}, true
		for _, e := range tuple.Elems {
			elem, elemOK := c.evalType(env, e)
			out.Elems, ok = append(out.Elems, elem), ok && elemOK
		}
		return out, ok
	}
	tensor := t.(*syntax.TensorType)
	d, known := shape.ParseDType(tensor.Elem.Name)
	if !known {
		if env.inFunc {
			return shape.Type{}, false // resolve has reported it
		}
		c.unknownDType(tensor)
		return shape.Type{}, false
	}
	out, ok := shape.Tensor(d), true
	for _, e := range tensor.Dims {
		n, dimOK := c.size(env, e, "a size")
		if out.Dims = append(out.Dims, n); !dimOK {
			ok = false
		}
	}
	if ok {
		ok = c.addressable(tensor.Span, out)
	}
	if !ok {
		return shape.Type{}, false
	}
	return out, true
}

// unknownDType reports a type that tensors cannot have.
func (c *checker) unknownDType(t *syntax.TensorType) {
	if isStatic(t) {
		c.errorf(t.Elem.Span, "%s is for constants: it is the type of a function's parameter only", t.Elem.Name)
		return
	}
	c.errorf(t.Elem.Span, "there is no dtype %s%s", t.Elem.Name, near.Suggest(t.Elem.Name, dtypeNames()))
}

// addressable reports a tensor of more elements than can be counted.
func (c *checker) addressable(s syntax.Span, t shape.Type) bool {
	for _, e := range t.Elems {
		if !c.addressable(s, e) {
			return false
		}
	}
	if _, ok := t.Elements(); !ok {
		c.tellf(s, "%v has more bytes than 63 bits can count", t)
		return false
	}
	return true
}

func dtypeNames() (names []string) {
	for _, d := range shape.DTypes() {
		names = append(names, d.String())
	}
	return names
}

// size evaluates an integer of at least 1.
func (c *checker) size(env *env, e syntax.Expr, what string) (shape.Int, bool) {
	v := c.constant(env, e, what)
	switch {
	case v.Kind == shape.NoConst:
		return shape.Lit(1), false
	case v.Kind != shape.IntConst:
		c.errorf(e.Pos(), "%s must be an integer, this is %s", what, v.Kind)
		return shape.Lit(1), false
	case v.Int.N < 1:
		c.tellf(e.Pos(), "%s must be at least 1, this is %v", what, v.Int)
		return shape.Lit(1), false
	}
	return v.Int, true
}

// constant evaluates what must be known when the model is compiled. NoConst means that an error was reported.
func (c *checker) constant(env *env, e syntax.Expr, what string) shape.Const {
	v := c.expr(env, e, 0)
	switch v.kind {
	case vConst:
		return v.con
	case vError:
	default:
		if con, ok := v.constant(); ok {
			return con
		}
		c.errorf(e.Pos(), "%s must be known when the model is compiled, this is %s", what, v.describe())
	}
	return shape.Const{}
}
