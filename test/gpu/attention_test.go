package gpu

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/lower/kernels"
	lowerptx "blutrain/lower/ptx"
)

// attentionTolerance is what rounding operands of products to fewer bits may change of results, relative to the greatest: a
// few roundings, of a score's factors, of a weight and of what it weights. Statistics are float32 in bf16, too.
var attentionTolerance = map[string]float64{"fp32": 2e-5, "fp32-strict": 2e-5, "tf32": 4.0 / (1 << 11), "bf16": 4.0 / (1 << 9)}

// Attention of the examples and its gradients at every precision and for every arch, with shared keys, in one block of
// rows and in several. It is by the template.
func TestAttentionAsPTX(t *testing.T) {
	for _, m := range []struct {
		file string
		set  map[string]float64
	}{
		{"gpt2.blu", map[string]float64{"V": 37, "T": 40, "L": 1, "H": 2, "C": 64, "B": 2, "S": 37}},
		{"llama.blu", map[string]float64{"V": 41, "L": 1, "H": 4, "K": 2, "C": 64, "F": 36, "B": 2, "S": 21}},
		{"gpt2.blu", map[string]float64{"V": 38, "T": 150, "L": 1, "H": 1, "C": 64, "B": 1, "S": 150}},
	} {
		for _, precision := range []string{"fp32", "fp32-strict", "tf32", "bf16"} {
			for _, arch := range ptx.Targets {
				if testing.Short() && (m.set["S"] > 100 || arch == ptx.SM89) {
					continue
				}
				t.Run(fmt.Sprint(m.file, m.set["V"], " ", precision, " ", arch), func(t *testing.T) {
					t.Parallel()
					r, all := tileKernels(t, m.file, m.set, precision, kernels.CUDA())
					found := 0
					for _, k := range all {
						if !strings.HasPrefix(ir.SymName(k), "attention") {
							continue
						}
						found++
						require.True(t, byTemplate(t, r.Ctx, r.Module, k, arch))
						t.Run(ir.SymName(k), func(t *testing.T) {
							emulateWithin(t, r.Ctx, r.Module, k, lowerptx.Options{Target: arch}, allowance{tolerance: func(ir.Type) float64 { return attentionTolerance[precision] }})
						})
					}
					require.GreaterOrEqual(t, found, 2, "attention and its gradient")
				})
			}
		}
	}
}

// byTemplate reports whether a kernel is lowered by the template of attention: it loads matrices of shared memory,
// multiplies them there, or adds outer products.
func byTemplate(t *testing.T, c *ir.Context, module, kernel *ir.Op, arch string) bool {
	return lowersTo(t, c, module, kernel, lowerptx.Options{Target: arch}, ptx.LoadMatrix, ptx.WGMMA, ptx.OuterFMA)
}

// lowersTo reports whether one of some operations is in what a kernel becomes.
func lowersTo(t *testing.T, c *ir.Context, module, kernel *ir.Op, o lowerptx.Options, ops ...*ir.OpDef) (found bool) {
	for op := lowerCopy(t, c, module, kernel, ".look", o); op != nil; {
		ir.Walk(op, func(op *ir.Op) ir.WalkResult {
			found = found || slices.ContainsFunc(ops, op.Is)
			return ir.Advance
		})
		then := op.Attrs().Sym(lowerptx.ThenAttr)
		op.Erase()
		if op = nil; then != "" {
			op = ir.LookupSymbol(module, then)
		}
	}
	return found
}
