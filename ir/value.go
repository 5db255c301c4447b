package ir

import (
	"fmt"
	"iter"
)

// Value is an SSA value: a result of an operation or an argument of a block.
type Value struct {
	typ   Type
	op    *Op    // the defining operation, nil for a block argument
	block *Block // the block whose argument this is, nil for a result
	first *Use   // head of the use chain, newest first
	index int32
	num   int32 // what it prints as, see numbering
}

// Use is one operand slot of an operation: a link in the use chain of the value it holds.
type Use struct {
	value      *Value
	owner      *Op
	next, prev *Use
}

// Type is the value's type.
func (v *Value) Type() Type { return v.typ }

// SetType changes the value's type; the verifier says whether its definition and uses agree.
func (v *Value) SetType(t Type) { v.typ = t }

// Op is the operation that defines the value, or nil for a block argument.
func (v *Value) Op() *Op { return v.op }

// Arg is the block whose argument the value is, or nil for a result.
func (v *Value) Arg() *Block { return v.block }

// Index is the value's place among the results or arguments it belongs to.
func (v *Value) Index() int { return int(v.index) }

// Block is the block in which the value is defined; nil for a result of a detached operation.
func (v *Value) Block() *Block {
	if v.op != nil {
		return v.op.block
	}
	return v.block
}

// DefinedBy reports whether the value is a result of an operation of that definition.
func (v *Value) DefinedBy(def *OpDef) bool { return v.op != nil && v.op.def == def }

// Loc is where the value comes from.
func (v *Value) Loc() *Location {
	if v.op != nil {
		return v.op.loc
	}
	return v.block.argLocs[v.index]
}

// Shape is the shape of the value's type; it panics for a type without one.
func (v *Value) Shape() []int64 {
	s, ok := Shape(v.typ)
	if !ok {
		panic(fmt.Sprintf("ir: value of type %s has no shape", v.typ))
	}
	return s
}

// Elem is the element type of the value's type.
func (v *Value) Elem() Type { return Elem(v.typ) }

// Unused reports whether nothing uses the value.
func (v *Value) Unused() bool { return v.first == nil }

// HasOneUse reports whether exactly one operand slot holds the value.
func (v *Value) HasOneUse() bool { return v.first != nil && v.first.next == nil }

// NumUses counts the operand slots that hold the value.
func (v *Value) NumUses() int {
	n := 0
	for u := v.first; u != nil; u = u.next {
		n++
	}
	return n
}

// Uses iterates over the uses, newest first. The current use may be changed or its owner erased while iterating. The
// order depends on how the IR was built; code whose output depends on it must sort.
func (v *Value) Uses() iter.Seq[*Use] {
	return func(yield func(*Use) bool) {
		for u := v.first; u != nil; {
			next := u.next
			if !yield(u) {
				return
			}
			u = next
		}
	}
}

// ReplaceAllUsesWith makes every user of v use w.
func (v *Value) ReplaceAllUsesWith(w *Value) {
	if v == w {
		return
	}
	for v.first != nil {
		v.first.Set(w)
	}
}

// ReplaceUsesIf makes the users for whose use keep says true use w.
func (v *Value) ReplaceUsesIf(w *Value, replace func(*Use) bool) {
	for u := range v.Uses() {
		if replace(u) {
			u.Set(w)
		}
	}
}

// Value is the value in this slot.
func (u *Use) Value() *Value { return u.value }

// Owner is the operation this slot belongs to.
func (u *Use) Owner() *Op { return u.owner }

// Index is the place of this slot among its owner's operands.
func (u *Use) Index() int {
	for i := range u.owner.operands {
		if &u.owner.operands[i] == u {
			return i
		}
	}
	panic("ir: use without owner")
}

// Set puts another value, or nil, into the slot.
func (u *Use) Set(v *Value) {
	if u.value != nil {
		if u.prev != nil {
			u.prev.next = u.next
		} else {
			u.value.first = u.next
		}
		if u.next != nil {
			u.next.prev = u.prev
		}
	}
	u.value, u.prev, u.next = v, nil, nil
	if v != nil {
		u.next = v.first
		if v.first != nil {
			v.first.prev = u
		}
		v.first = u
	}
}
