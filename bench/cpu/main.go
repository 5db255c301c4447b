// Command cpu measures the CPU target beside others on the same machine, in turn: matrix products beside NumPy's OpenBLAS, and
// whole steps of training beside PyTorch. It prints medians and ratios, and writes every repetition to a file. The Python needs
// numpy and threadpoolctl for products, torch for steps:
//
//	python3 -m venv /tmp/venv && /tmp/venv/bin/pip install numpy threadpoolctl torch
//	go build -o bin/ ./cmd/... && go run ./bench/cpu --python /tmp/venv/bin/python --json results.json
//
// Other programs disturb wall-clock times, so processor time is measured too, and the ratio of both sides' best times.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"blutrain/formats/atomicfile"
	"blutrain/runtime/host/prim"
)

type options struct {
	Parts   []string `help:"What to measure: gemm, step." default:"gemm,step" enum:"gemm,step"`
	Python  string   `help:"Python with numpy and threadpoolctl; empty: no products beside OpenBLAS." default:"python3"`
	Torch   string   `help:"Python with torch; empty: that of --python."`
	Reps    int      `help:"Turns of three repetitions of a product, rounds of a step." default:"5"`
	Threads []int    `help:"Thread counts." default:"1,2"`
	JSON    string   `help:"Write the raw repetitions to this file."`

	ISA  string `help:"Products: instruction set: avx512, avx2 or go; empty: the best. With avx2, OpenBLAS gets its Haswell kernel."`
	Set  string `help:"Products: shapes: all, square, forward, backward, small." default:"all" enum:"all,square,forward,backward,small"`
	Cold bool   `help:"Products: take another copy of B every time, from memory that no cache holds, as a model's weights are."`

	Model  string   `help:"Steps: the model." default:"examples/gpt2.blu"`
	Bin    string   `help:"Steps: folder with bluc and blurun." default:"bin"`
	Shapes []string `help:"Steps: batches as rows x tokens." default:"4x64,1x512"`
}

// report is what --json writes.
type report struct {
	Begun    string       `json:"begun"`
	Command  []string     `json:"command"`
	Load     [2]string    `json:"load"` // /proc/loadavg before and after
	OpenBLAS string       `json:"openblas,omitempty"`
	ISA      string       `json:"isa"`
	Products []result     `json:"products,omitempty"`
	Steps    []stepResult `json:"steps,omitempty"`
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == serveStep {
		if err := trainSteps(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, "cpu:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	kong.Parse(&o, kong.Description("Measures the CPU target beside OpenBLAS and PyTorch."))
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "cpu:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	r := report{Begun: time.Now().Format(time.DateTime), Command: os.Args[1:], Load: [2]string{load()}}
	fmt.Printf("%s, load %s\n", r.Begun, r.Load[0])
	var err error
	if slices.Contains(o.Parts, "gemm") {
		err = products(o, &r)
	}
	if err == nil && slices.Contains(o.Parts, "step") {
		err = steps(o, &r)
	}
	fmt.Println("load", load())
	return errors.Join(err, r.save(o.JSON))
}

// save writes what there is so far, so that a run that is broken off leaves it.
func (r *report) save(file string) error {
	if file == "" {
		return nil
	}
	r.Load[1] = load()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(atomicfile.OS{}, file, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// load is the machine's load averages.
func load() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(b))[:3], " ")
}

func kernels(o options) (*prim.Kernels, error) {
	if o.ISA == "" {
		return prim.Detect(), nil
	}
	return prim.ForISA(o.ISA)
}

// A sample is how long something took, in seconds.
type sample struct {
	Wall float64 `json:"wall"`
	CPU  float64 `json:"cpu"` // of all threads
}

func walls(s []sample) []float64 { return column(s, func(x sample) float64 { return x.Wall }) }
func cpus(s []sample) []float64  { return column(s, func(x sample) float64 { return x.CPU }) }

func column(s []sample, of func(sample) float64) []float64 {
	out := make([]float64, len(s))
	for i, x := range s {
		out[i] = of(x)
	}
	return out
}

// timed measures a call in this process.
func timed(call func()) sample {
	cpu, start := processCPU(), time.Now()
	call()
	return sample{time.Since(start).Seconds(), processCPU() - cpu}
}

// processCPU is the processor time this process has taken, in seconds.
func processCPU() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // the arguments are right
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func median(x []float64) float64 {
	if len(x) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
