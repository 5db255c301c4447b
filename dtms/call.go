package dtms

import (
	"fmt"
	"time"

	"blutrain/formats"
)

// Op is what a call does.
type Op uint8

// The operations. Split is how sub-groups are made; it is here because it is a collective like the others.
const (
	AllReduce Op = iota + 1
	ReduceScatter
	AllGather
	Broadcast
	AllToAll
	Permute
	Barrier
	Split
	Send
	Recv
	opEnd
)

var opNames = [opEnd]string{
	AllReduce: "all-reduce", ReduceScatter: "reduce-scatter", AllGather: "all-gather", Broadcast: "broadcast",
	AllToAll: "all-to-all", Permute: "permute", Barrier: "barrier", Split: "split", Send: "send", Recv: "receive",
}

// Valid reports whether o is one of the operations.
func (o Op) Valid() bool { return o > 0 && o < opEnd }

// Collective reports whether all ranks of the communicator take part.
func (o Op) Collective() bool { return o.Valid() && o < Send }

// String is the name used in messages: all-reduce.
func (o Op) String() string {
	if !o.Valid() {
		return fmt.Sprintf("op(%d)", uint8(o))
	}
	return opNames[o]
}

// Ops lists the operations.
func Ops() []Op {
	ops := make([]Op, 0, opEnd-1)
	for o := AllReduce; o < opEnd; o++ {
		ops = append(ops, o)
	}
	return ops
}

// Call is one operation and its arguments, with n = the communicator's size:
//
//	AllReduce      In: c, Out: c          Out = sum of In over the ranks; Out may be In
//	ReduceScatter  In: n*c, Out: c        Out = sum of everyone's block for this rank; Out may be that block of In
//	AllGather      In: c, Out: n*c        Out = everyone's In by rank; In may be this rank's block of Out
//	Broadcast      Out: c                 Out of rank Peer is copied to all
//	AllToAll       In: n*c, Out: n*c      block j of In goes to rank j, block j of Out comes from it; no overlap
//	Permute        In: c, Out: c          In goes to rank (r + Peer) mod n, Out comes from rank (r - Peer) mod n; no overlap
//	Barrier                               returns when all ranks have begun it
//	Send           In: c                  to rank Peer, which must receive as many of the same type
//	Recv           Out: c                 from rank Peer; sends and receives of a pair of ranks match in order
type Call struct {
	Op      Op
	In, Out Memory
	Peer    int
	Stream  Stream
	// Deadline ends the call at this time at the latest. Communicator.Start sets it.
	Deadline time.Time
}

// Count is the number of elements c in the table of [Call], on which all ranks must agree.
func (c Call) Count() int64 {
	switch c.Op {
	case AllReduce, AllGather, Permute, Send:
		return c.In.count
	case ReduceScatter, Broadcast, Recv:
		return c.Out.count
	case AllToAll:
		return c.In.count // of all blocks, so that no division hides a remainder
	}
	return 0
}

// DType is the element type, on which all ranks must agree.
func (c Call) DType() formats.DType {
	switch c.Op {
	case Broadcast, Recv:
		return c.Out.dtype
	case Barrier:
		return formats.U8
	}
	return c.In.dtype
}

// Describe says what is called: all-reduce of 1000 f32.
func (c Call) Describe() string { return Describe(c.Op, c.DType(), c.Count(), c.Peer) }

// Describe says what is called.
func Describe(op Op, d formats.DType, count int64, peer int) string {
	switch op {
	case Barrier, Split:
		return op.String()
	case Broadcast:
		return fmt.Sprintf("broadcast of %d %s from rank %d", count, d, peer)
	case Permute:
		return fmt.Sprintf("permute by %d of %d %s", peer, count, d)
	case Send:
		return fmt.Sprintf("send of %d %s to rank %d", count, d, peer)
	case Recv:
		return fmt.Sprintf("receive of %d %s from rank %d", count, d, peer)
	}
	return fmt.Sprintf("%s of %d %s", op, count, d)
}

// Summable reports whether elements of this type can be summed.
func Summable(d formats.DType) bool {
	switch d {
	case formats.F16, formats.BF16, formats.F32, formats.F64, formats.I32, formats.I64:
		return true
	}
	return false
}

// check holds the arguments to the table of [Call].
func (c Call) check(rank, size int) error {
	if err := c.checkMemory(); err != nil {
		return fmt.Errorf("%s: %w", c.Op, err)
	}
	if err := c.checkShape(rank, size); err != nil {
		return fmt.Errorf("%s: %w", c.Op, err)
	}
	return nil
}

// uses says which of In and Out an operation has.
func (o Op) uses() (in, out bool) {
	return o != Broadcast && o != Recv && o != Barrier, o != Send && o != Barrier
}

func (c Call) checkMemory() error {
	in, out := c.Op.uses()
	if in {
		if err := c.In.check("input"); err != nil {
			return err
		}
	}
	if out {
		if err := c.Out.check("output"); err != nil {
			return err
		}
	}
	if in && out {
		if c.In.dtype != c.Out.dtype {
			return fmt.Errorf("input is %s, output %s", c.In.dtype, c.Out.dtype)
		}
		if c.In.count > 0 && c.Out.count > 0 && c.In.OnDevice() != c.Out.OnDevice() {
			return fmt.Errorf("input and output are not on the same device")
		}
	}
	return nil
}

func (c Call) checkShape(rank, size int) error {
	n, in, out := int64(size), c.In, c.Out
	var inPlace Memory // where In and Out may meet
	switch c.Op {
	case AllReduce:
		if in.count != out.count {
			return fmt.Errorf("input has %d elements, output %d", in.count, out.count)
		}
		inPlace = in
	case ReduceScatter:
		if in.count != n*out.count {
			return fmt.Errorf("input has %d elements, %d ranks times output's %d expected", in.count, size, out.count)
		}
		inPlace = in.Slice(int64(rank)*out.count, int64(rank+1)*out.count)
	case AllGather, Split:
		if out.count != n*in.count {
			return fmt.Errorf("output has %d elements, %d ranks times input's %d expected", out.count, size, in.count)
		}
		inPlace = out.Slice(int64(rank)*in.count, int64(rank+1)*in.count)
	case AllToAll:
		if in.count != out.count || in.count%n != 0 {
			return fmt.Errorf("input has %d elements, output %d: equal multiples of %d ranks expected", in.count, out.count, size)
		}
	case Permute:
		if in.count != out.count {
			return fmt.Errorf("input has %d elements, output %d", in.count, out.count)
		}
		if c.Peer < 0 || c.Peer >= size {
			return fmt.Errorf("a shift by %d among %d ranks", c.Peer, size)
		}
	case Broadcast, Send, Recv:
		return c.checkPeer(rank, size)
	case Barrier:
		return nil
	default:
		return fmt.Errorf("unknown operation")
	}
	if (c.Op == AllReduce || c.Op == ReduceScatter) && !Summable(in.dtype) {
		return fmt.Errorf("%s can't be summed", in.dtype)
	}
	small := out
	if c.Op == AllGather || c.Op == Split {
		small = in
	}
	if in.overlaps(out) && (small.Address() != inPlace.Address() || c.Op == AllToAll || c.Op == Permute) {
		return fmt.Errorf("input and output overlap")
	}
	return nil
}

func (c Call) checkPeer(rank, size int) error {
	if c.Peer < 0 || c.Peer >= size {
		return fmt.Errorf("rank %d does not exist among %d", c.Peer, size)
	}
	if c.Op != Broadcast && c.Peer == rank {
		return fmt.Errorf("rank %d is this rank itself", c.Peer)
	}
	return nil
}
