package sema

import (
	"blutrain/frontend/builtin"
	"blutrain/frontend/shape"
	"blutrain/frontend/syntax"
)

type valueKind uint8

const (
	vError    valueKind = iota // reported already: says nothing more
	vConst                     // known when the model is compiled
	vTensor                    // known when it runs; also a tuple that a call returns
	vTuple                     // (a, b), its elements of any kind
	vLayers                    // what a layers declaration names
	vInstance                  // one layer
)

// value is what an expression stands for while a function is checked.
type value struct {
	kind  valueKind
	con   shape.Const
	x     Expr // of a vTensor
	elems []value
	text  string        // the name that was written, when it was one
	decl  *builtin.Decl // where that name was declared

	layers *layers // of vLayers and vInstance
	place  Place   // of the layers' owner, or of the instance
}

func constValue(c shape.Const) value { return value{kind: vConst, con: c} }

func tensorValue(x Expr) value {
	if x.Type().IsError() {
		return value{}
	}
	return value{kind: vTensor, x: x}
}

// constant is a value as a constant: also a tuple of constants is one.
func (v value) constant() (shape.Const, bool) {
	switch v.kind {
	case vConst:
		return v.con, true
	case vTuple:
		list := shape.Const{Kind: shape.ListConst}
		for _, e := range v.elems {
			con, ok := e.constant()
			if !ok {
				return shape.Const{}, false
			}
			list.List = append(list.List, con)
		}
		return list, true
	}
	return shape.Const{}, false
}

// hasError tells whether a value or one of its elements was reported.
func (v value) hasError() bool {
	for _, e := range v.elems {
		if e.hasError() {
			return true
		}
	}
	return v.kind == vError
}

// describe says what a value is, for errors.
func (v value) describe() string {
	switch v.kind {
	case vConst:
		return v.con.Kind.String()
	case vTensor:
		if v.x.Type().IsTuple() {
			return "a tuple of " + v.x.Type().String()
		}
		return "a tensor " + v.x.Type().String()
	case vTuple:
		return "a tuple"
	case vLayers:
		return "the layers " + v.layers.decl.Name.Name
	case vInstance:
		return "a layer of " + v.layers.decl.Name.Name
	}
	return "a value in error"
}

// typ is the type of a tensor or a tuple as far as it is known; constants have none.
func (v value) typ() shape.Type {
	switch v.kind {
	case vTensor:
		return v.x.Type()
	case vTuple:
		t := shape.Type{Elems: []shape.Type{}}
		for _, e := range v.elems {
			t.Elems = append(t.Elems, e.typ())
		}
		return t
	}
	return shape.Type{}
}

// coerce makes a value an expression of a type that is asked for: a constant takes it, a tensor must have it. When
// that cannot be, it returns nil; why is the mismatch, "" when an error was reported before.
func (c *checker) coerce(s syntax.Span, v value, want shape.Type) (x Expr, why string) {
	at := typed{want, c.file.Range(s)}
	switch v.kind {
	case vError:
		return nil, ""
	case vConst:
		if !want.IsTensor() {
			return nil, shape.Sprintf("%s is %s, expected %v", v.con, v.con.Kind, want)
		}
		if want.Rank() > 0 {
			return nil, shape.Sprintf("%s is a constant, expected %v: full(%v, %s) makes one", v.con, want, want.Dims, v.con)
		}
		if err := v.con.Fits(want.DType); err != nil {
			return nil, err.Error()
		}
		return &Const{at, v.con}, ""
	case vTuple:
		if len(v.elems) != len(want.Elems) {
			return nil, shape.Sprintf("this is a tuple of %d, expected %v", len(v.elems), want)
		}
		tuple := &TupleExpr{typed: at}
		for i, e := range v.elems {
			x, why := c.coerce(s, e, want.Elems[i])
			if x == nil {
				return nil, why
			}
			tuple.Elems = append(tuple.Elems, x)
		}
		return tuple, ""
	case vTensor:
		if !shape.Same(v.x.Type(), want) {
			return nil, mismatch(v.x.Type(), want)
		}
		return v.x, ""
	}
	return nil, shape.Sprintf("this is %s, expected %v", v.describe(), want)
}

// mismatch says how a type differs from the one that is asked for: the first dimension that differs, or all of it.
func mismatch(got, want shape.Type) string {
	if got.IsTensor() && want.IsTensor() && got.DType == want.DType && got.Rank() == want.Rank() {
		for i, d := range got.Dims {
			if d.N != want.Dims[i].N {
				return shape.Sprintf("dimension %d is %v, expected %v; this is %v, expected %v", i, d, want.Dims[i], got, want)
			}
		}
	}
	if got.IsTensor() && want.IsTensor() && shape.SameDims(got.Dims, want.Dims) {
		return shape.Sprintf("this is %s, expected %s", got.DType, want.DType)
	}
	return shape.Sprintf("this is %v, expected %v", got, want)
}
