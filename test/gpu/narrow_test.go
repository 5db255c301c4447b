package gpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
)

// Products of one row or of one column, added to what they replace: threads whose rows and columns lie beyond read nothing of it.
func TestNarrowProductsInPlace(t *testing.T) {
	for _, n := range []int{1, 2, 36, 132} {
		source := fmt.Sprintf(`model m(V = 7, N = %d) {
  param e: f32[V, 1] = normal(std: 1.0)
  param w: f32[N, 1] = normal(std: 1.0)
  param u: f32[1, N] = normal(std: 1.0)
  param b: f32[1] = zeros

  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    let x = e[tokens]
    return (sum(tanh(linear(tanh(linear(x, w)), u, b))), 2.0)
  }
}

train m {
  minimize loss
  batch B = 3, S = 20
  optimizer sgd(lr: 0.1)
}
`, n)
		for _, target := range []string{ptx.SM80, ptx.SM90A} {
			for _, precision := range []string{"fp32", "fp32-strict", "bf16"} {
				t.Run(fmt.Sprint(n, " ", target, " ", precision), func(t *testing.T) {
					r, err := driver.Compile("narrow.blu", []byte(source), driver.Options{Target: "cuda", Arch: target, Precision: precision, CompileTo: "graph"})
					require.NoError(t, err)
					all := loweredKernels(t, r)
					for _, k := range all {
						t.Run(ir.SymName(k), func(t *testing.T) {
							emulateWithin(t, r.Ctx, r.Module, k, lowerptx.Options{Target: target, Products: "templates"}, allowance{func(ir.Type) float64 { return 1.0 / 64 }, true})
						})
					}
				})
			}
		}
	}
}
