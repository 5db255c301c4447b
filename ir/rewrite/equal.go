package rewrite

import (
	"encoding/binary"
	"slices"

	"blutrain/ir"
)

// MergeEqual replaces pure operations inside root that compute the same as one that always ran before them: the same
// operation on the same operands (in any order where it is commutative) with the same attributes and result types.
// visit is told of each operation, unless nil. It reports how many went.
func MergeEqual(root *ir.Op, visit func(*ir.Op)) int {
	m := &merger{dom: ir.NewDominance(), ids: map[any]uint64{}, visit: visit}
	m.regions(root)
	return m.merged
}

type merger struct {
	dom    *ir.Dominance
	seen   map[string][]*ir.Op // by key, in the isolated operation being visited
	ids    map[any]uint64
	visit  func(*ir.Op)
	merged int
}

func (m *merger) regions(op *ir.Op) {
	if len(op.Regions()) == 0 {
		return
	}
	if op.Has(ir.Isolated) || m.seen == nil {
		outer := m.seen
		m.seen = map[string][]*ir.Op{}
		defer func() { m.seen = outer }()
	}
	for _, r := range op.Regions() {
		for _, b := range r.Blocks() {
			for o := range b.Ops() {
				if m.visit != nil {
					m.visit(o)
				}
				if !m.merge(o) {
					m.regions(o)
				}
			}
		}
	}
}

// merge replaces op by an equal one, or remembers it.
func (m *merger) merge(op *ir.Op) bool {
	if !op.Has(ir.Pure) || op.NumResults() == 0 || len(op.Regions()) > 0 {
		return false
	}
	key := string(m.key(op))
	for _, first := range m.seen[key] {
		if m.dom.Value(first.Result(0), op) {
			op.ReplaceWith(first.Results()...)
			m.merged++
			return true
		}
	}
	m.seen[key] = append(m.seen[key], op)
	return false
}

// key is equal for operations that compute the same.
func (m *merger) key(op *ir.Op) []byte {
	operands := make([]uint64, op.NumOperands())
	for i := range operands {
		operands[i] = m.id(op.Operand(i))
	}
	if op.Has(ir.Commutative) {
		slices.Sort(operands)
	}
	key := binary.AppendUvarint(nil, m.id(op.Def()))
	key = binary.AppendUvarint(key, uint64(len(operands)))
	for _, id := range operands {
		key = binary.AppendUvarint(key, id)
	}
	for _, a := range op.Attrs() {
		key = binary.AppendUvarint(key, uint64(len(a.Name)))
		key = append(key, a.Name...)
		key = binary.AppendUvarint(key, m.id(a.Value))
	}
	for _, t := range op.ResultTypes() {
		key = binary.AppendUvarint(key, m.id(t))
	}
	return key
}

// id numbers pointers: attributes and types are interned, so that equal ones have one number.
func (m *merger) id(p any) uint64 {
	n, ok := m.ids[p]
	if !ok {
		n = uint64(len(m.ids) + 1)
		m.ids[p] = n
	}
	return n
}
