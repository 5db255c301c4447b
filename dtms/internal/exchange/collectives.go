package exchange

import (
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"blutrain/dtms"
)

const (
	// segment is how much of a block is summed at a time; a multiple of every element's size.
	segment = MaxPayload
	// window is how many segments of each other rank may be under way before they are summed.
	window = 4

	// Parts of a collective: contributions to a block are numbered by segment, results go as one transfer.
	results       = 1 << 31
	pointToPoint  = 1<<32 - 1
	segmentsLimit = results - 1
)

// move does the call's transfers.
func (x *exchange) move() error {
	in, out := x.call.In.Data(), x.call.Out.Data()
	switch x.call.Op {
	case dtms.AllReduce:
		return x.allReduce(in, out)
	case dtms.ReduceScatter:
		return x.reduceScatter(in, out)
	case dtms.AllGather, dtms.Split:
		return x.allGather(in, out)
	case dtms.Broadcast:
		return x.broadcast(out)
	case dtms.AllToAll:
		return x.allToAll(in, out)
	case dtms.Permute:
		return x.permute(in, out)
	case dtms.Barrier:
		return nil
	case dtms.Send:
		return x.sendPart(pointToPoint, x.call.Peer, in)
	case dtms.Recv:
		return x.node.wait(x.receive(pointToPoint, x.call.Peer, out))
	}
	return fmt.Errorf("%s is not implemented", x.call.Op)
}

func (x *exchange) key(part uint32, rank int) transferKey {
	return transferKey{x.group.comm, x.number, part, x.group.members[rank]}
}

// receive announces memory for a part that rank sends.
func (x *exchange) receive(part uint32, rank int, dst []byte) *incoming {
	t := x.node.receive(x.key(part, rank), x.call.DType(), dst, x.call.Describe())
	x.mu.Lock()
	x.receives = append(x.receives, t)
	x.mu.Unlock()
	x.group.counters[x.call.Op].received.Add(int64(len(dst)))
	return t
}

// sendPart sends a part to rank.
func (x *exchange) sendPart(part uint32, rank int, data []byte) error {
	x.group.counters[x.call.Op].sent.Add(int64(len(data)))
	return x.node.send(x.key(part, rank), x.call.DType(), data, x.call.Describe())
}

// others calls f for every other rank of the group, beginning after this one so that not all call on rank 0 first.
func (x *exchange) others(f func(rank int)) {
	size := x.group.Size()
	for i := 1; i < size; i++ {
		f((x.group.rank + i) % size)
	}
}

// block is rank's block of b when its elements are dealt out as evenly as whole elements allow, the first ranks first.
func (x *exchange) block(b []byte, rank int) []byte {
	unit := x.call.DType().Size()
	count, size := len(b)/unit, x.group.Size()
	per := (count + size - 1) / size
	lo, hi := min(rank*per, count), min((rank+1)*per, count)
	return b[lo*unit : hi*unit]
}

func segments(b []byte) int { return (len(b) + segment - 1) / segment }

func segmentOf(b []byte, i int) []byte { return b[i*segment : min((i+1)*segment, len(b))] }

// allReduce sums this rank's block and sends every other rank its contributions and this rank's results. In and out may be
// the same: rank p's results for a segment come only after p has this rank's contribution to it.
func (x *exchange) allReduce(in, out []byte) error {
	me := x.group.rank
	if x.group.Size() == 1 {
		copy(out, in)
		return nil
	}
	var group errgroup.Group
	mine := x.block(out, me)
	summed := make([]chan struct{}, segments(mine))
	for i := range summed {
		summed[i] = make(chan struct{})
	}
	x.others(func(p int) {
		t := x.receive(results, p, x.block(out, p))
		group.Go(func() error { return x.node.wait(t) })
	})
	x.others(func(p int) {
		group.Go(func() error { return x.contribute(p, x.block(in, p)) })
		group.Go(func() error { return x.publish(p, mine, summed) })
	})
	group.Go(func() error {
		return x.sum(x.block(in, me), mine, func(i int) { close(summed[i]) })
	})
	return group.Wait()
}

func (x *exchange) reduceScatter(in, out []byte) error {
	me := x.group.rank
	var group errgroup.Group
	x.others(func(p int) {
		group.Go(func() error { return x.contribute(p, x.block(in, p)) })
	})
	group.Go(func() error { return x.sum(x.block(in, me), out, func(int) {}) })
	return group.Wait()
}

