// Command gemm checks and times the matrix products that blublas makes, on the machine's first GPU:
//
//	gemm [-checks] [-times] [-errors] [-older] [-json FILE [-resume]] [-only TEXT] [-choices KERNELS] [-most N]
//	gemm -assemble [-only TEXT] [-most N]
//
// Without a choice it does checks, times and errors. FILE is written whole after every case; with -resume a run that was cut short is gone on
// with: cases that FILE has are not done again. A TEXT that no name of a case has in it is an error, at the end.
//
// It is built without cgo and needs nothing of this repository where it runs, but python3 with PyTorch for times and errors.
//
// Checks compare each template with float64 on the CPU, at odd sizes, on fresh random data, with poisoned results. Times
// are medians beside cuBLAS's, which PyTorch runs in the same minutes (torch_peer.py, python3). Errors compare with
// float64 and with cuBLAS's SGEMM on the same data.
//
// Operands lie as programs have them: rows of 16 bits, those of planes and those of copies for tf32 are multiples of 16 bytes apart,
// and float32 operands that are read as they are follow each other. Making planes and copies is not counted. cuBLAS gets tensors
// without anything between rows, and a batch by torch.bmm; all results are such tensors.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
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
	assemble := flag.Bool("assemble", false, "only have the driver assemble what is timed, which it keeps")
	most := flag.Int("most", math.MaxInt, "time so many kernels of least predicted time for each case")
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
	for name, n := range map[string]int{"most": *most, "reps": *reps, "chain": *chain} {
		if n < 1 {
			fmt.Fprintf(os.Stderr, "gemm: -%s must be at least 1, not %d\n", name, n)
			os.Exit(2)
		}
	}
	if *resume && *out == "" {
		fmt.Fprintln(os.Stderr, "gemm: -resume needs the file of an earlier run: -json FILE")
		os.Exit(2)
	}
	texts := strings.Split(*only, ",")
	b := &bench{file: *out, only: texts, unmet: slices.Clone(texts), reps: *reps, chain: *chain, most: *most, older: *older}
	if err := b.choose(*choices); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(2)
	}
	work := func() error { return b.measure(*checks, *times, *errs) }
	if *assemble {
		work = b.assemble
	}
	if err := b.do(*resume, work); err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	file    string // for results; "": none
	only    []string
	unmet   []string // those of only that no name of a case has had in it
	reps    int
	chain   int
	most    int
	older   bool
	choices []blublas.Gemm // of which only how they are tiled counts
	gpu     *device
	peer    *peer
	results []result
}

// do does what was asked for, from where an earlier run ended if that is to be gone on with.
func (b *bench) do(resume bool, work func() error) error {
	if resume {
		if err := b.load(); err != nil {
			return err
		}
	}
	if err := b.open(); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	if len(b.unmet) > 0 {
		return fmt.Errorf("-only: no case has %q in its name", b.unmet)
	}
	return nil
}

// measure checks and times, and is an error if a check failed.
func (b *bench) measure(checks, times, errs bool) error {
	if err := b.run(checks, times, errs); err != nil {
		return err
	}
	if n := b.failed(); n > 0 {
		return fmt.Errorf("%d checks failed", n)
	}
	return nil
}

// open makes the GPU ready.
func (b *bench) open() error {
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
	return nil
}

func (b *bench) run(checks, times, errs bool) error {
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
	var err error
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
func with(g blublas.Gemm, layout string, m, n, k int) blublas.Gemm { return lay(g, layout, m, n, k, 8) }

// dense is with, but for rows, which follow each other whatever their length.
func dense(g blublas.Gemm, layout string, m, n, k int) blublas.Gemm {
	return lay(g, layout, m, n, k, 1)
}

// lay gives a kernel its operands' layout: rows at multiples of some elements, matrices of a batch one after the other.
func lay(g blublas.Gemm, layout string, m, n, k, multiple int) blublas.Gemm {
	g.M, g.N, g.K = m, n, k
	side := func(mnMajor bool, extent int) (o blublas.Operand, elements int) {
		rows, cols := extent, k
		if mnMajor {
			rows, cols = k, extent
		}
		o = blublas.Operand{MNMajor: mnMajor, Pitch: (cols + multiple - 1) / multiple * multiple}
		return o, rows * o.Pitch
	}
	var a, b int
	g.A, a = side(layout == tn, m)
	g.B, b = side(layout != nt, n)
	for _, d := range g.Batch { // there is one dimension
		g.Batch = []blublas.Batch{{Size: d.Size, A: a, B: b}}
	}
	return g
}

// batched makes it many products, whose operands are to be laid.
func batched(g blublas.Gemm, n int) blublas.Gemm {
	g.Batch = []blublas.Batch{{Size: n}}
	return g
}

// matrices is how many products a kernel computes.
func matrices(g blublas.Gemm) int {
	n := 1
	for _, b := range g.Batch {
		n *= b.Size
	}
	return n
}
