package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/ir"
)

// roundoff is what an operand of a product loses. A kernel whose error is beyond many of them is wrong, whatever PyTorch's.
func (s shape) roundoff() float64 {
	switch s.precision {
	case blublas.BF16:
		return 0x1p-9
	case blublas.TF32, blublas.FP16:
		return 0x1p-11
	}
	return 0x1p-21
}

// compared is data of a case on the device, with PyTorch's errors on it; what is asked of PyTorch about it.
type compared struct {
	t        tensors
	question map[string]any
	theirs   map[string]float64
}

// compare has use compare results on random data with float64; alloc makes what its kernels read and write.
func (b *bench) compare(s shape, alloc func(shape) (tensors, error), use func(c compared) error) error {
	folder, err := os.MkdirTemp("", "bench-attention-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	t, err := alloc(s)
	if err != nil {
		return err
	}
	inputs := b.normals(s)
	if err := b.upload(s, t, inputs); err != nil {
		return err
	}
	question := map[string]any{"folder": folder, "precision": s.peerPrecision(), "batch": s.batch, "heads": s.heads, "positions": s.positions, "features": s.features}
	for name, raw := range inputs {
		if err := os.WriteFile(filepath.Join(folder, name), raw, 0o600); err != nil {
			return err
		}
	}
	var theirs struct{ Errors map[string]float64 }
	if err := b.peer.Ask(with(question, "data"), &theirs); err != nil {
		return err
	}
	if err := use(compared{t, question, theirs.Errors}); err != nil {
		return err
	}
	return b.release(t)
}

// errors compares every block's results with float64, in the Frobenius norm, beside PyTorch's errors on the same data: one
// sequence, two heads.
func (b *bench) errors(s shape) error {
	s.batch, s.heads = 1, 2
	return b.compare(s, b.alloc, func(c compared) error { return b.blocksErrors(s, c) })
}

func (b *bench) blocksErrors(s shape, c compared) error {
	t := c.t
	if err := b.all(s, t); err != nil { // what kernels read of the ones before them
		return err
	}
	for n, k := range kernels {
		for _, block := range s.attention().Blocks(k.kind) {
			run, err := b.prepare(s.attention(), n, block, t)
			if err != nil {
				continue // it is told with the times
			}
			if err := errors.Join(b.poison(s, t, k.results), b.gpu.Launch([]gpu.Run{*run}), b.gpu.Stream.Synchronize()); err != nil {
				return err
			}
			if err := b.judge(s, t, n, block, with(c.question, "compare"), c.theirs); err != nil {
				return err
			}
		}
	}
	return nil
}

func with(question map[string]any, do string) map[string]any {
	question["do"] = do
	return question
}

// judge reads a kernel's results and has them compared.
func (b *bench) judge(s shape, t tensors, n int, block blublas.AttentionBlock, question map[string]any, theirs map[string]float64) error {
	names := slices.DeleteFunc(slices.Clone(kernels[n].results), func(name string) bool { return name == "delta" })
	for _, name := range names {
		raw := make([]byte, s.bytes(name))
		if err := b.gpu.Ctx.Download(raw, t[name]); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(question["folder"].(string), name), raw, 0o600); err != nil {
			return err
		}
	}
	question["names"] = names
	var ours struct{ Errors map[string]float64 }
	if err := b.peer.Ask(question, &ours); err != nil {
		return err
	}
	r := result{Kind: "error", Case: s.String(), Kernel: kernels[n].name, Block: block, Errors: ours.Errors, PeerError: theirs}
	var text []string
	for _, name := range names {
		e := ours.Errors[name]
		text = append(text, fmt.Sprintf("%s %.2e (PyTorch %.2e)", name, e, theirs[name]))
		if !(e <= math.Max(4*s.roundoff(), 4*theirs[name])) {
			r.Failure = "errors are beyond rounding"
		}
	}
	if r.Failure != "" {
		b.failed++
		text = append(text, "FAILED")
	}
	fmt.Printf("error %-20s %-8s %v: %s\n", s, r.Kernel, block.Choice(), strings.Join(text, ", "))
	b.results = append(b.results, r)
	return nil
}

// normals is the inputs: normal numbers, as tensors hold them.
func (b *bench) normals(s shape) map[string][]byte {
	all := map[string][]byte{}
	for i, name := range []string{"q", "k", "v", "do"} {
		r := rand.New(rand.NewPCG(rand.Uint64(), uint64(i)))
		raw := make([]byte, 0, s.bytes(name))
		for range s.elements() {
			if x := r.NormFloat64(); s.precision == blublas.BF16 {
				raw = binary.LittleEndian.AppendUint16(raw, ir.BF16Bits(x))
			} else {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(x)))
			}
		}
		all[name] = raw
	}
	return all
}

func (b *bench) upload(s shape, t tensors, inputs map[string][]byte) error {
	for name, raw := range inputs {
		if err := b.gpu.Ctx.Upload(t[name], raw); err != nil {
			return err
		}
	}
	return b.poison(s, t, []string{"o", "lse", "dq", "delta", "dk", "dv"})
}
