package prim

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPoolRunsEachTaskOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		p := NewPool(n)
		require.Equal(t, n, p.N())
		for _, tasks := range []int{0, 1, 2, 3, 7, 100, 1000} {
			counts := make([]atomic.Int32, tasks)
			p.Run(tasks, func(worker, task int) {
				if worker < 0 || worker >= n {
					panic("worker out of range")
				}
				counts[task].Add(1)
			})
			for i := range counts {
				require.EqualValues(t, 1, counts[i].Load(), "task %d of %d", i, tasks)
			}
		}
		p.Close()
	}
}

// Many short calls, with pauses long enough that workers park between some.
func TestPoolStress(t *testing.T) {
	p := NewPool(4)
	defer p.Close()
	var sum atomic.Int64
	add := func(_, task int) { sum.Add(int64(task)) }
	const calls, tasks = 3000, 9
	for i := range calls {
		p.Run(tasks, add)
		if i%500 == 0 {
			time.Sleep(2 * time.Millisecond)
		}
	}
	require.EqualValues(t, calls*tasks*(tasks-1)/2, sum.Load())
}

func TestPoolPanicReachesCaller(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	require.PanicsWithValue(t, "task 5: boom", func() {
		p.Run(10, func(_, task int) {
			if task == 5 {
				panic("boom")
			}
		})
	})
	p.Run(3, func(_, _ int) {})
}

func TestPoolMisuse(t *testing.T) {
	p := NewPool(2)
	require.Panics(t, func() { p.Run(2, func(_, _ int) { p.Run(2, func(_, _ int) {}) }) })
	p.Close()
	require.Panics(t, func() { p.Run(2, func(_, _ int) {}) })
}

func TestPoolRunAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var n atomic.Int64
	f := func(_, _ int) { n.Add(1) }
	require.Zero(t, testing.AllocsPerRun(100, func() { p.Run(16, f) }))
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(2)
	defer p.Close()
	f := func(_, _ int) {}
	for b.Loop() {
		p.Run(8, f)
	}
}
