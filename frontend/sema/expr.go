package sema

import (
	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/ir/diag"
)

// expr evaluates an expression. parts is the number of names that will take the value apart, 0 when it stays whole.
func (c *checker) expr(env *env, e syntax.Expr, parts int) value {
	switch e := e.(type) {
	case *syntax.Name:
		return c.name(env, e)
	case *syntax.Number:
		if e.Float {
			return constValue(shape.FloatOf(e.Value))
		}
		return constValue(shape.IntOf(shape.Lit(e.Int)))
	case *syntax.Bool:
		return constValue(shape.BoolOf(e.Value))
	case *syntax.String:
		return constValue(shape.StringOf(e.Value))
	case *syntax.Paren:
		return c.expr(env, e.X, parts)
	case *syntax.Tuple:
		return c.tuple(env, e)
	case *syntax.List:
		return c.list(env, e)
	case *syntax.Unary:
		return c.unary(env, e)
	case *syntax.Binary:
		return c.binary(env, e)
	case *syntax.Index:
		return c.index(env, e)
	case *syntax.Call:
		return c.call(env, e, parts)
	case *syntax.Select:
		return c.selectMember(env, e)
	}
	return value{}
}

func (c *checker) tuple(env *env, e *syntax.Tuple) value {
	v := value{kind: vTuple}
	for _, x := range e.Elems {
		v.elems = append(v.elems, c.expr(env, x, 0))
	}
	if con, ok := v.constant(); ok {
		return constValue(con)
	}
	return v
}

func (c *checker) list(env *env, e *syntax.List) value {
	v, ok := shape.Const{Kind: shape.ListConst}, true
	for _, x := range e.Elems {
		con := c.constant(env, x, "an element of a list")
		ok = ok && con.Kind != shape.NoConst
		v.List = append(v.List, con)
	}
	if !ok {
		return value{}
	}
	return constValue(v)
}

func (c *checker) unary(env *env, e *syntax.Unary) value {
	x := c.expr(env, e.X, 0)
	if x.kind == vConst {
		switch {
		case e.Op == "!" && x.con.Kind == shape.BoolConst:
			return constValue(shape.BoolOf(!x.con.Bool))
		case e.Op == "-" && x.con.Kind == shape.FloatConst:
			return constValue(shape.FloatOf(-x.con.Float))
		case e.Op == "-" && x.con.Kind == shape.IntConst:
			return c.folded(e.Span, shape.IntOf, func() (shape.Int, error) { return shape.Neg(x.con.Int) })
		}
		c.errorf(e.Span, "%s of %s has no meaning", e.Op, x.con.Kind)
		return value{}
	}
	return c.apply(builtin.Prefixes[e.Op], e.Span, []operand{{x, e.X.Pos()}})
}

func (c *checker) folded(s syntax.Span, wrap func(shape.Int) shape.Const, f func() (shape.Int, error)) value {
	n, err := f()
	if err != nil {
		c.errorf(s, "%v", err)
		return value{}
	}
	return constValue(wrap(n))
}

func (c *checker) binary(env *env, e *syntax.Binary) value {
	x, y := c.expr(env, e.X, 0), c.expr(env, e.Y, 0)
	if x.hasError() || y.hasError() {
		return value{}
	}
	if x.kind == vConst && y.kind == vConst {
		v, err := shape.Arith(e.Op, x.con, y.con)
		if err != nil {
			c.errorf(e.OpPos, "%v", err)
			return value{}
		}
		return constValue(v)
	}
	if e.Op == "%" {
		c.errorf(e.OpPos, "%% is for integers that are known when the model is compiled")
		return value{}
	}
	return c.apply(builtin.Operators[e.Op], e.OpPos, []operand{{x, e.X.Pos()}, {y, e.Y.Pos()}})
}

// operand is a value with its place.
type operand struct {
	v  value
	at syntax.Span
}

// apply is a row with one operand for each of its parameters.
func (c *checker) apply(row *builtin.Row, at syntax.Span, operands []operand) value {
	call := c.newCall(row, at)
	ok := true
	args := make([][]Expr, len(operands))
	for i, o := range operands {
		a, x, argOK := c.tensorArg(call, row.Params[i], o)
		call.Args[i], ok = a, ok && argOK
		if x != nil {
			args[i] = []Expr{x}
		}
	}
	if !ok {
		return value{}
	}
	return c.finish(call, args)
}

