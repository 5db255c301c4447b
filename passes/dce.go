package passes

import (
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// dce drops dead operations, then the private symbols that nothing refers to, until nothing is left to drop.
func dce(s *State, op *ir.Op) error {
	rewrite.EraseDead(op)
	for dropSymbols(s, op) {
	}
	return nil
}

// dropSymbols erases the private symbols inside op that are referred to from nowhere but themselves.
func dropSymbols(s *State, op *ir.Op) bool {
	used := map[string]bool{}
	ir.Walk(op, func(o *ir.Op) ir.WalkResult {
		for _, a := range o.Attrs() {
			symbolRefs(a.Value, func(name string) {
				if !inside(o, name) {
					used[name] = true
				}
			})
		}
		return ir.Advance
	})
	dropped := false
	s.Walk(op, func(o *ir.Op) ir.WalkResult {
		if o != op && o.Has(ir.Symbol) && ir.IsPrivate(o) && !used[ir.SymName(o)] {
			o.Erase()
			dropped = true
			return ir.Skip
		}
		return ir.Advance
	})
	return dropped
}

// inside reports whether o is inside the symbol of that name: a function that only calls itself is unused.
func inside(o *ir.Op, name string) bool {
	for p := o; p != nil; p = p.Parent() {
		if p.Has(ir.Symbol) && ir.SymName(p) == name {
			return true
		}
	}
	return false
}

// symbolRefs calls f with every name in the references of an attribute.
func symbolRefs(a ir.Attr, f func(name string)) {
	switch a := a.(type) {
	case *ir.SymbolRefAttr:
		for _, n := range a.Path {
			f(n)
		}
	case *ir.ArrayAttr:
		for _, e := range a.Elems {
			symbolRefs(e, f)
		}
	case *ir.DictAttr:
		for _, e := range a.Entries {
			symbolRefs(e.Value, f)
		}
	case *ir.DialectAttr:
		for _, e := range a.Params {
			symbolRefs(e, f)
		}
		for _, e := range a.Named {
			symbolRefs(e.Value, f)
		}
	}
}
