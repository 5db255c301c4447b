package arena

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Pieces that live at the same time never overlap, offsets are aligned, and the total is between the peak of what is
// alive at once and the sum of everything.
func TestPackRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var pieces []*Piece
		sum := int64(0)
		for range 1 + rng.IntN(60) {
			first := rng.IntN(50)
			p := &Piece{Bytes: 1 + rng.Int64N(1000), First: first, Last: first + rng.IntN(10)}
			pieces = append(pieces, p)
			sum += roundUp(p.Bytes, 64)
		}
		total := Pack(pieces, 64)
		require.LessOrEqual(t, total, sum)
		require.GreaterOrEqual(t, total, peak(pieces))
		for i, p := range pieces {
			require.Zero(t, p.Offset%64)
			for _, q := range pieces[:i] {
				apart := p.Last < q.First || q.Last < p.First || p.Offset+p.Bytes <= q.Offset || q.Offset+q.Bytes <= p.Offset
				require.True(t, apart, "%+v and %+v overlap", p, q)
			}
		}
	}
}

func peak(pieces []*Piece) (most int64) {
	for time := range 60 {
		alive := int64(0)
		for _, p := range pieces {
			if p.First <= time && time <= p.Last {
				alive += p.Bytes
			}
		}
		most = max(most, alive)
	}
	return most
}

func TestPackChainReusesMemory(t *testing.T) {
	var chain []*Piece
	for i := range 100 {
		chain = append(chain, &Piece{Bytes: 640, First: i, Last: i + 1})
	}
	require.Equal(t, int64(1280), Pack(chain, 64))
}
