package peer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/formats"
)

// member is a rank of the machine, with the stream that its calls are made on.
type member struct {
	*gpu
	control *dtms.Communicator // of all ranks
	lanes   *Lanes
	stream  dtms.Stream
	with    dtms.Siblings
	room    int64
}

// join connects a rank to a group.
func (m *member) join(ctx context.Context, control *dtms.Communicator) (*dtms.Communicator, error) {
	return Connect(ctx, Config{Control: control, Device: m.gpu, Lanes: m.lanes, Siblings: &m.with, room: m.room, Self: func() (string, string, error) {
		return "here", fmt.Sprint(m.rank), nil
	}})
}

// run runs f as each rank of a machine and gives the ranks' errors.
func (m *machine) run(t *testing.T, room int64, f func(ctx context.Context, m *member) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := make([]error, len(m.gpus))
	var all sync.WaitGroup
	for r, world := range local.New(len(m.gpus)) {
		all.Go(func() {
			lanes, err := NewLanes(m.gpus[r])
			if err == nil {
				lanes.rescue = m.gpus[r].newRescue()
				x := &member{gpu: m.gpus[r], control: world, lanes: lanes, room: room}
				if x.stream, err = m.gpus[r].NewStream(); err == nil {
					err = f(ctx, x)
				}
			}
			if err != nil {
				world.Abort(err)
			}
			errs[r] = errors.Join(err, world.Close())
		})
	}
	all.Wait()
	if w := m.wrong.Load(); w != nil {
		t.Fatal(*w)
	}
	return errs
}

// exchange is a call of several tensors that is under way, and what its results must be.
type exchange struct {
	pending dtms.Pending
	check   func() error
}

// begin starts an operation on tensors of so many elements.
func (m *member) begin(ctx context.Context, c *dtms.Communicator, op dtms.Op, inPlace bool, counts ...int64) exchange {
	n, r := int64(c.Size()), c.Rank()
	var calls []dtms.Call
	var checks []func() error
	for _, count := range counts {
		ins, outs := count, count
		switch op {
		case dtms.ReduceScatter:
			ins = n * count
		case dtms.AllGather:
			outs = n * count
		}
		in := m.alloc(4 * max(ins, outs))
		out := in
		switch {
		case !inPlace:
			out = m.alloc(4 * outs)
		case op == dtms.ReduceScatter:
			out += uintptr(4 * int64(r) * count)
		case op == dtms.AllGather:
			in += uintptr(4 * int64(r) * count)
		}
		_ = m.put(m.stream, func() { // the call is behind it; a dead GPU has no numbers
			given := m.numbers(in, ins)
			for i := range given {
				given[i] = fill(c.WorldRank(r), int64(i))
			}
		})
		calls = append(calls, dtms.Call{Op: op, In: dtms.Device(formats.F32, in, ins), Out: dtms.Device(formats.F32, out, outs), Stream: m.stream})
		checks = append(checks, func() error { return same(m.numbers(out, outs), c, op, count) })
	}
	return exchange{c.StartAll(ctx, calls), func() error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		return nil
	}}
}

// same holds a result to what it must be, bit for bit.
func same(got []float32, c *dtms.Communicator, op dtms.Op, count int64) error {
	sum := func(i int64) float32 {
		s := fill(c.WorldRank(0), i)
		for r := 1; r < c.Size(); r++ {
			s += fill(c.WorldRank(r), i)
		}
		return s
	}
	for i := range int64(len(got)) {
		var want float32
		switch op {
		case dtms.AllReduce:
			want = sum(i)
		case dtms.ReduceScatter:
			want = sum(int64(c.Rank())*count + i)
		case dtms.AllGather:
			want = fill(c.WorldRank(int(i/count)), i%count)
		}
		if math.Float32bits(got[i]) != math.Float32bits(want) {
			return fmt.Errorf("rank %d of %d: %s of %d: element %d is %v, not %v", c.Rank(), c.Size(), op, count, i, got[i], want)
		}
	}
	return nil
}

// end waits for calls and looks at their results.
func end(all []exchange) error {
	for _, x := range all {
		if err := x.pending.Wait(); err != nil {
			return err
		}
	}
	for _, x := range all {
		if err := x.check(); err != nil {
			return err
		}
	}
	return nil
}

var operations = []dtms.Op{dtms.AllReduce, dtms.ReduceScatter, dtms.AllGather}

// sizes are bundles of tensors: single numbers, less than a rank each, odd sizes, none, and more than stations hold.
var sizes = [][]int64{{1}, {1, 1}, {3}, {0, 5, 0}, {64}, {4099}, {768, 1, 20000, 3, 768}, {30001}, {0}}