func (c *checker) newCall(row *builtin.Row, at syntax.Span) *builtin.Call {
	return &builtin.Call{
		Row: row, At: c.file.Range(at), Args: make([]builtin.Arg, len(row.Params)),
		Report: func(r diag.Range, message string) *diag.Diagnostic { return c.diags.Errorf(r, "%s", message) },
	}
}

// finish gives adopting constants their type, computes the result and makes the expression.
func (c *checker) finish(call *builtin.Call, args [][]Expr) value {
	before := len(c.diags)
	adopting, tensors := 0, 0
	for i, p := range call.Row.Params {
		if p.Adopts {
			adopting++
			if call.Args[i].Type.IsTensor() {
				tensors++
			}
		}
	}
	if adopting > 0 {
		if tensors == 0 {
			return c.fold(call)
		}
		if _, ok := call.Adopt(); !ok {
			return value{}
		}
	}
	t := call.Row.Infer(call)
	if t.IsError() || len(c.diags) > before {
		return value{}
	}
	if !c.addressable(syntax.Span{Start: call.At.Start, End: call.At.End}, t) {
		return value{}
	}
	call.Result = t
	return tensorValue(&Builtin{typed{t, call.At}, call, args})
}

// fold computes a built-in of constants.
func (c *checker) fold(call *builtin.Call) value {
	if call.Row.Fold == nil {
		c.diags.Errorf(call.At, "%s: the dtype is not known, for all of it is constants: make a tensor with full", call.Row.Name)
		return value{}
	}
	ints := true
	nums := make([]float64, len(call.Args))
	for i, a := range call.Args {
		if !a.Const.IsNumber() {
			c.diags.Errorf(a.At, "%s: %s is %s, expected a number", call.Row.Name, call.Row.Params[i].Name, a.Const.Kind)
			return value{}
		}
		nums[i] = a.Const.Number()
		ints = ints && a.Const.Kind == shape.IntConst && call.Row.Params[i].Kind == builtin.Number
	}
	v := call.Row.Fold(nums)
	switch {
	case v != v || v-v != 0:
		c.diags.Errorf(call.At, "%s of these constants is not a finite number", call.Row.Name)
		return value{}
	case ints && v < 1<<53 && v > -1<<53:
		return constValue(shape.IntOf(shape.Lit(int64(v))))
	}
	return constValue(shape.FloatOf(v))
}

// tensorArg makes an argument of a parameter that takes tensors. ok is false when it was reported, now or before.
func (c *checker) tensorArg(call *builtin.Call, p builtin.Param, o operand) (a builtin.Arg, x Expr, ok bool) {
	a = builtin.Arg{Given: true, At: c.file.Range(o.at), Text: o.v.text, Decl: o.v.decl}
	prefix := call.Row.Name + ": " + p.Name
	switch {
	case o.v.hasError():
		return a, nil, false
	case o.v.kind == vConst && p.Adopts:
		a.Const = o.v.con
		return a, nil, true
	case o.v.kind == vConst:
		c.errorf(o.at, "%s must be a tensor, this is %s", prefix, o.v.con.Kind)
		return a, nil, false
	case o.v.kind != vTensor || o.v.x.Type().IsTuple():
		c.errorf(o.at, "%s must be a tensor, this is %s", prefix, o.v.describe())
		return a, nil, false
	case !p.Kind.Accepts(o.v.x.Type().DType):
		d := c.tellf(o.at, "%s must be %s, this is %v", prefix, p.Kind.WithArticle(), o.v.x.Type())
		if a.Decl != nil {
			d.Note(a.Decl.At, "%s %s here", a.Decl.Name, a.Decl.What)
		}
		return a, nil, false
	}
	a.Type = o.v.x.Type()
	return a, o.v.x, true
}

