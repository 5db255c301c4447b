package e2e

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/runtime"
	hostdevice "blutrain/runtime/host"
)

// A training step of GPT-2 124M on all processors: B=4 rows of S=64 tokens, forward, backward, AdamW. Reports GFLOP/s of
// the matrix products.
func BenchmarkStepGPT2(b *testing.B) {
	for _, size := range []struct {
		name string
		b, s float64
	}{{"B4S64", 4, 64}, {"B1S512", 1, 512}} {
		b.Run(size.name, func(b *testing.B) { step(b, map[string]float64{"B": size.b, "S": size.s}) })
	}
}

func step(b *testing.B, set map[string]float64) {
	a := example(b, "gpt2.blu", set)
	p, err := hostdevice.Open(a, runtime.Options{})
	require.NoError(b, err)
	defer p.Close()
	_, err = p.Call("init", nil, runtime.Scalars{"seed": 1})
	require.NoError(b, err)
	in := map[string]runtime.Array{}
	r := rand.New(rand.NewPCG(1, 2))
	info, _ := a.Manifest.Function("accumulate")
	for _, v := range info.Inputs {
		x := make([]int32, v.Bytes()/4)
		for i := range x {
			x[i] = r.Int32N(50257)
		}
		in[v.Name] = runtime.Array{DType: formats.I32, Shape: v.Shape, Data: int32Bytes(x)}
	}
	one := func() {
		_, err := p.Call("accumulate", in, runtime.Scalars{"first": 1})
		require.NoError(b, err)
		_, err = p.Call("apply", nil, runtime.Scalars{"lr": 1e-4, "step": 1})
		require.NoError(b, err)
	}
	one()
	for b.Loop() {
		one()
	}
	b.ReportMetric(info.Flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func int32Bytes(x []int32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return b
}
