package blublas

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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
	require.InEpsilon(t, 3*three.promotion(), three.Cost(H200).Math/square.Cost(H200).Math, 1e-9)
}

// measured is a line of bench/gemm's results.
type measured struct {
	Kind, Case, Kernel string
	Millis             []float64
}

var kernelName = regexp.MustCompile(`^gemm_(\w+?)_(wgmma|simt|mma)_(..)_(\d+)x(\d+)x(\d+)_p(\d+)_(\d+)_t(\d+)x(\d+)x(\d+)(?:_s(\d+))?(?:_w(\d+))?(?:_c(\d+))?(_pp)?(?:_k(\d+))?_(.*)$`)

// gemm is the template of a kernel's name.
func (m measured) gemm(t *testing.T) Gemm {
	f := kernelName.FindStringSubmatch(m.Kernel)
	require.NotNil(t, f, m.Kernel)
	n := func(i int) int { v, _ := strconv.Atoi(f[i]); return v }
	g := Gemm{M: n(4), N: n(5), K: n(6), A: Operand{f[3][0] == 'm', n(7)}, B: Operand{f[3][1] == 'm', n(8)}, Precision: Precision(f[1]), Unit: Unit(f[2]), Target: "sm_90a",
		BM: n(9), BN: n(10), BK: n(11), Stages: n(12), Consumers: n(13), Cluster: max(1, n(14)), Pingpong: f[15] != "", SplitK: max(1, n(16))}
	for _, reads := range []string{"res", "acc", "dgelu"} {
		if strings.Contains(f[17], reads) {
			g.Epilogue.Reads++
		}
	}
	return g
}

// timesOf reads the times of a file of bench/gemm's results.
func timesOf(t *testing.T, name string) (times []measured) {
	raw, err := os.ReadFile("../bench/results/" + name + ".json")
	require.NoError(t, err)
	var file struct {
		Runs []struct{ Results []measured }
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	for _, run := range file.Runs {
		for _, m := range run.Results {
			if m.Kind == "time" {
				times = append(times, m)
			}
		}
	}
	return times
}

// Of the kernels that were measured, the one that Cost would choose takes hardly longer than the best: 2% by the geometric
// mean, in no case more than 20%.
func TestCostChoosesWell(t *testing.T) {
	type pair struct{ predicted, millis float64 }
	cases := map[string][]pair{}
	for _, name := range []string{"gemm-2026-11-29", "gemm-rows-2026-11-30"} {
		for _, m := range timesOf(t, name) {
			if g := m.gemm(t); g.Cluster == 1 {
				slices.Sort(m.Millis)
				key := m.Case + " " + string(g.Precision) + " " + name
				cases[key] = append(cases[key], pair{g.Cost(H200).Seconds, m.Millis[len(m.Millis)/2]})
			}
		}
	}
	require.Greater(t, len(cases), 60)
	sum := 0.0
	for name, all := range cases {
		chosen := slices.MinFunc(all, func(a, b pair) int { return cmp.Compare(a.predicted, b.predicted) })
		best := slices.MinFunc(all, func(a, b pair) int { return cmp.Compare(a.millis, b.millis) })
		loss := chosen.millis / best.millis
		require.LessOrEqual(t, loss, 1.2, name)
		sum += math.Log(loss)
	}
	require.LessOrEqual(t, math.Exp(sum/float64(len(cases))), 1.02)
}
