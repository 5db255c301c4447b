package onstream

import (
	"sync/atomic"

	"blutrain/dtms"
)

// Traffic counts what calls need to move: the numbers of a ring, and of copies between all pairs of ranks alike.
type Traffic struct {
	counters [len(dtms.Traffic{})]struct{ calls, sent, received atomic.Int64 }
}

// Count counts a call among n ranks; root: of the rank that broadcasts.
func (t *Traffic) Count(c dtms.Call, n int64, root bool) {
	bytes := c.Count() * int64(c.DType().Size())
	var sent, received int64
	switch c.Op {
	case dtms.AllReduce:
		sent = 2 * bytes * (n - 1) / n
		received = sent
	case dtms.ReduceScatter, dtms.AllGather:
		sent = bytes * (n - 1)
		received = sent
	case dtms.AllToAll:
		sent = bytes * (n - 1) / n
		received = sent
	case dtms.Broadcast:
		if sent, received = bytes, bytes; root {
			received = 0
		}
	case dtms.Permute:
		if c.Peer != 0 {
			sent, received = bytes, bytes
		}
	case dtms.Send:
		sent = bytes
	case dtms.Recv:
		received = bytes
	}
	k := &t.counters[c.Op]
	k.calls.Add(1)
	k.sent.Add(sent)
	k.received.Add(received)
}

// Snapshot is what was counted so far.
func (t *Traffic) Snapshot() dtms.Traffic {
	var out dtms.Traffic
	for o := range out {
		k := &t.counters[o]
		out[o] = dtms.Volume{Calls: k.calls.Load(), Sent: k.sent.Load(), Received: k.received.Load()}
	}
	return out
}
