package main

import (
	"fmt"
	"slices"

	"blutrain/internal/peak"
	"blutrain/runtime/host/prim"
)

// A shape is C[M,N] = A[M,K] B[K,N]; Layout says which operands are stored transposed.
type shape struct {
	Set     string `json:"set"`
	M, N, K int
	Layout  string
}

// shapes are a square, and GPT-2 124M's linear layers at some numbers of tokens:
// y = x W^T, dx = dy W, dW = dy^T x.
func shapes(set string) []shape {
	var all []shape
	for _, layout := range []string{"NN", "NT", "TN"} {
		all = append(all, shape{"square", 1024, 1024, 1024, layout})
	}
	for _, tokens := range []int{256, 512} {
		for _, w := range [][2]int{{2304, 768}, {768, 768}, {3072, 768}, {768, 3072}, {50257, 768}} {
			all = append(all, shape{"forward", tokens, w[0], w[1], "NT"},
				shape{"backward", tokens, w[1], w[0], "NN"}, shape{"backward", w[0], w[1], tokens, "TN"})
		}
	}
	for _, tokens := range []int{1, 4, 16, 28, 64} {
		all = append(all, shape{"small", tokens, 768, 768, "NT"}, shape{"small", tokens, 768, 3072, "NN"},
			shape{"small", tokens, 50257, 768, "NT"})
	}
	return slices.DeleteFunc(all, func(s shape) bool { return set != "all" && s.Set != set })
}

func (s shape) flops() float64 { return 2 * float64(s.M) * float64(s.N) * float64(s.K) }

// coldBytes is more than the last-level cache of a processor of this class holds.
const coldBytes = 256 << 20

// copies is how many copies of B are used in turn.
func (s shape) copies(cold bool) int {
	if !cold {
		return 1
	}
	return max(2, coldBytes/(4*s.K*s.N))
}

// A result is what was measured of one product.
type result struct {
	Shape       shape    `json:"shape"`
	Threads     int      `json:"threads"`
	Ours        []sample `json:"ours"`
	Baseline    []sample `json:"baseline,omitempty"`
	Ratio       float64  `json:"ratio,omitempty"`      // of the median wall-clock times
	BestRatio   float64  `json:"best_ratio,omitempty"` // of the best ones
	CPURatio    float64  `json:"cpu_ratio,omitempty"`  // of the median processor times
	GFlops      float64  `json:"gflops"`
	PeakPercent float64  `json:"peak_percent,omitempty"` // by processor time
}

// products measures matrix products.
func products(o options, report *report) error {
	k, err := kernels(o)
	if err != nil {
		return err
	}
	var base *baseline
	if o.Python != "" {
		if base, err = startBaseline(o.Python, k.ISA()); err != nil {
			return err
		}
		defer base.close()
		report.OpenBLAS = base.name
		fmt.Println("baseline:", base.name)
	}
	most := peak.Flops(k.ISA())
	report.ISA = k.ISA()
	fmt.Printf("kernels: %s, peak of one core %.1f Gflop/s; CPU: by processor time\n\n", k.ISA(), most/1e9)
	fmt.Printf("%7s %6s %6s %3s %3s %10s %10s %7s %7s %7s %7s\n", "M", "N", "K", "lay", "thr", "Gflop/s", "OpenBLAS", "ratio", "best", "CPU", "CPU %")
	for _, threads := range o.Threads {
		for _, s := range shapes(o.Set) {
			r, err := measure(k, base, s, threads, o)
			if err != nil {
				return err
			}
			r.summarize(most)
			report.Products = append(report.Products, r)
			if err := report.save(o.JSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure times s on both sides, in turn.
func measure(k *prim.Kernels, base *baseline, s shape, threads int, o options) (result, error) {
	r, reps := result{Shape: s, Threads: threads}, o.Reps
	pool := prim.NewPool(threads)
	defer pool.Close()
	copies := s.copies(o.Cold)
	e, g := prim.NewEngine(k, pool), operands(s, copies)
	if base != nil {
		if err := base.prepare(s, threads, copies); err != nil {
			return r, err
		}
	}
	switch flops := s.flops(); {
	case flops < 2e8:
		reps *= 20
	case flops < 2e9:
		reps *= 5
	}
	next := 0
	for range reps {
		ours, err := turn(func() (sample, error) {
			next++
			return timed(func() { e.Gemm(g[next%copies]) }), nil
		})
		if err != nil {
			return r, err
		}
		r.Ours = append(r.Ours, ours...)
		if base == nil {
			continue
		}
		theirs, err := turn(base.run)
		if err != nil {
			return r, err
		}
		r.Baseline = append(r.Baseline, theirs...)
	}
	return r, nil
}

// turn times three calls after one that wakes threads and warms caches.
func turn(call func() (sample, error)) ([]sample, error) {
	var samples []sample
	for i := range 4 {
		t, err := call()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			samples = append(samples, t)
		}
	}
	return samples, nil
}

// operands is the product with each of some copies of B.
func operands(s shape, copies int) []*prim.Gemm {
	g := prim.Gemm{M: s.M, N: s.N, K: s.K, LDA: s.K, LDB: s.N, LDC: s.N,
		TransA: s.Layout[0] == 'T', TransB: s.Layout[1] == 'T'}
	if g.TransA {
		g.LDA = s.M
	}
	if g.TransB {
		g.LDB = s.K
	}
	g.A, g.C = numbers(s.M*s.K, 17), make([]float32, s.M*s.N)
	all := make([]*prim.Gemm, copies)
	for i := range all {
		one := g
		one.B = numbers(s.K*s.N, 13)
		all[i] = &one
	}
	return all
}

func numbers(n, period int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%period) - float32(period/2)
	}
	return x
}

func (r *result) summarize(peak float64) {
	s := r.Shape
	wall, cpu := walls(r.Ours), cpus(r.Ours)
	r.GFlops = s.flops() / median(wall) / 1e9
	fmt.Printf("%7d %6d %6d %3s %3d %10.1f", s.M, s.N, s.K, s.Layout, r.Threads, r.GFlops)
	if len(r.Baseline) > 0 {
		theirs := walls(r.Baseline)
		r.Ratio = median(theirs) / median(wall)
		r.BestRatio = slices.Min(theirs) / slices.Min(wall)
		r.CPURatio = median(cpus(r.Baseline)) / median(cpu)
		fmt.Printf(" %10.1f %7.2f %7.2f %7.2f", s.flops()/median(theirs)/1e9, r.Ratio, r.BestRatio, r.CPURatio)
	} else {
		fmt.Printf(" %10s %7s %7s %7s", "", "", "", "")
	}
	if peak > 0 {
		r.PeakPercent = 100 * s.flops() / median(cpu) / peak
		fmt.Printf(" %6.1f%%", r.PeakPercent)
	}
	fmt.Println()
}