// contribute sends this rank's part of rank p's block, a segment at a time.
func (x *exchange) contribute(p int, block []byte) error {
	for i := range segments(block) {
		if err := x.sendPart(uint32(i), p, segmentOf(block, i)); err != nil {
			return err
		}
	}
	return nil
}

// publish sends this rank's results to rank p as they become ready.
func (x *exchange) publish(p int, block []byte, ready []chan struct{}) error {
	if len(block) == 0 {
		return nil
	}
	x.group.counters[x.call.Op].sent.Add(int64(len(block)))
	key := x.key(results, p)
	if err := x.node.open(key, x.call.DType(), len(block), x.call.Describe()); err != nil {
		return err
	}
	for i := range ready {
		if err := x.node.await(ready[i]); err != nil {
			return err
		}
		if err := x.node.write(key, i*segment, segmentOf(block, i)); err != nil {
			return err
		}
	}
	return nil
}

// sum adds the other ranks' contributions to this rank's block and calls done for each segment of the result. It holds at
// most window segments of each other rank.
func (x *exchange) sum(own, out []byte, done func(i int)) error {
	count := segments(own)
	if count > segmentsLimit {
		return fmt.Errorf("a block of %d bytes is too large", len(own))
	}
	size, me := x.group.Size(), x.group.rank
	scratch := make([][]byte, size)
	x.others(func(p int) { scratch[p] = make([]byte, min(window*segment, len(own))) })
	slot := func(p, i int) []byte {
		at := i % window * segment
		return scratch[p][at : at+len(segmentOf(own, i))]
	}
	coming := make([][window]*incoming, size)
	post := func(i int) {
		x.others(func(p int) { coming[p][i%window] = x.receive(uint32(i), p, slot(p, i)) })
	}
	for i := range min(window, count) {
		post(i)
	}
	terms := make([][]byte, size)
	for i := range count {
		for p := range size {
			if p == me {
				terms[p] = segmentOf(own, i)
				continue
			}
			if err := x.node.wait(coming[p][i%window]); err != nil {
				return err
			}
			terms[p] = slot(p, i)
		}
		addInOrder(x.call.DType(), segmentOf(out, i), terms)
		if i+window < count {
			post(i + window)
		}
		done(i)
	}
	return nil
}

func (x *exchange) allGather(in, out []byte) error {
	copy(x.block(out, x.group.rank), in)
	var group errgroup.Group
	x.others(func(p int) {
		t := x.receive(results, p, x.block(out, p))
		group.Go(func() error { return x.node.wait(t) })
		group.Go(func() error { return x.sendPart(results, p, in) })
	})
	return group.Wait()
}

func (x *exchange) allToAll(in, out []byte) error {
	me := x.group.rank
	copy(x.block(out, me), x.block(in, me))
	var group errgroup.Group
	x.others(func(p int) {
		t := x.receive(results, p, x.block(out, p))
		group.Go(func() error { return x.node.wait(t) })
		group.Go(func() error { return x.sendPart(results, p, x.block(in, p)) })
	})
	return group.Wait()
}

func (x *exchange) permute(in, out []byte) error {
	me, size := x.group.rank, x.group.Size()
	to, from := (me+x.call.Peer)%size, (me+size-x.call.Peer)%size
	if to == me {
		copy(out, in)
		return nil
	}
	var group errgroup.Group
	t := x.receive(results, from, out)
	group.Go(func() error { return x.node.wait(t) })
	group.Go(func() error { return x.sendPart(results, to, in) })
	return group.Wait()
}

// broadcast deals the root's memory out in blocks, which the ranks then exchange, so that the root does not send all of it
// to everyone (van de Geijn's scatter and all-gather).
func (x *exchange) broadcast(b []byte) error {
	me, root := x.group.rank, x.call.Peer
	var group errgroup.Group
	if me == root {
		x.others(func(p int) {
			group.Go(func() error { return x.sendPart(0, p, x.block(b, p)) })
			group.Go(func() error { return x.sendPart(results, p, x.block(b, me)) })
		})
		return group.Wait()
	}
	mine := x.receive(0, root, x.block(b, me))
	x.others(func(p int) {
		t := x.receive(results, p, x.block(b, p))
		group.Go(func() error { return x.node.wait(t) })
	})
	if err := x.node.wait(mine); err != nil {
		return errors.Join(err, group.Wait())
	}
	x.others(func(p int) {
		if p != root {
			group.Go(func() error { return x.sendPart(results, p, x.block(b, me)) })
		}
	})
	return group.Wait()
}
