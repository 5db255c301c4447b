package exec

import (
	"slices"

	"blutrain/dialects/mem"
	"blutrain/ir"
)

// CheckFlights holds a function to what collectives ask for: from the beginning of one to its wait nothing writes its sources or
// touches its destinations. outs is how many references, from the end, a launch writes.
func CheckFlights(fn *ir.Op, outs func(launch *ir.Op) int) error {
	under := map[int64][]access{}
	for op := range fn.Body().Ops() {
		accesses := accessesOf(op, outs)
		for id, flight := range under {
			for _, a := range accesses {
				for _, b := range flight {
					if a.clashes(b) {
						return op.Errorf("%s: it %s what collective %d, which is under way, %s: %s", op.Name(), a.verb(), id, b.verb(), a)
					}
				}
			}
		}
		switch op.Def() {
		case Collective:
			under[op.Attrs().IntOr("id", 0)] = accesses
		case Wait:
			delete(under, op.Attrs().IntOr("id", 0))
		}
	}
	return nil
}

// access is bytes that a step reads or writes. What lies between the elements of a place with gaps counts among its bytes.
type access struct {
	ref       *ir.Op
	low, high int64
	writes    bool
}

// clashes reports whether two accesses may not happen at the same time.
func (a access) clashes(b access) bool {
	x, y := a.ref.Attrs(), b.ref.Attrs()
	return (a.writes || b.writes) && a.low < b.high && b.low < a.high && x.Str("space") == y.Str("space") && x.Str("name") == y.Str("name") && x.Str("space") != mem.Const
}

func (a access) verb() string {
	if a.writes {
		return "writes"
	}
	return "reads"
}

func (a access) String() string {
	at := a.ref.Attrs()
	if name := at.Str("name"); name != "" {
		return at.Str("space") + " " + name
	}
	return at.Str("space")
}

// accessesOf lists what a step reads and writes.
func accessesOf(op *ir.Op, outs func(*ir.Op) int) (list []access) {
	written := 0
	switch op.Def() {
	case Launch:
		written = outs(op)
	case Copy:
		written = 1
	case Collective:
		written = op.NumOperands() / 2
	}
	for i, v := range op.Operands() {
		ref := v.Op()
		if ref == nil || !ref.Is(Ref) {
			continue
		}
		t := v.Type().(*ir.MemRefType)
		low := ref.Attrs().IntOr("offset", 0)
		list = append(list, access{ref, low, low + span(t), i >= op.NumOperands()-written})
	}
	return list
}

// span is the bytes from the first element of a place to behind its last.
func span(t *ir.MemRefType) int64 {
	if slices.Contains(t.Shape, 0) {
		return 0
	}
	return reach(t)
}
