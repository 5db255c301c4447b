package train

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/formats/safetensors"
	"blutrain/runtime"
)

// trained is a checkpoint folder and the model that was saved in it.
func trained(t *testing.T) (string, *bigram) {
	c, model, _ := config(t)
	c.CheckpointDir, c.CheckpointEvery = t.TempDir(), 10
	_, err := Run(context.Background(), c)
	require.NoError(t, err)
	return c.CheckpointDir, model
}

func TestLoadParams(t *testing.T) {
	dir, model := trained(t)
	for _, c := range []struct {
		path, taken string
		same        bool // as at the end of the run
	}{
		{dir, "step-00000030", true},
		{dir + "/step-00000020", "step-00000020", false},
		{dir + "/step-00000030/rank-00000.safetensors", "rank-00000.safetensors", true},
	} {
		fresh := newBigram(vocab, batch)
		taken, err := LoadParams(fresh, c.path)
		require.NoError(t, err)
		require.Equal(t, c.taken, filepath.Base(taken))
		require.Equal(t, c.same, slices.Equal(model.states["w"], fresh.states["w"]))
		require.True(t, math.IsNaN(float64(fresh.states["sgd.momentum/w"][0])), "only parameters")
	}
}

// TestLoadParamsOfAnotherOptimizer: a checkpoint's parameters don't depend on how they were trained.
func TestLoadParamsOfAnotherOptimizer(t *testing.T) {
	dir, model := trained(t)
	other := newBigram(vocab, batch)
	other.manifest.States[1].Name = "adamw.m/w"
	_, err := LoadParams(other, dir)
	require.NoError(t, err)
	require.Equal(t, model.states["w"], other.states["w"])
}

func TestLoadParamsRefuses(t *testing.T) {
	dir, _ := trained(t)
	square := formats.FromFloat32s(make([]float32, vocab*vocab), vocab, vocab)
	write := func(name string, entries ...safetensors.Entry) string {
		path := filepath.Join(t.TempDir(), name)
		f, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, safetensors.Write(f, entries, nil))
		require.NoError(t, f.Close())
		return path
	}
	for _, c := range []struct{ path, reason string }{
		{dir + "/none", "no such file"},
		{t.TempDir(), "no valid checkpoint"},
		{write("a.safetensors"), `a.safetensors: parameter "w" is missing`},
		{write("a.safetensors", safetensors.Of("w", square), safetensors.Of("grad/w", square)), `tensor "grad/w" is not in model bigram; did you mean grads/w?`},
		{write("a.safetensors", safetensors.Of("w", formats.FromFloat32s(make([]float32, 4), 4))), "w is f32[4], in the model f32[12, 12]"},
		{write("a.safetensors", safetensors.Of("w", formats.FromFloat64s(make([]float64, vocab*vocab), vocab, vocab))), "w is f64[12, 12]"},
		{os.Args[0], "safetensors: "},
	} {
		_, err := LoadParams(newBigram(vocab, batch), c.path)
		require.ErrorContains(t, err, c.reason)
	}
	require.NoError(t, os.Truncate(dir+"/step-00000030/rank-00000.safetensors", 9))
	_, err := LoadParams(newBigram(vocab, batch), dir+"/step-00000030")
	require.ErrorContains(t, err, "step-00000030: rank-00000.safetensors: it has 9 bytes")
}

// table is a bigram whose rows are given logits.
func table(rows map[int][]float32) *bigram {
	b := newBigram(vocab, batch)
	for i := range b.states["w"] {
		b.states["w"][i] = float32(math.Inf(-1))
	}
	for i, row := range rows {
		copy(b.states["w"][i*vocab:], row)
	}
	return b
}

func generate(t *testing.T, s *Sampler, n int, prompt ...uint16) (out []uint16) {
	require.NoError(t, s.Generate(prompt, n, func(token uint16) error {
		out = append(out, token)
		return nil
	}))
	return out
}

