package main

import (
	"fmt"

	"blutrain/bench/internal/gpu"
	"blutrain/blublas"
)

// splits times the making of planes of the matrices that a step of GPT-2 124M has them of, along rows, along columns and along both.
func (b *bench) splits() error {
	for _, s := range []struct{ rows, cols, pitch int }{
		{16384, 768, 768}, {16384, 2304, 2304}, {16384, 3072, 3072}, {2048, 50257, 50272}, {50257, 768, 768},
	} {
		for _, way := range []struct {
			name string
			sets []blublas.Set
		}{{"rows", []blublas.Set{{Name: "x"}}}, {"columns", []blublas.Set{{Name: "x", MNMajor: true}}}, {"both", []blublas.Set{{Name: "x"}, {Name: "y", MNMajor: true}}}} {
			name := fmt.Sprintf("split %dx%d %s", s.rows, s.cols, way.name)
			if !b.wanted("split", name) {
				continue
			}
			if err := b.timeSplit(name, blublas.Matrix{Name: "x", Rows: s.rows, Cols: s.cols, Pitch: s.pitch, PlanePitch: s.pitch, Sets: way.sets}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

func (b *bench) timeSplit(name string, x blublas.Matrix) error {
	m, err := b.random(1, 1, x.Rows*x.Pitch, blublas.Operand{Pitch: x.Rows * x.Pitch}, blublas.FP32Strict)
	if err != nil {
		return err
	}
	planes, run, err := b.gpu.splitting(blublas.FP16x3, m, x)
	if err != nil {
		return err
	}
	ms, err := b.gpu.Time([]gpu.Run{run}, b.reps)
	if err != nil {
		return err
	}
	bytes := 4 + 4*len(x.Sets) // read and written for each number
	fmt.Printf("%-28s %8.1f us %8.0f GB/s\n", name, 1e3*gpu.Median(ms), float64(bytes)*float64(x.Rows)*float64(x.Cols)/gpu.Median(ms)*1e-6)
	if err := b.keep("split", name, result{Case: name, Millis: ms}); err != nil {
		return err
	}
	return b.gpu.Free(planes.owned...)
}
