package e2e

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/device"
	"blutrain/runtime/ref"
	"blutrain/runtime/synthetic"
	"blutrain/runtime/verify"
)

// A program for any number of ranks is, on one, the program that was compiled for one: the same bits after steps of several micro-batches, the
// last of which its accumulate_last is given. With shards that is accumulate, for each.
func TestMeshOfOneRank(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "gpt2.blu")
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	steps := func(s driver.Sharding, last string) map[string][]byte {
		r, err := driver.Compile(file, src, driver.Options{Target: "cpu", Set: models[0].set, Sharding: s})
		require.NoError(t, err)
		require.Equal(t, last, r.Artifact.Manifest.LastAccumulate())
		p := Open(t, r.Artifact, 2)
		m := p.Manifest()
		_, err = p.Call("init", nil, runtime.Scalars{"seed": 3})
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(1, 2))
		for step := range 2 {
			for i, name := range []string{artifact.Accumulate, m.LastAccumulate()} {
				f, ok := m.Function(name)
				require.True(t, ok)
				_, err := p.Call(name, synthetic.Inputs(m, f, random), synthetic.Scalars(i == 0))
				require.NoError(t, err)
			}
			_, err = p.Call("apply", nil, runtime.Scalars{"lr": 1e-3, "step": float64(step + 1)})
			require.NoError(t, err)
		}
		found := map[string][]byte{}
		for _, s := range m.States {
			if s.Persist {
				found[s.Name] = make([]byte, s.Bytes())
				require.NoError(t, p.ReadState(s.Name, found[s.Name]))
			}
		}
		return found
	}
	one := steps(driver.Sharding{}, "accumulate")
	require.Equal(t, one, steps(driver.Sharding{Mesh: "dp"}, "accumulate_last"))
	shards := steps(driver.Sharding{Mesh: "dp=1", Zero: 1}, "accumulate")
	require.Len(t, shards, len(one))
	var got, want []float64
	for name := range one {
		require.Len(t, shards[name], len(one[name]), name)
		got, want = append(got, float32s(shards[name])...), append(want, float32s(one[name])...)
	}
	checkError(t, "states", got, want, 1e-5) // norms are sums of other pieces
}

func float32s(data []byte) []float64 {
	return formats.Tensor{DType: formats.F32, Shape: []int64{int64(len(data) / 4)}, Data: data}.Float64s()
}

// A manifest that calls copies of parameters by another name isn't believed: nobody would make them anew.
func TestForgedRoles(t *testing.T) {
	file := filepath.Join("..", "..", "examples", "gpt2.blu")
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	r, err := driver.Compile(file, src, driver.Options{Target: "cuda", Precision: "bf16", Set: models[0].set})
	require.NoError(t, err)
	a, copies := r.Artifact, 0
	for i := range a.Manifest.States {
		s := &a.Manifest.States[i]
		if s.Role == artifact.Copy {
			copies++
			s.Role, s.Of = artifact.Optimizer, ""
			a.Manifest.Memory.Copies -= s.Bytes()
			a.Manifest.Memory.Optimizer += s.Bytes()
		}
	}
	require.Positive(t, copies)
	require.NoError(t, a.Manifest.Check(), "nothing in the manifest contradicts it")
	_, err = ref.Open(a, runtime.Options{})
	require.ErrorContains(t, err, "as copy of bf16[")
	require.ErrorContains(t, err, "the manifest lists it as optimizer of bf16[")
}

// The manifest says how many things inputs choose among, so that inputs can be made up: of a model with one class, too, whose arguments don't say it.
func TestIndicesOfOneClass(t *testing.T) {
	const source = `model one(K = 1, C = 8) {
  param rows: f32[3, C] = normal(std: 1.0)
  param wides: f32[1, C] = normal(std: 1.0)
  param w: f32[K, C] = normal(std: 1.0)
  fn loss(tokens: i32[B, S], labels: i32[B, S - 1], wide: i32[B], unused: i32[B]) -> (f32, f32) {
    let x = rows[tokens[:, 1:S]] + sum(wides[cast(maximum(wide, 0), i64)])
    return cross_entropy(linear(x, w), labels)
  }
}
train one {
  minimize loss
  batch B = 4, S = 6
  optimizer sgd(lr: 0.1)
}
`
	for _, target := range []string{"cpu", "ref"} {
		r, err := driver.Compile("one.blu", []byte(source), driver.Options{Target: target})
		require.NoError(t, err)
		m := &r.Artifact.Manifest
		for _, name := range []string{"accumulate", "eval", "loss"} {
			f, ok := m.Function(name)
			require.True(t, ok)
			below := map[string]int64{}
			for _, v := range f.Inputs {
				below[v.Name] = v.Below
			}
			require.Equal(t, map[string]int64{"tokens": 3, "labels": 1, "wide": 1, "unused": 0}, below, "%s of %s", name, target)
		}
		p, err := device.Open(r.Artifact, target, runtime.Options{})
		require.NoError(t, err)
		reference, err := ref.Open(r.Artifact, runtime.Options{})
		require.NoError(t, err)
		rows, err := verify.Compare(p, reference, 1e-5, 1)
		require.NoError(t, err)
		for _, row := range rows {
			require.False(t, row.Off(), "%+v", row)
		}
		require.NoError(t, p.Close())
	}
}

