package peer

import "blutrain/dtms"

// A station has a number of slots, which pieces use in turn. Of the places of a slot, one for each rank, the owner's is for what it makes, the
// others are for what these push. Behind them are the flags.
const (
	slots       = 4
	flagSpacing = 64
	// stationBytes is the size of a station's slots. For two ranks it makes pieces of 8 MiB: on two H200s an all-reduce of 100 MiB moves 180 GB/s with
	// them, 172 with 4 MiB and 91 with 2 MiB, a reduce-scatter 166, 117 and 51.
	stationBytes = 64 << 20
)

// What a flag says of the pieces up to its number.
const (
	pushed = iota // the rank has pushed them here
	made          // it has made them, and read what was pushed to it
	pulled        // it has pulled them from here
	flagKinds
)

// station is the memory of a rank as it is seen from this one.
type station struct {
	at    uintptr
	ranks int
	piece int64 // bytes
}

// newStation is that of one of so many ranks, with room for pieces of about so many bytes.
func newStation(ranks int, bytes int64) station {
	return station{ranks: ranks, piece: aligned(bytes / slots / int64(ranks))}
}

func (s station) bytes() int64 {
	return slots*int64(s.ranks)*s.piece + int64(flagKinds*s.ranks*flagSpacing)
}

// place is a rank's in a slot.
func (s station) place(slot uint32, rank int) uintptr {
	return s.at + uintptr((int64(slot)*int64(s.ranks)+int64(rank))*s.piece)
}

// flag is what a rank says here.
func (s station) flag(kind, rank int) uintptr {
	return s.at + uintptr(slots*int64(s.ranks)*s.piece) + uintptr((kind*s.ranks+rank)*flagSpacing)
}

// order is what puts work on the streams of a rank; the first error ends it.
type order struct {
	d   Device
	err error
}

func (o *order) do(err error) {
	if o.err == nil {
		o.err = err
	}
}

// enqueue puts calls of one operation on the lanes, behind the work of their stream so far and before what it is given from now on.
func (e *engine) enqueue(calls []dtms.Call) error {
	o := &order{d: e.device}
	stream := calls[0].Stream
	stages := e.lanes.stages()
	for _, s := range stages {
		o.do(o.d.After(s, stream))
	}
	all, most := parts(calls, e.Rank(), e.Size()), int64(0)
	for _, p := range all {
		most = max(most, extent(p))
	}
	for lo := int64(0); lo < most; lo += e.own().piece {
		if e.stopped.Load() {
			return errStopped
		}
		pieces := make([][]span, len(all))
		for p := range all {
			pieces[p] = joined(cut(all[p], lo, lo+e.own().piece))
		}
		e.stages(o, calls[0].Op, pieces)
		if o.err != nil {
			return o.err
		}
	}
	for _, s := range stages {
		o.do(o.d.After(stream, s))
	}
	return o.err
}

// stages moves one piece of each part. What is not moved is said to be all the same: flags count every piece.
func (e *engine) stages(o *order, op dtms.Op, pieces [][]span) {
	number := e.number.Add(1)
	if op != dtms.AllGather {
		e.push(o, pieces, number)
	}
	e.add(o, op, pieces[e.Rank()], number)
	if op == dtms.ReduceScatter {
		pieces = make([][]span, len(pieces))
	}
	e.pull(o, pieces, number)
}

// others are the other ranks, beginning with the next, so that not all begin with the same.
func (e *engine) others() []int {
	ranks := make([]int, 0, e.Size()-1)
	for i := 1; i < e.Size(); i++ {
		ranks = append(ranks, (e.Rank()+i)%e.Size())
	}
	return ranks
}

// push copies pieces to the stations of those who add them up, once these have read what was there before.
func (e *engine) push(o *order, pieces [][]span, number uint32) {
	slot := number % slots
	for _, p := range e.others() {
		o.do(o.d.Await(e.lanes.push, e.own().flag(made, p), number-slots))
		for _, s := range pieces[p] {
			o.do(o.d.Copy(e.lanes.push, e.stations[p].place(slot, e.Rank())+uintptr(s.at), s.in, s.bytes))
		}
		o.do(o.d.Write(e.lanes.push, e.stations[p].flag(pushed, e.Rank()), number))
	}
}

// add adds up the own piece when all have pushed theirs, and puts it where the others pull it once they have what was there before.
func (e *engine) add(o *order, op dtms.Op, piece []span, number uint32) {
	slot, lane := number%slots, e.lanes.add
	for _, p := range e.others() {
		if op != dtms.AllGather {
			o.do(o.d.Await(lane, e.own().flag(pushed, p), number))
		}
		o.do(o.d.Await(lane, e.own().flag(pulled, p), number-slots))
	}
	for _, s := range piece {
		shown := e.own().place(slot, e.Rank()) + uintptr(s.at)
		switch op {
		case dtms.AllReduce:
			o.do(o.d.Sum(lane, []uintptr{s.out, shown}, e.terms(slot, s), s.bytes/4))
		case dtms.ReduceScatter:
			o.do(o.d.Sum(lane, []uintptr{s.out}, e.terms(slot, s), s.bytes/4))
		default:
			o.do(o.d.Copy(lane, shown, s.in, s.bytes))
			if s.in != s.out {
				o.do(o.d.Copy(lane, s.out, s.in, s.bytes))
			}
		}
	}
	for _, p := range e.others() {
		o.do(o.d.Write(lane, e.stations[p].flag(made, e.Rank()), number))
	}
}

// terms are where the numbers of a span are that are added up, by rank.
func (e *engine) terms(slot uint32, s span) []uintptr {
	from := make([]uintptr, e.Size())
	for r := range from {
		from[r] = e.own().place(slot, r) + uintptr(s.at)
	}
	from[e.Rank()] = s.in
	return from
}

// pull copies what the others have made.
func (e *engine) pull(o *order, pieces [][]span, number uint32) {
	for _, p := range e.others() {
		o.do(o.d.Await(e.lanes.pull, e.own().flag(made, p), number))
		for _, s := range pieces[p] {
			o.do(o.d.Copy(e.lanes.pull, s.out, e.stations[p].place(number%slots, p)+uintptr(s.at), s.bytes))
		}
		o.do(o.d.Write(e.lanes.pull, e.stations[p].flag(pulled, e.Rank()), number))
	}
}

// release writes the flags that this rank waits for, beyond any number that it may wait for.
func (e *engine) release() error {
	o := &order{d: e.device}
	for kind := range flagKinds {
		for p := range e.Size() {
			o.do(o.d.Write(e.lanes.rescue, e.own().flag(kind, p), e.number.Load()+1<<30))
		}
	}
	return o.err
}
