package nccl

import (
	"context"
	"fmt"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/internal/onstream"
)

// Start puts a call on its stream and tells the other ranks.
func (e *engine) Start(ctx context.Context, c dtms.Call) dtms.Pending {
	if err := e.control.Err(); err != nil {
		return onstream.Failed{Err: err}
	}
	if err := onDevice(c); err != nil {
		return onstream.Failed{Err: err}
	}
	var roll dtms.Pending
	if c.Op.Collective() {
		roll = e.control.WithDeadline(time.Until(c.Deadline)).Announce(ctx, c)
	}
	e.traffic.Count(c, int64(e.Size()), e.Rank() == c.Peer)
	if err := e.enqueue(c.Deadline, c.Op.String(), func() int32 { return e.launch(c) }); err != nil {
		return onstream.Failed{Err: e.Give(fmt.Errorf("%s: %w", c.Describe(), err))}
	}
	return onstream.New(ctx, e, c, roll)
}

// StartAll puts calls of one operation on their stream as one NCCL call, with one roll call.
func (e *engine) StartAll(ctx context.Context, calls []dtms.Call) dtms.Pending {
	if err := e.control.Err(); err != nil {
		return onstream.Failed{Err: err}
	}
	for _, c := range calls {
		if err := onDevice(c); err != nil {
			return onstream.Failed{Err: err}
		}
	}
	whole := onstream.Total(calls)
	roll := e.control.WithDeadline(time.Until(whole.Deadline)).Announce(ctx, whole)
	for _, c := range calls {
		e.traffic.Count(c, int64(e.Size()), e.Rank() == c.Peer)
	}
	err := e.enqueue(whole.Deadline, whole.Op.String(), func() int32 {
		return e.grouped(func(made func(code int32)) {
			for _, c := range calls {
				made(e.launch(c))
			}
		})
	})
	if err != nil {
		return onstream.Failed{Err: e.Give(fmt.Errorf("%s: %w", whole.Describe(), err))}
	}
	return onstream.New(ctx, e, whole, roll)
}

// onDevice says why a call is none for GPUs.
func onDevice(c dtms.Call) error {
	for _, m := range []dtms.Memory{c.In, c.Out} {
		if m.Count() > 0 && !m.OnDevice() {
			return fmt.Errorf("%s: NCCL moves memory of devices only", c.Op)
		}
		if _, ok := dataTypes[m.DType()]; m.Count() > 0 && !ok {
			return fmt.Errorf("%s: NCCL has no elements of type %s", c.Op, m.DType())
		}
	}
	return nil
}

// launch makes the NCCL call.
func (e *engine) launch(c dtms.Call) int32 {
	in, out, stream := c.In.Address(), c.Out.Address(), uintptr(c.Stream)
	count, kind, peer := uintptr(c.Count()), dataTypes[c.DType()], int32(c.Peer)
	switch c.Op {
	case dtms.AllReduce:
		return e.lib.allReduce(in, out, count, kind, sum, e.comm, stream)
	case dtms.ReduceScatter:
		return e.lib.reduceScatter(in, out, count, kind, sum, e.comm, stream)
	case dtms.AllGather:
		return e.lib.allGather(in, out, count, kind, e.comm, stream)
	case dtms.Broadcast:
		return e.lib.broadcast(out, out, count, kind, peer, e.comm, stream)
	case dtms.Send:
		return e.lib.send(in, count, kind, peer, e.comm, stream)
	case dtms.Recv:
		return e.lib.recv(out, count, kind, peer, e.comm, stream)
	case dtms.AllToAll:
		return e.allToAll(c)
	case dtms.Permute:
		return e.permute(c)
	}
	return success // a barrier is the roll call behind the stream's work: see Wait
}

func (e *engine) allToAll(c dtms.Call) int32 {
	size := int64(e.Size())
	block := c.In.Count() / size
	return e.grouped(func(made func(code int32)) {
		for r := range size {
			made(e.sendTo(c, c.In.Slice(r*block, (r+1)*block), int(r)))
			made(e.recvFrom(c, c.Out.Slice(r*block, (r+1)*block), int(r)))
		}
	})
}

// permute sends and receives in one group: neither waits for the other.
func (e *engine) permute(c dtms.Call) int32 {
	me, size := e.Rank(), e.Size()
	return e.grouped(func(made func(code int32)) {
		made(e.sendTo(c, c.In, (me+c.Peer)%size))
		made(e.recvFrom(c, c.Out, (me+size-c.Peer)%size))
	})
}

func (e *engine) sendTo(c dtms.Call, m dtms.Memory, rank int) int32 {
	return e.lib.send(m.Address(), uintptr(m.Count()), dataTypes[c.DType()], int32(rank), e.comm, uintptr(c.Stream))
}

func (e *engine) recvFrom(c dtms.Call, m dtms.Memory, rank int) int32 {
	return e.lib.recv(m.Address(), uintptr(m.Count()), dataTypes[c.DType()], int32(rank), e.comm, uintptr(c.Stream))
}

// grouped makes NCCL calls as one. The first that fails is what it returns.
func (e *engine) grouped(calls func(made func(code int32))) int32 {
	if code := e.lib.groupStart(); code != success {
		return code
	}
	var wrong int32
	calls(func(code int32) {
		if wrong == 0 && code != success && code != inProgress {
			wrong = code
		}
	})
	if code := e.lib.groupEnd(); wrong == 0 {
		wrong = code
	}
	return wrong
}
