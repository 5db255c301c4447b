package gpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/formats/tuning"
	"blutrain/ir"
	"blutrain/lower/kernels"
	lowerptx "blutrain/lower/ptx"
)

// Every kernel that a table can choose computes what the one does that is chosen without.
func TestChoices(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32"} {
		r, all := tileKernels(t, "gpt2.blu", map[string]float64{"V": 40, "T": 72, "L": 1, "H": 1, "C": 64, "B": 1, "S": 72}, precision, kernels.CUDA())
		measured := map[string]bool{}
		for _, k := range all {
			kind := strings.Join(strings.SplitN(ir.SymName(k)+"__", "_", 3)[:2], "_") // gemm_tn, attention_grad
			if measured[kind] || testing.Short() && len(measured) > 0 {
				continue // one product of each layout, one attention and its gradient
			}
			found := choices(t, r.Ctx, r.Module, k)
			for key, list := range found {
				measured[kind] = true
				for _, choice := range list {
					t.Run(precision+" "+ir.SymName(k)+" "+choice, func(t *testing.T) {
						o := lowerptx.Options{Target: ptx.SM90A, Products: "auto", Tuning: &lowerptx.Tuning{Table: &tuning.Table{Entries: []tuning.Entry{{Key: key, Choice: choice}}}}}
						emulateWithin(t, r.Ctx, r.Module, k, o, allowance{tolerance: func(e ir.Type) float64 { return max(tolerance(e), attentionTolerance[precision]) }})
						taken, _ := o.Tuning.Found()
						require.Equal(t, 1, taken)
					})
				}
			}
		}
		require.NotEmpty(t, measured)
	}
}

// choices is what a table may say of a kernel: for each key some that aren't prediction's.
func choices(t *testing.T, c *ir.Context, module, kernel *ir.Op) map[string][]string {
	lowerCopy(t, c, module, kernel, ".look", lowerptx.Options{Target: ptx.SM90A, Products: "auto", Tuning: &lowerptx.Tuning{Candidates: 4}})
	found := map[string][]string{}
	var made []*ir.Op
	for op := range module.Body().Ops() {
		if !op.Is(ptx.Kernel) {
			continue
		}
		made = append(made, op)
		if d, ok := op.Attr(lowerptx.CandidateAttr).(*ir.DictAttr); ok {
			a := ir.Attrs(d.Entries)
			require.Equal(t, ir.SymName(kernel)+".look", a.Sym("of"))
			found[a.Str("key")] = append(found[a.Str("key")], a.Str("choice"))
		}
	}
	for _, op := range made {
		op.Erase()
	}
	return found
}