// Every operation gives the same bits as one rank's sum, whatever streams do meanwhile, also where all of a GPU's streams are one queue.
func TestOperations(t *testing.T) {
	for _, ranks := range []int{2, 3, 4, 8} {
		for _, aliased := range []bool{false, true} {
			if testing.Short() && ranks > 4 && aliased {
				continue // half a minute under the race detector
			}
			t.Run(fmt.Sprintf("%d ranks, aliased %v", ranks, aliased), func(t *testing.T) {
				m := newMachine(t, ranks, aliased, 1<<12)
				errs := m.run(t, 64<<10, func(ctx context.Context, m *member) error {
					c, err := m.join(ctx, m.control)
					if err != nil {
						return err
					}
					var all []exchange
					for i, counts := range sizes {
						for _, op := range operations {
							all = append(all, m.begin(ctx, c, op, i%2 == 0, counts...))
						}
					}
					return errors.Join(end(all), c.Close())
				})
				require.NoError(t, errors.Join(errs...))
			})
		}
	}
}

// Calls of several groups are made on one stream, in turns.
func TestGroups(t *testing.T) {
	m := newMachine(t, 4, false, 1<<12)
	errs := m.run(t, 16<<10, func(ctx context.Context, m *member) error {
		mesh, err := dtms.NewMesh(ctx, m.control, 2, 2)
		if err != nil {
			return err
		}
		var groups []*dtms.Communicator
		for _, g := range []*dtms.Communicator{mesh.World, mesh.DP, mesh.CP} {
			control, err := g.Split(ctx, 0, g.Rank())
			if err != nil {
				return err
			}
			c, err := m.join(ctx, control)
			if err != nil {
				return err
			}
			groups = append(groups, c)
		}
		sub, err := groups[0].Split(ctx, m.rank%2, -m.rank)
		if err != nil {
			return err
		}
		groups = append(groups, sub)
		var all []exchange
		for i := range int64(4) {
			for _, c := range groups {
				for _, op := range operations {
					all = append(all, m.begin(ctx, c, op, false, 1+i*977, 5))
				}
			}
		}
		err = end(all)
		for _, c := range groups {
			err = errors.Join(err, c.Close())
		}
		return errors.Join(err, mesh.Close())
	})
	require.NoError(t, errors.Join(errs...))
}

// The numbers of pieces go on beyond the largest.
func TestNumbersWrap(t *testing.T) {
	m := newMachine(t, 3, false, 1<<12)
	errs := m.run(t, 16<<10, func(ctx context.Context, m *member) error {
		e, err := connect(ctx, Config{Control: m.control, Device: m.gpu, Lanes: m.lanes, room: 16 << 10, Self: func() (string, string, error) { return "here", fmt.Sprint(m.rank), nil }})
		if err != nil {
			return err
		}
		const late = math.MaxUint32 - 5
		e.number.Store(late)
		for kind := range flagKinds {
			for r := range e.Size() {
				*m.word(e.own().flag(kind, r)) = late
			}
		}
		c := dtms.New(e)
		if err := m.control.Barrier(ctx); err != nil {
			return err
		}
		var all []exchange
		for range 4 {
			for _, op := range operations {
				all = append(all, m.begin(ctx, c, op, false, 5000))
			}
		}
		return errors.Join(end(all), c.Close())
	})
	require.NoError(t, errors.Join(errs...))
}

// A rank that dies, wherever it is, ends the others soon, by its name, and leaves none of their streams waiting; also where a rank's queues are full and the
// thread that gives them work stands still.
func TestLosesRank(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		ranks, depth := 2+r.IntN(3), []int{1 << 12, 16}[seed%2]
		victim, calls, delay := r.IntN(ranks), r.IntN(9), time.Duration(r.IntN(30000))*time.Microsecond
		m := newMachine(t, ranks, seed%3 == 2, depth)
		var died sync.Map
		errs := m.run(t, 32<<10, func(ctx context.Context, m *member) error {
			c, err := m.join(ctx, m.control)
			if err != nil {
				return err
			}
			var all []exchange
			memory := m.next
			for i := 0; ; i++ {
				if m.rank == victim && i == calls {
					time.Sleep(delay)
					died.Store("at", time.Now())
					m.dead.Store(true)
					return errPower
				}
				all = append(all, m.begin(ctx, c, operations[i%3], false, 30000, 7))
				if i%4 == 3 {
					if err := end(all); err != nil {
						err = errors.Join(err, c.Close())
						return errors.Join(err, m.idle())
					}
					all, m.next = nil, memory
				}
			}
		})
		at, _ := died.Load("at")
		require.Less(t, time.Since(at.(time.Time)), 5*time.Second, "seed %d", seed) // on a busy machine, under the race detector
		for rank, err := range errs {
			require.ErrorContains(t, err, errPower.Error(), "rank %d, seed %d", rank, seed)
			require.NotContains(t, err.Error(), "has not ended", "rank %d, seed %d", rank, seed)
			if rank != victim {
				require.Equal(t, victim, dtms.Faults(err)[0].Rank, "rank %d, seed %d", rank, seed)
			}
		}
	}
}

