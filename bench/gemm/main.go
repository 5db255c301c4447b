// Command gemm checks and times the matrix products that blublas makes, on the machine's first GPU:
//
//	gemm [-checks] [-times] [-errors] [-older] [-json FILE [-resume]] [-only TEXT] [-choices KERNELS]
//
// Without a choice it does all three. FILE is written whole after every case; with -resume a run that was cut short is gone on
// with: cases that FILE has are not done again. It is built without cgo and needs nothing of this repository where it runs, but
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
	out := flag.String("json", "", "write everything measured to this file, after every case")
	resume := flag.Bool("resume", false, "keep what the file of -json holds, and leave out the cases that it has")
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
	if *resume && *out == "" {
		fmt.Fprintln(os.Stderr, "gemm: -resume needs the file of an earlier run: -json FILE")
		os.Exit(2)
	}
	b := &bench{file: *out, only: strings.Split(*only, ","), reps: *reps, chain: *chain, older: *older}
	if err := b.choose(*choices); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(2)
	}
	if err := b.measure(*resume, *checks, *times, *errs); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	file    string // for results; "": none
	only    []string
	reps    int
	chain   int
	older   bool
	choices []blublas.Gemm // of which only how they are tiled counts
	gpu     *device
	peer    *peer
	results []result
}

// measure does what was asked for.
func (b *bench) measure(resume, checks, times, errs bool) error {
	if resume {
		if err := b.load(); err != nil {
			return err
		}
	}
	if err := b.run(checks, times, errs); err != nil {
		return err
	}
	if n := b.failed(); n > 0 {
		return fmt.Errorf("%d checks failed", n)
	}
	return nil
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
