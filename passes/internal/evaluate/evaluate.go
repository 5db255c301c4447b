// Package evaluate calls functions of modules on random arguments, for tests that compare programs before and after a pass.
package evaluate

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/ir"
)

// Function evaluates a function with the reference semantics and returns its results. Floating-point arguments are normal,
// scalars of truth are false, other integers are at least 0 and below indices. before is called as ir.Interp does, unless
// nil.
func Function(t *testing.T, c *ir.Context, module *ir.Op, name string, seed uint64, indices int, before func(*ir.Op, []ir.Datum) error) [][]float64 {
	t.Helper()
	fn := ir.LookupSymbol(module, name)
	require.NotNil(t, fn)
	rng := rand.New(rand.NewPCG(seed, 0))
	var args []ir.Datum
	for _, a := range fn.Body().Args() {
		x := ir.NewTensor(a.Elem(), a.Shape()...)
		for i := range x.Data {
			switch e := a.Elem().(type) {
			case *ir.IntegerType:
				if e.Width > 1 {
					x.Data[i] = float64(rng.IntN(indices))
				}
			default:
				x.Data[i] = rng.NormFloat64()
			}
		}
		args = append(args, x)
	}
	interp := ir.Interp{Ctx: c, Module: module, Before: before}
	results, err := interp.Call(name, args...)
	require.NoError(t, err)
	var out [][]float64
	for _, r := range results {
		out = append(out, r.(*ir.Tensor).Data)
	}
	return out
}
