//go:build unix

package prim

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// An arena hands out blocks that end, or begin, where memory that may not be touched
// begins or ends, so that an access out of bounds is a fault. Around the block on the
// other side is a poison, which check looks at.
type arena struct {
	t     *testing.T
	pages [][]byte
	used  []guarded
	next  int
	end   bool // blocks end at the forbidden page
}

type guarded struct{ all, block []byte }

const poison = 0xa5

// newArena maps blocks of some pages each, between two forbidden pages.
func newArena(t *testing.T, blocks, bytes int) *arena {
	size := unix.Getpagesize()
	inner := (bytes + size - 1) / size * size
	a := &arena{t: t}
	for range blocks {
		m, err := unix.Mmap(-1, 0, inner+2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Munmap(m) })
		require.NoError(t, unix.Mprotect(m[:size], unix.PROT_NONE))
		require.NoError(t, unix.Mprotect(m[size+inner:], unix.PROT_NONE))
		a.pages = append(a.pages, m[size:size+inner])
	}
	return a
}

// reset gives all blocks back; the next ones lie at the end of their pages, or at the start.
func (a *arena) reset(end bool) { a.next, a.end, a.used = 0, end, a.used[:0] }

func take[T any](a *arena, n int) []T {
	var zero T
	bytes := n * int(unsafe.Sizeof(zero))
	all := a.pages[a.next]
	a.next++
	for i := range all {
		all[i] = poison
	}
	block := all[:bytes]
	if a.end {
		block = all[len(all)-bytes:]
	}
	a.used = append(a.used, guarded{all, block})
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&block[0])), n)
}

// floats is a block of random numbers, with some special ones among them.
func (a *arena) floats(r *rand.Rand, n int) []float32 {
	x := take[float32](a, n)
	for i := range x {
		if x[i] = float32(r.NormFloat64()); r.IntN(20) == 0 {
			x[i] = special[r.IntN(len(special))]
		}
	}
	return x
}

// normals is floats without the special ones.
func (a *arena) normals(r *rand.Rand, n int) []float32 {
	x := take[float32](a, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func (a *arena) ints(r *rand.Rand, n int) []int32 {
	x := take[int32](a, n)
	for i := range x {
		x[i] = int32(r.Uint32()) >> r.IntN(32)
	}
	return x
}

// check finds bytes around the blocks that have changed.
func (a *arena) check(what string) {
	for i, g := range a.used {
		rest := g.all[len(g.block):]
		if a.end {
			rest = g.all[:len(g.all)-len(g.block)]
		}
		for j, b := range rest {
			if b != poison {
				require.Failf(a.t, "written out of bounds", "%s: block %d (%d bytes), byte %d of the rest", what, i, len(g.block), j)
			}
		}
	}
}

// sizes are the lengths that blocks are tried at.
func sizes() []int {
	var s []int
	for n := 0; n <= 67; n++ {
		s = append(s, n)
	}
	return append(s, 127, 128, 129, 1000, 1023, 1025)
}

// onBlocks calls f for each instruction set, size, and side of the forbidden page.
func onBlocks(t *testing.T, f func(k *Kernels, a *arena, r *rand.Rand, n int)) {
	forEachISA(t, func(t *testing.T, k *Kernels) {
		a := newArena(t, 8, 8*1025)
		r := rand.New(rand.NewPCG(11, 12))
		for _, n := range sizes() {
			for _, end := range []bool{true, false} {
				a.reset(end)
				f(k, a, r, n)
			}
		}
	})
}

func sameBits(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || isNaN(x) && isNaN(y)
}
