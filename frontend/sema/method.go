package sema

import (
	"math"
	"slices"
	"strings"

	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
	"blutrain/internal/near"
)

// method is one row of a table of things that take only numbers: initializers, optimizers, schedules.
type method struct {
	kind   string
	params []methodParam
	doc    string
	// check says what is wrong with the numbers together: which, and why.
	check func(v map[string]float64) (param, why string)
}

// methodParam is a number of a method.
type methodParam struct {
	name     string
	required bool
	value    float64 // the default
	ok       func(v float64) bool
	want     string // what ok asks for
}

// What numbers may be.

func positive(v float64) bool    { return v > 0 }
func notNegative(v float64) bool { return v >= 0 }
func fraction(v float64) bool    { return v >= 0 && v < 1 }
func whole(v float64) bool       { return v >= 0 && v < 1<<53 && v == math.Trunc(v) }
func anyNumber(float64) bool     { return true }

// initializers are what a parameter may hold before the first step.
var initializers = []method{
	{kind: "zeros", doc: "0"},
	{kind: "ones", doc: "1"},
	{kind: "constant", doc: "one value", params: []methodParam{{name: "value", required: true, ok: anyNumber}}},
	{kind: "normal", doc: "normal numbers", params: []methodParam{
		{name: "mean", ok: anyNumber}, {name: "std", required: true, ok: notNegative, want: "not be negative"}}},
	{kind: "uniform", doc: "uniform numbers from low to high", params: []methodParam{
		{name: "low", required: true, ok: anyNumber}, {name: "high", required: true, ok: anyNumber}},
		check: func(v map[string]float64) (string, string) {
			if v["low"] > v["high"] {
				return "low", "low must not be above high"
			}
			return "", ""
		}},
}

// rates are the parameters that most schedules share.
var rates = []methodParam{
	{name: "max", required: true, ok: positive, want: "be positive"},
	{name: "min", ok: notNegative, want: "not be negative"},
	{name: "warmup", ok: whole, want: "be a whole number of steps"},
	{name: "steps", required: true, ok: func(v float64) bool { return whole(v) && v >= 1 }, want: "be a whole number of steps, at least 1"},
}

var schedules = []method{
	{kind: "constant", doc: "warmup, then max", params: []methodParam{rates[0], rates[2]}},
	{kind: "linear", doc: "warmup, then a straight line from max to min at step steps + 1", params: rates, check: checkRates},
	{kind: "cosine", doc: "warmup, then half a cosine from max to min at step steps + 1", params: rates, check: checkRates},
	{kind: "wsd", doc: "warmup, then max, and in the last decay steps 1 - sqrt from max to min", params: append(slices.Clone(rates),
		methodParam{name: "decay", required: true, ok: whole, want: "be a whole number of steps"}), check: checkRates},
}

func checkRates(v map[string]float64) (param, why string) {
	switch {
	case v["min"] > v["max"]:
		return "min", "min must not be above max"
	case v["warmup"]+v["decay"] > v["steps"]:
		return "warmup", "warmup and decay must not be longer than steps"
	}
	return "", ""
}

// optimizers have a learning rate, lr, and a weight decay beside these.
var optimizers = []method{
	{kind: "adamw", doc: "Adam with decoupled weight decay", params: []methodParam{
		{name: "beta1", value: 0.9, ok: fraction, want: "be at least 0 and less than 1"},
		{name: "beta2", value: 0.999, ok: fraction, want: "be at least 0 and less than 1"},
		{name: "eps", value: 1e-8, ok: notNegative, want: "not be negative"}}},
	{kind: "sgd", doc: "gradient descent with momentum", params: []methodParam{
		{name: "momentum", ok: fraction, want: "be at least 0 and less than 1"},
		{name: "nesterov", ok: anyNumber}}},
}

func findMethod(table []method, kind string) *method {
	i := slices.IndexFunc(table, func(m method) bool { return m.kind == kind })
	if i < 0 {
		return nil
	}
	return &table[i]
}

