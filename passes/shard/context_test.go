package shard_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/autodiff"
	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/frontend"
	"blutrain/ir"
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

// sharded is that module for a mesh.
func (m model) sharded(t *testing.T, mesh dtms.Mesh) (*ir.Context, *ir.Op) {
	t.Helper()
	c, module := m.functions(t)
	require.NoError(t, shard.Run(c, module, mesh, func(*ir.Op) {}))
	require.NoError(t, ir.Verify(c, module))
	return c, module
}

// data is what a rank's functions are called with.
type data struct {
	states  map[string]*ir.Tensor
	inputs  map[string]*ir.Tensor
	scalars map[string]*ir.Tensor
}

// random makes states and inputs of a function of a module; most targets of the first rows are ignored.
func random(module *ir.Op, seed uint64, classes int) data {
	rng := rand.New(rand.NewPCG(1, 2))
	d := data{map[string]*ir.Tensor{}, map[string]*ir.Tensor{}, map[string]*ir.Tensor{
		"first": {Data: []float64{1}}, "seed": {Data: []float64{float64(seed)}},
	}}
	f := ir.LookupSymbol(module, "accumulate")
	for i, a := range f.Body().Args() {
		x := ir.NewTensor(a.Elem(), a.Shape()...)
		switch p := blu.ArgPort(f, i); p.Kind {
		case blu.StateAttr:
			for k := range x.Data {
				x.Data[k] = 0.4 * rng.NormFloat64()
			}
			if strings.Contains(p.Name, "_g") {
				x.Data[0]++
			}
			d.states[p.Name] = x
		case blu.InputAttr:
			inputs := rand.New(rand.NewPCG(seed, uint64(i)))
			for k := range x.Data {
				x.Data[k] = float64(inputs.IntN(classes))
				if p.Name == "targets" && inputs.IntN(len(x.Data)+k) >= k {
					x.Data[k] = -1
				}
			}
			d.inputs[p.Name] = x
		}
	}
	return d
}

// call evaluates a function, gives its outputs and changes the states.
func (d data) call(in *ir.Interp, name string) (map[string]*ir.Tensor, error) {
	f := in.Symbol(name)
	if f == nil {
		return nil, fmt.Errorf("no function %s", name)
	}
	var args []ir.Datum
	for i := range f.Body().Args() {
		p := blu.ArgPort(f, i)
		x := map[string]map[string]*ir.Tensor{blu.StateAttr: d.states, blu.InputAttr: d.inputs, blu.ScalarAttr: d.scalars}[p.Kind][p.Name]
		if x == nil {
			return nil, fmt.Errorf("%s has an argument %v", name, p)
		}
		args = append(args, x)
	}
	results, err := in.Call(name, args...)
	if err != nil {
		return nil, err
	}
	out := map[string]*ir.Tensor{}
	for i, r := range results {
		if p := blu.ResultPort(f, i); p.Kind == blu.StateAttr {
			d.states[p.Name] = r.(*ir.Tensor)
		} else {
			out[p.Name] = r.(*ir.Tensor)
		}
	}
	return out, nil
}

// requireEquivalent holds a mesh's gradient sums, losses and counts to those of one rank that computes all batches.
func requireEquivalent(t *testing.T, m model, mesh dtms.Mesh) {
	t.Helper()
	const classes = 11
	dp := max(mesh.DP, 1)
	c, module := m.functions(t)
	in := ir.Interp{Ctx: c, Module: module}
	all := random(module, 0, classes)
	evaluated := map[string]float64{}
	for i := range dp {
		micro := random(module, uint64(i), classes)
		all.inputs, all.scalars = micro.inputs, micro.scalars
		all.scalars["first"].Data[0] = 0
		if i == 0 {
			all.scalars["first"].Data[0] = 1
		}
		_, err := all.call(&in, "accumulate")
		require.NoError(t, err)
		out, err := all.call(&in, "eval")
		require.NoError(t, err)
		for name, x := range out {
			evaluated[name] += x.Data[0]
		}
	}
	require.Positive(t, all.states["count"].Data[0])

	sc, sharded := m.sharded(t, mesh)
	err := dtms.Evaluate(dp, mesh.CP, func(r *dtms.Rank) error {
		in := ir.Interp{Ctx: sc, Module: sharded, Exchange: r.Exchange}
		own := random(module, uint64(r.DP), classes)
		for _, name := range []string{dtms.DPRank, dtms.CPRank, dtms.WorldRank} {
			own.scalars[name] = r.Scalar(name)
		}
		if _, err := own.call(&in, "accumulate_last"); err != nil {
			return err
		}
		for name, want := range all.states {
			if diff := difference(own.states[name].Data, want.Data); diff > 1e-10 {
				return fmt.Errorf("%s is off by %g", name, diff)
			}
		}
		out, err := own.call(&in, "eval")
		for name, want := range evaluated {
			if err == nil && difference(out[name].Data, []float64{want}) > 1e-10 {
				err = fmt.Errorf("eval's %s is %v, not %v", name, out[name].Data, want)
			}
		}
		return err
	})
	require.NoError(t, err)
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