// index is x[...]: of layers, one layer; of a tensor, slices and positions, or the rows that a tensor names.
func (c *checker) index(env *env, e *syntax.Index) value {
	x := c.expr(env, e.X, 0)
	switch x.kind {
	case vError:
		c.indexItems(env, e)
		return value{}
	case vLayers:
		return c.layerAt(env, x, e)
	case vTensor:
	default:
		c.errorf(e.X.Pos(), "only a tensor or layers can be indexed, this is %s", x.describe())
		return value{}
	}
	call := c.newCall(builtin.Index, e.Span)
	arg, xe, ok := c.tensorArg(call, builtin.Index.Params[0], operand{x, e.X.Pos()})
	if !ok {
		return value{}
	}
	call.Args[0] = arg
	args := [][]Expr{{xe}, nil}
	if len(e.Indices) == 1 && !e.Indices[0].Slice {
		at := e.Indices[0]
		rows := c.expr(env, at.Low, 0)
		if rows.kind != vConst {
			var rowsExpr Expr
			if call.Args[1], rowsExpr, ok = c.tensorArg(call, builtin.Index.Params[1], operand{rows, at.Span}); !ok {
				return value{}
			}
			args[1] = []Expr{rowsExpr}
			return c.finish(call, args)
		}
	}
	if call.Index, ok = c.indexItems(env, e); !ok {
		return value{}
	}
	return c.finish(call, args)
}

func (c *checker) indexItems(env *env, e *syntax.Index) (items []builtin.IndexItem, ok bool) {
	ok = true
	bound := func(x syntax.Expr) *shape.Int {
		if x == nil {
			return nil
		}
		v := c.constant(env, x, "a position among others")
		if v.Kind != shape.NoConst && v.Kind != shape.IntConst {
			c.errorf(x.Pos(), "a position is an integer, this is %s", v.Kind)
		}
		if v.Kind != shape.IntConst {
			ok = false
			return nil
		}
		return &v.Int
	}
	for _, item := range e.Indices {
		items = append(items, builtin.IndexItem{At: c.file.Range(item.Span), Slice: item.Slice, Low: bound(item.Low), High: bound(item.High)})
	}
	return items, ok
}

func (c *checker) layerAt(env *env, x value, e *syntax.Index) value {
	if len(e.Indices) != 1 || e.Indices[0].Slice {
		c.errorf(e.Span, "layers take one position, such as %s[0]", x.layers.decl.Name.Name)
		return value{}
	}
	at := e.Indices[0]
	v := c.constant(env, at.Low, "the position of a layer")
	if v.Kind != shape.IntConst {
		if v.Kind != shape.NoConst {
			c.errorf(at.Span, "the position of a layer is an integer, this is %s", v.Kind)
		}
		return value{}
	}
	i := v.Int.N
	if i < 0 {
		i += x.layers.count
	}
	if i < 0 || i >= x.layers.count {
		c.tellf(at.Span, "%v is out of range: %s has %d layers", v.Int, x.layers.decl.Name.Name, x.layers.count)
		return value{}
	}
	return c.instance(x, i)
}

// instance is layer i of layers.
func (c *checker) instance(x value, i int64) value {
	return value{kind: vInstance, layers: x.layers, place: x.place.Join(x.layers.place(i))}
}

// selectMember is LAYER.NAME: a parameter of a layer, or layers within it.
func (c *checker) selectMember(env *env, e *syntax.Select) value {
	x := c.expr(env, e.X, 0)
	if x.kind != vInstance {
		if !x.hasError() {
			c.errorf(e.X.Pos(), "only a layer has members, this is %s", x.describe())
		}
		return value{}
	}
	m := x.layers.module
	name := e.Name.Name
	if p := m.params[name]; p != nil {
		c.markUsed(m, name)
		v := tensorValue(&Read{typed{p.typ, c.file.Range(e.Span)}, x.place.Join(name)})
		v.text, v.decl = c.file.Text(e.Span), c.paramDecl(p)
		return v
	}
	if l := m.layers[name]; l != nil {
		c.markUsed(m, name)
		switch {
		case l.module == nil:
			return value{}
		case l.count < 0:
			return value{kind: vInstance, layers: l, place: x.place.Join(name)}
		}
		return value{kind: vLayers, layers: l, place: x.place}
	}
	if m.funcs[name] != nil {
		c.errorf(e.Name.Span, "%s is a function: call it", name)
		return value{}
	}
	c.noMember(m, e.Name, m.values())
	return value{}
}
