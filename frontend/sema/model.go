package sema

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
	"blutrain/ir/diag"
)

// Limits that bound the work of a check and the size of its program.
const (
	maxStatements = 200_000 // after unrolling
	maxLayers     = 10_000  // of one declaration
	maxInstances  = 100_000 // of layers, all together
)

// checker holds a file while it is checked.
type checker struct {
	file     *syntax.File
	opts     Options
	diags    diag.List
	warnings diag.List

	model    *syntax.Model
	train    *syntax.Train
	helpers  map[string]*syntax.Func // of the file, outside the model
	args     map[string]shape.Const
	argNames []string
	root     *module
	modules  map[string]*module
	batch    *batch
	heads    map[*syntax.Func]*head

	functions  map[string]*Function       // instances by instanceKey
	called     map[*syntax.Func]bool      // functions that have an instance
	stack      []callable                 // functions being checked, outermost first
	statements int                        // checked so far
	instances  int                        // of layers, counted so far
	used       map[string]map[string]bool // by module, the members that some function uses; "" is the model
}

// module is the model or one of its modules.
type module struct {
	name    string // "" for the model
	decl    syntax.Node
	members map[string]syntax.Span // every name, where it is declared
	order   []syntax.Member
	params  map[string]*param
	layers  map[string]*layers
	funcs   map[string]*syntax.Func
}

type param struct {
	decl *syntax.Param
	typ  shape.Type
	init Init
}

// layers is a declaration of layers; count is -1 for a single instance.
type layers struct {
	decl   *syntax.Layers
	module *module
	count  int64
}

func newChecker(file *syntax.File, opts Options) *checker {
	return &checker{
		file: file, opts: opts,
		helpers: map[string]*syntax.Func{}, args: map[string]shape.Const{}, modules: map[string]*module{},
		heads: map[*syntax.Func]*head{}, functions: map[string]*Function{}, called: map[*syntax.Func]bool{}, used: map[string]map[string]bool{},
	}
}

func (c *checker) errorf(s syntax.Span, format string, args ...any) *diag.Diagnostic {
	return c.diags.Errorf(c.file.Range(s), format, args...)
}

// warnf adds a warning, which is kept only when there are no errors: what is in error may be why.
func (c *checker) warnf(s syntax.Span, format string, args ...any) {
	c.warnings.Warnf(c.file.Range(s), format, args...)
}

// tellf is errorf for messages about sizes, told as shape.Sprintf does.
func (c *checker) tellf(s syntax.Span, format string, args ...any) *diag.Diagnostic {
	return c.diags.Errorf(c.file.Range(s), "%s", shape.Sprintf(format, args...))
}

func (c *checker) check() *Program {
	if !c.collect() {
		return nil
	}
	c.evalArgs()
	c.declare(c.root)
	for _, m := range c.sortedModules() {
		c.declare(m)
	}
	c.link()
	c.evalBatch()
	c.checkSet()
	c.resolveAll()
	p := &Program{Name: c.model.Name.Name, At: c.file.Range(c.model.Span)}
	c.checkFunctions(p)
	p.Args, p.Batch = c.namedArgs()
	p.Params = c.params(c.root, Place{Root: true}, nil)
	p.Train = c.checkTrain(p)
	c.warnUnused()
	return p
}

