package prim

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// A Pool runs the tasks of one call at a time on a fixed set of workers. The
// goroutine that calls Run is worker 0. Workers take tasks in ascending order
// from an atomic counter, so which worker runs a task is left to chance and no
// result may depend on it.
type Pool struct {
	workers []*worker // workers 1..n-1
	busy    atomic.Bool
	closed  atomic.Bool

	// left counts the tasks not yet taken; a worker that brings it from a
	// positive value down by one owns task tasks-left. f and tasks are written
	// before left and can't change while a taken task is unfinished, so a
	// worker that comes late reads either nothing or the current call's.
	left  atomic.Int64
	f     func(worker, task int)
	tasks int

	done   atomic.Int64 // tasks finished
	caller sleeper
	failed atomic.Pointer[panicked]
}

type panicked struct{ value any }

// spins is how many times a waiting worker looks for work, one pause
// instruction (about 40 cycles on current processors) a look, before it parks:
// some tens of microseconds, the usual distance between two calls of one step.
const spins = 1000

// NewPool starts a pool of n workers, the caller of Run included; n <= 0 means
// GOMAXPROCS.
func NewPool(n int) *Pool {
	if n <= 0 {
		n = runtime.GOMAXPROCS(0)
	}
	p := &Pool{}
	p.caller.init()
	for i := 1; i < n; i++ {
		w := &worker{pool: p, id: i}
		w.init()
		p.workers = append(p.workers, w)
	}
	for _, w := range p.workers {
		go w.loop()
	}
	return p
}

// N is the number of workers, the caller of Run included. Worker numbers given
// to tasks are below it.
func (p *Pool) N() int { return len(p.workers) + 1 }

// Run calls f(worker, task) once for each task in [0, tasks) and returns when
// all are done. It allocates nothing. A panic in a task is raised again here,
// after the other tasks. Run must not be called from a task, nor by two
// goroutines at once.
func (p *Pool) Run(tasks int, f func(worker, task int)) {
	if tasks <= 0 {
		return
	}
	if tasks == 1 || len(p.workers) == 0 {
		for t := range tasks {
			f(0, t)
		}
		return
	}
	if p.closed.Load() || !p.busy.CompareAndSwap(false, true) {
		panic("prim: Pool.Run on a pool that is closed or already running")
	}
	p.f, p.tasks = f, tasks
	p.done.Store(0)
	p.left.Store(int64(tasks))
	for _, w := range p.workers[:min(len(p.workers), tasks-1)] {
		w.wake()
	}
	p.work(0)
	p.caller.wait(func() bool { return p.done.Load() == int64(tasks) })
	p.f = nil
	failed := p.failed.Swap(nil)
	p.busy.Store(false)
	if failed != nil {
		panic(failed.value)
	}
}

// Close ends the workers. The pool can't be used afterwards.
func (p *Pool) Close() {
	if p.busy.Load() {
		panic("prim: Pool.Close while running")
	}
	if p.closed.Swap(true) {
		return
	}
	for _, w := range p.workers {
		w.wake()
	}
}

// work takes tasks until none is left.
func (p *Pool) work(id int) {
	for p.left.Load() > 0 {
		left := p.left.Add(-1)
		if left < 0 {
			return
		}
		p.runTask(id, p.tasks-1-int(left))
	}
}

func (p *Pool) runTask(id, task int) {
	tasks := int64(p.tasks)
	defer func() {
		if v := recover(); v != nil {
			p.failed.CompareAndSwap(nil, &panicked{fmt.Sprintf("task %d: %v", task, Fault(v))})
		}
		if p.done.Add(1) == tasks {
			p.caller.wake()
		}
	}()
	p.f(id, task)
}

// Fault is what a recovered panic says, in plain words where it was an access to memory that may not be touched.
func Fault(v any) any {
	if _, ok := v.(interface{ Addr() uintptr }); ok {
		return "it touches memory outside of what it was given"
	}
	return v
}

type worker struct {
	sleeper
	pool *Pool
	id   int
}

func (w *worker) loop() {
	debug.SetPanicOnFault(true) // of a task that touches what it may not, which then fails as any other
	p := w.pool
	ready := func() bool { return p.left.Load() > 0 || p.closed.Load() }
	for {
		w.wait(ready)
		if p.closed.Load() {
			return
		}
		p.work(w.id)
	}
}

// A sleeper is a goroutine that spins for a while on a condition and then parks.
type sleeper struct {
	parked atomic.Bool
	bell   chan struct{}
}

func (s *sleeper) init() { s.bell = make(chan struct{}, 1) }

// wait returns once ready() holds. Whoever makes it hold calls wake afterwards.
func (s *sleeper) wait(ready func() bool) {
	for {
		for range spins {
			if ready() {
				return
			}
			pause()
		}
		s.parked.Store(true)
		// Between the last look and parked, wake may have found nobody to wake.
		if ready() && s.parked.CompareAndSwap(true, false) {
			return
		}
		<-s.bell
	}
}

// wake rings the bell if the sleeper has parked.
func (s *sleeper) wake() {
	if s.parked.Load() && s.parked.CompareAndSwap(true, false) {
		s.bell <- struct{}{}
	}
}
