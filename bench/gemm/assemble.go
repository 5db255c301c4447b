package main

import (
	"errors"
	"fmt"

	"blutrain/bench/internal/gpu"
)

// assemble loads the kernels that are timed. The driver keeps their code for later processes (CUDA_CACHE_PATH); it assembles one kernel after the
// other, so that several processes, each with some of the cases, are done earlier.
func (b *bench) assemble() error {
	for _, s := range shapes() {
		for _, p := range precisions {
			if !b.wanted("time", timeName(s, p.ours)) {
				continue
			}
			for _, g := range b.candidates(p.ours, s, s.layoutFor(p.ours), outFor(p.ours)) {
				if _, _, err := b.gpu.loadProduct(g); err != nil && !errors.As(err, new(*gpu.SpillError)) { // that is told where it is timed
					return fmt.Errorf("%s %s: %w", s.name, p.ours, err)
				}
			}
		}
	}
	return nil
}
