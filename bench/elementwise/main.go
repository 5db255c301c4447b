// Command elementwise times fused loops as the compiler makes them for the machine's first GPU, beside copies of the same
// number of bytes:
//
//	elementwise [-json FILE] [-only TEXT] [-reps 15]
//
// A function's bytes are those of its operands and results, each once; what its kernels hand each other is not counted, the time
// that they take one after the other is. The rate is told in percent of a copy's by the driver, from one place in memory to
// another. L2 is filled with something else before what is timed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"blutrain/bench/internal/gpu"
	"blutrain/runtime/cuda"
)

func main() {
	out := flag.String("json", "", "write everything measured to this file")
	only := flag.String("only", "", "only cases whose name has this in it; several separated by commas")
	reps := flag.Int("reps", 15, "launches timed for each median")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "elementwise: unknown argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	b := &bench{only: strings.Split(*only, ","), reps: *reps}
	err := b.run()
	if err = gpu.Save(*out, b.results, err); err != nil {
		fmt.Fprintln(os.Stderr, "elementwise:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	only    []string
	reps    int
	gpu     *gpu.GPU
	results []result
}

// result is one measured function.
type result struct {
	Case    string               `json:"case"`
	Bytes   int64                `json:"bytes"`
	Kernels []string             `json:"kernels"`
	Millis  map[string][]float64 `json:"millis"` // by kernel; of several also of all, one after the other, as ""
	Copy    []float64            `json:"copy_millis"`
	Percent float64              `json:"percent"` // of the copy's rate
}

// shapes is what cases are timed at.
var shapes = []struct {
	rows, cols int
	cases      func() []testCase
}{{16384, 768, cases}, {16384, 3072, cases}, {2048, 50304, longCases}}

func (b *bench) run() error {
	driver, err := cuda.Open()
	if err != nil {
		return err
	}
	if b.gpu, err = gpu.Open(driver); err != nil {
		return err
	}
	fmt.Printf("%s\n%-42s %10s %10s %8s %8s  %s\n", b.gpu.Ctx.Device.Name, "function", "us", "copy us", "TB/s", "percent", "kernels, us alone")
	var failed []error
	for _, s := range shapes {
		for _, c := range s.cases() {
			name := fmt.Sprintf("%s %dx%d", c.name, s.rows, s.cols)
			if !b.wanted(name) {
				continue
			}
			if err := b.measure(name, c.text(s.rows, s.cols)); err != nil { // the others may still be measured
				fmt.Printf("%-42s %v\n", name, err)
				failed = append(failed, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(failed...)
}

func (b *bench) wanted(name string) bool {
	for _, o := range b.only {
		if strings.Contains(name, o) {
			return true
		}
	}
	return false
}

// measure times a function's kernels, one by one and one after the other, and copies.
func (b *bench) measure(name, text string) (err error) {
	f, err := compile(text)
	if err != nil {
		return err
	}
	r := result{Case: name, Bytes: f.bytes, Millis: map[string][]float64{}}
	if r.Copy, err = b.copies(f.bytes); err != nil {
		return err
	}
	var all []gpu.Run
	var owned []cuda.Pointer
	defer func() { err = errors.Join(err, b.gpu.Free(owned...)) }()
	var said []string
	for _, k := range f.kernels {
		run, more, err := b.ready(k)
		owned = append(owned, more...)
		if err != nil {
			return err
		}
		ms, err := b.gpu.Time([]gpu.Run{run}, b.reps)
		if err != nil {
			return err
		}
		all, r.Kernels, r.Millis[k.name] = append(all, run), append(r.Kernels, k.name), ms
		said = append(said, fmt.Sprintf("%s %.1f", k.name, 1e3*gpu.Median(ms)))
	}
	total := r.Millis[f.kernels[0].name]
	if len(all) > 1 {
		if total, err = b.gpu.Time(all, b.reps); err != nil {
			return err
		}
		r.Millis[""] = total
	}
	took, copied := gpu.Median(total), gpu.Median(r.Copy)
	r.Percent = 100 * copied / took
	fmt.Printf("%-42s %10.1f %10.1f %8.2f %8.1f  %s\n", name, 1e3*took, 1e3*copied, float64(f.bytes)/took*1e-9, r.Percent, strings.Join(said, ", "))
	b.results = append(b.results, r)
	return nil
}
