package host

import (
	"slices"

	"blutrain/dialects/host"
	"blutrain/ir"
)

// kind is how the elements of a block are held.
type kind uint8

const (
	kindNone kind = iota // no instruction has any use for them
	kindF32
	kindI32
	kindMask // i1 in scratch memory: a uint32 of all bits or none
	kindByte // i1 in tensors
	kindI64
	kindBF16
	kindF16
)

// kindOf is how a block's elements are held; a window of truth values holds bytes.
func kindOf(v *ir.Value) kind {
	k := elementKind(v.Elem())
	if k == kindByte && v.DefinedBy(host.Scratch) {
		return kindMask
	}
	return k
}

// elementKind is how elements of a type are held in tensors.
func elementKind(t ir.Type) kind {
	switch t := t.(type) {
	case *ir.FloatType:
		return map[ir.FloatKind]kind{ir.F32: kindF32, ir.BF16: kindBF16, ir.F16: kindF16}[t.Kind]
	case *ir.IntegerType:
		return map[int]kind{1: kindByte, 32: kindI32, 64: kindI64}[t.Width]
	}
	return kindNone
}

// kinds is how the elements of an operation's block operands are held, in order.
func kinds(op *ir.Op) (ks []kind) {
	for _, v := range op.Operands() {
		if isBlock(v) {
			ks = append(ks, kindOf(v))
		}
	}
	return ks
}

func isBlock(v *ir.Value) bool { _, ok := v.Type().(*ir.DialectType); return ok }

// are reports whether the kinds are just these.
func are(ks []kind, want ...kind) bool { return slices.Equal(ks, want) }

// all reports whether every one of the kinds is k.
func all(ks []kind, k kind) bool {
	return !slices.ContainsFunc(ks, func(x kind) bool { return x != k })
}

// unsupported is the error for element types an instruction does not have.
func unsupported(op *ir.Op) error {
	var types []string
	for _, v := range op.Operands() {
		if isBlock(v) {
			types = append(types, v.Type().String())
		}
	}
	return op.Errorf("%s on %v has no instruction on this device", op.Name(), types)
}

// checkColumns refuses blocks whose elements of a row are apart.
func checkColumns(op *ir.Op) error {
	for i, v := range op.Operands() {
		if isBlock(v) && v.DefinedBy(host.Window) && !host.UnitStride(v.Op()) {
			return op.Errorf("%s: the elements of a row of operand %d are apart", op.Name(), i)
		}
	}
	return nil
}
