package kernels

import (
	"encoding/binary"

	"blutrain/ir"
)

// opKey tells operations apart that compute different things: what they are, of what, and of which type.
func opKey(ids map[any]uint64, op *ir.Op) string {
	key := binary.AppendUvarint(nil, idOf(ids, op.Def()))
	for i := range op.NumOperands() {
		key = binary.AppendUvarint(key, idOf(ids, op.Operand(i)))
	}
	key = append(key, 0)
	for _, a := range op.Attrs() {
		key = append(key, a.Name...)
		key = binary.AppendUvarint(key, idOf(ids, a.Value))
	}
	for _, r := range op.Results() {
		key = binary.AppendUvarint(key, idOf(ids, r.Type()))
	}
	return string(key)
}

// idOf numbers pointers in order of appearance.
func idOf(ids map[any]uint64, p any) uint64 {
	id, ok := ids[p]
	if !ok {
		id = uint64(len(ids) + 1)
		ids[p] = id
	}
	return id
}
