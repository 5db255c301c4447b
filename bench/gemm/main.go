// Command gemm checks and times the matrix products that blublas makes, on the machine's first GPU:
//
//	gemm [-checks] [-times] [-errors] [-older] [-json FILE] [-only TEXT] [-choices KERNELS]
//
// Without a choice it does all three. It is built without cgo and needs nothing of this repository where it runs, but
// python3 with PyTorch for times and errors.
//
// Checks compare each template with float64 on the CPU, at odd sizes, on fresh random data, with poisoned results. Times
// are medians beside cuBLAS's, which PyTorch runs in the same minutes (torch_peer.py, python3). Errors compare with
// float64 and with cuBLAS's SGEMM on the same data.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/runtime/cuda"
)

func main() {
	checks := flag.Bool("checks", false, "compare with float64 at odd sizes")
	times := flag.Bool("times", false, "time beside cuBLAS")
	errs := flag.Bool("errors", false, "compare errors at full size with SGEMM's")
	older := flag.Bool("older", false, "time the kernels for the tensor cores before Hopper")
	out := flag.String("json", "", "write everything measured to this file")
	only := flag.String("only", "", "only cases whose name has this in it; several separated by commas")
	reps := flag.Int("reps", 15, "launches timed for each median")
	choices := flag.String("choices", "", `time these kernels instead of those of least predicted time, separated by semicolons: "128x192 stages=4 turns cluster=2 split=3"`)
	chain := flag.Int("chain", 1, "launches in a row for each time: many of them show what the card sustains at its power limit")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "gemm: unknown argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if !*checks && !*times && !*errs {
		*checks, *times, *errs = true, true, true
	}
	b := &bench{only: strings.Split(*only, ","), reps: *reps, chain: *chain, older: *older}
	if err := b.choose(*choices); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(2)
	}
	err := b.run(*checks, *times, *errs)
	if err = gpu.Save(*out, b.results, err); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(1)
	}
	if b.failed > 0 {
		fmt.Fprintf(os.Stderr, "gemm: %d checks failed\n", b.failed)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	only    []string
	reps    int
	chain   int
	older   bool
	choices []blublas.Gemm // of which only how they are tiled counts
	gpu     *device
	peer    *peer
	results []result
	failed  int
}

// result is one measured fact, for the JSON file.
type result struct {
	Kind     string    `json:"kind"` // check, time, split, transpose or error
	Case     string    `json:"case"`
	Kernel   string    `json:"kernel"`
	Millis   []float64 `json:"millis,omitempty"`
	Peer     []float64 `json:"peer_millis,omitempty"`
	TFLOPS   float64   `json:"tflops,omitempty"`
	Ratio    float64   `json:"ratio,omitempty"` // cuBLAS's time over ours
	Error    float64   `json:"error,omitempty"`
	RowError float64   `json:"row_error,omitempty"`
	PeerErr  float64   `json:"peer_error,omitempty"`
	PeerRow  float64   `json:"peer_row_error,omitempty"`
	Failure  string    `json:"failure,omitempty"`
}

func (b *bench) wanted(name string) bool {
	for _, o := range b.only {
		if strings.Contains(name, o) {
			return true
		}
	}
	return false
}

func (b *bench) run(checks, times, errs bool) error {
	driver, err := cuda.Open()
	if err != nil {
		return err
	}
	version, err := driver.Version()
	if err != nil {
		return err
	}
	first, err := gpu.Open(driver)
	if err != nil {
		return err
	}
	b.gpu = &device{first}
	d := b.gpu.Ctx.Device
	fmt.Printf("%s, driver for CUDA %d.%d, compute capability %d.%d, %d multiprocessors, %d KiB of L2\n", d.Name, version/1000, version%1000/10, d.Major, d.Minor, d.SMs, d.L2>>10)
	if checks {
		if err := b.checks(); err != nil {
			return err
		}
	}
	if times {
		if err := b.splits(); err != nil {
			return err
		}
		if err := b.transposes(); err != nil {
			return err
		}
	}
	if !times && !errs {
		return nil
	}
	if b.peer, err = startPeer(); err != nil {
		return err
	}
	defer b.peer.Stop()
	if errs {
		if err := b.errors(); err != nil {
			return err
		}
	}
	if times {
		return b.times()
	}
	return nil
}

// layouts of operands, as BLAS names them.
const (
	nt = "NT" // both K-major: the forward of a linear layer
	nn = "NN" // B is N-major: the input gradient
	tn = "TN" // both are K's rows: the weight gradient
)

// with gives a kernel its operands' layout, rows at multiples of 16 bytes.
func with(g blublas.Gemm, layout string, m, n, k int) blublas.Gemm {
	g.M, g.N, g.K = m, n, k
	pitch := func(n int) int { return (n + 7) / 8 * 8 }
	g.A = blublas.Operand{MNMajor: layout == tn, Pitch: pitch(k)}
	if g.A.MNMajor {
		g.A.Pitch = pitch(m)
	}
	g.B = blublas.Operand{MNMajor: layout != nt, Pitch: pitch(k)}
	if g.B.MNMajor {
		g.B.Pitch = pitch(n)
	}
	return g
}
