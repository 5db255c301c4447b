package nccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/internal/onstream"
)

// Device is the GPU of a rank, as its runtime sees it.
type Device interface {
	// Bind makes the device current on the calling thread until release is called, and keeps the goroutine there.
	Bind() (release func(), err error)
	// Done reports whether all work on a stream has ended.
	Done(s dtms.Stream) (bool, error)
}

// Config of a group of GPUs.
type Config struct {
	Library string             // file to load; "" means what LibraryVariable names, or else the usual names of NCCL
	Control *dtms.Communicator // of the same ranks; Close closes it
	Device  Device
	Join    time.Duration // for all ranks to start NCCL; 0 means 5 minutes
	// Siblings are the rank's communicators on the same stream, which this one joins; nil: there are no others.
	Siblings *dtms.Siblings
}

// engine is a dtms.Engine on top of one NCCL communicator.
type engine struct {
	lib      *library
	device   Device
	control  *dtms.Communicator
	siblings *dtms.Siblings
	traffic  onstream.Traffic

	mu      sync.Mutex // NCCL allows one thread at a time on a communicator
	comm    uintptr
	aborted bool
}

// errAborted is what a call on an aborted communicator gets where the control communicator has no better word.
var errAborted = errors.New("NCCL's communicator was aborted")

// Connect starts NCCL on the ranks of the control communicator.
func Connect(ctx context.Context, c Config) (*dtms.Communicator, error) {
	if c.Library == "" {
		c.Library = os.Getenv(LibraryVariable)
	}
	lib, err := load(c.Library)
	if err != nil {
		return nil, err
	}
	// The order of sums must be the same from run to run: see the package comment.
	if os.Getenv("NCCL_NVLS_ENABLE") == "" {
		if err := os.Setenv("NCCL_NVLS_ENABLE", "0"); err != nil {
			return nil, err
		}
	}
	if c.Join == 0 {
		c.Join = 5 * time.Minute
	}
	control := c.Control.WithDeadline(c.Join)
	var id uniqueID
	if control.Rank() == 0 {
		if err := lib.check("ncclGetUniqueId", lib.getUniqueID(&id), 0); err != nil {
			control.Abort(err)
			return nil, err
		}
	}
	words := make([]int64, len(id.words))
	for i, w := range id.words {
		words[i] = int64(w)
	}
	if err := control.Broadcast(ctx, dtms.Of(words), 0); err != nil {
		return nil, err
	}
	for i, w := range words {
		id.words[i] = uint64(w)
	}
	if c.Siblings == nil {
		c.Siblings = &dtms.Siblings{}
	}
	e := &engine{lib: lib, device: c.Device, control: c.Control, siblings: c.Siblings}
	e.siblings.Add(e.stop)
	err = e.enqueue(time.Now().Add(c.Join), "ncclCommInitRankConfig", func() int32 {
		return lib.initRank(&e.comm, int32(control.Size()), id, int32(control.Rank()), newConfig())
	})
	if err != nil {
		return nil, e.Give(fmt.Errorf("starting NCCL: %w", err))
	}
	return dtms.New(e), nil
}

// Give aborts the group and its siblings because of err, which ends the job.
func (e *engine) Give(err error) error { return e.siblings.Give(e.control, err) }

// stop aborts NCCL's communicator, which ends what is under way on its streams.
func (e *engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.aborted || e.comm == 0 {
		return
	}
	e.aborted = true
	if release, err := e.device.Bind(); err == nil {
		defer release()
	}
	e.lib.abort(e.comm)
}

// enqueue makes an NCCL call on the device and waits until NCCL has taken it, which is not until it is done.
func (e *engine) enqueue(deadline time.Time, name string, call func() int32) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.aborted {
		return errAborted
	}
	release, err := e.device.Bind()
	if err != nil {
		return err
	}
	defer release()
	if err := e.lib.check(name, call(), e.comm); err != nil {
		return err
	}
	for begun := time.Now(); ; onstream.Rest(begun) {
		var state int32
		if err := e.lib.check("ncclCommGetAsyncError", e.lib.getAsyncError(e.comm, &state), e.comm); err != nil {
			return err
		}
		if state != inProgress {
			return e.lib.check(name, state, e.comm)
		}
		if err := e.control.Err(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: NCCL has not taken it in time: %w", name, context.DeadlineExceeded)
		}
	}
}

// Done reports whether all work on a stream has ended.
func (e *engine) Done(s dtms.Stream) (bool, error) { return e.device.Done(s) }

// Failing is what the control communicator knows, or what NCCL found wrong after it took a call.
func (e *engine) Failing() error {
	if err := e.control.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.aborted {
		return errAborted
	}
	var state int32
	if err := e.lib.check("ncclCommGetAsyncError", e.lib.getAsyncError(e.comm, &state), e.comm); err != nil {
		return err
	}
	return e.lib.check("NCCL", state, e.comm)
}

func (e *engine) Rank() int             { return e.control.Rank() }
func (e *engine) Size() int             { return e.control.Size() }
func (e *engine) WorldRank(r int) int   { return e.control.WorldRank(r) }
func (e *engine) Err() error            { return e.control.Err() }
func (e *engine) Traffic() dtms.Traffic { return e.traffic.Snapshot() }
func (e *engine) Abort(reason error)    { e.Give(reason) }
func (e *engine) Announce(ctx context.Context, c dtms.Call) dtms.Pending {
	return e.control.Announce(ctx, c)
}

// Close ends NCCL's communicator, in order if nothing failed, and the control communicator. To destroy one is something that the ranks of a
// node do together, without a time limit, so there is a roll call before: a rank that has something else to do instead is named.
func (e *engine) Close() error {
	if e.control.Err() == nil {
		if err := e.control.Barrier(context.Background()); err != nil {
			return errors.Join(fmt.Errorf("ending NCCL: %w", e.Give(err)), e.control.Close())
		}
	}
	if e.control.Err() != nil {
		e.siblings.Stop()
		return e.control.Close()
	}
	if err := e.enqueue(time.Now().Add(time.Minute), "ncclCommFinalize", func() int32 { return e.lib.commFinalize(e.comm) }); err != nil {
		return errors.Join(fmt.Errorf("ending NCCL: %w", e.Give(err)), e.control.Close())
	}
	return errors.Join(e.destroy(), e.control.Close())
}

// destroy frees a communicator that has been finalized.
func (e *engine) destroy() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	release, err := e.device.Bind()
	if err != nil {
		return err
	}
	defer release()
	e.aborted = true // there is nothing left to abort
	return e.lib.check("ncclCommDestroy", e.lib.destroy(e.comm), 0)
}

// Split makes sub-groups, of NCCL and of the control communicator alike.
func (e *engine) Split(ctx context.Context, deadline time.Time, color, key int) (dtms.Engine, error) {
	control, err := e.control.WithDeadline(time.Until(deadline)).Split(ctx, color, key)
	if err != nil {
		return nil, err
	}
	child := &engine{lib: e.lib, device: e.device, control: control, siblings: e.siblings}
	err = e.enqueue(deadline, "ncclCommSplit", func() int32 {
		return e.lib.split(e.comm, int32(max(color, noColor)), int32(key), &child.comm, newConfig())
	})
	if color >= 0 {
		e.siblings.Add(child.stop)
	}
	if err == nil && color >= 0 { // the new one may not be ready when the old one is
		err = child.enqueue(deadline, "ncclCommSplit", func() int32 { return success })
	}
	if err != nil {
		return nil, e.Give(fmt.Errorf("splitting NCCL's communicator: %w", err))
	}
	if color < 0 {
		return nil, nil
	}
	return child, nil
}
