package emulate

import "math/bits"

// Who has seen what is kept in vector clocks (Flanagan and Freund, FastTrack, PLDI 2009). An agent is a warp, or something
// that works in the background for one: its cp.async copies, its wgmma products, its bulk stores, the copies that an
// mbarrier counts. An agent's clock moves on when it releases; the lanes of a warp share it, but are known by lane.

// Agents of a warp in a cluster of n warps: the warp itself is number w, its copies n + w, and so on; mbarriers follow.
const (
	asWarp     = iota
	asCopies   // cp.async
	asProducts // wgmma; those before it are of the generic proxy
	asStores   // bulk stores
	asReads    // what bulk stores read
	agentsPerWarp

	genericAgents = asProducts
)

// stamp is what is known of an agent: every lane up to clock `all`, and each up to its own where lanes is there.
type stamp struct {
	all   uint32
	lanes *[32]uint32
}

// covers reports whether the lanes of the mask are known up to a clock.
func (s stamp) covers(mask, clock uint32) bool {
	if s.all >= clock {
		return true
	}
	if s.lanes == nil {
		return false
	}
	for ; mask != 0; mask &= mask - 1 {
		if s.lanes[bits.TrailingZeros32(mask)&31] < clock {
			return false
		}
	}
	return true
}

func (s stamp) lane(l int) uint32 {
	if s.lanes != nil {
		return s.lanes[l]
	}
	return s.all
}

// with is the stamp with lanes of the mask at least at the clocks that a function gives.
func (s stamp) with(mask uint32, clock func(l int) uint32) stamp {
	lanes := new([32]uint32)
	for l := range lanes {
		lanes[l] = s.lane(l)
		if mask>>l&1 == 1 {
			lanes[l] = max(lanes[l], clock(l))
		}
	}
	return normal(lanes)
}

func normal(lanes *[32]uint32) stamp {
	least, most := lanes[0], lanes[0]
	for _, c := range lanes {
		least, most = min(least, c), max(most, c)
	}
	if least == most {
		return stamp{all: least}
	}
	return stamp{least, lanes}
}

func (s stamp) join(o stamp) stamp {
	if o.lanes == nil && s.covers(^uint32(0), o.all) {
		return s
	}
	if s.lanes == nil && o.covers(^uint32(0), s.all) {
		return o
	}
	return s.with(^uint32(0), o.lane)
}

// vector is a stamp for each agent; those past its end are zero. Vectors don't change once made.
type vector []stamp

func (v vector) of(agent int) stamp {
	if agent < len(v) {
		return v[agent]
	}
	return stamp{}
}

func (v vector) join(o vector) vector {
	if len(v) < len(o) {
		v, o = o, v
	}
	out := append(vector(nil), v...)
	for i, s := range o {
		out[i] = out[i].join(s)
	}
	return out
}

// view is what a thread has seen: what happened before, and of that the ordinary accesses to shared memory that a fence has put before
// what the copy engine and the matrix units do. Views don't change once made.
type view struct {
	seen   vector
	fenced vector
}

func (v *view) join(o *view) *view {
	switch {
	case v == o || o == nil:
		return v
	case v == nil:
		return o
	}
	return &view{v.seen.join(o.seen), v.fenced.join(o.fenced)}
}

// raised is a vector with one agent's stamp changed.
func (v vector) raised(agent int, s stamp) vector {
	out := make(vector, max(len(v), agent+1))
	copy(out, v)
	out[agent] = s
	return out
}
