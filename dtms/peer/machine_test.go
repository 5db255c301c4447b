package peer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"blutrain/dtms"
)

// machine is a stand-in for a machine of GPUs. Each stream is a goroutine that does its work in order and dawdles; words that are waited
// for are the only order between streams of different GPUs, so that the race detector sees what an order is missing for.
type machine struct {
	gpus    []*gpu
	aliased bool // all streams of a GPU are one queue
	depth   int  // of a queue: what is put on a full one waits
	over    chan struct{}
	lost    atomic.Bool // flags have been written for streams to end: what they move from then on is refused, and not moved here
	wrong   atomic.Pointer[string]
}

// gpu is a rank's: a Device.
type gpu struct {
	m      *machine
	rank   int
	memory []byte
	next   uintptr // what has not been allocated begins there
	dead   atomic.Bool
	terms  atomic.Int64  // of the longest sum that it was prepared for
	mapped []atomic.Bool // by rank
	rescue dtms.Stream

	mu     sync.Mutex
	queues []*queue // by stream, from 1
}

type queue struct {
	work        chan func()
	given, done atomic.Int64
}

const gpuBytes = 24 << 20

func newMachine(t *testing.T, ranks int, aliased bool, depth int) *machine {
	m := &machine{aliased: aliased, depth: depth, over: make(chan struct{})}
	for r := range ranks {
		words := make([]uint64, gpuBytes/8)
		m.gpus = append(m.gpus, &gpu{m: m, rank: r, memory: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), gpuBytes), next: alignment, mapped: make([]atomic.Bool, ranks)})
	}
	t.Cleanup(func() { close(m.over) })
	return m
}

func (m *machine) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.wrong.CompareAndSwap(nil, &text)
}

// An address is the owner's number plus 1 from bit 32 on, and from bit 48 on that of the rank that mapped it, 0 for the owner's own.
func (g *gpu) own(at uintptr) uintptr { return uintptr(g.rank+1)<<32 | at }

// bytes is memory at an address, as this GPU sees it.
func (g *gpu) bytes(at uintptr, n int64) []byte {
	owner, by, offset := int(at>>32&0xffff)-1, int(at>>48)-1, int64(at&0xffffffff)
	if owner < 0 || owner >= len(g.m.gpus) || offset < alignment || offset+n > gpuBytes ||
		(owner == g.rank) != (by < 0) || owner != g.rank && (by != g.rank || !g.mapped[owner].Load()) {
		g.m.complain("GPU %d touches %d bytes at %x", g.rank, n, at)
		return make([]byte, n)
	}
	return g.m.gpus[owner].memory[offset : offset+n]
}

func (g *gpu) word(at uintptr) *uint32 { return (*uint32)(unsafe.Pointer(&g.bytes(at, 4)[0])) }

func (g *gpu) numbers(at uintptr, n int64) []float32 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&g.bytes(at, 4*n)[0])), n)
}

func (g *gpu) alloc(bytes int64) uintptr {
	at := g.next
	g.next += uintptr(aligned(max(bytes, 1)))
	if g.next > gpuBytes {
		panic("the stand-in's memory is too small")
	}
	return g.own(at)
}

func (g *gpu) ID() (string, error) { return fmt.Sprint(g.rank), nil }

func (g *gpu) Reaches(id string) error {
	if id == "99" {
		return &OutOfReach{"no link between GPUs"}
	}
	return nil
}

func (g *gpu) Share(bytes int64) (uintptr, []byte, error) {
	at := g.alloc(bytes)
	return at, []byte(fmt.Sprint(uint64(at))), nil
}

func (g *gpu) Map(handle []byte) (at uintptr, err error) {
	if _, err := fmt.Sscan(string(handle), &at); err != nil {
		return 0, err
	}
	g.mapped[at>>32-1].Store(true)
	return at | uintptr(g.rank+1)<<48, nil
}

func (g *gpu) Unmap(at uintptr) error { g.mapped[at>>32&0xffff-1].Store(false); return nil }

// Free gives memory back, which nobody may have open.
func (g *gpu) Free(uintptr) error {
	for _, other := range g.m.gpus {
		if other.mapped[g.rank].Load() {
			g.m.complain("GPU %d frees what GPU %d has open", g.rank, other.rank)
		}
	}
	return nil
}

