package main

import (
	"fmt"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/runtime/cuda"
)

// transposes times the making of K-major copies, of which tf32 products read those of a step of GPT-2 124M.
func (b *bench) transposes() error {
	for _, s := range []struct{ rows, cols, pitch int }{{16384, 768, 768}, {16384, 3072, 3072}, {2048, 50257, 50257}, {50257, 768, 768}} {
		name := fmt.Sprintf("transpose %dx%d", s.rows, s.cols)
		if !b.wanted("transpose", name) {
			continue
		}
		c := blublas.Copy{Rows: s.rows, Cols: s.cols, Pitch: s.pitch, Size: 4, Transposed: true, OutPitch: (s.rows + 3) / 4 * 4, Target: ptx.SM90A}
		if err := b.timeTranspose(name, c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (b *bench) timeTranspose(name string, c blublas.Copy) error {
	m, err := b.random(1, 1, c.Rows*c.Pitch, blublas.Operand{Pitch: c.Rows * c.Pitch}, blublas.FP32Strict)
	if err != nil {
		return err
	}
	to, err := b.gpu.Ctx.Alloc(c.Bytes())
	if err != nil {
		return err
	}
	k, err := c.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil))
	if err != nil {
		return err
	}
	f, err := b.gpu.Load(k)
	if err != nil {
		return err
	}
	run := gpu.Run{F: f, Config: cuda.Config{Grid: k.Grid, Threads: k.Threads, Shared: k.Shared}, Args: []any{m.planes[0], to}}
	ms, err := b.gpu.Time([]gpu.Run{run}, b.reps)
	if err != nil {
		return err
	}
	fmt.Printf("%-28s %8.1f us %8.0f GB/s\n", name, 1e3*gpu.Median(ms), 8*float64(c.Rows)*float64(c.Cols)/gpu.Median(ms)*1e-6)
	if err := b.keep("transpose", name, result{Case: name, Kernel: k.Name, Millis: ms}); err != nil {
		return err
	}
	return b.gpu.Free(append(m.owned, to)...)
}