// collect finds the items of the file.
func (c *checker) collect() bool {
	for _, item := range c.file.Items {
		switch item := item.(type) {
		case *syntax.Model:
			if c.model != nil {
				c.errorf(item.Name.Span, "a file has one model, %s is a second", item.Name.Name).
					Note(c.file.Range(c.model.Name.Span), "the first is %s", c.model.Name.Name)
				continue
			}
			c.model = item
		case *syntax.Train:
			if c.train != nil {
				c.errorf(item.Span, "a file has one train block, this is a second").Note(c.file.Range(c.train.Span), "the first is here")
				continue
			}
			c.train = item
		case *syntax.Func:
			if c.reserved(item.Name) {
				continue
			}
			if first := c.helpers[item.Name.Name]; first != nil {
				c.duplicate(item.Name, first.Name.Span)
				continue
			}
			c.helpers[item.Name.Name] = item
		}
	}
	if c.model == nil {
		c.diags.Errorf(diag.Range{File: c.file.Name}, "the file has no model")
		return false
	}
	if c.train != nil && c.train.Name.Name != c.model.Name.Name {
		c.errorf(c.train.Name.Span, "there is no model %s, the file's model is %s", c.train.Name.Name, c.model.Name.Name)
	}
	c.root = &module{decl: c.model, order: c.model.Members}
	return true
}

func (c *checker) duplicate(name syntax.Ident, first syntax.Span) {
	c.errorf(name.Span, "%s is declared twice", name.Name).Note(c.file.Range(first), "it is first declared here")
}

// madeNames are the functions that the compiler makes of a model: those of training, accumulate_last for many ranks, and refresh where
// a program keeps copies of parameters.
var madeNames = []string{"init", "accumulate", "accumulate_last", "apply", "eval", "refresh"}

// reserved reports a function that has the name of a built-in, or of one that the compiler makes.
func (c *checker) reserved(name syntax.Ident) bool {
	if slices.Contains(madeNames, name.Name) {
		c.errorf(name.Span, "%s is a function that the compiler makes, this one needs another name", name.Name)
		return true
	}
	if builtin.Lookup(name.Name) == nil {
		return false
	}
	c.errorf(name.Span, "%s is a built-in, a function needs another name", name.Name)
	return true
}

// evalArgs computes the arguments of the model. A default may use the arguments before it.
func (c *checker) evalArgs() {
	first := map[string]syntax.Span{}
	for _, a := range c.model.Args {
		name := a.Name.Name
		if s, ok := first[name]; ok {
			c.duplicate(a.Name, s)
			continue
		}
		first[name] = a.Name.Span
		v := c.constant(c.newEnv(nil), a.Value, "the default of "+name)
		switch set, isSet := c.opts.Set[name]; {
		case isSet && v.Kind == shape.FloatConst:
			v = shape.FloatOf(set)
		case isSet && v.Kind == shape.IntConst:
			n, _ := c.setInt(name)
			v = shape.IntOf(shape.Lit(n))
		case isSet && v.Kind != shape.NoConst:
			c.errorf(a.Name.Span, "%s is %s and cannot be set to %v", name, v.Kind, set)
		}
		switch truth, isSet := c.opts.Truths[name]; {
		case isSet && v.Kind == shape.BoolConst:
			v = shape.BoolOf(truth)
		case isSet && v.Kind != shape.NoConst:
			c.errorf(a.Name.Span, "%s is %s and cannot be set to %v", name, v.Kind, truth)
		}
		switch v.Kind {
		case shape.IntConst:
			v.Int = shape.Named(name, v.Int.N)
		case shape.ListConst, shape.DTypeConst, shape.StringConst:
			c.errorf(a.Value.Pos(), "an argument of a model is a number or a truth value, this is %s", v.Kind)
			v = shape.Const{}
		}
		c.args[name] = v
		c.argNames = append(c.argNames, name)
	}
}

// setInt is the whole number that the command line sets a name to; ok is false when it sets none. A number with a
// fraction is reported, and stands for 1.
func (c *checker) setInt(name string) (n int64, ok bool) {
	v, ok := c.opts.Set[name]
	if !ok {
		return 0, false
	}
	if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
		c.diags.Errorf(diag.Range{File: c.file.Name}, "%s is a whole number and cannot be set to %v", name, v)
		return 1, true
	}
	return int64(v), true
}

