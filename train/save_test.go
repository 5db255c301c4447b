package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/formats"
	"blutrain/formats/atomicfile"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
)

// copying is a bigram whose states are copied late: in the middle of the next step's micro-batches, or when somebody waits.
type copying struct {
	*bigram
	mu      sync.Mutex
	pending func() error
	done    bool
	fail    error
	calls   []string
	buffers int
	full    error // there is no memory for a copy
	slow    time.Duration
}

func (c *copying) Buffer(n int64) ([]byte, error) {
	c.buffers++
	return make([]byte, n), c.full
}

func (c *copying) Snapshot(to map[string][]byte) (wait func() error) {
	c.calls = append(c.calls, "snapshot")
	var once sync.Once
	var err error
	c.done = false
	wait = func() error {
		once.Do(func() {
			time.Sleep(c.slow)
			c.mu.Lock()
			defer c.mu.Unlock()
			for name, dst := range to {
				err = errors.Join(err, c.ReadState(name, dst))
			}
			err = errors.Join(err, c.fail)
			c.done = true
		})
		return err
	}
	c.pending = wait
	return wait
}

// Call wants the states copied before they change.
func (c *copying) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, fn)
	if fn == "apply" && c.pending != nil && !c.done {
		return nil, errors.New("the states change while they are copied")
	}
	return c.bigram.Call(fn, in, s)
}

// TestStatesAreCopiedBesideTheNextStep: the copy is begun behind a step, the next step's micro-batches go on, its update waits.
func TestStatesAreCopiedBesideTheNextStep(t *testing.T) {
	c, model, r := config(t)
	program := &copying{bigram: model, slow: 30 * time.Millisecond}
	c.Program, c.CheckpointDir, c.CheckpointEvery, c.Steps = program, t.TempDir(), 4, 10
	_, err := Run(context.Background(), c)
	require.NoError(t, err)
	require.Len(t, r.saves, 3)
	for i, s := range r.saves {
		require.Equal(t, []int64{4, 8, 10}[i], s.Step)
		require.Less(t, float64(s.Stall), 3000.0)
		require.Positive(t, s.Bytes)
		require.Positive(t, float64(s.Milliseconds))
	}
	require.LessOrEqual(t, program.buffers, 2, "at most two snapshots")
	at := slices.Index(program.calls, "snapshot")
	require.Equal(t, []string{"apply", "snapshot", "accumulate", "accumulate", "accumulate", "apply"}, program.calls[at-1:at+5])

	// What was saved is the state after the step, although the next one went on meanwhile.
	again, other, _ := config(t)
	again.Steps = 4
	_, err = Run(context.Background(), again)
	require.NoError(t, err)
	fresh := newBigram(vocab, batch)
	_, err = LoadParams(fresh, fmt.Sprintf("%s/step-%08d", c.CheckpointDir, 4))
	require.NoError(t, err)
	require.Equal(t, other.states["w"], fresh.states["w"])
}

// TestSnapshotThatFails: the save is reported as failed, and the run goes on to its end.
func TestSnapshotThatFails(t *testing.T) {
	c, model, r := config(t)
	c.Program, c.CheckpointDir, c.CheckpointEvery = &copying{bigram: model, fail: errDevice}, t.TempDir(), 10
	done, err := Run(context.Background(), c)
	require.ErrorContains(t, err, "checkpoint of step 30: device lost")
	require.Equal(t, int64(30), done.Steps)
	require.Empty(t, r.saves)
	_, _, err = checkpoint.Latest(atomicfile.OS{}, c.CheckpointDir)
	require.ErrorIs(t, err, checkpoint.ErrNone)
}

// TestNoMemoryForSnapshots: a run that is to save and can't ends behind its first step, and not at its first save.
func TestNoMemoryForSnapshots(t *testing.T) {
	c, model, _ := config(t)
	c.Program, c.CheckpointDir, c.CheckpointEvery = &copying{bigram: model, full: errors.New("out of memory")}, t.TempDir(), 10
	done, err := Run(context.Background(), c)
	require.ErrorContains(t, err, "after step 1: out of memory")
	require.Equal(t, int64(1), done.Steps)
}

// TestNoPlaceForCheckpoints: a folder that can't be written is told of before the first step.
func TestNoPlaceForCheckpoints(t *testing.T) {
	c, model, _ := config(t)
	c.CheckpointDir = "/dev/null/ckpt"
	_, err := Run(context.Background(), c)
	require.ErrorIs(t, err, syscall.ENOTDIR)
	require.Zero(t, model.calls)
}

// states is a manifest of states with as many elements of f32 as given.
func states(sharded bool, ranks int, elements ...int64) *artifact.Manifest {
	m := &artifact.Manifest{}
	for i, n := range elements {
		s := artifact.State{Value: artifact.Value{Name: fmt.Sprint("s", i), DType: formats.F32, Shape: []int64{n}}, Persist: true}
		if sharded {
			s.Shard = &artifact.Shard{Group: artifact.World, Ranks: ranks, Shape: []int64{n}}
			s.Shape = []int64{s.Shard.Piece()}
		}
		m.States = append(m.States, s)
	}
	return m
}

// onMesh gives each rank of a mesh its shares.
func onMesh(t *testing.T, dp, cp int, m *artifact.Manifest) (all [][]share) {
	all = make([][]share, dp*cp)
	var group sync.WaitGroup
	for r, c := range local.New(dp * cp) {
		group.Go(func() {
			defer c.Close()
			mesh, err := dtms.NewMesh(context.Background(), c, dp, cp)
			if err != nil {
				t.Error(err)
				return
			}
			all[r] = ranks{mesh}.shares(m)
		})
	}
	group.Wait()
	return all
}

// TestEachElementIsWrittenOnce, by one rank, and the ranks write about as much as each other.
func TestEachElementIsWrittenOnce(t *testing.T) {
	elements := []int64{1000, 7, 1, 0, 300, 300, 300, 299, 5, 128}
	for _, mesh := range [][2]int{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {2, 2}, {1, 4}} {
		dp, cp := mesh[0], mesh[1]
		for _, group := range []string{"", artifact.World, artifact.DP, artifact.CP} {
			m := states(group != "", map[string]int{"": 1, artifact.World: dp * cp, artifact.DP: dp, artifact.CP: cp}[group], elements...)
			for i := range m.States {
				if group != "" {
					m.States[i].Shard.Group = group
				}
			}
			written := make([]int, len(elements))
			loads := make([]int64, dp*cp)
			for r, shares := range onMesh(t, dp, cp, m) {
				for i, s := range shares {
					require.LessOrEqual(t, s.bytes(), s.state.Bytes())
					if s.writes {
						written[i] += int(s.end - s.begin)
						loads[r] += s.bytes()
					}
				}
			}
			for i, n := range elements {
				require.Equal(t, int(n), written[i], "mesh %v, group %q, state %d", mesh, group, i)
			}
			if group == "" || group == artifact.World {
				require.LessOrEqual(t, slices.Max(loads)-slices.Min(loads), int64(4*1000), "%v", loads)
			}
		}
	}
}
