package ngram

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// The probabilities of all bytes after any context sum to one.
func TestProbabilitiesSumToOne(t *testing.T) {
	text := []byte("the cat sat on the mat, the rat sat on the cat")
	table := Count(3, text)
	for _, ctx := range []string{"", "t", "th", "the", "qqq", "xth"} {
		for order := range 4 {
			sum := 0.0
			for b := range 256 {
				s := append([]byte(ctx), byte(b))
				sum += table.probability(min(order, len(ctx)), s, len(ctx))
			}
			require.InDelta(t, 1, sum, 1e-12, "context %q, order %d", ctx, order)
		}
	}
}

// By hand: "aab" has a: 2, b: 1, so p0(a) = (2 + 2/256) / 5, and after a: a once, b once.
func TestWittenBellByHand(t *testing.T) {
	table := Count(1, []byte("aab"))
	p0 := func(n float64) float64 { return (n + 2.0/256) / 5 }
	p1 := (1 + 2*p0(1)) / 4
	require.InDelta(t, -(math.Log(p0(2))+math.Log(p1))/2, table.Loss(1, []byte("ab")), 1e-12)
}