func (g *gpu) NewStream() (dtms.Stream, error) { return g.stream(g.m.aliased), nil }

// newRescue makes the stream for when ranks are lost: a queue of its own, also where all others are one.
func (g *gpu) newRescue() dtms.Stream {
	g.rescue = g.stream(false)
	return g.rescue
}

func (g *gpu) stream(aliased bool) dtms.Stream {
	g.mu.Lock()
	defer g.mu.Unlock()
	if aliased && len(g.queues) > 0 {
		g.queues = append(g.queues, g.queues[0])
	} else {
		q := &queue{work: make(chan func(), g.m.depth)}
		g.queues = append(g.queues, q)
		go g.work(q, rand.New(rand.NewPCG(uint64(g.rank), uint64(len(g.queues)))))
	}
	return dtms.Stream(len(g.queues))
}

func (g *gpu) work(q *queue, r *rand.Rand) {
	for {
		select {
		case f := <-q.work:
			switch r.IntN(50) {
			case 0:
				time.Sleep(time.Duration(r.IntN(300)) * time.Microsecond)
			case 1, 2, 3, 4:
				runtime.Gosched()
			}
			if !g.dead.Load() {
				f()
			}
			q.done.Add(1)
		case <-g.m.over:
			return
		}
	}
}

func (g *gpu) queue(s dtms.Stream) *queue {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.queues[s-1]
}

// put gives a stream work.
func (g *gpu) put(s dtms.Stream, f func()) error {
	if g.dead.Load() {
		return errPower
	}
	q := g.queue(s)
	q.given.Add(1)
	q.work <- f
	return nil
}

// until waits for something that another stream does.
func (g *gpu) until(done func() bool) {
	for !done() && !g.dead.Load() {
		select {
		case <-g.m.over:
			return
		default:
			time.Sleep(5 * time.Microsecond)
		}
	}
}

func (g *gpu) CloseStream(dtms.Stream) error { return nil }

func (g *gpu) After(s, other dtms.Stream) error {
	a, b := g.queue(s), g.queue(other)
	if a == b {
		return nil
	}
	so := b.given.Load()
	return g.put(s, func() { g.until(func() bool { return b.done.Load() >= so }) })
}

func (g *gpu) Done(s dtms.Stream) (bool, error) {
	q := g.queue(s)
	return q.done.Load() == q.given.Load(), nil
}

func (g *gpu) Copy(s dtms.Stream, to, from uintptr, n int64) error {
	return g.put(s, func() {
		if !g.m.lost.Load() {
			copy(g.bytes(to, n), g.bytes(from, n))
		}
	})
}

func (g *gpu) Prepare(terms int) error {
	g.terms.Store(max(g.terms.Load(), int64(terms)))
	return nil
}

func (g *gpu) Sum(s dtms.Stream, to, from []uintptr, count int64) error {
	if int64(len(from)) > g.terms.Load() {
		g.m.complain("GPU %d was not prepared for sums of %d", g.rank, len(from))
	}
	return g.put(s, func() {
		if g.m.lost.Load() {
			return
		}
		sums := append([]float32(nil), g.numbers(from[0], count)...)
		for _, f := range from[1:] {
			for i, x := range g.numbers(f, count) {
				sums[i] += x
			}
		}
		for _, t := range to {
			copy(g.numbers(t, count), sums)
		}
	})
}

func (g *gpu) Write(s dtms.Stream, at uintptr, word uint32) error {
	return g.put(s, func() {
		if s == g.rescue {
			g.m.lost.Store(true)
		}
		atomic.StoreUint32(g.word(at), word)
	})
}

func (g *gpu) Await(s dtms.Stream, at uintptr, word uint32) error {
	if int(at>>32)-1 != g.rank {
		g.m.complain("GPU %d waits for a word at %x, which is not its own", g.rank, at)
	}
	return g.put(s, func() { g.until(func() bool { return int32(atomic.LoadUint32(g.word(at))-word) >= 0 }) })
}

// errPower is that of a rank that ends without a word.
var errPower = errors.New("the power failed")

// fill is what rank r has at i: numbers whose sum depends on the order in which they are added.
func fill(r int, i int64) float32 {
	return float32(math.Sin(float64(i)*1.7+float64(r)*3.1)) * float32(int64(1)<<(uint(r*7+int(i))%20))
}
