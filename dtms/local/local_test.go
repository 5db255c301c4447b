package local

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/internal/enginetest"
	"blutrain/formats"
)

func TestEverything(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 7} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			digests := make([]string, size)
			for range max(1, 4-size) { // and the same again, for the smaller
				require.NoError(t, Run(context.Background(), size, func(ctx context.Context, c *dtms.Communicator) (err error) {
					before := digests[c.Rank()]
					if digests[c.Rank()], err = enginetest.Run(ctx, c); err == nil && before != "" && before != digests[c.Rank()] {
						err = errors.New("other results than the first time")
					}
					return err
				}))
			}
			for _, d := range digests {
				require.Equal(t, digests[0], d)
			}
		})
	}
}

// each runs f as each rank and returns every rank's error.
func each(t *testing.T, size int, f func(context.Context, *dtms.Communicator) error) []error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	errs := make([]error, size)
	var all sync.WaitGroup
	for r, c := range New(size) {
		all.Go(func() { errs[r] = f(ctx, c.WithDeadline(2*time.Second)) })
	}
	all.Wait()
	return errs
}

// requireNamed checks that every error names these ranks, with this fault, and nobody else.
func requireNamed(t *testing.T, errs []error, fault dtms.Fault, ranks ...int) {
	t.Helper()
	for r, err := range errs {
		require.Error(t, err, "rank %d", r)
		var named []int
		for _, e := range dtms.Faults(err) {
			require.Equal(t, fault, e.Fault, "rank %d: %v", r, err)
			named = append(named, e.Rank)
		}
		require.Equal(t, ranks, named, "rank %d: %v", r, err)
	}
}

func TestOtherCalls(t *testing.T) {
	four, five := func() dtms.Memory { return dtms.Of(make([]float32, 4)) }, func() dtms.Memory { return dtms.Of(make([]float32, 5)) }
	ctx := context.Background()
	allReduce := func(m dtms.Memory) func(c *dtms.Communicator) error {
		return func(c *dtms.Communicator) error { return c.AllReduce(ctx, m, m) }
	}
	usual := func(c *dtms.Communicator) error { m := four(); return c.AllReduce(ctx, m, m) }
	for name, tc := range map[string]struct {
		size   int
		odd    int
		call   func(c *dtms.Communicator) error
		expect string
	}{
		"operation":   {4, 2, func(c *dtms.Communicator) error { return c.Barrier(ctx) }, "rank 2 called barrier as call 1, where ranks 0, 1 and 3 called all-reduce of 4 f32"},
		"count":       {3, 0, allReduce(five()), "rank 0 called all-reduce of 5 f32 as call 1, where ranks 1 and 2 called all-reduce of 4 f32"},
		"large count": {3, 1, allReduce(dtms.Of(make([]float32, 1<<20))), "rank 1 called all-reduce of 1048576 f32 as call 1"},
		"shift": {3, 2, func(c *dtms.Communicator) error { return c.Permute(ctx, four(), four(), 2) },
			"rank 2 called permute by 2 of 4 f32 as call 1"},
		"element type":  {3, 1, allReduce(dtms.Of(make([]int32, 4))), "rank 1 called all-reduce of 4 i32 as call 1, where ranks 0 and 2 called all-reduce of 4 f32"},
		"tie":           {2, 1, func(c *dtms.Communicator) error { return c.Broadcast(ctx, four(), 0) }, "rank 1 called broadcast of 4 f32 from rank 0 as call 1, where rank 0 called all-reduce of 4 f32"},
		"another split": {4, 3, func(c *dtms.Communicator) error { _, err := c.Split(ctx, 0, 0); return err }, "rank 3 called split as call 1, where ranks 0-2 called all-reduce of 4 f32"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := each(t, tc.size, func(ctx context.Context, c *dtms.Communicator) error {
				if err := c.Barrier(ctx); err != nil {
					return err
				}
				if c.Rank() == tc.odd {
					return tc.call(c)
				}
				return usual(c)
			})
			requireNamed(t, errs, dtms.Mismatched, tc.odd)
			for _, err := range errs {
				require.ErrorContains(t, err, tc.expect)
			}
		})
	}
}

