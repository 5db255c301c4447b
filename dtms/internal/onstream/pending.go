package onstream

import (
	"context"
	"fmt"
	goruntime "runtime"
	"sync/atomic"
	"syscall"
	"time"

	"blutrain/dtms"
)

// Engine is what a call that is under way asks its engine.
type Engine interface {
	// Done reports whether all work on a stream has ended.
	Done(s dtms.Stream) (bool, error)
	// Failing is why the work will not end well, nil as long as nothing is known of that.
	Failing() error
	// Give ends the group because of an error and returns what callers should see.
	Give(err error) error
}

// Pending is a call whose work is on its stream.
type Pending struct {
	ctx      context.Context
	engine   Engine
	call     dtms.Call
	roll     dtms.Pending // the roll call; nil for sends and receives
	finished atomic.Pointer[outcome]
}

type outcome struct{ err error }

// New is a call under way, with its roll call if it has one.
func New(ctx context.Context, e Engine, c dtms.Call, roll dtms.Pending) *Pending {
	return &Pending{ctx: ctx, engine: e, call: c, roll: roll}
}

// Wait returns when the stream has done all that was put on it and all ranks have begun the call.
func (p *Pending) Wait() error {
	if o := p.finished.Load(); o != nil {
		return o.err
	}
	err := p.wait()
	if err != nil {
		err = fmt.Errorf("%s: %w", p.call.Describe(), p.engine.Give(err))
	}
	p.finished.CompareAndSwap(nil, &outcome{err})
	return p.finished.Load().err
}

func (p *Pending) wait() error {
	for begun := time.Now(); ; Rest(begun) {
		done, err := p.engine.Done(p.call.Stream)
		if err != nil {
			return err
		}
		// Also of work that is done: what was given up ends, too.
		if err := p.engine.Failing(); err != nil {
			return err
		}
		if done {
			break
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

// Failed is a call that never began.
type Failed struct{ Err error }

// Wait says why.
func (f Failed) Wait() error { return f.Err }

// Total is the call that stands for several in the roll call: of as many elements as all of them. Nothing is moved by it.
func Total(calls []dtms.Call) dtms.Call {
	whole := calls[0]
	if len(calls) == 1 {
		return whole
	}
	var in, out int64
	for _, c := range calls {
		in, out = in+c.In.Count(), out+c.Out.Count()
	}
	const anywhere = 1 << 20
	whole.In = dtms.Device(whole.DType(), anywhere, in)
	whole.Out = dtms.Device(whole.DType(), anywhere+uintptr(whole.In.Bytes()+15)/16*16, out)
	return whole
}

// Rest lets some time pass before the next look at what began then: none at first, since NCCL takes a call within about a tenth of a
// millisecond, and then little, since GPUs wait meanwhile. time.Sleep would take a millisecond at least where nothing else runs.
func Rest(begun time.Time) {
	var pause time.Duration
	switch waited := time.Since(begun); {
	case waited < time.Millisecond:
		goruntime.Gosched()
		return
	case waited < time.Second:
		pause = 20 * time.Microsecond
	default:
		pause = time.Millisecond
	}
	// Linux lets a thread oversleep by 50 us unless it is told not to, which can't fail.
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0)
	t := syscall.NsecToTimespec(int64(pause))
	_ = syscall.Nanosleep(&t, nil) // a signal may end it early
}

// setTimerSlack is PR_SET_TIMERSLACK, in nanoseconds.
const setTimerSlack = 29
