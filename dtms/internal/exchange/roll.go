package exchange

import (
	"errors"
	"fmt"
	"time"

	"blutrain/dtms"
)

// callKey names a collective call: the group and the number of the call in it.
type callKey struct{ comm, call uint64 }

// roll is the roll call of a collective: what each rank says it has called.
type roll struct {
	members  []int // world ranks; nil until this rank has begun the call
	seen     map[int]Header
	all      chan struct{} // closed when all have begun the same
	conflict bool
}

func (r *roll) waitsFor(rank int) bool {
	if r.members == nil {
		return false
	}
	for _, m := range r.members {
		if _, ok := r.seen[m]; m == rank && !ok {
			return true
		}
	}
	return false
}

// mine is what this rank has called.
func (r *roll) describe(key callKey) string {
	for _, m := range r.members {
		if h, ok := r.seen[m]; ok {
			return describe(h, key.call)
		}
	}
	return fmt.Sprintf("call %d", key.call)
}

func describe(h Header, call uint64) string {
	return fmt.Sprintf("call %d, %s", call, dtms.Describe(h.Op, h.DType, int64(h.Count), int(h.Peer)))
}

// same reports whether two ranks called the same.
func same(a, b Header) bool {
	return a.Op == b.Op && a.DType == b.DType && a.Count == b.Count && a.Peer == b.Peer
}

func (n *Node) roll(key callKey) *roll {
	r := n.rolls[key]
	if r == nil {
		r = &roll{seen: map[int]Header{}, all: make(chan struct{})}
		n.rolls[key] = r
	}
	return r
}

// join begins a collective on this rank.
func (n *Node) join(members []int, h Header) *roll {
	key := callKey{h.Comm, h.Call}
	n.mu.Lock()
	r := n.roll(key)
	r.members = members
	for from := range r.seen {
		n.early[from]--
	}
	r.seen[n.rank] = h
	settled := n.compare(key, r)
	gone := -1
	for _, m := range members {
		if _, ok := r.seen[m]; !ok && n.left[m] {
			gone = m
		}
	}
	n.mu.Unlock()
	for _, m := range members {
		if m != n.rank {
			n.links[m].Post(h, nil)
		}
	}
	if settled {
		n.judge(key)
	}
	if gone >= 0 {
		n.failLeft(gone, describe(h, h.Call))
	}
	return r
}

func (n *Node) onJoin(from int, h Header) error {
	key := callKey{h.Comm, h.Call}
	n.mu.Lock()
	r := n.roll(key)
	if _, twice := r.seen[from]; twice {
		n.mu.Unlock()
		return fmt.Errorf("call %d was begun twice", h.Call)
	}
	r.seen[from] = h
	n.last[from] = h
	if r.members == nil {
		if n.early[from]++; n.early[from] > outstanding {
			n.mu.Unlock()
			return errors.New("too many calls were begun that this rank has not begun")
		}
	}
	settled := n.compare(key, r)
	n.mu.Unlock()
	if settled {
		n.judge(key)
	}
	return nil
}

// compare closes r.all when all members agree. At the first contradiction it gives the others time to show what they
// called; it reports whether that is known of all already. The caller holds n.mu.
func (n *Node) compare(key callKey, r *roll) (settled bool) {
	if r.members == nil {
		return false
	}
	mine, present := r.seen[n.rank], 0
	for _, m := range r.members {
		h, ok := r.seen[m]
		if !ok {
			continue
		}
		present++
		if !same(h, mine) && !r.conflict {
			r.conflict = true
			time.AfterFunc(2*settle, func() { n.judge(key) })
		}
	}
	if present < len(r.members) {
		return false
	}
	if !r.conflict {
		close(r.all)
		delete(n.rolls, key)
	}
	return r.conflict
}

// judge names the ranks that called something else than most, or than the lowest rank at a tie.
func (n *Node) judge(key callKey) {
	n.mu.Lock()
	r := n.rolls[key]
	if r == nil || !r.conflict {
		n.mu.Unlock()
		return
	}
	var ranks []int
	var calls []Header
	for _, m := range r.members {
		if h, ok := r.seen[m]; ok {
			ranks, calls = append(ranks, m), append(calls, h)
		}
	}
	n.mu.Unlock()
	reference := calls[dtms.Majority(calls, same)]
	var right []int
	for i, h := range calls {
		if same(h, reference) {
			right = append(right, ranks[i])
		}
	}
	var errs dtms.RankErrors
	for i, h := range calls {
		if !same(h, reference) {
			errs = append(errs, &dtms.RankError{Rank: ranks[i], Fault: dtms.Mismatched, What: fmt.Sprintf("called %s as call %d, where %s called %s",
				dtms.Describe(h.Op, h.DType, int64(h.Count), int(h.Peer)), key.call, dtms.Ranks(right),
				dtms.Describe(reference.Op, reference.DType, int64(reference.Count), int(reference.Peer)))})
		}
	}
	n.fail(errs, nil)
}

// absent names the ranks that have not begun a call when its time is over.
func (n *Node) absent(r *roll, what string, after time.Duration) dtms.RankErrors {
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs dtms.RankErrors
	for _, m := range r.members {
		if _, ok := r.seen[m]; ok {
			continue
		}
		last := "it has begun no collective yet"
		if h := n.last[m]; h.Kind == Join {
			last = "the last it began is " + describe(h, h.Call)
		}
		errs = append(errs, &dtms.RankError{Rank: m, Fault: dtms.Late,
			What: fmt.Sprintf("is late: it lives but has not begun %s within %s; %s", what, round(after), last)})
	}
	return errs
}

func round(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(time.Second / 10)
	}
	return d.Round(time.Millisecond)
}
