package dtms

import (
	"blutrain/ir"
)

// Call is what a collective or its Start asks of a communicator.
type Call struct {
	Op    string // the collective's name
	Group string
	Ranks int64 // 0 where the operation doesn't say: all_reduce
	Shift int64
	Elem  ir.Type
	Elems int64 // of all operands
}

// CallOf is the call that a collective, or Start, makes.
func CallOf(op *ir.Op) Call {
	c := Call{Op: op.Def().Name, Group: op.Attrs().Str("group"), Ranks: op.Attrs().IntOr("ranks", 0), Shift: op.Attrs().IntOr("shift", 0), Elem: op.Operand(0).Elem()}
	if name := op.Attrs().Str("op"); name != "" { // a start
		c.Op = name
	}
	for _, x := range op.Operands() {
		c.Elems += ir.NumElements(x.Shape())
	}
	return c
}

// Bytes is the size of the operands.
func (c Call) Bytes() int64 { return c.Elems * ir.ByteSize(c.Elem) }

// Sent is the bytes that each of n ranks sends, at least, n being the size of the group: a block to each other rank for
// reduce_scatter and all_to_all, what it has to each other rank for all_gather, for all_reduce a reduce_scatter and an
// all_gather, and for permute all it has, once. No algorithm without arithmetic in the network sends less than an
// all_reduce's 2 (n-1)/n of the data (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
// workstations, 2009).
func (c Call) Sent(n int64) float64 {
	if n <= 1 {
		return 0
	}
	bytes, others := float64(c.Bytes()), float64(n-1)
	switch c.Op {
	case NameAllReduce:
		return 2 * bytes * others / float64(n)
	case NameReduceScatter, NameAllToAll:
		return bytes * others / float64(n)
	case NameAllGather:
		return bytes * others
	}
	if c.Shift%n == 0 {
		return 0
	}
	return bytes
}
