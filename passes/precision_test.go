package passes_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/passes"
	"blutrain/passes/internal/evaluate"
)

// model compiles an example as far as the phase graph.
func model(t *testing.T, name string, sizes map[string]float64) (*ir.Context, *ir.Op) {
	t.Helper()
	src, err := os.ReadFile("../examples/" + name + ".blu")
	require.NoError(t, err)
	r, err := driver.Compile(name+".blu", src, driver.Options{Target: "ref", Recompute: "none", Set: sizes, CompileTo: "graph"})
	require.NoError(t, err)
	return r.Ctx, r.Module
}

func runPasses(t *testing.T, c *ir.Context, m *ir.Op, pipeline string) error {
	t.Helper()
	pl, err := passes.ParsePipeline(passes.Table, "builtin.module("+pipeline+")")
	require.NoError(t, err)
	return (&passes.Config{}).Run(c, m, pl)
}

// examples is the models that products of every kind come from, small.
var examples = map[string]map[string]float64{
	"gpt2":  {"L": 2, "H": 2, "C": 16, "V": 24, "T": 8, "B": 2, "S": 8},
	"llama": {"L": 2, "H": 4, "K": 2, "C": 16, "F": 24, "V": 24, "B": 2, "S": 8},
	"mlp":   {"M": 16, "B": 2},
}

// bfloat rounds to 8 significant bits, to nearest with ties to even; the numbers of the test are far from the ends of the
// range of exponents.
func bfloat(x float64) float64 {
	m, e := math.Frexp(x)
	return math.Ldexp(math.RoundToEven(math.Ldexp(m, 8)), e-8)
}

// With bf16, a program computes in float64 what the program without the pass computes when the operands of its products
// are rounded just before these are evaluated.
func TestPrecisionRoundsOperandsOfProducts(t *testing.T) {
	for name, sizes := range examples {
		t.Run(name, func(t *testing.T) {
			c, plain := model(t, name, sizes)
			rounding := map[*ir.OpDef][]int{blu.Dot: {0, 1}, blu.Attention: {0, 1, 2}, blu.AttentionGrad: {0, 1, 2, 5}}
			products := 0
			before := func(op *ir.Op, in []ir.Datum) error {
				for _, i := range rounding[op.Def()] {
					x := in[i].(*ir.Tensor)
					y := ir.NewTensor(x.Elem, x.Shape...)
					for k, v := range x.Data {
						y.Data[k] = bfloat(v)
					}
					in[i] = y
					products++
				}
				return nil
			}
			want := evaluate.Function(t, c, plain, "accumulate", 1, 4, before)
			require.Greater(t, products, 20)
			unrounded := evaluate.Function(t, c, plain, "accumulate", 1, 4, nil)
			for _, pipeline := range []string{"precision{mode=bf16}", "precision{mode=bf16},canonicalize,cse,dce,recompute{mode=full},cse,dce"} {
				c, m := model(t, name, sizes)
				require.NoError(t, runPasses(t, c, m, pipeline))
				got := evaluate.Function(t, c, m, "accumulate", 1, 4, nil)
				require.Equal(t, want, got, pipeline)
				require.NotEqual(t, unrounded, got)
			}
		})
	}
}

// What is not a product is not touched: normalizations, softmax, loss and optimizer work on float32.
func TestPrecisionLeavesTheRest(t *testing.T) {
	c, m := model(t, "gpt2", examples["gpt2"])
	require.NoError(t, runPasses(t, c, m, "precision{mode=bf16},canonicalize,cse,dce"))
	apply := ir.LookupSymbol(m, "apply")
	require.NotContains(t, apply.String(), "bf16")
	f32 := ir.Type(c.F32())
	ir.Walk(m, func(op *ir.Op) ir.WalkResult {
		for _, r := range op.Results() {
			if ir.IsFloat(r.Type()) && r.Elem() != f32 {
				require.True(t, op.Is(blu.Cast), "%s", op)
				for u := range r.Uses() {
					require.True(t, u.Owner().Is(blu.Cast), "%s", u.Owner())
				}
			}
		}
		return ir.Advance
	})
}

// The three parts of q, k and v are one product's result, which is rounded once, where it is computed.
func TestPrecisionRoundsWhatViewsLookAt(t *testing.T) {
	c, m := model(t, "gpt2", examples["gpt2"])
	require.NoError(t, runPasses(t, c, m, "precision{mode=bf16},canonicalize,cse,dce"))
	ir.Walk(ir.LookupSymbol(m, "accumulate"), func(op *ir.Op) ir.WalkResult {
		require.False(t, op.Is(blu.Cast) && op.Operand(0).DefinedBy(blu.Slice), "%s", op)
		return ir.Advance
	})
}

func TestPrecisionModes(t *testing.T) {
	text := func(m *ir.Op) string { return string(ir.Print(m, ir.PrintOptions{})) }
	c, m := model(t, "mlp", examples["mlp"])
	plain := text(m)
	for _, options := range []string{"", "{mode=fp32}", "{mode=fp32-strict}", "{mode=fp32-strict target=ref}"} {
		require.NoError(t, runPasses(t, c, m, "precision"+options))
		require.Equal(t, plain, text(m), options)
	}
	err := runPasses(t, c, m, "precision{mode=tf32}")
	require.ErrorContains(t, err, "mlp.blu:")
	require.ErrorContains(t, err, "error: precision tf32: target cpu has no tf32 products; use fp32, or bf16 for operands of fewer bits")
	require.Equal(t, plain, text(m))

	require.NoError(t, runPasses(t, c, m, "precision{mode=tf32 target=cuda}"))
	marked := 0
	ir.Walk(m, func(op *ir.Op) ir.WalkResult {
		require.Equal(t, op.Is(blu.Dot), op.Attrs().Str(blu.PrecisionAttr) == "tf32")
		if op.Is(blu.Dot) {
			marked++
		}
		return ir.Advance
	})
	require.Positive(t, marked)
}
