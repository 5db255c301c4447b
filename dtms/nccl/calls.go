package nccl

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"blutrain/dtms"
)

// pending is a call whose work is on a stream.
type pending struct {
	ctx      context.Context
	engine   *engine
	call     dtms.Call
	roll     dtms.Pending // the roll call; nil for sends and receives
	finished atomic.Pointer[outcome]
}

type outcome struct{ err error }

type failed struct{ err error }

func (f failed) Wait() error { return f.err }

// Start puts a call on its stream and tells the other ranks.
func (e *engine) Start(ctx context.Context, c dtms.Call) dtms.Pending {
	if err := e.control.Err(); err != nil {
		return failed{err}
	}
	if err := onDevice(c); err != nil {
		return failed{err}
	}
	p := &pending{ctx: ctx, engine: e, call: c}
	if c.Op.Collective() {
		p.roll = e.control.WithDeadline(time.Until(c.Deadline)).Announce(ctx, c)
	}
	e.traffic.count(c, int64(e.Size()), e.Rank() == c.Peer)
	if err := e.enqueue(c.Deadline, c.Op.String(), func() int32 { return e.launch(c) }); err != nil {
		return failed{e.give(fmt.Errorf("%s: %w", c.Describe(), err))}
	}
	return p
}

// StartAll puts calls of one operation on their stream as one NCCL call, with one roll call.
func (e *engine) StartAll(ctx context.Context, calls []dtms.Call) dtms.Pending {
	if err := e.control.Err(); err != nil {
		return failed{err}
	}
	for _, c := range calls {
		if err := onDevice(c); err != nil {
			return failed{err}
		}
	}
	whole := total(calls)
	p := &pending{ctx: ctx, engine: e, call: whole, roll: e.control.WithDeadline(time.Until(whole.Deadline)).Announce(ctx, whole)}
	for _, c := range calls {
		e.traffic.count(c, int64(e.Size()), e.Rank() == c.Peer)
	}
	err := e.enqueue(whole.Deadline, whole.Op.String(), func() int32 {
		return e.grouped(func(made func(code int32)) {
			for _, c := range calls {
				made(e.launch(c))
			}
		})
	})
	if err != nil {
		return failed{e.give(fmt.Errorf("%s: %w", whole.Describe(), err))}
	}
	return p
}

// total is the call that stands for several in the roll call: of as many elements as all of them. Nothing is moved by it.
func total(calls []dtms.Call) dtms.Call {
	whole := calls[0]
	var in, out int64
	for _, c := range calls {
		in, out = in+c.In.Count(), out+c.Out.Count()
	}
	const anywhere = 1 << 20
	whole.In = dtms.Device(whole.DType(), anywhere, in)
	whole.Out = dtms.Device(whole.DType(), anywhere+uintptr(whole.In.Bytes()+15)/16*16, out)
	return whole
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

// Wait returns when the stream has done all that was put on it and all ranks have begun the call.
func (p *pending) Wait() error {
	if o := p.finished.Load(); o != nil {
		return o.err
	}
	err := p.wait()
	if err != nil {
		err = fmt.Errorf("%s: %w", p.call.Describe(), p.engine.give(err))
	}
	p.finished.CompareAndSwap(nil, &outcome{err})
	return p.finished.Load().err
}

func (p *pending) wait() error {
	e := p.engine
	for begun := time.Now(); ; rest(begun) {
		done, err := e.device.Done(p.call.Stream)
		if err != nil {
			return err
		}
		if done {
			break
		}
		if err := e.control.Err(); err != nil {
			return err
		}
		if err := e.asyncError(); err != nil {
			return err
		}
		if err := p.ctx.Err(); err != nil && err != context.DeadlineExceeded {
			return context.Cause(p.ctx)
		}
		// The roll call ends at the deadline and names ranks; what is longer under way is stuck on a device.
		if over := time.Since(p.call.Deadline); over > time.Second {
			return fmt.Errorf("all ranks have begun it, but the device has not ended it: %w", context.DeadlineExceeded)
		}
	}
	if p.roll == nil {
		return nil
	}
	return p.roll.Wait()
}

// traffic counts what the calls need to move. NCCL doesn't say what it sends, so these are the ring's numbers.
type traffic struct {
	counters [len(dtms.Traffic{})]struct{ calls, sent, received atomic.Int64 }
}

func (t *traffic) count(c dtms.Call, n int64, root bool) {
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

func (t *traffic) snapshot() dtms.Traffic {
	var out dtms.Traffic
	for o := range out {
		k := &t.counters[o]
		out[o] = dtms.Volume{Calls: k.calls.Load(), Sent: k.sent.Load(), Received: k.received.Load()}
	}
	return out
}
