package exchange

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blutrain/dtms"
)

// Group is a dtms.Engine: some ranks of a node's job.
type Group struct {
	node     *Node
	comm     uint64
	members  []int // world ranks, by rank in the group
	rank     int
	closing  func() error // of the group of all ranks
	counters [len(dtms.Traffic{})]counter

	mu    sync.Mutex
	calls uint64          // collectives begun
	tail  <-chan struct{} // closed when the latest collective is done
	pairs map[pair]uint64 // sends and receives begun, by direction and rank
}

type counter struct{ calls, sent, received atomic.Int64 }

type pair struct {
	send bool
	rank int
}

// World is the group of all ranks. closing, called once by its Close, ends the transport and reports what went wrong.
func World(n *Node, closing func() error) *Group {
	members := make([]int, n.size)
	for i := range members {
		members[i] = i
	}
	return newGroup(n, 0, members, closing)
}

func newGroup(n *Node, comm uint64, members []int, closing func() error) *Group {
	done := make(chan struct{})
	close(done)
	return &Group{node: n, comm: comm, members: members, rank: slices.Index(members, n.rank), closing: closing, tail: done, pairs: map[pair]uint64{}}
}

// Rank is this rank's number in the group.
func (g *Group) Rank() int { return g.rank }

// Size is the number of ranks in the group.
func (g *Group) Size() int { return len(g.members) }

// WorldRank is the number in the job of rank r of the group.
func (g *Group) WorldRank(r int) int { return g.members[r] }

// Abort tells all ranks of the job that this one gives up.
func (g *Group) Abort(reason error) { g.node.Abort(reason) }

// Close ends the rank's part in the job if the group is that of all ranks.
func (g *Group) Close() error {
	if g.closing == nil {
		return nil
	}
	g.node.Leave()
	return g.closing()
}

// Traffic counts bytes by operation.
func (g *Group) Traffic() dtms.Traffic {
	var t dtms.Traffic
	for o := range t {
		c := &g.counters[o]
		t[o] = dtms.Volume{Calls: c.calls.Load(), Sent: c.sent.Load(), Received: c.received.Load()}
	}
	return t
}

// pending is a call under way.
type pending struct {
	done chan struct{}
	err  error
}

// Wait returns when the call is done.
func (p *pending) Wait() error {
	<-p.done
	return p.err
}

// Start begins a call. Collectives of a group run one after the other, in the order of Start; sends and receives at once.
func (g *Group) Start(ctx context.Context, c dtms.Call) dtms.Pending {
	if c.In.OnDevice() || c.Out.OnDevice() || c.Stream != 0 {
		return failedCall(errors.New("this engine moves memory of the process only, not a device's"))
	}
	return g.begin(ctx, &exchange{group: g, node: g.node, call: c, begun: time.Now()})
}

// Announce takes part in the roll call of a collective and moves nothing.
func (g *Group) Announce(ctx context.Context, c dtms.Call) dtms.Pending {
	return g.begin(ctx, &exchange{group: g, node: g.node, call: c, begun: time.Now(), announced: true})
}

// Err is why no more calls are possible.
func (g *Group) Err() error { return g.node.Err() }

func failedCall(err error) dtms.Pending {
	p := &pending{done: make(chan struct{}), err: err}
	close(p.done)
	return p
}

func (g *Group) begin(ctx context.Context, x *exchange) dtms.Pending {
	if err := g.node.Err(); err != nil {
		return failedCall(err)
	}
	c, p := x.call, &pending{done: make(chan struct{})}
	g.counters[c.Op].calls.Add(1)
	var before <-chan struct{}
	g.mu.Lock()
	if c.Op.Collective() {
		x.number = g.calls
		g.calls++
		before, g.tail = g.tail, p.done
	} else {
		way := pair{c.Op == dtms.Send, c.Peer}
		x.number = g.pairs[way]
		g.pairs[way]++
	}
	if c.Op.Collective() {
		x.roll = g.node.join(g.members, x.header())
	}
	g.mu.Unlock()
	go func() {
		p.err = x.run(ctx, before)
		close(p.done)
	}()
	return p
}

// Split makes sub-groups out of everyone's color and key.
func (g *Group) Split(ctx context.Context, deadline time.Time, color, key int) (dtms.Engine, error) {
	wishes := make([]int64, 2*g.Size())
	call := dtms.Call{Op: dtms.Split, In: dtms.Of([]int64{int64(color), int64(key)}), Out: dtms.Of(wishes), Deadline: deadline}
	p := g.Start(ctx, call)
	if err := p.Wait(); err != nil {
		return nil, err
	}
	if color < 0 {
		return nil, nil
	}
	var ranks []int
	for r := range g.members {
		if wishes[2*r] == int64(color) {
			ranks = append(ranks, r)
		}
	}
	slices.SortStableFunc(ranks, func(a, b int) int {
		switch ka, kb := wishes[2*a+1], wishes[2*b+1]; {
		case ka < kb:
			return -1
		case ka > kb:
			return 1
		}
		return 0
	})
	members := make([]int, len(ranks))
	for i, r := range ranks {
		members[i] = g.members[r]
	}
	g.mu.Lock()
	id := childID(g.comm, g.calls, members)
	g.mu.Unlock()
	return newGroup(g.node, id, members, nil), nil
}

