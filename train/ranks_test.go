package train

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/train/data"
	"blutrain/train/logs"
)

// member is one rank of a run in a test.
type member struct {
	Config
	model  *bigram
	record *recorder
	ctx    context.Context
	stop   context.CancelFunc

	done  logs.Done
	err   error
	onEnd func() // called when Run has returned
}

// together runs dp x cp ranks, each of which change may alter first, and gives them by rank.
func together(t *testing.T, dp, cp int, change func(rank int, m *member)) []*member {
	t.Helper()
	return within(t, time.Minute, dp, cp, change)
}

// within is the same with another deadline for what they do together.
func within(t *testing.T, deadline time.Duration, dp, cp int, change func(rank int, m *member)) []*member {
	t.Helper()
	members := make([]*member, dp*cp)
	for r := range members {
		m := &member{}
		m.Config, m.model, m.record = config(t)
		m.ctx, m.stop = context.WithCancel(context.Background())
		defer m.stop()
		if r != 0 {
			m.Logs = func(int64) (logs.Multi, error) { return nil, errors.New("only rank 0 reports") }
		}
		members[r] = m
	}
	var group sync.WaitGroup
	for r, c := range local.New(dp * cp) {
		group.Go(func() {
			m := members[r]
			defer c.Close()
			mesh, err := dtms.NewMesh(context.Background(), c.WithDeadline(deadline), dp, cp)
			if err != nil {
				m.err = err
				return
			}
			m.Mesh = mesh
			m.model.onMesh(mesh)
			if change != nil {
				change(r, m)
			}
			if m.done, m.err = Run(m.ctx, m.Config); m.onEnd != nil {
				m.onEnd()
			}
		})
	}
	group.Wait()
	return members
}

// TestRanksTrainAsOne: the same micro-batches make the same run, whoever takes them. The model's gradients carry noise from the seed
// of the micro-batch, so the seeds are the same, too.
func TestRanksTrainAsOne(t *testing.T) {
	c, _, alone := config(t)
	c.Accumulate = 6
	c.Val, c.ValEvery, c.ValBatches = corpus(t, 8*23+3), 10, 7
	_, err := Run(context.Background(), c)
	require.NoError(t, err)
	for _, mesh := range []struct {
		dp, cp     int
		accumulate int64
	}{{1, 1, 6}, {2, 1, 3}, {3, 1, 2}, {6, 1, 1}, {1, 2, 6}, {2, 2, 3}} {
		ranks := together(t, mesh.dp, mesh.cp, func(rank int, m *member) {
			m.Accumulate, m.Val, m.ValEvery, m.ValBatches = mesh.accumulate, c.Val, 10, 7
		})
		for r, m := range ranks {
			require.NoError(t, m.err, "rank %d of %v", r, mesh)
			require.Equal(t, ranks[0].done.Loss, m.done.Loss)
			require.Equal(t, ranks[0].model.states["w"], m.model.states["w"])
		}
		got := ranks[0].record
		require.Len(t, got.steps, 30)
		for i, s := range got.steps {
			require.InEpsilon(t, float64(alone.steps[i].Loss), float64(s.Loss), 1e-5, "%v, step %d", mesh, i+1)
			tokens := float64(s.TokensPerSec) * float64(s.Milliseconds) / 1000
			require.InDelta(t, 2*8*6, tokens, 1e-6, "tokens of all ranks")
		}
		require.Len(t, got.evals, 3)
		for i, e := range got.evals {
			require.InEpsilon(t, float64(alone.evals[i].Loss), float64(e.Loss), 1e-5, "%v: 7 blocks are left over by 2, 3 and 6 ranks", mesh)
		}
	}
}

// TestRanksStopTogether: when one is interrupted, all end after the same step: the one at hand, or the next if all have been asked in this one.
func TestRanksStopTogether(t *testing.T) {
	for _, c := range []struct {
		call  int // within which one is interrupted; 1 is init, then come three micro-batches and an update for each step
		steps int64
	}{{1 + 1, 1}, {1 + 4*5 + 2, 6}, {1 + 4*5 + 3, 6}, {1 + 4*5 + 4, 7}, {1 + 4*28 + 3, 29}, {1 + 4*28 + 4, 30}, {1 + 4*29 + 1, 30}} {
		ranks := together(t, 3, 1, func(rank int, m *member) {
			if rank == 2 {
				m.model.onCall = func(n int) {
					if n == c.call {
						m.stop()
					}
				}
			}
		})
		for r, m := range ranks {
			require.Equal(t, c.steps, m.done.Steps, "%v", c)
			if c.steps < 30 {
				require.ErrorIs(t, m.err, ErrInterrupted, "rank %d", r)
			} else {
				require.NoError(t, m.err, "rank %d", r)
			}
		}
	}
}

// TestNoStepWaitsForVotes: a rank begins the next step while another is still in its update, for that has said before whether to go on.
func TestNoStepWaitsForVotes(t *testing.T) {
	begun := make(chan struct{})
	ranks := together(t, 2, 1, func(rank int, m *member) {
		m.model.onCall = func(n int) {
			switch {
			case rank == 0 && n == 1+4: // the first update
				select {
				case <-begun:
				case <-time.After(20 * time.Second):
					t.Error("rank 1 waits for rank 0's update")
				}
			case rank == 1 && n == 1+4+1:
				close(begun)
			}
		}
	})
	for _, m := range ranks {
		require.NoError(t, m.err)
	}
}

