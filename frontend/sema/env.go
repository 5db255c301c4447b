package sema

import (
	"maps"
	"slices"

	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
)

// env is what names mean at a place: the locals of a function, its sizes, the members of its module and of the
// model, the arguments of the model.
type env struct {
	mod    *module              // the module of the function, the model itself, or nil
	inFunc bool                 // in a function's body, whose unknown names resolve has reported
	dims   map[string]shape.Int // sizes that the function's head binds
	consts map[string]shape.Const
	scopes []map[string]*local
	fn     *Function
	// done is set by return: what follows is not evaluated.
	done bool
}

// local is a name in a function's body.
type local struct {
	value value
	at    syntax.Span
	param *syntax.FuncParam // when it is a parameter
}

func (c *checker) newEnv(mod *module) *env {
	return &env{mod: mod, dims: map[string]shape.Int{}}
}

func (e *env) push() { e.scopes = append(e.scopes, map[string]*local{}) }
func (e *env) pop()  { e.scopes = e.scopes[:len(e.scopes)-1] }

func (e *env) local(name string) *local {
	for i := len(e.scopes) - 1; i >= 0; i-- {
		if l := e.scopes[i][name]; l != nil {
			return l
		}
	}
	return nil
}

// name evaluates a name.
func (c *checker) name(env *env, n *syntax.Name) value {
	if l := env.local(n.Name); l != nil {
		v := l.value
		v.text = n.Name
		v.decl = c.localDecl(n.Name, l)
		return v
	}
	if d, ok := env.dims[n.Name]; ok {
		return constValue(shape.IntOf(d))
	}
	if v, ok := env.consts[n.Name]; ok {
		return constValue(v)
	}
	for _, m := range env.modules(c) {
		if v, ok := c.memberValue(m, n, env); ok {
			return v
		}
	}
	if v, ok := c.args[n.Name]; ok {
		if v.Kind == shape.NoConst {
			return value{}
		}
		c.markUsed(c.root, n.Name)
		return constValue(v)
	}
	if d, ok := shape.ParseDType(n.Name); ok {
		return constValue(shape.DTypeOf(d))
	}
	if !env.inFunc {
		remedy := near.Suggest(n.Name, c.visible(env))
		if clause := c.batchClause(); clause != nil && slices.ContainsFunc(clause.Sizes, func(b *syntax.Binding) bool { return b.Name.Name == n.Name }) {
			remedy = ": it is a size of the batch, which only functions have; what parameters need is an argument of the model"
		}
		c.errorf(n.Span, "%s is not known here%s", n.Name, remedy)
	}
	return value{}
}

// modules lists the module and the model, whose members a function sees.
func (e *env) modules(c *checker) []*module {
	switch e.mod {
	case nil:
		return nil
	case c.root:
		return []*module{c.root}
	}
	return []*module{e.mod, c.root}
}

// memberValue is a parameter or a layers declaration as a value.
func (c *checker) memberValue(m *module, n *syntax.Name, env *env) (value, bool) {
	place := Place{Root: m == c.root}
	if p := m.params[n.Name]; p != nil {
		x := &Read{typed{p.typ, c.file.Range(n.Span)}, place.Join(n.Name)}
		v := tensorValue(x)
		v.text, v.decl = n.Name, c.paramDecl(p)
		return v, true
	}
	if l := m.layers[n.Name]; l != nil {
		if l.module == nil {
			return value{}, true
		}
		if l.count < 0 {
			return value{kind: vInstance, layers: l, place: place.Join(n.Name)}, true
		}
		return value{kind: vLayers, layers: l, place: place}, true
	}
	return value{}, false
}

func (c *checker) paramDecl(p *param) *builtin.Decl {
	return &builtin.Decl{At: c.file.Range(p.decl.Span), Name: p.decl.Name.Name, What: "is declared " + c.file.Text(p.decl.Type.Pos())}
}

func (c *checker) localDecl(name string, l *local) *builtin.Decl {
	if l.param != nil {
		return &builtin.Decl{At: c.file.Range(l.param.Span), Name: name, What: "is declared " + c.file.Text(l.param.Type.Pos())}
	}
	return nil
}

// visible lists the names that a value may have at a place, for near misses.
func (c *checker) visible(env *env) (names []string) {
	for _, s := range env.scopes {
		names = append(names, slices.Collect(maps.Keys(s))...)
	}
	names = append(names, slices.Collect(maps.Keys(env.dims))...)
	names = append(names, slices.Collect(maps.Keys(env.consts))...)
	for _, m := range env.modules(c) {
		names = append(names, m.values()...)
	}
	names = append(names, c.argNames...)
	slices.Sort(names)
	return slices.Compact(names)
}

// values lists the members that are values.
func (m *module) values() (names []string) {
	names = slices.Collect(maps.Keys(m.params))
	return append(names, slices.Collect(maps.Keys(m.layers))...)
}
