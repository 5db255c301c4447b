package sema

import (
	"maps"
	"slices"

	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
)

// resolver checks the names of one function, whatever sizes it is called with: it runs once for each declaration, and
// covers the branches that no instance takes.
type resolver struct {
	c      *checker
	f      callable
	env    *env // for the members that are visible
	scopes []map[string]*name
}

// name is a name in a function: what kind, where, and whether anything reads it.
type name struct {
	what string // "let", "parameter", "loop"
	at   syntax.Span
	used bool
}

func (c *checker) resolveAll() {
	for _, f := range c.allFuncs() {
		r := &resolver{c: c, f: f, env: c.newEnv(f.mod)}
		r.env.inFunc = true
		r.function()
	}
}

func (r *resolver) function() {
	f := r.f.decl
	h := r.c.head(f)
	before := len(r.c.diags)
	r.push()
	for _, d := range h.free {
		r.scopes[0][d.Name] = &name{what: "size", at: d.Span, used: true}
	}
	for _, d := range h.unbound() {
		r.c.errorf(d.Span, "%s cannot be found from this: a parameter must have %s alone as a dimension", d.Name, d.Name)
	}
	for _, p := range f.Params {
		if old := r.scopes[0][p.Name.Name]; old != nil {
			r.c.duplicate(p.Name, old.at)
			continue
		}
		r.scopes[0][p.Name.Name] = &name{what: "parameter", at: p.Name.Span, used: true}
		if _, isTuple := p.Type.(*syntax.TupleType); isTuple {
			r.c.errorf(p.Type.Pos(), "a parameter is a tensor, not a tuple")
			continue
		}
		r.typ(p.Type, false, false)
	}
	r.typ(f.Result, true, false)
	h.broken = len(r.c.diags) > before
	r.block(f.Body)
	r.pop()
	if !ends(f.Body) {
		end := syntax.Span{Start: f.Body.End, End: f.Body.End}
		end.Start.Col--
		end.Start.Offset--
		r.c.errorf(end, "%s ends without return", r.f.name())
	}
}

// typ resolves the names of a type's sizes. In parameters they bind; in the result they must be known.
func (r *resolver) typ(t syntax.Type, result, inTuple bool) {
	switch t := t.(type) {
	case *syntax.TupleType:
		for _, e := range t.Elems {
			r.typ(e, result, true)
		}
	case *syntax.TensorType:
		_, known := shape.ParseDType(t.Elem.Name)
		switch {
		case isStatic(t) && !result && !inTuple && len(t.Dims) > 0:
			r.c.errorf(t.Span, "%s is for constants and has no dimensions: a tensor is f32[...]", t.Elem.Name)
		case !known && !(isStatic(t) && !result && !inTuple):
			r.c.unknownDType(t)
		}
		for _, d := range t.Dims {
			names(d, func(n *syntax.Name) {
				if r.find(n.Name) != nil {
					return
				}
				if _, isArg := r.c.args[n.Name]; isArg {
					r.c.markUsed(r.c.root, n.Name)
				} else if result {
					r.c.errorf(n.Span, "%s is not known here: no parameter's type has it%s", n.Name, near.Suggest(n.Name, r.visible()))
				}
			})
		}
	}
}

func (r *resolver) push() { r.scopes = append(r.scopes, map[string]*name{}) }

// pop leaves a scope and warns of what nobody read in it.
func (r *resolver) pop() {
	last := r.scopes[len(r.scopes)-1]
	for _, n := range slices.Sorted(maps.Keys(last)) {
		if x := last[n]; x.what == "let" && !x.used && n[0] != '_' {
			r.c.warnf(x.at, "%s is never used", n)
		}
	}
	r.scopes = r.scopes[:len(r.scopes)-1]
}

func (r *resolver) find(n string) *name {
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if x := r.scopes[i][n]; x != nil {
			return x
		}
	}
	return nil
}

func (r *resolver) declare(id syntax.Ident, what string) {
	if id.Name == "_" {
		return
	}
	if old := r.find(id.Name); old != nil {
		d := r.c.errorf(id.Span, "%s is declared already in this function", id.Name)
		if old.what == "let" || old.what == "parameter" {
			d.Message += ": write " + id.Name + " = ... to give it another value"
		}
		d.Note(r.c.file.Range(old.at), "it is first declared here")
		return
	}
	r.scopes[len(r.scopes)-1][id.Name] = &name{what: what, at: id.Span, used: what != "let"}
}

// block resolves statements in a scope of their own.
func (r *resolver) block(b *syntax.Block) {
	r.push()
	defer r.pop()
	for i, s := range b.Stmts {
		if i > 0 && stops(b.Stmts[i-1]) {
			r.c.errorf(s.Pos(), "this is never reached: the statement before it returns")
			return
		}
		r.stmt(s)
	}
}

func (r *resolver) stmt(s syntax.Stmt) {
	switch s := s.(type) {
	case *syntax.Let:
		r.expr(s.Value)
		for _, n := range s.Names {
			r.declare(n, "let")
		}
	case *syntax.Assign:
		r.expr(s.Value)
		r.assign(s.Name)
	case *syntax.For:
		r.expr(s.Over)
		if s.High != nil {
			r.expr(s.High)
		}
		r.push()
		r.declare(s.Name, "loop")
		r.block(s.Body)
		r.pop()
		r.noReturn(s.Body)
	case *syntax.If:
		r.expr(s.Cond)
		r.block(s.Then)
		if s.Else != nil {
			r.stmt(s.Else)
		}
	case *syntax.Block:
		r.block(s)
	case *syntax.Return:
		r.expr(s.Value)
	}
}