// TestNobodyListensToRank0: then the other ranks end, too.
func TestNobodyListensToRank0(t *testing.T) {
	ranks := together(t, 2, 1, func(rank int, m *member) {
		m.record.each = func(step int64) error {
			if step == 4 {
				return errors.New("broken pipe")
			}
			return nil
		}
	})
	require.ErrorIs(t, ranks[0].err, logs.ErrNobody)
	require.ErrorIs(t, ranks[1].err, ErrInterrupted)
	require.Equal(t, int64(5), ranks[1].done.Steps, "it was said in the fifth")
}

// TestRanksThatDiffer are found before anything is computed, and named by all.
func TestRanksThatDiffer(t *testing.T) {
	other := corpus(t, 8*40+2)
	seed := uint64(3)
	for want, change := range map[string]func(m *member){
		"rank 1 has artifact another, where hash is expected": func(m *member) { m.Artifact = "another" },
		"rank 1 has steps 31, where 30 is expected":           func(m *member) { m.Steps = 31 },
		"rank 1 has seed 3, where not given is expected":      func(m *member) { m.Seed = &seed },
		"rank 1 has accumulate 4, where 3 is expected":        func(m *member) { m.Accumulate = 4 },
		"rank 1 has training data of 322 tokens, fingerprint": func(m *member) { m.Data = other },
		"rank 1 has validation data of 322 tokens":            func(m *member) { m.Val = other },
		"rank 1 has --val-every 7, where 0 is expected":       func(m *member) { m.ValEvery = 7 },
	} {
		ranks := together(t, 3, 1, func(rank int, m *member) {
			if rank == 1 {
				change(m)
			}
		})
		for r, m := range ranks {
			require.ErrorContains(t, m.err, want, "rank %d", r)
			require.Zero(t, m.model.calls)
		}
	}
}

// TestRankThatFails is named by the others, wherever it fails.
func TestRankThatFails(t *testing.T) {
	for name, change := range map[string]func(m *member){
		"program": func(m *member) { m.model.fail = errDevice },
		"start":   func(m *member) { m.Steps, m.model.manifest.Train.Schedule.Kind = 30, "nonsense" },
		"data":    func(m *member) { m.model.manifest.Args["V"] = 2 },
	} {
		ranks := together(t, 3, 1, func(rank int, m *member) {
			if rank == 2 {
				change(m)
			}
		})
		require.Error(t, ranks[2].err, name)
		require.Empty(t, dtms.Faults(ranks[2].err), "%s: %v", name, ranks[2].err)
		for _, m := range ranks[:2] {
			faults := dtms.Faults(m.err)
			require.Len(t, faults, 1, "%s: %v", name, m.err)
			require.Equal(t, 2, faults[0].Rank, "%s: %v", name, m.err)
		}
	}
}

// TestRankThatHangs is named by the others after the deadline, though it lives.
func TestRankThatHangs(t *testing.T) {
	hang := make(chan struct{})
	ended := make(chan struct{}, 3)
	begun := time.Now()
	ranks := within(t, 500*time.Millisecond, 3, 1, func(rank int, m *member) {
		if rank == 1 {
			m.model.onCall = func(n int) {
				if n == 30 {
					go func() { // the others end first
						<-ended
						<-ended
						close(hang)
					}()
					<-hang
				}
			}
			return
		}
		m.onEnd = func() { ended <- struct{}{} }
	})
	for _, r := range []int{0, 2} {
		faults := dtms.Faults(ranks[r].err)
		require.Len(t, faults, 1, "%v", ranks[r].err)
		require.Equal(t, 1, faults[0].Rank)
		require.Equal(t, dtms.Late, faults[0].Fault)
	}
	require.Less(t, time.Since(begun), 20*time.Second)
	require.Error(t, ranks[1].err)
}

// TestSmallShard: the message has the numbers of ranks, rows and windows.
func TestSmallShard(t *testing.T) {
	small := corpus(t, 8*5+1)
	ranks := together(t, 3, 1, func(rank int, m *member) { m.Data = small })
	for _, m := range ranks {
		require.ErrorContains(t, m.err, "41 tokens in 1 files make 5 windows of S = 8 tokens, a batch of B = 2 on 3 ranks takes 6")
	}
}

// An evaluation has every block once, also those that are left over, which all ranks read.
func TestEvaluationHasEveryBlockOnce(t *testing.T) {
	shards := corpus(t, 8*23+1) // 11 blocks of 2 windows
	for blocks, want := range map[int64]float64{0: 11, 1: 1, 4: 4, 7: 7, 50: 11} {
		for ranks := 1; ranks <= 5; ranks++ {
			total := 0.0
			for rank := range ranks {
				c := data.Config{Inputs: data.Tokens(2, 8), Vocab: vocab, Rank: rank, Ranks: ranks}
				require.NoError(t, evaluation(shards, c, blocks, func(_ data.Batch, shared bool) error {
					if shared {
						total += 1 / float64(ranks)
					} else {
						total++
					}
					return nil
				}))
			}
			require.InDelta(t, want, total, 1e-9, "%d blocks on %d ranks", blocks, ranks)
		}
	}
}
