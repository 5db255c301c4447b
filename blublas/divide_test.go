package blublas

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Quotients of the greatest numbers below 2^31, and around multiples, are exact for every divisor: all small ones, and some of any size.
func TestReciprocal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100_000 {
		n := uint32(i + 3)
		if i >= 50_000 {
			n = random.Uint32N(1<<31-3) + 3
		}
		if n&(n-1) == 0 {
			continue
		}
		factor, shift := reciprocal(n)
		last := (1<<31 - 1) / n * n
		for _, x := range []uint32{0, 1, n - 1, n, n + 1, last - 1, last, 1<<31 - 1, random.Uint32N(1 << 31)} {
			require.Equal(t, x/n, uint32(uint64(x)*uint64(factor)>>32)>>shift, "%d / %d", x, n)
		}
	}
}