// What is added to an index, or it is multiplied with, counts: functions run on indices below what the manifest says, and not on those above.
func TestIndicesInSums(t *testing.T) {
	for _, x := range []struct {
		index string
		below int64
	}{
		{"i", 7}, {"i + 1", 6}, {"2 + i", 5}, {"i + arange(3)", 5}, {"6 - i", 7}, {"arange(3) + 4 - i", 5}, {"3 * i", 3}, {"i * 6 + 0", 2}, {"2 * (i + 1)", 3},
		{"2 * i + 2", 3}, {"minimum(i + 1, 9)", 6}, {"cast(i + 1, i64)", 6}, {"where(i == 0, i + 1, i + 3)", 4}, {"maximum(i + 1, i + 2)", 5},
		{"i * cast(cast(arange(3) + 5, bool), i32)", 7}, {"i + cast(i > 2, i32)", 6}, {"5 + cast(i < 2, i32) - i", 6}, // truth is 0 or 1
		{"i - 1", 0}, {"i + i", 0}, {"i + 7", 0}, {"-1 * i + 6", 0}, // none, or not known
	} {
		t.Run(x.index, func(t *testing.T) {
			source := "model m(C = 4) {\n  param rows: f32[7, C] = normal(std: 1.0)\n  fn f(i: i32[3]) -> f32[3, C] { return rows[" + x.index + "] }\n}\n"
			for _, target := range []string{"cpu", "cuda"} {
				r, err := driver.Compile("m.blu", []byte(source), driver.Options{Target: target})
				require.NoError(t, err)
				f, ok := r.Artifact.Manifest.Function("f")
				require.True(t, ok)
				require.Equal(t, x.below, f.Inputs[0].Below, "for target %s", target)
			}
			r, err := driver.Compile("m.blu", []byte(source), driver.Options{Target: "ref"})
			require.NoError(t, err)
			p, err := ref.Open(r.Artifact, runtime.Options{})
			require.NoError(t, err)
			call := func(i int64) error {
				in := runtime.Array{DType: formats.I32, Shape: []int64{3}}
				for range 3 {
					in.Data = binary.LittleEndian.AppendUint32(in.Data, uint32(i))
				}
				_, err := p.Call("f", map[string]runtime.Array{"i": in}, nil)
				return err
			}
			if x.below > 0 {
				require.NoError(t, call(0))
				require.NoError(t, call(x.below-1))
				require.ErrorContains(t, call(x.below), "out of range")
			}
		})
	}
}

// An index that each of many operations takes twice is looked at once: the number of ways to where it chooses is 2^60.
func TestIndicesByManyWays(t *testing.T) {
	text := "model m(C = 8) {\n  param rows: f32[3, C] = normal(std: 1.0)\n  param w: f32[4, C] = normal(std: 1.0)\n  fn loss(i0: i32[B], k: i32[B], labels: i32[B]) -> (f32, f32) {\n    let n0 = arange(B)\n"
	for i := range 60 {
		text += fmt.Sprintf("    let i%d = maximum(i%d, minimum(i%d, %d)) \n    let n%d = n%d + n%d\n", i+1, i, i, i+1, i+1, i, i)
	}
	text += "    return cross_entropy(linear(rows[i60] + rows[k + n60], w), labels)\n  }\n}\ntrain m {\n  minimize loss\n  batch B = 2\n  optimizer sgd(lr: 0.1)\n}\n"
	r, err := driver.Compile("m.blu", []byte(text), driver.Options{Target: "cpu"})
	require.NoError(t, err)
	f, ok := r.Artifact.Manifest.Function("loss")
	require.True(t, ok)
	require.Equal(t, "i0", f.Inputs[0].Name)
	require.EqualValues(t, 3, f.Inputs[0].Below)
	require.Zero(t, f.Inputs[1].Below, "what is added to it wraps around")
}
