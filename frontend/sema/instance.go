package sema

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
)

// checkFunctions checks every function: the model's with the sizes of the batch, the others where they are called. A
// function whose sizes nobody gives is an error, for it would not be checked at all.
func (c *checker) checkFunctions(p *Program) {
	for _, f := range c.allFuncs() {
		if f.mod == c.root && f.mod.funcs[f.decl.Name.Name] == f.decl && c.callableFromOutside(f) {
			if fn := c.entry(f); fn != nil {
				fn.Exported = true
				p.Exports = append(p.Exports, fn)
			}
		}
	}
	for _, f := range c.allFuncs() {
		switch {
		case c.called[f.decl], c.head(f.decl).broken:
		case c.callableFromOutside(f):
			c.entry(f)
		default:
			c.neverCalled(f)
		}
	}
}

// callableFromOutside tells whether the batch gives all sizes of a function without static parameters.
func (c *checker) callableFromOutside(f callable) bool {
	h := c.head(f.decl)
	if len(h.static) > 0 || h.broken {
		return false
	}
	return !slices.ContainsFunc(h.free, func(d syntax.Ident) bool { _, ok := c.batch.sizes[d.Name]; return !ok })
}

func (c *checker) neverCalled(f callable) {
	h := c.head(f.decl)
	var missing []string
	for _, d := range h.free {
		if _, ok := c.batch.sizes[d.Name]; !ok {
			missing = append(missing, d.Name)
		}
	}
	if len(missing) == 0 {
		c.errorf(f.decl.Name.Span, "%s is never called, and so never checked: it has static parameters", f.name())
		return
	}
	what, it := "size of "+missing[0]+" is", "it"
	if len(missing) > 1 {
		what, it = "sizes of "+strings.Join(missing, " and ")+" are", "them"
	}
	c.errorf(f.decl.Name.Span, "%s is never called, and the %s not known: name %s in the batch of a train block, or pass --set %s=...",
		f.name(), what, it, missing[0])
}

// entry is a function with the sizes of the batch.
func (c *checker) entry(f callable) *Function {
	h := c.head(f.decl)
	dims := map[string]shape.Int{}
	for _, d := range h.free {
		dims[d.Name] = c.batch.sizes[d.Name]
	}
	if b := h.batchName(c); b != "" {
		d := dims[b]
		d.Batch = true
		dims[b] = d
	}
	env, types, ok := c.enterHead(f, dims, nil)
	if !ok {
		return nil
	}
	return c.instantiate(f, env, types, nil)
}

// batchName is the name that the first dimension of the first parameter binds: the batch dimension.
func (h *head) batchName(c *checker) string {
	if len(h.decl.Params) == 0 {
		return ""
	}
	t, ok := h.decl.Params[0].Type.(*syntax.TensorType)
	if !ok || len(t.Dims) == 0 {
		return ""
	}
	n, ok := t.Dims[0].(*syntax.Name)
	if !ok || !slices.ContainsFunc(h.bound, func(d syntax.Ident) bool { return d.Name == n.Name }) {
		return ""
	}
	return n.Name
}

// enterHead makes the environment of a function with its sizes bound, and the types of its tensor parameters.
func (c *checker) enterHead(f callable, dims map[string]shape.Int, static map[string]shape.Const) (*env, []shape.Type, bool) {
	env := c.newEnv(f.mod)
	env.inFunc = true
	env.dims = dims
	env.push()
	ok := true
	types := make([]shape.Type, len(f.decl.Params))
	for i, p := range f.decl.Params {
		if v, isStatic := static[p.Name.Name]; isStatic {
			env.scopes[0][p.Name.Name] = &local{value: constValue(v), at: p.Span, param: p}
			continue
		}
		t, typeOK := c.evalType(env, p.Type)
		types[i], ok = t, ok && typeOK
	}
	return env, types, ok
}

