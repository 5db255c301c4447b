package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/runtime"
	"blutrain/runtime/synthetic"
)

// chains is functions that are one fused chain each, and a training.
const chains = `
model chains(N = 1024, C = 96, V = 301) {
  param table: f32[V, C] = normal(std: 0.1)
  param g: f32[C] = ones
  param b: f32[C] = zeros

  fn normalized(x: f32[N, C]) -> f32[N, C] { return layernorm(x, g, b, eps: 1e-5) }
  fn probabilities(x: f32[N, C]) -> f32[N, C] { return softmax(x * 0.125, axis: 1) }
  fn activation(x: f32[N, C]) -> f32[N, C] { return 0.5 * gelu(x * unsqueeze(g, axis: 0) + unsqueeze(b, axis: 0), approximate: "tanh") + tanh(x) }
  fn loss(tokens: i32[B, S], targets: i32[B, S]) -> (f32, f32) {
    return cross_entropy(linear(table[tokens], table), targets, ignore: -1)
  }
}
train chains {
  minimize loss
  batch B = 4, S = 64
  optimizer adamw(lr: constant(max: 0.01))
}
`

// A fused chain touches memory once: a launch reads each of its inputs and writes each of its outputs one time, whatever
// lies between. What is a row, a column or a scalar may be read again by every grid point; that is a twentieth here.
func TestChainsTouchMemoryOnce(t *testing.T) {
	const n, c = 1024, 96
	p := chainsProgram(t)
	for _, f := range []struct {
		name          string
		read, written int64 // elements
	}{
		{"normalized", n*c + 2*c, n * c},
		{"probabilities", n * c, n * c},
		{"activation", n*c + 2*c, n * c},
	} {
		steps := trace(t, p, f.name, "")
		require.Len(t, steps, 1, "%s is one launch", f.name)
		require.Equal(t, 4*f.written, steps[0].Traffic.Written, f.name)
		require.GreaterOrEqual(t, steps[0].Traffic.Read, 4*f.read, f.name)
		require.LessOrEqual(t, steps[0].Traffic.Read, 4*f.read*105/100, f.name)
	}
}

// AdamW reads a parameter, its two moments and its gradient, and writes the parameter and the moments: 28 bytes.
func TestAdamWMoves28Bytes(t *testing.T) {
	p := chainsProgram(t)
	trace(t, p, "accumulate", "")
	steps := trace(t, p, "apply", "adamw")
	bytes, parameters := int64(0), int64(301*96)
	for _, s := range steps {
		bytes += s.Traffic.Read + s.Traffic.Written
	}
	require.InEpsilon(t, 28*parameters, bytes, 0.01)
}

// Cross entropy with its gradient reads the scores once and writes the gradient once, where a row of scores fits a block;
// longer rows are gone over three times: for the greatest, for the sum, for the gradient.
func TestCrossEntropyPasses(t *testing.T) {
	const rows, v = 4 * 64, 301
	steps := trace(t, chainsProgram(t), "accumulate", "cross_entropy")
	require.Len(t, steps, 1)
	require.InEpsilon(t, 4*rows*v, steps[0].Traffic.Read, 0.02)
	require.InEpsilon(t, 4*rows*v, steps[0].Traffic.Written, 0.02)

	const long = 20000
	wide := opened(t, strings.Replace(chains, "V = 301", "V = 20000", 1))
	steps = trace(t, wide, "accumulate", "cross_entropy")
	require.Len(t, steps, 1)
	require.InEpsilon(t, 3*4*rows*long, steps[0].Traffic.Read, 0.02)
	require.InEpsilon(t, 4*rows*long, steps[0].Traffic.Written, 0.02)
}

func chainsProgram(t *testing.T) runtime.Tracer { return opened(t, chains) }

func opened(t *testing.T, source string) runtime.Tracer {
	r, err := driver.Compile("chains.blu", []byte(source), driver.Options{Target: "cpu"})
	require.NoError(t, err)
	p := Open(t, r.Artifact, 2).(runtime.Tracer)
	_, err = p.Call("init", nil, synthetic.Scalars(true))
	require.NoError(t, err)
	return p
}

// trace runs a function on random inputs and gives its launches of kernels whose names start so.
func trace(t *testing.T, p runtime.Tracer, fn, kernels string) (steps []*runtime.Step) {
	t.Helper()
	f, ok := p.Manifest().Function(fn)
	require.True(t, ok, fn)
	_, err := p.Trace(fn, synthetic.Inputs(p.Manifest(), f, rand.New(rand.NewPCG(1, 2))), synthetic.Scalars(true), func(s *runtime.Step, run func() error) error {
		if strings.HasPrefix(s.Kernel, kernels) {
			steps = append(steps, s)
		}
		return run()
	})
	require.NoError(t, err)
	return steps
}

// Launches carry the operations of their products, which add up to the function's.
func TestLaunchesCarryFlops(t *testing.T) {
	p := Open(t, example(t, models[0].file, models[0].set), 2).(runtime.Tracer)
	_, err := p.Call("init", nil, synthetic.Scalars(true))
	require.NoError(t, err)
	for _, name := range []string{"accumulate", "logits"} {
		f, _ := p.Manifest().Function(name)
		sum := 0.0
		for _, s := range trace(t, p, name, "") {
			sum += s.Flops
		}
		require.Positive(t, sum)
		require.Equal(t, f.Flops, sum)
	}
}

// A traced call computes what a call does.
func TestTracedCallsAreTheSame(t *testing.T) {
	a := example(t, models[0].file, models[0].set)
	state := func(traced bool) [][]byte {
		p := Open(t, a, 2).(runtime.Tracer)
		call := p.Call
		if traced {
			call = func(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
				return p.Trace(fn, in, s, func(_ *runtime.Step, run func() error) error { return run() })
			}
		}
		return stepped(t, p.Manifest(), p, call, 1)
	}
	require.Equal(t, state(false), state(true))
}

// stepped takes steps of training on random tokens and gives what the persistent states hold then.
func stepped(t *testing.T, m *artifact.Manifest, p runtime.Program, call func(string, map[string]runtime.Array, runtime.Scalars) (map[string]runtime.Array, error), steps int) (states [][]byte) {
	t.Helper()
	_, err := call("init", nil, synthetic.Scalars(true))
	require.NoError(t, err)
	work, err := synthetic.NewWork(m, "", 1)
	require.NoError(t, err)
	for range steps {
		require.NoError(t, work.Run(func(c synthetic.Call) error {
			_, err := call(c.Function, c.In, c.Scalars)
			return err
		}))
	}
	for _, s := range m.States {
		if s.Persist {
			data := make([]byte, s.Bytes())
			require.NoError(t, p.ReadState(s.Name, data))
			states = append(states, data)
		}
	}
	return states
}
