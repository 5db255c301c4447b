package shard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes/internal/evaluate"
)

// Two steps of training on two times two ranks, as all passes of the compiler leave the program, with states whole and in
// shards, and with the least and the most recomputation, give the parameters and losses of one rank.
func TestContextTraining(t *testing.T) {
	const dp, cp = 2, 2
	// Of parameters whose gradients are nearly zero AdamW would make steps of the rounding's direction.
	m := llama(t, 16, `adamw(lr: cosine(max: LR, min: LR / 10, warmup: WARMUP, steps: STEPS),
                  betas: (0.9, 0.95), eps: 1e-8, weight_decay: 0.1 where rank >= 2)`, "sgd(lr: constant(max: LR), momentum: 0.9)")
	one := trained(t, m, driver.Options{}, 1, 1)[0]
	for _, context := range dtms.Contexts {
		for zero := range 2 {
			t.Run(fmt.Sprintf("%s/zero=%d", context, zero), func(t *testing.T) {
				o := driver.Options{Recompute: []string{"none", "full"}[zero], Sharding: driver.Sharding{Mesh: "dp=2,cp=2", Zero: zero, Context: context}}
				for _, r := range trained(t, m, o, dp, cp) {
					for name, want := range one {
						require.Less(t, difference(r[name], want), 1e-10, name)
					}
				}
			})
		}
	}
}

// trained is the parameters, and the losses and norms of gradients, of every rank after two steps of two micro-batches.
func trained(t *testing.T, m model, o driver.Options, dp, cp int) []map[string][]float64 {
	t.Helper()
	o.Target, o.CompileTo, o.Set = "ref", "graph", m.sizes
	compiled, err := driver.Compile(m.name+".blu", []byte(m.text), o)
	require.NoError(t, err)
	steps := evaluate.Training{Steps: 2, Micros: 2, Ranks: dp, Batch: func(number int) map[string]*ir.Tensor { return batch(compiled.Module, number) }}
	all, err := evaluate.OnRanks(compiled.Ctx, compiled.Module, dp, cp, func(p *evaluate.Program, r *dtms.Rank) (map[string][]float64, error) {
		h, err := p.Train(steps, r.DP)
		results := map[string][]float64{"loss": h.Loss, "grad_norm": h.Norm}
		for op := range compiled.Module.Body().Ops() {
			if op.Is(blu.Param) {
				results[ir.SymName(op)] = p.States[ir.SymName(op)].Data
			}
		}
		return results, err
	})
	require.NoError(t, err)
	return all
}
