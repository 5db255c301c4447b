package main

import "time"

func fma512(n int)
func fma256(n int)

// peakFlops measures the flops per second of one core: the best of several runs
// of independent fused multiply-adds on registers. 0 where it can't be measured.
func peakFlops(isa string) float64 {
	run, flops := fma512, 512.0
	switch isa {
	case "avx512":
	case "avx2":
		run, flops = fma256, 192
	default:
		return 0
	}
	const turns = 400_000
	best := 0.0
	for range 15 {
		start := time.Now()
		run(turns)
		best = max(best, flops*turns/time.Since(start).Seconds())
	}
	return best
}
