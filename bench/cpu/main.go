// Command cpu times the matrix product of the CPU target beside NumPy's OpenBLAS,
// in turn on the same machine, and prints medians, the ratio of these and of the best
// times (which tells more on a busy machine), and the median's share of the measured peak. It needs a Python with numpy and threadpoolctl:
//
//	python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy threadpoolctl
//	go run ./bench/cpu --python /tmp/venv/bin/python
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"blutrain/internal/peak"
	"blutrain/runtime/host/prim"
)

type options struct {
	Python  string `help:"Python with numpy and threadpoolctl; empty: no baseline." default:"python3"`
	ISA     string `help:"Instruction set: avx512, avx2 or go; empty: the best."`
	Reps    int    `help:"Turns of three repetitions." default:"5"`
	Set     string `help:"Shapes: all, square, forward, backward, small." default:"all"`
	Threads []int  `help:"Thread counts." default:"1,2"`
	JSON    string `help:"Write the raw repetitions to this file."`
}

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

type result struct {
	Shape       shape     `json:"shape"`
	Threads     int       `json:"threads"`
	Seconds     []float64 `json:"seconds"`
	Baseline    []float64 `json:"baseline_seconds,omitempty"`
	Ratio       float64   `json:"ratio,omitempty"` // of the medians
	BestRatio   float64   `json:"best_ratio,omitempty"`
	GFlops      float64   `json:"gflops"`
	PeakPercent float64   `json:"peak_percent,omitempty"`
}

func main() {
	var o options
	kong.Parse(&o, kong.Description("Times matrix products beside OpenBLAS."))
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "cpu:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	k := prim.Detect()
	if o.ISA != "" {
		var err error
		if k, err = prim.ForISA(o.ISA); err != nil {
			return err
		}
	}
	var base *baseline
	if o.Python != "" {
		var err error
		if base, err = startBaseline(o.Python); err != nil {
			return err
		}
		defer base.close()
		fmt.Println("baseline:", base.name)
	}
	most := peak.Flops(k.ISA())
	fmt.Printf("kernels: %s, peak of one core %.1f Gflop/s\n\n", k.ISA(), most/1e9)
	fmt.Printf("%7s %6s %6s %3s %3s %10s %10s %7s %7s %7s\n", "M", "N", "K", "lay", "thr", "Gflop/s", "OpenBLAS", "ratio", "best", "% peak")
	var results []result
	for _, threads := range o.Threads {
		for _, s := range shapes(o.Set) {
			r, err := measure(k, base, s, threads, o.Reps)
			if err != nil {
				return err
			}
			r.summarize(most)
			results = append(results, r)
		}
	}
	if o.JSON == "" {
		return nil
	}
	text, err := json.MarshalIndent(results, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.JSON, append(text, '\n'), 0o644)
}

// measure times s on both, in turn.
func measure(k *prim.Kernels, base *baseline, s shape, threads, reps int) (result, error) {
	r := result{Shape: s, Threads: threads}
	pool := prim.NewPool(threads)
	defer pool.Close()
	e, g := prim.NewEngine(k, pool), operands(s)
	if base != nil {
		if err := base.prepare(s, threads); err != nil {
			return r, err
		}
	}
	if s.flops() < 2e9 {
		reps *= 3
	}
	for range reps {
		ours, err := turn(func() (float64, error) {
			start := time.Now()
			e.Gemm(g)
			return time.Since(start).Seconds(), nil
		})
		if err != nil {
			return r, err
		}
		r.Seconds = append(r.Seconds, ours...)
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
func turn(call func() (float64, error)) ([]float64, error) {
	var seconds []float64
	for i := range 4 {
		t, err := call()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			seconds = append(seconds, t)
		}
	}
	return seconds, nil
}

func operands(s shape) *prim.Gemm {
	g := &prim.Gemm{M: s.M, N: s.N, K: s.K, LDA: s.K, LDB: s.N, LDC: s.N,
		TransA: s.Layout[0] == 'T', TransB: s.Layout[1] == 'T'}
	if g.TransA {
		g.LDA = s.M
	}
	if g.TransB {
		g.LDB = s.K
	}
	g.A, g.B, g.C = make([]float32, s.M*s.K), make([]float32, s.K*s.N), make([]float32, s.M*s.N)
	for i := range g.A {
		g.A[i] = float32(i%17) - 8
	}
	for i := range g.B {
		g.B[i] = float32(i%13) - 6
	}
	return g
}

func (s shape) flops() float64 { return 2 * float64(s.M) * float64(s.N) * float64(s.K) }

func (r *result) summarize(peak float64) {
	ours, theirs := median(r.Seconds), median(r.Baseline)
	s := r.Shape
	r.GFlops = s.flops() / ours / 1e9
	fmt.Printf("%7d %6d %6d %3s %3d %10.1f", s.M, s.N, s.K, s.Layout, r.Threads, r.GFlops)
	if len(r.Baseline) > 0 {
		r.Ratio = theirs / ours
		r.BestRatio = slices.Min(r.Baseline) / slices.Min(r.Seconds)
		fmt.Printf(" %10.1f %7.2f %7.2f", s.flops()/theirs/1e9, r.Ratio, r.BestRatio)
	} else {
		fmt.Printf(" %10s %7s %7s", "", "", "")
	}
	if peak > 0 {
		r.PeakPercent = 100 * r.GFlops * 1e9 / (peak * float64(r.Threads))
		fmt.Printf(" %6.1f%%", r.PeakPercent)
	}
	fmt.Println()
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
