package dtms

import (
	"context"
	"fmt"
	"time"
)

// DefaultDeadline is how long a call may take where neither the context nor WithDeadline says otherwise: long enough for
// ranks that save a checkpoint or evaluate while the others wait.
const DefaultDeadline = 10 * time.Minute

// Engine is one way to connect ranks. Communicator checks arguments before an engine sees them.
type Engine interface {
	// Rank is this rank's number, Size the number of ranks.
	Rank() int
	Size() int
	// WorldRank is the number in the whole job of rank r of this group.
	WorldRank(r int) int
	// Start begins a call and returns at once. Calls of one rank on one group match the others' in the order of Start.
	Start(ctx context.Context, c Call) Pending
	// Announce takes part in a collective's roll call without moving data: see Communicator.Announce.
	Announce(ctx context.Context, c Call) Pending
	// Err is why no more calls are possible, nil if they are.
	Err() error
	// Split makes sub-groups: see Communicator.Split. Without a group for this rank it returns nil.
	Split(ctx context.Context, deadline time.Time, color, key int) (Engine, error)
	// Traffic counts what this rank sent and received through this group.
	Traffic() Traffic
	// Abort tells the other ranks that this one gives up, and why.
	Abort(reason error)
	// Close leaves the group, in order if nothing failed. Closing the group of the whole job ends the rank's part in it.
	Close() error
}

// Pending is a call under way.
type Pending interface {
	// Wait returns when the call is done, with its error; every time the same. On a device, done means done on the stream.
	Wait() error
}

// Communicator is one rank's view of a group of ranks. One goroutine at a time starts calls on it; any may wait for them.
type Communicator struct {
	engine   Engine
	deadline time.Duration
}

// New makes a communicator of an engine.
func New(e Engine) *Communicator { return &Communicator{engine: e, deadline: DefaultDeadline} }

// WithDeadline is the same communicator, its calls ending after d at the latest.
func (c *Communicator) WithDeadline(d time.Duration) *Communicator {
	return &Communicator{engine: c.engine, deadline: d}
}

// Rank is this rank's number in the group.
func (c *Communicator) Rank() int { return c.engine.Rank() }

// Size is the number of ranks in the group.
func (c *Communicator) Size() int { return c.engine.Size() }

// WorldRank is the number in the whole job of rank r of the group.
func (c *Communicator) WorldRank(r int) int { return c.engine.WorldRank(r) }

// Traffic counts the bytes this rank sent and received through this group, by operation.
func (c *Communicator) Traffic() Traffic { return c.engine.Traffic() }

// Abort tells the other ranks that this one gives up, and why; their calls return an error that names it, or the ranks
// that the reason itself names.
func (c *Communicator) Abort(reason error) { c.engine.Abort(reason) }

// Close leaves the group. Ranks that still wait for this one get an error.
func (c *Communicator) Close() error { return c.engine.Close() }

type failed struct{ err error }

func (f failed) Wait() error { return f.err }

// Start begins a call and returns at once; wrong arguments are an error of Wait. The memory belongs to the call until
// Wait has returned.
func (c *Communicator) Start(ctx context.Context, call Call) Pending {
	if err := call.check(c.Rank(), c.Size()); err != nil {
		return failed{err}
	}
	call.Deadline = c.until(ctx)
	return c.engine.Start(ctx, call)
}

// Announce tells the others that this rank has begun a collective which moves its data by other means, a device's for
// example. It is done when all ranks have announced the same; its errors name those that have not in time, or announced
// another call, as Start's do. Announced calls count among the others in their order.
func (c *Communicator) Announce(ctx context.Context, call Call) Pending {
	if !call.Op.Collective() {
		return failed{fmt.Errorf("%s is not a collective", call.Op)}
	}
	if err := call.check(c.Rank(), c.Size()); err != nil {
		return failed{err}
	}
	call.Deadline = c.until(ctx)
	return c.engine.Announce(ctx, call)
}

// Err is why no more calls are possible on this communicator, nil if they are. It doesn't wait.
func (c *Communicator) Err() error { return c.engine.Err() }

// until is when a call that begins now must have ended.
func (c *Communicator) until(ctx context.Context) time.Time {
	end := time.Now().Add(c.deadline)
	if d, ok := ctx.Deadline(); ok && d.Before(end) {
		return d
	}
	return end
}

// AllReduce sums in over the ranks into out.
func (c *Communicator) AllReduce(ctx context.Context, in, out Memory) error {
	return c.Start(ctx, Call{Op: AllReduce, In: in, Out: out}).Wait()
}

// ReduceScatter sums every rank's block for this rank into out.
func (c *Communicator) ReduceScatter(ctx context.Context, in, out Memory) error {
	return c.Start(ctx, Call{Op: ReduceScatter, In: in, Out: out}).Wait()
}

// AllGather puts every rank's in into out, by rank.
func (c *Communicator) AllGather(ctx context.Context, in, out Memory) error {
	return c.Start(ctx, Call{Op: AllGather, In: in, Out: out}).Wait()
}

// Broadcast copies rank root's memory to all.
func (c *Communicator) Broadcast(ctx context.Context, m Memory, root int) error {
	return c.Start(ctx, Call{Op: Broadcast, Out: m, Peer: root}).Wait()
}

// AllToAll sends block j of in to rank j and receives block j of out from it.
func (c *Communicator) AllToAll(ctx context.Context, in, out Memory) error {
	return c.Start(ctx, Call{Op: AllToAll, In: in, Out: out}).Wait()
}

// Permute sends in to the rank that is shift further, around the ring of all ranks, and gets out from the one that is as far behind.
func (c *Communicator) Permute(ctx context.Context, in, out Memory, shift int) error {
	return c.Start(ctx, Call{Op: Permute, In: in, Out: out, Peer: shift}).Wait()
}

// Barrier returns when all ranks have called it.
func (c *Communicator) Barrier(ctx context.Context) error {
	return c.Start(ctx, Call{Op: Barrier}).Wait()
}

// Send sends to rank to, which must receive.
func (c *Communicator) Send(ctx context.Context, m Memory, to int) error {
	return c.Start(ctx, Call{Op: Send, In: m, Peer: to}).Wait()
}

// Recv receives from rank from.
func (c *Communicator) Recv(ctx context.Context, m Memory, from int) error {
	return c.Start(ctx, Call{Op: Recv, Out: m, Peer: from}).Wait()
}

// Split makes a group of the ranks that give the same color, in the order of key and then of rank. All ranks call it. A
// rank that gives a negative color is in no group and gets nil.
func (c *Communicator) Split(ctx context.Context, color, key int) (*Communicator, error) {
	e, err := c.engine.Split(ctx, c.until(ctx), color, key)
	if err != nil {
		return nil, err
	}
	if color < 0 {
		return nil, nil
	}
	if e == nil {
		return nil, fmt.Errorf("split: the engine gave no group for color %d", color)
	}
	return &Communicator{engine: e, deadline: c.deadline}, nil
}