// instantiate checks a function's body with concrete types, once for each set of them.
func (c *checker) instantiate(f callable, env *env, types []shape.Type, static map[string]shape.Const) *Function {
	key := instanceKey(f, types, static)
	if fn := c.functions[key]; fn != nil {
		return fn
	}
	c.called[f.decl] = true
	fn := &Function{Name: f.name(), At: c.file.Range(f.decl.Span), state: checking}
	c.functions[key] = fn
	env.fn = fn
	for i, p := range f.decl.Params {
		if _, isStatic := static[p.Name.Name]; isStatic {
			continue
		}
		v := &Var{Name: p.Name.Name, At: c.file.Range(p.Span), Type: types[i]}
		fn.Params = append(fn.Params, v)
		env.scopes[0][v.Name] = &local{value: tensorValue(&Use{typed{v.Type, v.At}, v}), at: p.Span, param: p}
	}
	before := len(c.diags)
	t, ok := c.evalType(env, f.decl.Result)
	fn.Type = t
	if ok {
		env.push()
		c.stack = append(c.stack, f)
		c.block(env, f.decl.Body, t)
		c.stack = c.stack[:len(c.stack)-1]
	}
	fn.state = checked
	if !ok || len(c.diags) > before || fn.Result == nil {
		fn.state = broken
	}
	return fn
}

// instanceKey tells instances apart: by numbers, and by where the batch dimension is, which decides what broadcasts.
func instanceKey(f callable, types []shape.Type, static map[string]shape.Const) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%p", f.decl)
	for i, p := range f.decl.Params {
		if v, isStatic := static[p.Name.Name]; isStatic {
			if v.Kind == shape.IntConst {
				fmt.Fprintf(&b, "|%d", v.Int.N)
			} else {
				fmt.Fprintf(&b, "|%v", v.Float)
			}
			continue
		}
		fmt.Fprintf(&b, "|%s", types[i].DType)
		for _, d := range types[i].Dims {
			fmt.Fprintf(&b, ",%d,%t", d.N, d.Batch)
		}
	}
	return b.String()
}

// callFunc is a call of a function of the file.
func (c *checker) callFunc(env *env, e *syntax.Call, f callable, self Place) value {
	c.called[f.decl] = true
	params := make([]parameter, len(f.decl.Params))
	for i, p := range f.decl.Params {
		params[i] = parameter{name: p.Name.Name, required: true}
	}
	bound, ok := c.bindArgs(e, f.name(), params)
	args := make([]operand, len(params))
	for i := range params {
		if bound[i] == nil {
			continue
		}
		args[i] = operand{c.expr(env, bound[i][0].Value, 0), bound[i][0].Value.Pos()}
		ok = ok && !args[i].v.hasError()
	}
	if !ok {
		return value{}
	}
	own, bindings, static, ok := c.bindSizes(f, args)
	if !ok {
		return value{}
	}
	callee, types, ok := c.enterHead(f, own, static)
	if !ok {
		return value{}
	}
	call := &CallFunc{Self: self}
	for i, p := range f.decl.Params {
		if _, isStatic := static[p.Name.Name]; isStatic {
			continue
		}
		x, why := c.coerce(args[i].at, args[i].v, types[i])
		if x == nil {
			c.errorf(args[i].at, "%s: %s: %s", f.name(), p.Name.Name, why).
				Note(c.file.Range(p.Span), "%s is declared %s here", p.Name.Name, c.file.Text(p.Type.Pos()))
			ok = false
			continue
		}
		call.Args = append(call.Args, x)
	}
	if !ok {
		return value{}
	}
	fn := c.callInstance(f, callee, types, static, e, bindings)
	if fn == nil {
		return value{}
	}
	if env.fn != nil && fn.Random {
		env.fn.Random = true
	}
	call.Func = fn
	call.typed = typed{bindings.InType(fn.Type), c.file.Range(e.Span)}
	return tensorValue(call)
}

// callInstance instantiates a callee. Errors within it that depend on the call's sizes get a note that points here.
func (c *checker) callInstance(f callable, callee *env, types []shape.Type, static map[string]shape.Const, e *syntax.Call, b shape.Bindings) *Function {
	if fn := c.functions[instanceKey(f, types, static)]; fn != nil && fn.state != checking {
		return fn
	}
	if i := slices.IndexFunc(c.stack, func(s callable) bool { return s.decl == f.decl }); i >= 0 {
		chain := ""
		for _, s := range c.stack[i:] {
			chain += s.name() + " calls "
		}
		c.errorf(e.Fun.Pos(), "functions cannot be recursive: %s%s", chain, f.name())
		return nil
	}
	before := len(c.diags)
	fn := c.instantiate(f, callee, types, static)
	if told := c.ownSizes(f, b); told != "" {
		for _, d := range c.diags[before:] {
			d.Note(c.file.Range(e.Span), "%s is called here with %s", f.name(), told)
		}
	}
	return fn
}

