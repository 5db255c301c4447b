// Command attention times the attention kernels that blublas makes, on the machine's first GPU:
//
//	attention [-json FILE] [-only TEXT] [-reps 15]
//
// For every precision, number of positions and head size it compares what each block of Attention.Blocks gives with float64,
// beside PyTorch's scaled_dot_product_attention on the same data, and then times it beside PyTorch's (torch_peer.py,
// python3), forward and backward. It is built without cgo and needs nothing of this repository where it runs.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/runtime/cuda"
)

//go:embed torch_peer.py
var peerSource string

func main() {
	out := flag.String("json", "", "write everything measured to this file")
	only := flag.String("only", "", "only cases whose name has this in it; several separated by commas")
	reps := flag.Int("reps", 15, "launches timed for each median")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "attention: unknown argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	b := &bench{loaded: map[string]*cuda.Function{}, only: strings.Split(*only, ","), reps: *reps}
	err := b.run()
	if err = gpu.Save(*out, b.results, err); err != nil {
		fmt.Fprintln(os.Stderr, "attention:", err)
		os.Exit(1)
	}
	if b.failed > 0 {
		fmt.Fprintf(os.Stderr, "attention: %d kernels are wrong\n", b.failed)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	only    []string
	reps    int
	gpu     *gpu.GPU
	peer    *gpu.Peer
	loaded  map[string]*cuda.Function
	results []result
	failed  int
}

// result is one measured fact, for the JSON file.
type result struct {
	Kind      string                 `json:"kind"` // error or time
	Case      string                 `json:"case"`
	Kernel    string                 `json:"kernel"`
	Block     blublas.AttentionBlock `json:"block"`
	Millis    []float64              `json:"millis,omitempty"`
	Peer      []float64              `json:"peer_millis,omitempty"`
	TFLOPS    float64                `json:"tflops,omitempty"`
	PeerFLOPS float64                `json:"peer_tflops,omitempty"`
	Errors    map[string]float64     `json:"errors,omitempty"`
	PeerError map[string]float64     `json:"peer_errors,omitempty"`
	Failure   string                 `json:"failure,omitempty"`
}

// shape is a case: causal, as many keys as queries.
type shape struct {
	precision               blublas.Precision
	batch, heads, positions int
	features                int
}

func (s shape) String() string {
	return fmt.Sprintf("%s T=%d D=%d", s.precision, s.positions, s.features)
}

// peerPrecision is what PyTorch is asked for.
func (s shape) peerPrecision() string {
	switch s.precision {
	case blublas.BF16:
		return "bf16"
	case blublas.TF32, blublas.FP16:
		return "tf32"
	}
	return "fp32"
}

func (s shape) with(p blublas.Precision) shape {
	s.precision = p
	return s
}

// shapes are GPT-2's heads, and wider ones; as many tokens each.
func shapes() []shape {
	var all []shape
	for _, p := range []blublas.Precision{blublas.BF16, blublas.FP16x3, blublas.FP16, blublas.TF32, blublas.TF32x3} {
		for _, positions := range []int{1024, 8192} {
			for _, features := range []int{64, 128} {
				all = append(all, shape{p, 16384 / positions, 768 / features, positions, features})
			}
		}
	}
	return all
}

func (b *bench) wanted(name string) bool {
	for _, o := range b.only {
		if strings.Contains(name, o) {
			return true
		}
	}
	return false
}

func (b *bench) run() error {
	driver, err := cuda.Open()
	if err != nil {
		return err
	}
	if b.gpu, err = gpu.Open(driver); err != nil {
		return err
	}
	fmt.Printf("%s\n", b.gpu.Ctx.Device.Name)
	if b.peer, err = gpu.StartPeer(peerSource); err != nil {
		return err
	}
	defer b.peer.Stop()
	for _, s := range shapes() {
		if !b.wanted(s.String()) {
			continue
		}
		if err := b.errors(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	fmt.Printf("\n%-20s %-10s %8s %8s %6s  %s\n", "shape", "kernel", "TFLOP/s", "PyTorch", "ratio", "block")
	for _, s := range shapes() {
		if !b.wanted(s.String()) {
			continue
		}
		if err := b.times(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	for _, s := range simtShapes() {
		if !b.wanted(s.String()) {
			continue
		}
		if err := b.simt(s); err != nil {
			return fmt.Errorf("%s: %w", s, err)
		}
	}
	return nil
}