func TestSampleFollowsTheModel(t *testing.T) {
	inf := float32(math.Inf(-1))
	model := table(map[int][]float32{0: {inf, 1, 0}, 1: {inf, inf, 5}, 2: {9}})
	require.Equal(t, []uint16{1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0}, // longer than S = 8
		generate(t, &Sampler{Program: model, Function: "logits"}, 12, 2, 0))
	require.Equal(t, generate(t, &Sampler{Program: model, Function: "logits"}, 5, 0),
		generate(t, &Sampler{Program: model, Function: "logits", Temperature: 1, TopK: 1}, 5, 0))
}

// TestSampleDistribution: 4000 draws with probabilities 0.2, 0.3 and 0.5, each within five standard deviations; at temperature
// 1/2 they are as 4 : 9 : 25; among the likeliest two as 3 : 5.
func TestSampleDistribution(t *testing.T) {
	ln := func(p float64) float32 { return float32(math.Log(p)) }
	row := []float32{ln(0.2), ln(0.3), ln(0.5)}
	model := table(map[int][]float32{0: row, 1: row, 2: row})
	for _, c := range []struct {
		temperature float64
		topK        int
		want        [3]float64
	}{
		{1, 0, [3]float64{0.2, 0.3, 0.5}},
		{0.5, 0, [3]float64{4. / 38, 9. / 38, 25. / 38}},
		{1, 2, [3]float64{0, 3. / 8, 5. / 8}},
	} {
		counts := [vocab]float64{}
		for _, token := range generate(t, &Sampler{Program: model, Function: "logits", Temperature: c.temperature, TopK: c.topK, Seed: 1}, 4000, 0) {
			counts[token]++
		}
		for i, p := range c.want {
			require.InDelta(t, 4000*p, counts[i], 5*math.Sqrt(4000*p*(1-p))+1e-9)
		}
	}
	a := generate(t, &Sampler{Program: model, Function: "logits", Temperature: 1, Seed: 3}, 50, 0)
	require.Equal(t, a, generate(t, &Sampler{Program: model, Function: "logits", Temperature: 1, Seed: 3}, 50, 0))
	require.NotEqual(t, a, generate(t, &Sampler{Program: model, Function: "logits", Temperature: 1, Seed: 4}, 50, 0))
}

func TestSampleRefuses(t *testing.T) {
	model := table(nil)
	model.states["w"][0] = float32(math.NaN())
	stop := func(uint16) error { return errDevice }
	for _, c := range []struct {
		sampler Sampler
		prompt  []uint16
		reason  string
	}{
		{Sampler{Function: "logits"}, nil, "no tokens"},
		{Sampler{Function: "logits"}, []uint16{vocab}, "token 0 of the prompt is 12, the vocabulary has 12"},
		{Sampler{Function: "logits"}, []uint16{0}, "logit 0 is NaN"},
		{Sampler{Function: "logits"}, []uint16{1}, "device lost"},
		{Sampler{Function: "logits", Temperature: -1}, []uint16{1}, "must not be negative"},
		{Sampler{Function: "generate"}, []uint16{1}, "no function generate"},
		{Sampler{Function: "eval"}, []uint16{1}, "does not take tokens"},
	} {
		c.sampler.Program = model
		require.ErrorContains(t, c.sampler.Generate(c.prompt, 1, stop), c.reason)
	}
	require.Equal(t, vocab, SampleVocabulary(model.Manifest(), "logits"))
	require.Zero(t, SampleVocabulary(model.Manifest(), "eval"))
	require.Zero(t, SampleVocabulary(model.Manifest(), "none"))
	f, _ := model.manifest.Function("logits")
	f.Outputs = []artifact.Value{{Name: "logits", DType: formats.F32, Shape: []int64{2, 8}}}
	sampler := Sampler{Program: model, Function: "logits"}
	require.ErrorContains(t, sampler.Generate([]uint16{1}, 1, stop), "logits are [2, 8, V]")
	f.Outputs[0].Shape = []int64{2, 8, 1<<16 + 1}
	require.ErrorContains(t, sampler.Generate([]uint16{1}, 1, stop), "gives logits of 65537 tokens; tokens have 16 bits")
	var _ runtime.Program = model
}
