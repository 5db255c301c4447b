package blublas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The model ranks configurations as they were measured on an H200 (bench/NOTES.md), and is within a third of the times.
func TestCost(t *testing.T) {
	small := hopper()
	small.M, small.N, small.K = 3072, 768, 16384
	parted := small
	parted.SplitK = 4
	require.Less(t, parted.Cost(H200).Seconds, small.Cost(H200).Seconds, "few tiles: parts of K fill the device")

	large := hopper()
	large.M, large.N, large.K, large.Pingpong = 8192, 8192, 8192, true
	parted = large
	parted.SplitK = 4
	require.Less(t, large.Cost(H200).Seconds, parted.Cost(H200).Seconds, "many tiles: parts of K only cost memory")

	square := hopper()
	square.M, square.N, square.K, square.Pingpong = 4096, 4096, 4096, true
	tflops := 2 * 4096.0 * 4096 * 4096 / square.Cost(H200).Seconds / 1e12
	require.InEpsilon(t, 750, tflops, 0.33)

	three := square
	three.Precision = FP16x3
	require.InEpsilon(t, 3, three.Cost(H200).Math/square.Cost(H200).Math, 1e-9)
}
