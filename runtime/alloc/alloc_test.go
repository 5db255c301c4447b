package alloc

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake is a backing of so many bytes.
type fake struct {
	limit, mapped int64
	released      bool
}

var errFull = errors.New("no more")

func (f *fake) Reserve(int64) (uint64, error) { return 1 << 32, nil }
func (f *fake) Granularity() int64            { return 1 << 16 }
func (f *fake) Release() error                { f.released = true; return nil }
func (f *fake) Map(offset, bytes int64) error {
	if offset != f.mapped || bytes%f.Granularity() != 0 {
		panic("a gap")
	}
	if f.mapped+bytes > f.limit {
		return errFull
	}
	f.mapped += bytes
	return nil
}

// Random requests never overlap, are aligned, and after all is freed one piece is left.
func TestPiecesDontOverlap(t *testing.T) {
	f := &fake{limit: 1 << 40}
	p, err := New(f, 1<<40)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	held := map[uint64]int64{}
	for range 3000 {
		if len(held) > 0 && r.IntN(5) < 2 {
			for a := range held {
				require.NoError(t, p.Free(a))
				delete(held, a)
				break
			}
			continue
		}
		n := r.Int64N(1 << r.IntN(18))
		a, err := p.Alloc(n, "x")
		require.NoError(t, err)
		require.Zero(t, a%Alignment)
		require.LessOrEqual(t, a+uint64(n), uint64(1<<32+f.mapped))
		for b, m := range held {
			require.True(t, a+uint64(n) <= b || b+uint64(m) <= a && a != b, "%x+%d overlaps %x+%d", a, n, b, m)
		}
		held[a] = n
	}
	for a := range held {
		require.NoError(t, p.Free(a))
		require.ErrorContains(t, p.Free(a), "no piece")
	}
	require.Equal(t, []piece{{0, f.mapped, ""}}, p.pieces)
	require.NoError(t, p.Close())
	require.True(t, f.released)
}

// What is freed is used again before more is mapped.
func TestReuse(t *testing.T) {
	f := &fake{limit: 1 << 20}
	p, err := New(f, 1<<20)
	require.NoError(t, err)
	a, err := p.Alloc(40000, "a")
	require.NoError(t, err)
	require.NoError(t, p.Free(a))
	b, err := p.Alloc(40000, "b")
	require.NoError(t, err)
	require.Equal(t, a, b)
	require.Equal(t, int64(1<<16), f.mapped)
}

// Out of memory says who holds what.
func TestOutOfMemory(t *testing.T) {
	p, err := New(&fake{limit: 1 << 20}, 1<<30)
	require.NoError(t, err)
	for _, h := range []string{"parameters", "the arena", "parameters"} {
		_, err = p.Alloc(200<<10, h)
		require.NoError(t, err)
	}
	_, err = p.Alloc(3<<20, "the workspace")
	require.EqualError(t, err, "out of memory: the workspace needs 3.0 MiB; held are: parameters 409600 bytes, the arena 204800 bytes (no more)")
	require.ErrorIs(t, err, errFull)
	small, err := New(&fake{limit: 1 << 40}, 1<<16)
	require.NoError(t, err)
	_, err = small.Alloc(1<<17, "x")
	require.ErrorContains(t, err, "the range of 65536 bytes is full")
}