// idle waits a moment for the streams, which nothing holds any longer.
func (m *member) idle() error {
	for s := range len(m.queues) {
		begun := time.Now()
		for done := false; !done; time.Sleep(time.Millisecond) {
			if done, _ = m.Done(dtms.Stream(s + 1)); !done && time.Since(begun) > time.Second/2 {
				return fmt.Errorf("stream %d has not ended", s+1)
			}
		}
	}
	return nil
}

// Where memory is out of reach all ranks say so in the same words, have nothing of each other's open, and may go on with the control communicator. A fault is
// another thing.
func TestOutOfReach(t *testing.T) {
	for want, tc := range map[string]struct {
		host, process string
		gpu           odd
	}{
		"rank 0 can't open rank 2's: it is on another machine (there, not here)": {"there", "2", odd{}},
		"rank 0 can't open rank 2's: it is in the same process":                  {"here", "0", odd{}},
		"rank 0 can't open rank 2's: no link between GPUs":                       {"here", "2", odd{id: "99"}},
		"rank 0 can't open rank 2's: nothing is shared":                          {"here", "2", odd{share: &OutOfReach{"nothing is shared"}}},
		"rank 2 can't open rank 0's: mapping is not allowed":                     {"here", "2", odd{open: &OutOfReach{"mapping is not allowed"}}},
		"of fault: too little memory":                                            {"here", "2", odd{share: errors.New("of fault: too little memory")}},
		"of fault: the driver doesn't know the handle":                           {"here", "2", odd{open: errors.New("of fault: the driver doesn't know the handle")}},
	} {
		m := newMachine(t, 3, false, 64)
		found := make([]error, len(m.gpus))
		after := m.run(t, 1<<10, func(ctx context.Context, m *member) error {
			d, host, process := Device(m.gpu), "here", fmt.Sprint(m.rank)
			if m.rank == 2 {
				tc.gpu.gpu = m.gpu
				d, host, process = tc.gpu, tc.host, tc.process
			}
			_, err := Connect(ctx, Config{Control: m.control, Device: d, Lanes: m.lanes, room: 1 << 10, Self: func() (string, string, error) { return host, process, nil }})
			found[m.rank] = err
			if far := (*OutOfReach)(nil); errors.As(err, &far) {
				return m.control.Barrier(ctx)
			}
			return err
		})
		for rank, err := range found {
			require.ErrorContains(t, err, "opening the memory of other GPUs", "rank %d", rank)
			require.ErrorContains(t, err, want, "rank %d", rank)
			require.Len(t, strings.Split(err.Error(), "\n"), 1)
			if strings.HasPrefix(want, "of fault") {
				require.Error(t, after[rank], "rank %d", rank)
				continue
			}
			require.NoError(t, after[rank])
			for other := range found {
				require.False(t, m.gpus[rank].mapped[other].Load(), "rank %d has memory of %d open", rank, other)
			}
		}
	}
}

// odd is a GPU by another name, or one whose memory can't be had.
type odd struct {
	*gpu
	id          string
	share, open error
}

func (o odd) ID() (string, error) {
	if o.id != "" {
		return o.id, nil
	}
	return o.gpu.ID()
}

func (o odd) Share(bytes int64) (uintptr, []byte, error) {
	if o.share != nil {
		return 0, nil, o.share
	}
	return o.gpu.Share(bytes)
}

func (o odd) Map(handle []byte) (uintptr, error) {
	if o.open != nil {
		return 0, o.open
	}
	return o.gpu.Map(handle)
}

// What isn't made here is an error that says so.
func TestRefusals(t *testing.T) {
	m := newMachine(t, 2, false, 64)
	errs := m.run(t, 1<<10, func(ctx context.Context, m *member) error {
		c, err := m.join(ctx, m.control)
		if err != nil {
			return err
		}
		host := dtms.Of([]float32{1})
		if err := c.AllReduce(ctx, host, host); err == nil || !strings.Contains(err.Error(), "only memory of devices") {
			return fmt.Errorf("of host memory: %w", err)
		}
		at := dtms.Device(formats.BF16, m.alloc(4), 2)
		if err := c.AllReduce(ctx, at, at); err == nil || !strings.Contains(err.Error(), "sums of f32 and all-gathers only") {
			return fmt.Errorf("of bf16: %w", err)
		}
		return c.Close()
	})
	require.NoError(t, errors.Join(errs...))
}

// A rank that calls something else is named, and nobody waits for it.
func TestMismatch(t *testing.T) {
	m := newMachine(t, 2, false, 1<<12)
	errs := m.run(t, 16<<10, func(ctx context.Context, m *member) error {
		c, err := m.join(ctx, m.control)
		if err != nil {
			return err
		}
		return end([]exchange{m.begin(ctx, c, dtms.AllReduce, false, 5+int64(m.rank))})
	})
	for rank, err := range errs {
		require.ErrorContains(t, err, "rank 1 called all-reduce of 6 f32", "rank %d", rank)
	}
}
