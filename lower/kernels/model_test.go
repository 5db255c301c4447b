package kernels

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/autodiff"
	"blutrain/dialects"
	"blutrain/dialects/fn"
	"blutrain/dialects/tile"
	"blutrain/frontend"
	"blutrain/ir"
	"blutrain/ir/rewrite"
)

// model compiles an example to the functions of its training.
func model(t testing.TB, name string, set map[string]float64) (*ir.Context, *ir.Op) {
	t.Helper()
	file := filepath.Join("..", "..", "examples", name)
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	c := dialects.NewContext()
	m, diags := frontend.Compile(c, file, src, frontend.Options{Set: set})
	require.False(t, diags.HasErrors(), "%v", diags)
	require.NoError(t, autodiff.Train(c, m))
	rewrite.MergeEqual(m, nil)
	rewrite.EraseDead(m)
	return c, m
}

// Every function of the example models computes after lowering what it did before.
func TestModels(t *testing.T) {
	for _, m := range []struct {
		file string
		set  map[string]float64
	}{
		{"gpt2.blu", map[string]float64{"V": 13, "T": 7, "L": 2, "H": 2, "C": 8, "B": 2, "S": 5}},
		{"llama.blu", map[string]float64{"V": 13, "L": 2, "H": 4, "K": 2, "C": 16, "F": 12, "B": 2, "S": 5}},
		{"mlp.blu", map[string]float64{"V": 11, "W": 3, "E": 4, "M": 10, "B": 2, "S": 5}},
	} {
		for name, target := range targets() {
			if testing.Short() && name == "tiny" {
				continue
			}
			t.Run(m.file+"/"+name, func(t *testing.T) {
				c, before := model(t, m.file, m.set)
				lowered, after := model(t, m.file, m.set)
				require.NoError(t, Run(lowered, after, target))
				require.NoError(t, ir.Verify(lowered, after))
				for op := range before.Body().Ops() {
					if !op.Is(fn.Func) {
						continue
					}
					args := arguments(op)
					want, err := (&ir.Interp{Ctx: c, Module: before}).Call(ir.SymName(op), args...)
					require.NoError(t, err)
					got, err := (&ir.Interp{Ctx: lowered, Module: after}).Call(ir.SymName(op), args...)
					require.NoError(t, err)
					for i := range want {
						require.Empty(t, differenceBy(want[i], got[i], 1e-5), "%s, result %d", ir.SymName(op), i)
					}
				}
			})
		}
	}
}

// arguments makes values for the arguments of a function: small numbers for tokens and classes, positive ones for second
// moments and scalars.
func arguments(f *ir.Op) []ir.Datum {
	r := rand.New(rand.NewPCG(3, 5))
	var args []ir.Datum
	dicts, _ := f.Attr("arg_attrs").(*ir.ArrayAttr)
	for i, a := range f.Body().Args() {
		x := ir.NewTensor(a.Elem(), a.Shape()...)
		name := ""
		if dicts != nil {
			name = dicts.Elems[i].String()
		}
		for k := range x.Data {
			switch {
			case !ir.IsFloat(a.Elem()):
				x.Data[k] = float64(r.IntN(3))
			case strings.Contains(name, "adamw.v") || len(a.Shape()) == 0:
				x.Data[k] = 1 + r.Float64()
			default:
				x.Data[k] = 0.3 * r.NormFloat64()
			}
		}
		if t, ok := a.Elem().(*ir.IntegerType); ok && t.Width == 1 {
			x.Data[0] = 0
		}
		args = append(args, x)
	}
	return args
}

// GPT-2's step is made of the kernels one would write by hand: seven launches a layer forward.
func TestGPT2Launches(t *testing.T) {
	c, m := model(t, "gpt2.blu", nil)
	require.NoError(t, Run(c, m, CPU()))
	launches := map[string]int{}
	for op := range ir.LookupSymbol(m, "logits").Body().Ops() {
		if op.Is(tile.Launch) {
			launches[strings.TrimSuffix(op.Attrs().Sym("kernel"), "_2")]++ // without what training keeps
		}
	}
	require.Equal(t, map[string]int{
		"gather_add_layernorm_16x1024x768":     1,
		"layernorm_16384x768":                  24,
		"gemm_nt_bias_16384x2304x768":          12,
		"attention_causal_16x12x1024x64":       12,
		"gemm_nt_bias_residual_16384x768x768":  12,
		"gemm_nt_bias_gelu_16384x3072x768":     12,
		"gemm_nt_bias_residual_16384x768x3072": 12,
		"gemm_nt_16384x50257x768":              1,
	}, launches)
}