// checkSet reports names on the command line that are neither arguments nor sizes of the batch.
func (c *checker) checkSet() {
	known := slices.Clone(c.argNames)
	known = append(known, c.batch.names...)
	known = append(known, "accumulate")
	if c.train == nil {
		known = slices.Clone(c.argNames)
		for _, f := range c.allFuncs() {
			for _, d := range c.head(f.decl).free {
				if !slices.Contains(known, d.Name) {
					known = append(known, d.Name)
				}
			}
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(c.opts.Set)), maps.Keys(c.opts.Truths))
	slices.Sort(names)
	for _, name := range names {
		truth, isTruth := c.opts.Truths[name]
		switch {
		case !slices.Contains(known, name):
			c.diags.Errorf(diag.Range{File: c.file.Name}, "%s cannot be set: model %s has no argument or size of that name%s",
				name, c.model.Name.Name, near.Suggest(name, known))
		case isTruth && !slices.Contains(c.argNames, name):
			c.diags.Errorf(diag.Range{File: c.file.Name}, "%s is a size and cannot be set to %v", name, truth)
		}
	}
}

// declare enters the members of a module, and finds its modules when it is the model.
func (c *checker) declare(m *module) {
	m.members = map[string]syntax.Span{}
	m.params, m.layers, m.funcs = map[string]*param{}, map[string]*layers{}, map[string]*syntax.Func{}
	for _, member := range m.order {
		switch d := member.(type) {
		case *syntax.Param:
			if c.enter(m, d.Name) {
				m.params[d.Name.Name] = &param{decl: d}
			}
		case *syntax.Layers:
			if c.enter(m, d.Name) {
				m.layers[d.Name.Name] = &layers{decl: d}
			}
		case *syntax.Func:
			if !c.reserved(d.Name) && c.enter(m, d.Name) {
				m.funcs[d.Name.Name] = d
			}
		case *syntax.Module:
			switch {
			case m != c.root:
				c.errorf(d.Name.Span, "a module stands in the model, not in another module")
			case c.enter(m, d.Name):
				c.modules[d.Name.Name] = &module{name: d.Name.Name, decl: d, order: d.Members}
			}
		}
	}
}

func (c *checker) enter(m *module, name syntax.Ident) bool {
	if first, ok := m.members[name.Name]; ok {
		c.duplicate(name, first)
		return false
	}
	if _, isArg := c.args[name.Name]; isArg && m == c.root {
		i := slices.IndexFunc(c.model.Args, func(a *syntax.Binding) bool { return a.Name.Name == name.Name })
		c.duplicate(name, c.model.Args[i].Name.Span)
		return false
	}
	m.members[name.Name] = name.Span
	return true
}

// sortedModules lists the modules in source order.
func (c *checker) sortedModules() []*module {
	return slices.SortedFunc(maps.Values(c.modules), func(a, b *module) int {
		return a.decl.Pos().Start.Offset - b.decl.Pos().Start.Offset
	})
}

func (c *checker) allModules() []*module { return append([]*module{c.root}, c.sortedModules()...) }

// link finds the module of each layers declaration and evaluates counts, parameter types and initializers.
func (c *checker) link() {
	for _, m := range c.allModules() {
		for _, member := range m.order {
			switch d := member.(type) {
			case *syntax.Layers:
				if l := m.layers[d.Name.Name]; l != nil && l.decl == d {
					c.linkLayers(l)
				}
			case *syntax.Param:
				if p := m.params[d.Name.Name]; p != nil && p.decl == d {
					c.linkParam(p)
				}
			}
		}
	}
	for _, m := range c.sortedModules() {
		c.refuseCycle(m, m, nil)
	}
}

func (c *checker) linkLayers(l *layers) {
	name := l.decl.Module
	if l.module = c.modules[name.Name]; l.module == nil {
		c.errorf(name.Span, "there is no module %s%s", name.Name, near.Suggest(name.Name, slices.Sorted(maps.Keys(c.modules))))
	} else {
		c.markUsed(c.root, name.Name)
	}
	if l.count = -1; l.decl.Count == nil {
		return
	}
	n, ok := c.size(c.newEnv(nil), l.decl.Count, "the number of layers")
	if ok && n.N > maxLayers {
		c.tellf(l.decl.Count.Pos(), "%v layers are more than %d, the most", n, maxLayers)
		ok = false
	}
	if l.count = n.N; !ok {
		l.count = 1
	}
}

