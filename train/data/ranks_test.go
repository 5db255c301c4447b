package data

import (
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/formats/shard"
)

// TestNoRowTwiceAndNoneLost: whatever the number of ranks, the rows of a batch, the micro-batches of a step and the places where
// a run stops and goes on with other numbers, all ranks together take the rows of one rank's run, each once, in its order; and
// each rank its own block of them.
func TestNoRowTwiceAndNoneLost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for trial := range 60 {
		seed, windows := r.Uint64()>>11, 40+r.IntN(60)
		s := openShards(t, tokenFile(t, "a.bin", 0, 2*(windows/3)+1, 1000), tokenFile(t, "b.bin", 2*(windows/3), 2*(windows-windows/3)+1, 1000))
		const most = 300
		want := rows(t, s, Config{Inputs: Tokens(1, 2), Vocab: 1000, Ranks: 1, Seed: seed}, most)
		var got []int32
		var from *State
		story := ""
		for range 1 + r.IntN(4) { // parts of a run
			b, ranks, accumulate, steps := int64(1+r.IntN(4)), 1+r.IntN(8), 1+r.IntN(3), 1+r.IntN(3)
			if len(got)+int(b)*ranks*accumulate*steps > most {
				break
			}
			story += fmt.Sprintf("; B %d, %d ranks, accumulate %d, %d steps", b, ranks, accumulate, steps)
			loaders := make([]*Loader, ranks)
			for rank := range loaders {
				loaders[rank] = load(t, s, Config{Inputs: Tokens(b, 2), Vocab: 1000, Rank: rank, Ranks: ranks, Seed: seed}, from)
			}
			for range steps * accumulate {
				for _, l := range loaders {
					batch := next(t, l)
					for i := range b {
						got = append(got, tokens(batch)[2*i])
					}
				}
			}
			states := map[State]bool{}
			for _, l := range loaders {
				states[l.State()] = true
			}
			require.Len(t, states, 1, "all ranks are at the same place")
			state := loaders[0].State()
			from = &state
		}
		require.Equal(t, want[:len(got)], got, "trial %d%s", trial, story)
		for epoch := range slices.Chunk(got, windows) {
			seen := slices.Clone(epoch)
			slices.Sort(seen)
			require.Len(t, slices.Compact(seen), len(epoch), "no row twice in an epoch")
		}
	}
}

// A sample is the same blocks for every number of ranks; those that make no whole batch of all are left to the caller.
func TestSampleOfRanks(t *testing.T) {
	s := openShards(t, tokenFile(t, "a.bin", 0, 2*40+1, 1000))
	c := Config{Inputs: Tokens(2, 2), Vocab: 1000, Ranks: 1, Sequential: true, Sample: 7}
	want := rows(t, s, c, 7)
	for ranks := range 8 {
		c.Ranks = max(1, ranks)
		l := load(t, s, c, nil)
		require.Equal(t, int64(7), l.Blocks())
		require.Equal(t, int64(7/c.Ranks), l.Batches())
		n := int(l.Batches())
		require.Equal(t, want[:n*c.Ranks*2], rows(t, s, c, n), "%d ranks", c.Ranks)
	}
}

func TestFingerprint(t *testing.T) {
	of := func(names ...string) string {
		f, err := openShards(t, names...).Fingerprint()
		require.NoError(t, err)
		return f
	}
	a, b := tokenFile(t, "a.bin", 0, 100, 1000), tokenFile(t, "b.bin", 1, 100, 1000)
	require.Equal(t, of(a), of(tokenFile(t, "other-name.bin", 0, 100, 1000)))
	different := []string{of(a), of(b), of(a, b), of(b, a), of(tokenFile(t, "c.bin", 0, 101, 1000)), of(tokenFile(t, "d.bin", 0, 100, 999))}
	slices.Sort(different)
	require.Len(t, slices.Compact(different), 6)

	// In a large file a difference at the end is found, and in a small one a difference anywhere.
	raw := make([]byte, 2*(1<<20+12345))
	large := func(at int) string {
		name := t.TempDir() + "/large.bin"
		changed := slices.Clone(raw)
		changed[at]++
		require.NoError(t, os.WriteFile(name, changed, 0o644))
		return of(name)
	}
	require.NotEqual(t, large(0), large(len(raw)-2))
	require.NotEqual(t, large(0), large(len(raw)-2*4096))
	raw = raw[:2<<20]
	require.NotEqual(t, large(1<<19), large(1<<19+2))
}

// slow is a disk on which each read takes a while.
type slow struct {
	io.ReaderAt
	wait time.Duration
}

func (s slow) ReadAt(p []byte, at int64) (int, error) {
	time.Sleep(s.wait)
	return s.ReaderAt.ReadAt(p, at)
}

type words []byte

func (w words) ReadAt(p []byte, at int64) (int, error) { return copy(p, w[at:]), nil }

// TestReadingAheadHidesTheDisk: batches that take 8 ms to read don't lengthen steps that compute for 10 ms.
func TestReadingAheadHidesTheDisk(t *testing.T) {
	const steps, compute, perRead, b = 30, 10 * time.Millisecond, 4 * time.Millisecond, 2
	raw := make(words, 2*(4*100+1))
	for i := range len(raw) / 2 {
		binary.LittleEndian.PutUint16(raw[2*i:], uint16(i%50))
	}
	waited := func(wait time.Duration) time.Duration {
		disk := &slow{ReaderAt: raw}
		f, err := shard.Open(disk, int64(len(raw)))
		require.NoError(t, err)
		disk.wait = wait
		l := load(t, &Shards{names: []string{"slow"}, files: []*shard.File{f}}, Config{Inputs: Tokens(b, 4), Vocab: 50, Ranks: 1}, nil)
		next(t, l) // nothing can be read before the beginning
		total := time.Duration(0)
		for range steps {
			time.Sleep(compute)
			begun := time.Now()
			next(t, l)
			total += time.Since(begun)
		}
		return total
	}
	least := waited(perRead)
	for try := 0; try < 4 && least >= steps*b*perRead/4; try++ { // other programs may keep this one waiting
		least = min(least, waited(perRead))
	}
	require.Less(t, least, steps*b*perRead/4, "the wait for 30 batches of 8 ms")
	require.Greater(t, waited(4*perRead), steps*compute, "a disk that is slower than the steps is not hidden, and the test would see it")
}