func kinds(table []method) []string {
	out := make([]string, len(table))
	for i, m := range table {
		out[i] = m.kind
	}
	return out
}

// methodCall evaluates KIND or KIND(NAME: NUMBER, ...). what says what the table is of, for errors.
func (c *checker) methodCall(env *env, e syntax.Expr, table []method, what string) (m Method, ok bool) {
	name, call := callee(e)
	if name == nil {
		c.errorf(e.Pos(), "expected %s: %s", what, strings.Join(kinds(table), ", "))
		return m, false
	}
	row := findMethod(table, name.Name)
	if row == nil {
		c.errorf(name.Span, "%s is not %s%s", name.Name, what, near.Suggest(name.Name, kinds(table)))
		return m, false
	}
	if call == nil {
		call = &syntax.Call{Span: name.Span, Fun: name}
	}
	return c.methodArgs(env, call, row)
}

// callee is the name that an expression calls, and the call when there are parentheses.
func callee(e syntax.Expr) (*syntax.Name, *syntax.Call) {
	switch e := syntax.Unparen(e).(type) {
	case *syntax.Name:
		return e, nil
	case *syntax.Call:
		if n, ok := e.Fun.(*syntax.Name); ok {
			return n, e
		}
	}
	return nil, nil
}

// methodArgs evaluates the arguments of a method. With more than one parameter they must be named: normal(0, 1) means
// one thing to some readers and another to others.
func (c *checker) methodArgs(env *env, call *syntax.Call, row *method) (m Method, ok bool) {
	m.Kind, ok = row.kind, true
	params := make([]parameter, len(row.params))
	for i, p := range row.params {
		params[i] = parameter{name: p.name, required: p.required}
	}
	bound, ok := c.bindArgs(call, row.kind, params)
	values, places := map[string]float64{}, map[string]syntax.Span{}
	for i, p := range row.params {
		v := p.value
		if bound[i] != nil {
			a := bound[i][0]
			if a.Name == nil && len(params) > 1 {
				c.errorf(a.Span, "%s: an argument needs its name, such as %s: %s", row.kind, p.name, c.file.Text(a.Span))
				ok = false
			}
			n, numOK := c.number(env, a.Value, row.kind+": "+p.name, p)
			v, ok = n, ok && numOK
			places[p.name] = a.Span
		}
		values[p.name] = v
		m.Values = append(m.Values, NamedNumber{p.name, v})
	}
	if !ok || row.check == nil {
		return m, ok
	}
	if param, why := row.check(values); param != "" {
		at, given := places[param]
		if !given {
			at = call.Span
		}
		c.errorf(at, "%s: %s", row.kind, why)
		return m, false
	}
	return m, true
}

// number evaluates a number that p allows.
func (c *checker) number(env *env, e syntax.Expr, what string, p methodParam) (float64, bool) {
	v := c.constant(env, e, what)
	switch {
	case v.Kind == shape.NoConst:
		return 0, false
	case v.Kind == shape.BoolConst && p.name == "nesterov":
		if v.Bool {
			return 1, true
		}
		return 0, true
	case !v.IsNumber() || p.name == "nesterov":
		want := "a number"
		if p.name == "nesterov" {
			want = "true or false"
		}
		c.errorf(e.Pos(), "%s must be %s, this is %s", what, want, v.Kind)
		return 0, false
	case !p.ok(v.Number()):
		c.errorf(e.Pos(), "%s must %s, this is %s", what, p.want, c.told(v))
		return 0, false
	}
	return v.Number(), true
}

// told is a number with what was written for it.
func (c *checker) told(v shape.Const) string {
	if v.Kind == shape.IntConst {
		return shape.Sprintf("%v", v.Int)
	}
	return v.String()
}

func (c *checker) initializer(env *env, e syntax.Expr) Init {
	m, _ := c.methodCall(env, e, initializers, "an initializer")
	return Init{Kind: m.Kind, Values: m.Values, Text: strings.Join(strings.Fields(c.file.Text(e.Pos())), " ")}
}