// refuseCycle reports a module that has itself among its layers.
func (c *checker) refuseCycle(start, m *module, seen []*module) {
	for _, member := range m.order {
		d, isLayers := member.(*syntax.Layers)
		if !isLayers || m.layers[d.Name.Name] == nil {
			continue
		}
		l := m.layers[d.Name.Name]
		switch {
		case l.module == start:
			c.errorf(d.Module.Span, "module %s would contain itself", start.name)
			l.module = nil
		case l.module != nil && !slices.Contains(seen, l.module):
			c.refuseCycle(start, l.module, append(seen, l.module))
		}
	}
}

func (c *checker) linkParam(p *param) {
	env := c.newEnv(nil)
	t, ok := c.evalType(env, p.decl.Type)
	switch {
	case !ok:
		t = shape.Type{}
	case !t.IsTensor() || !t.DType.IsFloat():
		c.tellf(p.decl.Type.Pos(), "a parameter is a float tensor, this is %v", t)
		t = shape.Type{}
	}
	p.typ = t
	p.init = c.initializer(env, p.decl.Init)
}

// params lists the parameters below a place, in the order of declaration.
func (c *checker) params(m *module, at Place, out []*Param) []*Param {
	for _, member := range m.order {
		switch d := member.(type) {
		case *syntax.Param:
			if p := m.params[d.Name.Name]; p != nil && p.decl == d {
				out = append(out, &Param{Name: at.Join(d.Name.Name).Path, At: c.file.Range(d.Span), Type: p.typ, Init: p.init})
			}
		case *syntax.Layers:
			l := m.layers[d.Name.Name]
			if l == nil || l.decl != d || l.module == nil {
				continue
			}
			for i := range max(l.count, 1) {
				if c.instances++; c.instances > maxInstances {
					if c.instances == maxInstances+1 {
						c.errorf(d.Span, "the model has more than %d layers in all", maxInstances)
					}
					return out
				}
				out = c.params(l.module, at.Join(l.place(i)), out)
			}
		}
	}
	return out
}

// place is the path of instance i.
func (l *layers) place(i int64) string {
	if l.count < 0 {
		return l.decl.Name.Name
	}
	return fmt.Sprintf("%s.%d", l.decl.Name.Name, i)
}

func (c *checker) namedArgs() (args, sizes []NamedConst) {
	for _, n := range c.argNames {
		args = append(args, NamedConst{n, c.args[n]})
	}
	for _, n := range c.batch.names {
		sizes = append(sizes, NamedConst{n, shape.IntOf(c.batch.sizes[n])})
	}
	return args, sizes
}

func (c *checker) markUsed(m *module, name string) {
	if c.used[m.name] == nil {
		c.used[m.name] = map[string]bool{}
	}
	c.used[m.name][name] = true
}

// warnUnused warns of what is declared and never used.
func (c *checker) warnUnused() {
	warn := func(m *module, name syntax.Ident, what string) {
		if !c.used[m.name][name.Name] && name.Name[0] != '_' {
			c.warnf(name.Span, "%s %s is never used", what, name.Name)
		}
	}
	for _, a := range c.model.Args {
		warn(c.root, a.Name, "argument")
	}
	for _, m := range c.allModules() {
		for _, member := range m.order {
			switch d := member.(type) {
			case *syntax.Param:
				warn(m, d.Name, "parameter")
			case *syntax.Layers:
				warn(m, d.Name, "layers")
			case *syntax.Module:
				warn(m, d.Name, "module")
			}
		}
	}
}
