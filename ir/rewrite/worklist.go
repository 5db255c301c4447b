package rewrite

import (
	"slices"

	"blutrain/ir"
)

// worklist is a stack of different operations.
type worklist struct {
	ops []*ir.Op // nil where an operation was removed
	at  map[*ir.Op]int
}

func (l *worklist) push(op *ir.Op) {
	if _, ok := l.at[op]; ok {
		return
	}
	if l.at == nil {
		l.at = map[*ir.Op]int{}
	}
	l.at[op] = len(l.ops)
	l.ops = append(l.ops, op)
}

// pop takes the last operation, or nil when there is none.
func (l *worklist) pop() *ir.Op {
	for len(l.ops) > 0 {
		op := l.ops[len(l.ops)-1]
		l.ops = l.ops[:len(l.ops)-1]
		if op != nil {
			delete(l.at, op)
			return op
		}
	}
	return nil
}

func (l *worklist) remove(op *ir.Op) {
	if i, ok := l.at[op]; ok {
		l.ops[i] = nil
		delete(l.at, op)
	}
}

func (l *worklist) reverse() {
	slices.Reverse(l.ops)
	for i, op := range l.ops {
		l.at[op] = i
	}
}