// childID names a sub-group alike on all of its ranks: a hash of the parent, its number of calls and the members.
func childID(parent, calls uint64, members []int) uint64 {
	b := binary.LittleEndian.AppendUint64(nil, parent)
	b = binary.LittleEndian.AppendUint64(b, calls)
	for _, m := range members {
		b = binary.LittleEndian.AppendUint64(b, uint64(m))
	}
	sum := sha256.Sum256(b)
	return binary.LittleEndian.Uint64(sum[:]) | 1 // the world is 0
}

// exchange is one call under way on this rank.
type exchange struct {
	group  *Group
	node   *Node
	call   dtms.Call
	number uint64 // of the call in its group, or of the send or receive between its two ranks
	roll   *roll  // of a collective
	begun  time.Time

	announced bool // only the roll call

	mu       sync.Mutex
	receives []*incoming
}

func (x *exchange) header() Header {
	c := x.call
	h := Header{Kind: Join, Op: c.Op, DType: c.DType(), Comm: x.group.comm, Call: x.number, Count: uint64(c.Count())}
	if c.Op == dtms.Broadcast || c.Op == dtms.Permute {
		h.Peer = uint32(c.Peer)
	}
	return h
}

// run does the call, after the collective before it. However it ends, nothing touches the call's memory afterwards.
func (x *exchange) run(ctx context.Context, before <-chan struct{}) error {
	finished := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		x.watch(ctx, finished)
		close(watched)
	}()
	err := x.steps(before)
	if err != nil {
		for _, t := range x.receives {
			t.detach()
		}
		err = fmt.Errorf("%s: %w", x.call.Describe(), err)
	}
	close(finished)
	<-watched
	return err
}

func (x *exchange) steps(before <-chan struct{}) error {
	if before != nil {
		if err := x.node.await(before); err != nil {
			return err
		}
	}
	if !x.announced {
		if err := x.move(); err != nil {
			return err
		}
	}
	if x.roll == nil {
		return nil
	}
	return x.node.await(x.roll.all)
}

// watch fails the job when the call's time is over or its context ends.
func (x *exchange) watch(ctx context.Context, finished <-chan struct{}) {
	timer := time.NewTimer(time.Until(x.call.Deadline))
	defer timer.Stop()
	select {
	case <-finished:
	case <-x.node.failed:
	case <-ctx.Done():
		if ctx.Err() == context.DeadlineExceeded {
			x.late()
			return
		}
		cause := context.Cause(ctx)
		x.node.fail(dtms.RankErrors{{Rank: x.node.rank, Fault: dtms.Failed, What: "gave up: " + cause.Error()}}, cause)
	case <-timer.C:
		x.late()
	}
}

// late names the ranks that keep the call from ending: those that have not begun it, or else those whose bytes have not come.
func (x *exchange) late() {
	after := time.Since(x.begun)
	what := fmt.Sprintf("%s (call %d)", x.call.Describe(), x.number)
	var errs dtms.RankErrors
	if x.roll != nil {
		errs = x.node.absent(x.roll, what, after)
	}
	if len(errs) == 0 {
		for _, rank := range x.unfinished() {
			errs = append(errs, &dtms.RankError{Rank: rank, Fault: dtms.Late, What: fmt.Sprintf("is late: it lives but has not done its part of %s within %s", what, round(after))})
		}
	}
	if len(errs) == 0 {
		errs = dtms.RankErrors{{Rank: x.node.rank, Fault: dtms.Late, What: fmt.Sprintf("is late: it did not end %s within %s", what, round(after))}}
	}
	x.node.fail(errs, context.DeadlineExceeded)
}

// unfinished lists the ranks that have not sent what this rank waits for or not received what it sends.
func (x *exchange) unfinished() []int {
	mine := func(key transferKey) bool {
		return key.comm == x.group.comm && key.call == x.number && (key.part == pointToPoint) == (x.roll == nil)
	}
	n := x.node
	n.mu.Lock()
	defer n.mu.Unlock()
	var ranks []int
	for key := range n.incoming {
		if mine(key) {
			ranks = append(ranks, key.peer)
		}
	}
	for key, g := range n.grants {
		if mine(key) && g.wanted && !g.given {
			ranks = append(ranks, key.peer)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