// TestAnnounce holds that calls on devices get the same roll call.
func TestAnnounce(t *testing.T) {
	device := func(count int64) dtms.Call {
		m := dtms.Device(formats.BF16, 1<<20, count)
		return dtms.Call{Op: dtms.AllReduce, In: m, Out: m, Stream: 3}
	}
	errs := each(t, 3, func(ctx context.Context, c *dtms.Communicator) error {
		return errors.Join(c.Announce(ctx, device(8)).Wait(), c.Barrier(ctx), c.Err())
	})
	require.NoError(t, errors.Join(errs...))
	errs = each(t, 3, func(ctx context.Context, c *dtms.Communicator) error {
		return c.Announce(ctx, device(int64(8+c.Rank()/2))).Wait()
	})
	requireNamed(t, errs, dtms.Mismatched, 2)
	errs = each(t, 3, func(ctx context.Context, c *dtms.Communicator) error {
		if c.Rank() == 1 {
			time.Sleep(300 * time.Millisecond)
			return c.Err()
		}
		return c.WithDeadline(100*time.Millisecond).Announce(ctx, device(8)).Wait()
	})
	requireNamed(t, errs, dtms.Late, 1)
}

func TestOtherRoots(t *testing.T) {
	errs := each(t, 3, func(ctx context.Context, c *dtms.Communicator) error {
		return c.Broadcast(ctx, dtms.Of(make([]float32, 4)), c.Rank()/2)
	})
	requireNamed(t, errs, dtms.Mismatched, 2)
}

func TestOtherSends(t *testing.T) {
	errs := each(t, 2, func(ctx context.Context, c *dtms.Communicator) error {
		if c.Rank() == 0 {
			return c.Send(ctx, dtms.Of(make([]float32, 4)), 1)
		}
		return c.Recv(ctx, dtms.Of(make([]float32, 5)), 0)
	})
	requireNamed(t, errs, dtms.Mismatched, 1)
	require.ErrorContains(t, errs[1], "rank 1 receives 5 f32, where rank 0 has a send of 4 f32 to rank 1")
}

func TestLate(t *testing.T) {
	begun := time.Now()
	errs := each(t, 4, func(ctx context.Context, c *dtms.Communicator) error {
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if c.Rank() == 1 || c.Rank() == 3 {
			time.Sleep(time.Second)
			return c.AllReduce(ctx, dtms.Of([]float32{1}), dtms.Of(make([]float32, 1)))
		}
		return c.WithDeadline(300*time.Millisecond).AllReduce(ctx, dtms.Of([]float32{1}), dtms.Of(make([]float32, 1)))
	})
	requireNamed(t, errs, dtms.Late, 1, 3)
	require.ErrorIs(t, errors.Join(errs[0], errs[2]), context.DeadlineExceeded)
	require.ErrorContains(t, errs[0], "rank 1 is late: it lives but has not begun all-reduce of 1 f32 (call 1) within")
	require.ErrorContains(t, errs[0], "the last it began is call 0, barrier")
	require.Less(t, time.Since(begun), 3*time.Second)
}

func TestLateSends(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c *dtms.Communicator) error{
		"no receiver": func(ctx context.Context, c *dtms.Communicator) error { return c.Send(ctx, dtms.Of([]float32{1}), 1) },
		"no sender":   func(ctx context.Context, c *dtms.Communicator) error { return c.Recv(ctx, dtms.Of([]float32{1}), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			errs := each(t, 3, func(ctx context.Context, c *dtms.Communicator) error {
				if c.Rank() == 0 {
					return call(ctx, c.WithDeadline(200*time.Millisecond))
				}
				return c.Barrier(ctx)
			})
			requireNamed(t, errs, dtms.Late, 1)
		})
	}
}

