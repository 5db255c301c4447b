package sema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
)

// call is a call of a layer's function, of a function of the file, or of a built-in.
func (c *checker) call(env *env, e *syntax.Call, parts int) value {
	if s, ok := e.Fun.(*syntax.Select); ok {
		return c.callMethod(env, e, s)
	}
	n, ok := e.Fun.(*syntax.Name)
	if !ok {
		return value{}
	}
	if f, ok := c.function(env, n.Name); ok {
		return c.callFunc(env, e, f, selfPlace(env, f))
	}
	if row := builtin.Lookup(n.Name); row != nil {
		return c.callBuiltin(env, e, row, parts)
	}
	if env.consts != nil && n.Name == "matches" {
		return c.matches(env, e)
	}
	if !env.inFunc {
		c.unknownFunc(env, n)
	}
	c.evalArgsQuietly(env, e)
	return value{}
}

// evalArgsQuietly finds the errors in the arguments of a call that is wrong itself.
func (c *checker) evalArgsQuietly(env *env, e *syntax.Call) {
	for _, a := range e.Args {
		c.expr(env, a.Value, 0)
	}
}

// function finds a function that can be called by its name alone.
func (c *checker) function(env *env, name string) (callable, bool) {
	for _, m := range env.modules(c) {
		if f := m.funcs[name]; f != nil {
			return callable{f, m}, true
		}
	}
	if f := c.helpers[name]; f != nil && (env.inFunc) {
		return callable{f, nil}, true
	}
	return callable{}, false
}

// selfPlace is the layer that a function called by its name alone works on: the caller's own.
func selfPlace(env *env, f callable) Place {
	if f.mod != nil && f.mod == env.mod && f.mod.name != "" {
		return Place{}
	}
	return Place{Root: true}
}

func (c *checker) unknownFunc(env *env, n *syntax.Name) {
	var known []string
	for r := range builtin.Rows() {
		known = append(known, r.Name)
	}
	for _, m := range env.modules(c) {
		known = append(known, slices.Collect(maps.Keys(m.funcs))...)
	}
	known = append(known, slices.Collect(maps.Keys(c.helpers))...)
	slices.Sort(known)
	c.errorf(n.Span, "there is no function %s%s", n.Name, near.Suggest(n.Name, known))
}

func (c *checker) callMethod(env *env, e *syntax.Call, s *syntax.Select) value {
	x := c.expr(env, s.X, 0)
	if x.kind != vInstance {
		switch {
		case x.hasError():
		case x.kind == vLayers:
			c.errorf(s.X.Pos(), "%s is all of the layers: loop over it, or call a function of one, %s[0].%s(...)",
				c.file.Text(s.X.Pos()), c.file.Text(s.X.Pos()), s.Name.Name)
		default:
			remedy := ""
			if builtin.Lookup(s.Name.Name) != nil {
				remedy = fmt.Sprintf(": write %s(%s, ...)", s.Name.Name, c.file.Text(s.X.Pos()))
			}
			c.errorf(s.X.Pos(), "only a layer has functions, this is %s%s", x.describe(), remedy)
		}
		c.evalArgsQuietly(env, e)
		return value{}
	}
	m := x.layers.module
	f := m.funcs[s.Name.Name]
	if f == nil {
		c.noMember(m, s.Name, slices.Collect(maps.Keys(m.funcs)))
		c.evalArgsQuietly(env, e)
		return value{}
	}
	return c.callFunc(env, e, callable{f, m}, x.place)
}

func (c *checker) noMember(m *module, name syntax.Ident, known []string) {
	slices.Sort(known)
	c.errorf(name.Span, "module %s has no %s%s", m.name, name.Name, near.Suggest(name.Name, known))
}

// bindArgs matches the arguments of a call with parameters: by position, then by name. It returns for each parameter
// the arguments that it got; only one that takes a list gets more than one. ok is false when an error was reported.
func (c *checker) bindArgs(e *syntax.Call, callee string, params []parameter) (bound [][]*syntax.Arg, ok bool) {
	bound, ok = make([][]*syntax.Arg, len(params)), true
	next, named := 0, false
	for _, a := range e.Args {
		if a.Where != nil {
			c.errorf(a.Where.Pos(), "where stands in the arguments of an optimizer only")
			ok = false
		}
		i := next
		switch {
		case a.Name != nil:
			named = true
			i = slices.IndexFunc(params, func(p parameter) bool { return p.name == a.Name.Name })
			if i < 0 {
				names := parameterNames(params)
				remedy := near.Suggest(a.Name.Name, names)
				if remedy == "" && len(names) > 0 {
					remedy = "; it has " + strings.Join(names, ", ")
				}
				c.errorf(a.Name.Span, "%s has no argument %s%s", callee, a.Name.Name, remedy)
				ok = false
				continue
			}
			if bound[i] != nil {
				c.errorf(a.Name.Span, "%s: %s is given twice", callee, a.Name.Name)
				ok = false
				continue
			}
		case named:
			c.errorf(a.Span, "%s: an argument without a name stands before those with one", callee)
			ok = false
			continue
		case next >= len(params):
			c.errorf(a.Span, "%s takes %s: %s", callee, count(len(params), "argument"), strings.Join(parameterNames(params), ", "))
			return bound, false
		case !params[next].list:
			next++
		}
		bound[i] = append(bound[i], a)
	}
	for i, p := range params {
		if bound[i] == nil && p.required {
			c.errorf(e.Fun.Pos(), "%s: %s is missing; it takes %s", callee, p.name, strings.Join(parameterNames(params), ", "))
			ok = false
		}
	}
	return bound, ok
}