// ownSizes tells the sizes that a call gives a function, where they are not those of the batch.
func (c *checker) ownSizes(f callable, b shape.Bindings) string {
	var told []string
	h := c.head(f.decl)
	for _, d := range append(slices.Clone(h.bound), h.static...) {
		n, ok := b[d.Name]
		if size, isBatch := c.batch.sizes[d.Name]; !ok || isBatch && size.N == n.N {
			continue
		}
		if text := n.String(); text != fmt.Sprint(n.N) {
			told = append(told, fmt.Sprintf("%s = %d (%s)", d.Name, n.N, text))
		} else {
			told = append(told, fmt.Sprintf("%s = %d", d.Name, n.N))
		}
	}
	return strings.Join(told, ", ")
}

// bindSizes finds what a call gives for the sizes of a function's head and for its static parameters. own has them
// in the function's names, bindings in the caller's.
func (c *checker) bindSizes(f callable, args []operand) (own map[string]shape.Int, bindings shape.Bindings, static map[string]shape.Const, ok bool) {
	own, bindings, static, ok = map[string]shape.Int{}, shape.Bindings{}, map[string]shape.Const{}, true
	h := c.head(f.decl)
	for i, p := range f.decl.Params {
		t, isTensor := p.Type.(*syntax.TensorType)
		if !isTensor {
			continue
		}
		if isStatic(t) {
			ok = c.bindStatic(f, p, t.Elem.Name, args[i], own, bindings, static) && ok
			continue
		}
		got := args[i].v.typ()
		for j, d := range t.Dims {
			n, alone := d.(*syntax.Name)
			if !alone || j >= len(got.Dims) || !slices.ContainsFunc(h.bound, func(b syntax.Ident) bool { return b.Name == n.Name }) {
				continue
			}
			if _, done := own[n.Name]; !done {
				size := shape.Named(n.Name, got.Dims[j].N)
				size.Batch = got.Dims[j].Batch
				own[n.Name], bindings[n.Name] = size, got.Dims[j]
			}
		}
	}
	for _, d := range h.free {
		if _, bound := own[d.Name]; !bound && ok {
			// An argument of too low a rank leaves a size unbound.
			c.rankError(f, args)
			return own, bindings, static, false
		}
	}
	return own, bindings, static, ok
}

// rankError reports the first argument that has not as many dimensions as its parameter.
func (c *checker) rankError(f callable, args []operand) {
	for i, p := range f.decl.Params {
		t, isTensor := p.Type.(*syntax.TensorType)
		if !isTensor || isStatic(t) {
			continue
		}
		if got := args[i].v; got.typ().Rank() != len(t.Dims) || !got.typ().IsTensor() {
			c.errorf(args[i].at, "%s: %s: this is %s, expected %s", f.name(), p.Name.Name, got.describe(), c.file.Text(t.Span)).
				Note(c.file.Range(p.Span), "%s is declared %s here", p.Name.Name, c.file.Text(p.Type.Pos()))
			return
		}
	}
}

func (c *checker) bindStatic(f callable, p *syntax.FuncParam, kind string, arg operand, own map[string]shape.Int, bindings shape.Bindings, static map[string]shape.Const) bool {
	v, isConst := arg.v.constant()
	switch {
	case isConst && kind == "int" && v.Kind == shape.IntConst:
		size := shape.Named(p.Name.Name, v.Int.N)
		own[p.Name.Name], bindings[p.Name.Name] = size, v.Int
		static[p.Name.Name] = shape.IntOf(size)
		return true
	case isConst && kind == "float" && v.IsNumber():
		static[p.Name.Name] = shape.FloatOf(v.Number())
		return true
	}
	c.errorf(arg.at, "%s: %s must be a constant %s, this is %s", f.name(), p.Name.Name, kind, arg.v.describe())
	return false
}