func TestContext(t *testing.T) {
	reason := errors.New("the disk is full")
	errs := each(t, 3, func(ctx context.Context, c *dtms.Communicator) error {
		if c.Rank() == 2 {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(100*time.Millisecond, func() { cancel(reason) })
			return c.Recv(ctx, dtms.Of([]float32{1}), 0)
		}
		return c.Barrier(ctx)
	})
	requireNamed(t, errs, dtms.Failed, 2)
	require.ErrorIs(t, errs[2], reason)
	require.ErrorContains(t, errs[0], "rank 2 gave up: the disk is full")
}

func TestContextDeadline(t *testing.T) {
	errs := each(t, 2, func(ctx context.Context, c *dtms.Communicator) error {
		if c.Rank() == 1 {
			time.Sleep(400 * time.Millisecond)
			return c.Barrier(ctx)
		}
		ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		return c.Barrier(ctx)
	})
	requireNamed(t, errs, dtms.Late, 1)
}

func TestGivingUp(t *testing.T) {
	for name, give := range map[string]func() error{
		"error": func() error { return errors.New("shard 3 is damaged") },
		"panic": func() error { panic("shard 3 is damaged") },
	} {
		t.Run(name, func(t *testing.T) {
			errs := make([]error, 3)
			err := Run(context.Background(), 3, func(ctx context.Context, c *dtms.Communicator) error {
				if c.Rank() == 1 {
					return give()
				}
				errs[c.Rank()] = c.AllReduce(ctx, dtms.Of([]float32{1}), dtms.Of(make([]float32, 1)))
				return errs[c.Rank()]
			})
			require.ErrorContains(t, err, "shard 3 is damaged")
			requireNamed(t, []error{errs[0], errs[2]}, dtms.Failed, 1)
			require.ErrorContains(t, errs[0], "shard 3 is damaged")
		})
	}
}

func TestLeaving(t *testing.T) {
	errs := make([]error, 3)
	err := Run(context.Background(), 3, func(ctx context.Context, c *dtms.Communicator) error {
		if c.Rank() == 0 {
			return nil
		}
		if c.Rank() == 1 {
			time.Sleep(50 * time.Millisecond) // begins after rank 0 has left
		}
		errs[c.Rank()] = c.AllReduce(ctx, dtms.Of([]float32{1}), dtms.Of(make([]float32, 1)))
		return nil
	})
	require.NoError(t, err)
	requireNamed(t, errs[1:], dtms.Left, 0)
	require.ErrorContains(t, errs[1], "rank 0 left the job before its part of ")
}

// TestAfterFailure holds that a failure is final and that closed communicators say so.
func TestAfterFailure(t *testing.T) {
	errs := each(t, 2, func(ctx context.Context, c *dtms.Communicator) error {
		sub, err := c.Split(ctx, 0, 0)
		if err != nil {
			return err
		}
		if c.Rank() == 1 {
			c.Abort(errors.New("enough"))
		} else if err := c.Barrier(ctx); err == nil {
			return nil
		}
		return sub.Barrier(ctx)
	})
	requireNamed(t, errs, dtms.Failed, 1)

	c := New(1)[0]
	require.NoError(t, c.Close())
	require.ErrorContains(t, c.Barrier(context.Background()), "closed")
}

func TestAgree(t *testing.T) {
	facts := func(artifact string) []dtms.Fact {
		return []dtms.Fact{{Name: "artifact", Value: artifact}, {Name: "dtype", Value: "f32"}}
	}
	errs := each(t, 3, func(ctx context.Context, c *dtms.Communicator) error { return dtms.Agree(ctx, c, facts("ab12")) })
	require.NoError(t, errors.Join(errs...))

	errs = each(t, 4, func(ctx context.Context, c *dtms.Communicator) error {
		switch c.Rank() {
		case 0:
			return dtms.Agree(ctx, c, facts("cd34"))
		case 2:
			return dtms.Agree(ctx, c, facts("ab12")[:1])
		}
		return dtms.Agree(ctx, c, facts("ab12"))
	})
	requireNamed(t, errs, dtms.Mismatched, 0, 2)
	for _, err := range errs {
		require.ErrorContains(t, err, "rank 0 has artifact cd34, where ab12 is expected")
		require.ErrorContains(t, err, "rank 2 has no dtype, where f32 is expected")
	}
}