// parameter is what binding needs to know of a parameter.
type parameter struct {
	name     string
	required bool
	list     bool // takes all that follows without a name
}

func parameterNames(params []parameter) []string {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.name
	}
	return names
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return shape.Sprintf("%d %ss", n, noun)
}

func (c *checker) callBuiltin(env *env, e *syntax.Call, row *builtin.Row, parts int) value {
	params := make([]parameter, len(row.Params))
	for i, p := range row.Params {
		params[i] = parameter{p.Name, p.Required(), p.Kind == builtin.Tensors}
	}
	bound, ok := c.bindArgs(e, row.Name, params)
	call := c.newCall(row, e.Fun.Pos())
	call.Parts = parts
	args := make([][]Expr, len(params))
	for i, p := range row.Params {
		if bound[i] == nil {
			call.Args[i].Const = p.Default
			continue
		}
		var argOK bool
		call.Args[i], args[i], argOK = c.builtinArg(env, call, p, bound[i])
		ok = ok && argOK
	}
	if !ok {
		return value{}
	}
	if row.Random && env.fn != nil {
		env.fn.Random = true
	}
	return c.finish(call, args)
}

// builtinArg evaluates what a call gives for one parameter.
func (c *checker) builtinArg(env *env, call *builtin.Call, p builtin.Param, given []*syntax.Arg) (arg builtin.Arg, xs []Expr, ok bool) {
	if p.Kind == builtin.Tensors {
		arg, ok = builtin.Arg{Given: true, At: c.file.Range(given[0].Span)}, true
		for _, g := range given {
			a, x, aOK := c.tensorArg(call, p, operand{c.expr(env, g.Value, 0), g.Value.Pos()})
			arg.List, xs, ok = append(arg.List, a), append(xs, x), ok && aOK
		}
		return arg, xs, ok
	}
	v, at := c.expr(env, given[0].Value, 0), given[0].Value.Pos()
	if p.Kind.IsTensor() {
		a, x, ok := c.tensorArg(call, p, operand{v, at})
		if x != nil {
			xs = []Expr{x}
		}
		return a, xs, ok
	}
	arg = builtin.Arg{Given: true, At: c.file.Range(at), Text: v.text}
	prefix := call.Row.Name + ": " + p.Name
	if v.hasError() {
		return arg, nil, false
	}
	con, isConst := v.constant()
	if !isConst {
		c.errorf(at, "%s must be known when the model is compiled, this is %s", prefix, v.describe())
		return arg, nil, false
	}
	if !fits(p, con) {
		want := p.Kind.WithArticle()
		if p.Choices != nil {
			want = `"` + strings.Join(p.Choices, `" or "`) + `"`
		}
		found := con.Kind.String()
		if con.Kind == shape.StringConst || con.Kind == shape.ListConst {
			found = con.String()
		}
		c.errorf(at, "%s must be %s, this is %s", prefix, want, found)
		return arg, nil, false
	}
	arg.Const = con
	return arg, nil, true
}

// fits tells whether a constant is of the kind that a parameter takes.
func fits(p builtin.Param, v shape.Const) bool {
	ints := func() bool {
		return v.Kind == shape.ListConst && !slices.ContainsFunc(v.List, func(e shape.Const) bool { return e.Kind != shape.IntConst })
	}
	switch p.Kind {
	case builtin.IntArg, builtin.AxisArg:
		return v.Kind == shape.IntConst
	case builtin.NumArg:
		return v.IsNumber()
	case builtin.BoolArg:
		return v.Kind == shape.BoolConst
	case builtin.StringArg:
		return v.Kind == shape.StringConst && (p.Choices == nil || slices.Contains(p.Choices, v.Str))
	case builtin.DTypeArg:
		return v.Kind == shape.DTypeConst
	case builtin.AxesArg:
		return v.Kind == shape.IntConst || ints() && len(v.List) > 0
	case builtin.DimsArg:
		return ints()
	}
	return false
}
