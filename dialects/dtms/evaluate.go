package dtms

import (
	"fmt"
	"sync"

	"blutrain/ir"
)

// Rank is one of the ranks that Evaluate runs.
type Rank struct {
	World, DP, CP int // its place in each group
	Exchange      func(op *ir.Op, in []ir.Datum) ([]ir.Datum, error)
}

// Scalar is the value of a run-time scalar that says where the rank is: DPRank, CPRank or WorldRank.
func (r *Rank) Scalar(name string) *ir.Tensor {
	return &ir.Tensor{Data: []float64{float64(map[string]int{DPRank: r.DP, CPRank: r.CP, WorldRank: r.World}[name])}}
}

// Evaluate calls each for every rank of a mesh of dp times cp ranks, side by side. Each evaluates functions with an ir.Interp
// whose Exchange is the rank's: there the ranks of a group meet. One rank works at a time, so that they may share a module.
// A rank that fails, or doesn't come to where others wait for it, is an error for all.
func Evaluate(dp, cp int, each func(r *Rank) error) error {
	c := &cluster{dp: dp, cp: cp, working: dp * cp, meetings: map[string]*meeting{}}
	c.arrived.L = &c.turn
	var all sync.WaitGroup
	for d := range dp {
		for p := range cp {
			r := &Rank{World: d*cp + p, DP: d, CP: p}
			r.Exchange = func(op *ir.Op, in []ir.Datum) ([]ir.Datum, error) { return c.exchange(r, op, in) }
			all.Go(func() {
				c.turn.Lock()
				defer c.turn.Unlock()
				c.finish(r, each(r))
			})
		}
	}
	all.Wait()
	return c.err
}

// cluster is what the ranks have in common, guarded by turn, which the rank that works holds.
type cluster struct {
	dp, cp   int
	turn     sync.Mutex
	arrived  sync.Cond
	working  int // ranks that neither wait nor are done
	meetings map[string]*meeting
	err      error // the first
}

// meeting is one collective of one group.
type meeting struct {
	call    Call
	in, out [][]ir.Datum
	missing int
}

// exchange waits until all ranks of the group have come to the same collective.
func (c *cluster) exchange(r *Rank, op *ir.Op, in []ir.Datum) ([]ir.Datum, error) {
	if c.err != nil {
		return nil, c.err
	}
	call := CallOf(op)
	key, place, size := c.group(r, call.Group)
	m := c.meetings[key]
	if m == nil {
		m = &meeting{call: call, in: make([][]ir.Datum, size), missing: size}
		c.meetings[key] = m
	}
	if m.call != call {
		return nil, fmt.Errorf("rank %d comes with %s of %d elements to where others do %s of %d", r.World, call.Op, call.Elems, m.call.Op, m.call.Elems)
	}
	m.in[place] = in
	if m.missing--; m.missing == 0 {
		delete(c.meetings, key)
		out, err := Combine(call, m.in)
		if err != nil {
			return nil, err
		}
		m.out = out
		c.working += size - 1
		c.arrived.Broadcast()
		return out[place], nil
	}
	c.working--
	c.stuck()
	for m.out == nil && c.err == nil {
		c.arrived.Wait()
	}
	if m.out == nil {
		return nil, c.err
	}
	return m.out[place], nil
}

// group is which group of that name the rank is in, its place there, and the group's size.
func (c *cluster) group(r *Rank, name string) (key string, place, size int) {
	switch name {
	case DP:
		return fmt.Sprint(DP, r.CP), r.DP, c.dp
	case CP:
		return fmt.Sprint(CP, r.DP), r.CP, c.cp
	}
	return World, r.World, c.dp * c.cp
}

// finish notes that a rank is done.
func (c *cluster) finish(r *Rank, err error) {
	if err != nil && c.err == nil {
		c.err = fmt.Errorf("rank %d: %w", r.World, err)
		c.arrived.Broadcast()
	}
	if c.err == nil {
		c.working--
		c.stuck()
	}
}

// stuck makes it an error when all ranks that are not done wait.
func (c *cluster) stuck() {
	if c.working > 0 || len(c.meetings) == 0 || c.err != nil {
		return
	}
	for _, m := range c.meetings {
		c.err = fmt.Errorf("%d ranks of group %s never come to the %s where the others wait", m.missing, m.call.Group, m.call.Op)
	}
	c.arrived.Broadcast()
}
