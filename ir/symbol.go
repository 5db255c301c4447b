package ir

// SymName is an operation's sym_name, or "".
func SymName(op *Op) string { return op.Attrs().Str("sym_name") }

// IsPrivate reports whether a symbol may be used, and so changed or dropped, only within its symbol table.
func IsPrivate(op *Op) bool { return op.Attrs().Str("sym_visibility") == "private" }

// LookupSymbol finds the operation of that sym_name directly inside a symbol table such as builtin.module; nil when
// there is none.
func LookupSymbol(table *Op, name string) *Op {
	body := table.Body()
	if body == nil {
		return nil
	}
	for op := range body.Ops() {
		if SymName(op) == name {
			return op
		}
	}
	return nil
}

// ResolveSymbol finds what a reference from within op means: its root in the nearest symbol table around op that has
// it, and each further name inside the one before. It is nil when there is none.
func ResolveSymbol(op *Op, ref *SymbolRefAttr) *Op {
	for table := op.Parent(); table != nil; table = table.Parent() {
		if !table.Has(SymbolTable) {
			continue
		}
		if found := LookupSymbol(table, ref.Path[0]); found != nil {
			return nestedSymbol(found, ref.Path[1:])
		}
	}
	return nil
}

func nestedSymbol(op *Op, path []string) *Op {
	for _, name := range path {
		if op == nil || !op.Has(SymbolTable) {
			return nil
		}
		op = LookupSymbol(op, name)
	}
	return op
}
