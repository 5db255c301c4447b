package shard_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/autodiff"
	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/frontend"
	"blutrain/ir"
	"blutrain/passes/internal/evaluate"
	"blutrain/passes/shard"
)

// model is the training functions of a model.
type model struct {
	name, text string
	sizes      map[string]float64
}

// example is a model of examples/, each text replaced as given.
func example(t *testing.T, name string, sizes map[string]float64, replace ...string) model {
	text, err := os.ReadFile("../../examples/" + name + ".blu")
	require.NoError(t, err)
	for i := 0; i < len(replace); i += 2 {
		require.Contains(t, string(text), replace[i])
	}
	return model{name, strings.NewReplacer(replace...).Replace(string(text)), sizes}
}

func gpt2(t *testing.T, seq float64, replace ...string) model {
	return example(t, "gpt2", map[string]float64{"V": 11, "T": 2 * seq, "L": 2, "H": 4, "C": 16, "B": 2, "S": seq}, replace...)
}

func llama(t *testing.T, seq float64, replace ...string) model {
	return example(t, "llama", map[string]float64{"V": 11, "L": 2, "H": 8, "K": 4, "C": 32, "F": 12, "B": 2, "S": seq}, replace...)
}

// functions is the model's module after differentiation.
func (m model) functions(t *testing.T) (*ir.Context, *ir.Op) {
	t.Helper()
	c := dialects.NewContext()
	module, diags := frontend.Compile(c, m.name+".blu", []byte(m.text), frontend.Options{Set: m.sizes})
	require.NotNil(t, module, "%v", diags)
	require.NoError(t, autodiff.Train(c, module))
	return c, module
}

// sharded is that module for a mesh, and what there is to remark.
func (m model) sharded(t *testing.T, mesh dtms.Mesh) (*ir.Context, *ir.Op, []string) {
	t.Helper()
	c, module := m.functions(t)
	var remarks []string
	require.NoError(t, shard.Run(c, module, mesh, shard.Watch{
		Visit:  func(*ir.Op) {},
		Remark: func(loc *ir.Location, text string) { remarks = append(remarks, fmt.Sprintf("%v: %s", loc, text)) },
	}))
	require.NoError(t, ir.Verify(c, module))
	return c, module, remarks
}

// randomize gives every parameter normal values, and gradients and sums values that must not matter.
func randomize(p *evaluate.Program) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range slices.Sorted(maps.Keys(p.States)) {
		for i := range p.States[name].Data {
			p.States[name].Data[i] = 0.4 * rng.NormFloat64()
		}
	}
}

// batch is random inputs of a module's training step. Targets that are ignored are many at the start, and few at the end.
func batch(module *ir.Op, number int) map[string]*ir.Tensor {
	inputs := map[string]*ir.Tensor{}
	f := ir.LookupSymbol(module, "accumulate")
	for i, a := range f.Body().Args() {
		p := blu.ArgPort(f, i)
		if p.Kind != blu.InputAttr {
			continue
		}
		x := ir.NewTensor(a.Elem(), a.Shape()...)
		rng := rand.New(rand.NewPCG(uint64(number), uint64(i)))
		for k := range x.Data {
			x.Data[k] = float64(rng.IntN(classes))
			if p.Name == "targets" && rng.IntN(len(x.Data)+k) >= k {
				x.Data[k] = -1
			}
		}
		inputs[p.Name] = x
	}
	return inputs
}

// classes is the vocabulary of all models.
const classes = 11

// requireEquivalent holds a mesh's gradient sums, losses and counts to those of one rank that computes all batches.
func requireEquivalent(t *testing.T, m model, mesh dtms.Mesh) {
	t.Helper()
	requireWithin(t, m, mesh, 1e-10)
}

// requireWithin does so with a tolerance, relative to the greatest element.
func requireWithin(t *testing.T, m model, mesh dtms.Mesh, tolerance float64) {
	t.Helper()
	c, module := m.functions(t)
	one := evaluate.NewProgram(c, module, nil)
	randomize(one)
	evaluated := map[string]float64{}
	for i := range mesh.DP {
		_, err := one.Call("accumulate", batch(module, i), map[string]float64{"first": float64(1 - min(i, 1)), "seed": 7})
		require.NoError(t, err)
		out, err := one.Call("eval", batch(module, i), nil)
		require.NoError(t, err)
		for name, x := range out {
			evaluated[name] += x.Data[0]
		}
	}
	require.Positive(t, one.States["count"].Data[0])

	sc, sharded, _ := m.sharded(t, mesh)
	require.NoError(t, dtms.Evaluate(mesh.DP, mesh.CP, func(r *dtms.Rank) error {
		p := evaluate.NewProgram(sc, sharded, r)
		randomize(p)
		if _, err := p.Call("accumulate_last", batch(sharded, r.DP), map[string]float64{"first": 1, "seed": 7}); err != nil {
			return err
		}
		for name, want := range one.States {
			if diff := difference(p.States[name].Data, want.Data); diff > tolerance {
				return fmt.Errorf("%s is off by %g", name, diff)
			}
		}
		out, err := p.Call("eval", batch(sharded, r.DP), nil)
		for name, want := range evaluated {
			if err == nil && difference(out[name].Data, []float64{want}) > tolerance {
				err = fmt.Errorf("eval's %s is %v, not %v", name, out[name].Data, want)
			}
		}
		return err
	}))
}

// difference is the greatest one of elements, relative to the greatest element; NaN counts as infinite.
func difference(got, want []float64) float64 {
	scale, diff := 0.0, 0.0
	for i, w := range want {
		scale = max(scale, math.Abs(w))
		if d := math.Abs(got[i] - w); !(d <= diff) {
			diff = d
		}
	}
	if diff == 0 {
		return 0
	}
	if d := diff / scale; !math.IsNaN(d) {
		return d
	}
	return math.Inf(1)
}

// What cp ranks compute of pieces is what one computes of all: gradients, losses and counts.
func TestContextEquivalence(t *testing.T) {
	for _, tc := range []struct{ dp, cp int }{{1, 2}, {1, 3}, {1, 4}, {2, 2}} {
		for _, context := range dtms.Contexts {
			if context == "ulysses" && tc.cp == 3 {
				continue // neither model's heads can be shared by three
			}
			for name, m := range map[string]model{"gpt2": gpt2(t, 24), "llama": llama(t, 24)} {
				t.Run(fmt.Sprintf("%s/dp=%d,cp=%d/%s", name, tc.dp, tc.cp, context), func(t *testing.T) {
					requireEquivalent(t, m, dtms.Mesh{DP: tc.dp, CP: tc.cp, Context: context})
				})
			}
		}
	}
}
