package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/internal/onstream"
	"blutrain/formats"
)

// engine is a dtms.Engine of GPUs that have opened each other's stations.
type engine struct {
	config   Config
	device   Device
	control  *dtms.Communicator
	siblings *dtms.Siblings
	lanes    *Lanes
	traffic  onstream.Traffic
	stations []station     // by rank
	number   atomic.Uint32 // of the last piece
	stopped  atomic.Bool
	quit     chan struct{} // closed when the group is

	mu     sync.Mutex // of what is written when ranks are lost
	closed bool
}

// errStopped is what a call on a group that was given up gets where the control communicator has no better word.
var errStopped = errors.New("the group was given up")

// Takes reports whether an operation on elements of a type is made here.
func Takes(op dtms.Op, d formats.DType) bool {
	return op == dtms.AllGather || (op == dtms.AllReduce || op == dtms.ReduceScatter) && d == formats.F32
}

// Start puts a call on the lanes and tells the other ranks.
func (e *engine) Start(ctx context.Context, c dtms.Call) dtms.Pending {
	return e.StartAll(ctx, []dtms.Call{c})
}

// StartAll puts calls of one operation on the lanes as if they were one, with one roll call.
func (e *engine) StartAll(ctx context.Context, calls []dtms.Call) dtms.Pending {
	if err := e.control.Err(); err != nil {
		return onstream.Failed{Err: err}
	}
	for _, c := range calls {
		if err := check(c); err != nil {
			return onstream.Failed{Err: err}
		}
		e.traffic.Count(c, int64(e.Size()), false)
	}
	whole := onstream.Total(calls)
	roll := e.control.WithDeadline(time.Until(whole.Deadline)).Announce(ctx, whole)
	if err := e.enqueue(calls); err != nil {
		return onstream.Failed{Err: e.Give(fmt.Errorf("%s: %w", whole.Describe(), err))}
	}
	return onstream.New(ctx, e, whole, roll)
}

// check says why a call is none for copies between GPUs.
func check(c dtms.Call) error {
	if !Takes(c.Op, c.DType()) {
		return fmt.Errorf("%s: copies between GPUs make sums of f32 and all-gathers only", c.Describe())
	}
	for _, m := range []dtms.Memory{c.In, c.Out} {
		if m.Count() > 0 && !m.OnDevice() {
			return fmt.Errorf("%s: only memory of devices is copied between GPUs", c.Op)
		}
	}
	return nil
}

// own is this rank's station.
func (e *engine) own() station { return e.stations[e.Rank()] }

func (e *engine) Rank() int             { return e.control.Rank() }
func (e *engine) Size() int             { return e.control.Size() }
func (e *engine) WorldRank(r int) int   { return e.control.WorldRank(r) }
func (e *engine) Err() error            { return e.control.Err() }
func (e *engine) Traffic() dtms.Traffic { return e.traffic.Snapshot() }
func (e *engine) Abort(reason error)    { _ = e.Give(reason) }
func (e *engine) Announce(ctx context.Context, c dtms.Call) dtms.Pending {
	return e.control.Announce(ctx, c)
}

// Done reports whether all work on a stream has ended.
func (e *engine) Done(s dtms.Stream) (bool, error) { return e.device.Done(s) }

// Failing is why what is under way does not end well.
func (e *engine) Failing() error {
	if err := e.control.Err(); err != nil {
		return err
	}
	if e.stopped.Load() {
		return errStopped
	}
	return nil
}

// Give ends the group and its siblings because of err, which ends the job.
func (e *engine) Give(err error) error { return e.siblings.Give(e.control, err) }

// watchEvery is how often the control communicator is looked at, also while the thread that starts calls stands still because streams are full.
const watchEvery = 20 * time.Millisecond

// watch ends what is under way when the control communicator fails.
func (e *engine) watch() {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	for {
		select {
		case <-e.quit:
			return
		case <-t.C:
			if e.control.Err() != nil {
				e.siblings.Stop()
				return
			}
		}
	}
}

// stopLimit is how long the streams may take to end when their flags are written: what holds them longer ends with the process.
const stopLimit = 5 * time.Second

// stop writes what the streams wait for until they have ended: ranks that live may write less meanwhile.
func (e *engine) stop() {
	e.stopped.Store(true)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	for begun := time.Now(); time.Since(begun) < stopLimit; time.Sleep(time.Millisecond) {
		written, err := e.device.Done(e.lanes.rescue)
		if err == nil && written {
			err = e.release()
		}
		if err != nil {
			return // of a GPU that doesn't work every stream has ended
		}
		if done, err := e.lanes.done(); done || err != nil {
			return
		}
	}
}

// Close ends the group, in order if nothing failed: no rank gives its station up while others may look at it. After a failure stations stay until the process ends.
func (e *engine) Close() error {
	var left error
	if e.control.Err() == nil {
		left = e.control.Barrier(context.Background())
	}
	if e.control.Err() != nil {
		e.siblings.Stop()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	close(e.quit)
	faults := []error{left, e.unmap()}
	if e.control.Err() == nil {
		if left = e.control.Barrier(context.Background()); left == nil {
			left = e.device.Free(e.own().at)
		}
		faults = append(faults, left)
	}
	return errors.Join(append(faults, e.control.Close())...)
}

// unmap closes the other ranks' stations.
func (e *engine) unmap() error {
	var faults []error
	for r, s := range e.stations {
		if r != e.Rank() && s.at != 0 {
			faults = append(faults, e.device.Unmap(s.at))
		}
	}
	return errors.Join(faults...)
}

// Split makes sub-groups with stations of their own.
func (e *engine) Split(ctx context.Context, deadline time.Time, color, key int) (dtms.Engine, error) {
	control, err := e.control.WithDeadline(time.Until(deadline)).Split(ctx, color, key)
	if err != nil || control == nil {
		return nil, err
	}
	c := e.config
	c.Control, c.Join = control, time.Until(deadline)
	return connect(ctx, c)
}