func (r *resolver) assign(id syntax.Ident) {
	switch x := r.find(id.Name); {
	case x != nil && (x.what == "let" || x.what == "parameter"):
	case x != nil:
		r.c.errorf(id.Span, "%s is a %s and keeps its value", id.Name, map[string]string{"loop": "loop's variable", "size": "size"}[x.what])
	case r.isMember(id.Name):
		r.c.errorf(id.Span, "%s belongs to the model: a function cannot change it", id.Name)
	default:
		r.c.errorf(id.Span, "%s is not known here: let %s = ... declares it%s", id.Name, id.Name, near.Suggest(id.Name, r.visible()))
	}
}

func (r *resolver) isMember(n string) bool {
	for _, m := range r.env.modules(r.c) {
		if _, ok := m.members[n]; ok {
			return true
		}
	}
	_, isArg := r.c.args[n]
	return isArg && r.f.mod != nil
}

// noReturn reports returns within a loop.
func (r *resolver) noReturn(b *syntax.Block) {
	for _, s := range b.Stmts {
		switch s := s.(type) {
		case *syntax.Return:
			r.c.errorf(s.Span, "return cannot stand in a loop")
		case *syntax.If:
			for next := syntax.Stmt(s); next != nil; {
				switch n := next.(type) {
				case *syntax.If:
					r.noReturn(n.Then)
					next = n.Else
				case *syntax.Block:
					r.noReturn(n)
					next = nil
				}
			}
		}
	}
}

// ends tells whether a block always returns.
func ends(b *syntax.Block) bool {
	return len(b.Stmts) > 0 && stops(b.Stmts[len(b.Stmts)-1])
}

func stops(s syntax.Stmt) bool {
	switch s := s.(type) {
	case *syntax.Return:
		return true
	case *syntax.Block:
		return ends(s)
	case *syntax.If:
		return s.Else != nil && ends(s.Then) && stops(s.Else)
	}
	return false
}

func (r *resolver) expr(e syntax.Expr) {
	switch e := e.(type) {
	case *syntax.Name:
		r.name(e)
	case *syntax.Paren:
		r.expr(e.X)
	case *syntax.Unary:
		r.expr(e.X)
	case *syntax.Binary:
		r.expr(e.X)
		r.expr(e.Y)
	case *syntax.Tuple:
		r.exprs(e.Elems)
	case *syntax.List:
		r.exprs(e.Elems)
	case *syntax.Select:
		r.expr(e.X)
	case *syntax.Index:
		r.expr(e.X)
		for _, i := range e.Indices {
			for _, x := range []syntax.Expr{i.Low, i.High} {
				if x != nil {
					r.expr(x)
				}
			}
		}
	case *syntax.Call:
		r.call(e)
	}
}

func (r *resolver) exprs(es []syntax.Expr) {
	for _, e := range es {
		r.expr(e)
	}
}

func (r *resolver) name(n *syntax.Name) {
	if x := r.find(n.Name); x != nil {
		x.used = true
		return
	}
	for _, m := range r.env.modules(r.c) {
		if m.params[n.Name] != nil || m.layers[n.Name] != nil {
			r.c.markUsed(m, n.Name)
			return
		}
		if _, other := m.members[n.Name]; other {
			r.c.errorf(n.Span, "%s is a %s, not a value", n.Name, m.kindOf(n.Name))
			return
		}
	}
	if _, isArg := r.c.args[n.Name]; isArg {
		r.c.markUsed(r.c.root, n.Name)
		return
	}
	if _, isDType := shape.ParseDType(n.Name); isDType {
		return
	}
	if builtin.Lookup(n.Name) != nil || r.c.helpers[n.Name] != nil {
		r.c.errorf(n.Span, "%s is a function, not a value", n.Name)
		return
	}
	r.c.errorf(n.Span, "%s is not known here%s", n.Name, near.Suggest(n.Name, r.visible()))
}

// kindOf says what a member that is no value is.
func (m *module) kindOf(name string) string {
	if m.funcs[name] != nil {
		return "function"
	}
	return "module"
}

func (r *resolver) call(e *syntax.Call) {
	switch f := e.Fun.(type) {
	case *syntax.Select:
		r.expr(f.X)
	case *syntax.Name:
		if _, ok := r.c.function(r.env, f.Name); !ok && builtin.Lookup(f.Name) == nil {
			r.notAFunction(f)
		}
	}
	for _, a := range e.Args {
		r.expr(a.Value)
	}
}

func (r *resolver) notAFunction(f *syntax.Name) {
	_, isModule := r.c.modules[f.Name]
	switch {
	case isModule && r.f.mod != nil:
		r.c.errorf(f.Span, "%s is a module: declare layers of it, and call a function of one", f.Name)
	case r.find(f.Name) != nil || r.isMember(f.Name):
		r.c.errorf(f.Span, "%s is a value, not a function", f.Name)
	default:
		r.c.unknownFunc(r.env, f)
	}
}

// visible lists what a name may have meant.
func (r *resolver) visible() []string {
	all := r.c.visible(r.env)
	for _, s := range r.scopes {
		all = append(all, slices.Collect(maps.Keys(s))...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
