package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats/atomicfile"
	"blutrain/formats/shard"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
	"blutrain/train/data"
	"blutrain/train/logs"
)

const vocab = 12

// corpus is a file of n tokens in which each token determines the next, but for every tenth.
func corpus(t testing.TB, n int) *data.Shards {
	path := filepath.Join(t.TempDir(), "corpus.bin")
	w, err := shard.Create(atomicfile.OS{}, path, vocab)
	require.NoError(t, err)
	tokens := make([]uint16, n)
	for i := 1; i < n; i++ {
		tokens[i] = (tokens[i-1]*5 + 1) % vocab
		if i%10 == 0 {
			tokens[i] = uint16(i / 10 % vocab)
		}
	}
	require.NoError(t, w.Append(tokens))
	require.NoError(t, w.Commit())
	s, err := data.OpenShards([]string{path})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// recorder keeps what it is told, and calls a function after each step.
type recorder struct {
	first  int64
	steps  []logs.Step
	evals  []logs.Eval
	notes  []logs.Note
	saves  []logs.Checkpoint
	done   []logs.Done
	closed bool
	each   func(step int64) error
}

func (r *recorder) Step(s logs.Step) error {
	r.steps = append(r.steps, s)
	if r.each != nil {
		return r.each(s.Step)
	}
	return nil
}
func (r *recorder) Eval(e logs.Eval) error             { r.evals = append(r.evals, e); return nil }
func (r *recorder) Checkpoint(c logs.Checkpoint) error { r.saves = append(r.saves, c); return nil }
func (r *recorder) Note(n logs.Note) error             { r.notes = append(r.notes, n); return nil }
func (r *recorder) Done(d logs.Done) error             { r.done = append(r.done, d); return nil }
func (r *recorder) Close() error                       { r.closed = true; return nil }

func (r *recorder) losses() (list []logs.Number) {
	for _, s := range r.steps {
		list = append(list, s.Loss)
	}
	return list
}

var batch = artifact.Batch{B: 2, S: 8, Accumulate: 3}

// config trains a new bigram for 30 steps. The corpus has 40 windows, a step takes 6, so there are several epochs.
func config(t testing.TB) (Config, *bigram, *recorder) {
	model, r := newBigram(vocab, batch), &recorder{}
	return Config{
		Program: model, Artifact: "hash", Data: corpus(t, 8*40+1), Steps: 30,
		Logs: func(first int64) (logs.Multi, error) { r.first = first; return logs.Multi{r}, nil },
	}, model, r
}

func TestTrains(t *testing.T) {
	c, model, r := config(t)
	c.Val, c.ValEvery, c.PeakFlops = corpus(t, 8*11+3), 10, 1e12
	done, err := Run(context.Background(), c)
	require.NoError(t, err)
	require.True(t, done.Done)
	require.True(t, r.closed)
	require.Equal(t, []logs.Done{done}, r.done)
	require.Len(t, r.steps, 30)
	require.InDelta(t, math.Log(vocab), float64(r.steps[0].Loss), 0.05, "uniform at first")
	require.Less(t, float64(done.Loss), 0.6, "nine of ten tokens are determined")
	require.InDelta(t, 2.0/3, float64(r.steps[0].LR), 1e-12, "the schedule begins with step 1")
	require.Equal(t, int64(12*vocab*vocab), r.steps[0].MemoryBytes)
	s := r.steps[9]
	require.InEpsilon(t, 2*8*3/(float64(s.Milliseconds)/1000), float64(s.TokensPerSec), 1e-9)
	require.InEpsilon(t, (3*3e6+1e6)/(float64(s.Milliseconds)/1000)/1e12, float64(*s.MFU), 1e-9)

	require.Len(t, r.evals, 3)
	require.Equal(t, int64(30), r.evals[2].Step)
	require.Equal(t, r.evals[2].Loss, *done.ValLoss)
	shards, sum := c.Val, 0.0 // 11 windows of which 5 batches of 2 are whole
	loader, err := data.NewLoader(shards, data.Config{Inputs: data.Tokens(1, 8), Vocab: vocab, Ranks: 1, Sequential: true}, nil)
	require.NoError(t, err)
	defer loader.Close()
	for range 10 {
		b, err := loader.Next()
		require.NoError(t, err)
		targets := ints(runtime.Array(b.Inputs["targets"]))
		for i, token := range ints(runtime.Array(b.Inputs["tokens"])) {
			sum -= math.Log(model.softmax(token)[targets[i]])
		}
	}
	require.InEpsilon(t, sum/80, float64(*done.ValLoss), 1e-6)
}

// outcome is everything a run leads to.
type outcome struct {
	losses []logs.Number
	states map[string][]float32
	loader data.State
}

// sessions runs 30 steps with interruptions after some of them, each followed by a resumption in a new program.
func sessions(t *testing.T, dir string, stops ...int64) outcome {
	var o outcome
	for i, stop := range append(stops, 30) {
		c, model, r := config(t)
		c.CheckpointDir, c.CheckpointEvery, c.Keep, c.Resume = dir, 4, 2, i > 0
		seed := uint64(1234)
		if i == 0 {
			c.Seed = &seed
		}
		ctx, interrupt := context.WithCancel(context.Background())
		r.each = func(step int64) error {
			if step == stop {
				interrupt()
			}
			return nil
		}
		done, err := Run(ctx, c)
		if stop < 30 {
			require.ErrorIs(t, err, ErrInterrupted)
			require.ErrorContains(t, err, fmt.Sprintf("interrupted after step %d of 30", stop))
		} else {
			require.NoError(t, err)
			interrupt()
		}
		require.Equal(t, stop, done.Steps)
		require.Empty(t, r.notes)
		o.losses, o.states = append(o.losses, r.losses()...), model.states
	}
	last, _, err := checkpoint.Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	o.loader = last.Manifest.Loader
	return o
}

// TestResumeIsBitForBit: wherever a run is interrupted, in an epoch or between two, it ends in the same bits.
func TestResumeIsBitForBit(t *testing.T) {
	want := sessions(t, t.TempDir())
	require.Equal(t, int64(30*6), want.loader.Row)
	require.Len(t, want.losses, 30)
	for _, stops := range [][]int64{{1}, {8}, {13}, {20, 21}, {5, 10, 15, 29}} {
		got := sessions(t, t.TempDir(), stops...)
		require.Equal(t, want, got, "stopped after %v", stops)
	}
}

// TestSeedMatters: the test above would not see a lost seed if it did not.
func TestSeedMatters(t *testing.T) {
	var all [][]logs.Number
	for seed := range uint64(2) {
		c, _, r := config(t)
		c.Seed = &seed
		_, err := Run(context.Background(), c)
		require.NoError(t, err)
		all = append(all, r.losses())
	}
	require.NotEqual(t, all[0], all[1])
}

// TestKilled: a run that is killed goes on from its last checkpoint and repeats the steps after it, bit for bit.
func TestKilled(t *testing.T) {
	want := sessions(t, t.TempDir())
	dir := t.TempDir()
	c, model, r := config(t)
	seed := uint64(1234)
	c.Seed, c.CheckpointDir, c.CheckpointEvery = &seed, dir, 4
	killed := errors.New("killed")
	r.each = func(step int64) error {
		if step == 13 {
			model.fail = killed
		}
		return nil
	}
	_, err := Run(context.Background(), c)
	require.ErrorIs(t, err, killed)
	c, model, r = config(t)
	c.CheckpointDir, c.Resume = dir, true
	_, err = Run(context.Background(), c)
	require.NoError(t, err)
	require.Equal(t, int64(12), r.first)
	require.Equal(t, want.losses[12:], r.losses())
	require.Equal(t, want.states, model.states)
}

func TestNothingLeftToDo(t *testing.T) {
	dir := t.TempDir()
	sessions(t, dir)
	c, model, r := config(t)
	c.CheckpointDir, c.Resume = dir, true
	done, err := Run(context.Background(), c)
	require.NoError(t, err)
	require.True(t, done.Done)
	require.Equal(t, int64(30), done.Steps)
	require.Empty(t, r.steps)
	require.Equal(t, []logs.Note{{Step: 30, Text: "nothing to do: the run is to end with step 30"}}, r.notes)
	require.Zero(t, model.calls)
}

func TestNaNIsReportedAtTheStep(t *testing.T) {
	dir := t.TempDir()
	c, model, r := config(t)
	model.breakAt = 9
	c.CheckpointDir, c.CheckpointEvery = dir, 4
	done, err := Run(context.Background(), c)
	require.EqualError(t, err, "step 9: the loss is NaN")
	require.Equal(t, int64(8), done.Steps)
	require.Equal(t, "step 9: the loss is NaN", r.done[0].Error)
	require.False(t, r.done[0].Done)
	require.Len(t, r.steps, 9, "the step itself is in the logs")
	last, _, err := checkpoint.Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.Equal(t, int64(8), last.Manifest.Step, "what is saved is from before")
}

func TestDeviceErrorNamesTheStep(t *testing.T) {
	c, model, _ := config(t)
	model.fail = errDevice
	_, err := Run(context.Background(), c)
	require.EqualError(t, err, "step 1: device lost")
}

// TestCheckpointThatFails: training goes on, the error is told at a next step, in the end, and by the exit status.
func TestCheckpointThatFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ckpt")
	c, _, r := config(t)
	c.CheckpointDir, c.CheckpointEvery = dir, 4
	r.each = func(step int64) error {
		switch {
		case step == 7:
			return os.Rename(dir, dir+".gone")
		case step > 8 && len(r.notes) == 0:
			time.Sleep(20 * time.Millisecond) // time for the save in the background to fail
		case len(r.notes) > 0:
			_ = os.Rename(dir+".gone", dir)
		}
		return nil
	}
	done, err := Run(context.Background(), c)
	require.ErrorContains(t, err, "checkpoint of step ")
	require.Equal(t, int64(30), done.Steps, "training went on")
	require.NotEmpty(t, r.notes)
	require.Contains(t, r.notes[0].Text, "checkpoint of step ")
	last, _, err := checkpoint.Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.Equal(t, int64(30), last.Manifest.Step, "later checkpoints succeed")
}

// TestLogThatFails: training goes on while there is another log, and else ends with the state saved; both times with an error.
func TestLogThatFails(t *testing.T) {
	full := errors.New("no space left")
	c, _, r := config(t)
	other := &recorder{each: func(step int64) error {
		if step == 5 {
			return full
		}
		return nil
	}}
	c.Logs = func(int64) (logs.Multi, error) { return logs.Multi{r, other}, nil }
	done, err := Run(context.Background(), c)
	require.EqualError(t, err, "no space left")
	require.Equal(t, int64(30), done.Steps)
	require.Len(t, r.steps, 30)
	require.Equal(t, []logs.Note{{Step: 4, Text: "no space left"}}, r.notes, "told once")
	require.Len(t, other.steps, 5)

	c, _, _ = config(t)
	c.CheckpointDir = filepath.Join(t.TempDir(), "ckpt")
	other.steps = nil
	c.Logs = func(int64) (logs.Multi, error) { return logs.Multi{other}, nil }
	done, err = Run(context.Background(), c)
	require.ErrorIs(t, err, full)
	require.ErrorIs(t, err, logs.ErrNobody)
	require.Equal(t, int64(5), done.Steps)
	last, _, err := checkpoint.Latest(atomicfile.OS{}, c.CheckpointDir)
	require.NoError(t, err)
	require.Equal(t, int64(5), last.Manifest.Step)
}

// TestManyFailuresAreToldTogether: the end of a run doesn't list every checkpoint that a full disk refused.
func TestManyFailuresAreToldTogether(t *testing.T) {
	require.NoError(t, summary(nil))
	require.EqualError(t, summary([]error{errDevice}), "device lost")
	err := summary([]error{errors.New("first"), errors.New("second"), errDevice})
	require.EqualError(t, err, "device lost (and 2 times before; the first: first)")
	require.ErrorIs(t, err, errDevice)
}

// TestUnusableValidationData: a token that is not in the vocabulary is found before the first step, not at the first evaluation.
func TestUnusableValidationData(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bare.bin")
	require.NoError(t, os.WriteFile(path, slices.Concat(make([]byte, 2*40), []byte{vocab, 0}, make([]byte, 2*40)), 0o644))
	shards, err := data.OpenShards([]string{path})
	require.NoError(t, err)
	defer shards.Close()
	c, model, r := config(t)
	model.manifest.Args["V"] = vocab
	c.Val = shards
	_, err = Run(context.Background(), c)
	require.EqualError(t, err, fmt.Sprintf("validation: %s: token 40 is 12, the model's vocabulary has 12", path))
	require.Empty(t, r.steps)
}

func TestSpikes(t *testing.T) {
	var s spikes
	for i := range 200 {
		require.Empty(t, s.add(3+5*math.Exp(-float64(i)/10)+0.1*math.Sin(float64(i))), "step %d", i)
	}
	require.Contains(t, s.add(5), "the loss jumped to 5.0000, the steps before had 3.0")
	require.Empty(t, s.add(3))
}

func TestRefuses(t *testing.T) {
	huge := uint64(MaxSeed + 1)
	other := uint64(77)
	dir := t.TempDir()
	sessions(t, dir)
	resume := func(c *Config) { c.CheckpointDir, c.Resume = dir, true }
	for _, x := range []struct {
		name   string
		change func(c *Config, m *bigram)
		reason string
	}{
		{"no steps", func(c *Config, m *bigram) { c.Steps = 0 }, "steps must be at least 1"},
		{"seed", func(c *Config, m *bigram) { c.Seed = &huge }, "larger than"},
		{"resume without a folder", func(c *Config, m *bigram) { c.Resume = true }, "name the folder"},
		{"folder in use", func(c *Config, m *bigram) { c.CheckpointDir = dir }, "continue it with --resume"},
		{"no train block", func(c *Config, m *bigram) { m.manifest.Train = nil }, "has no train block"},
		{"not of samples", func(c *Config, m *bigram) { m.manifest.Train.Batch.B = 0 }, "does not train on samples"},
		{"no eval", func(c *Config, m *bigram) { m.manifest.Functions[3].Name = "evil" }, "no function eval"},
		{"schedule", func(c *Config, m *bigram) { m.manifest.Train.Schedule.Kind = "step" }, `schedule "step" is unknown`},
		{"unknown scalar", func(c *Config, m *bigram) { m.manifest.Functions[2].Scalars[0].Name = "temperature" }, `scalar "temperature"`},
		{"no loss", func(c *Config, m *bigram) { m.manifest.Functions[2].Outputs[0].Name = "cost" }, `no scalar output "loss"`},
		{"float input", func(c *Config, m *bigram) { m.manifest.Functions[1].Inputs[0].DType = 10 }, "takes tokens: f16[2, 8]"},
		{"other input", func(c *Config, m *bigram) { m.manifest.Functions[3].Inputs[0].Name = "image" }, "takes image"},
		{"one input", func(c *Config, m *bigram) { m.manifest.Functions[3].Inputs = m.manifest.Functions[3].Inputs[:1] }, "function eval takes tokens: i32[2, 8]; a batch has tokens: i32[2, 8], targets: i32[2, 8]"},
		{"small data", func(c *Config, m *bigram) { c.Data = corpus(t, 16) }, "too little data"},
		{"small validation data", func(c *Config, m *bigram) { c.Val = corpus(t, 16) }, "validation: too little data"},
		{"small vocabulary", func(c *Config, m *bigram) { m.manifest.Args["V"] = 5 }, "its vocabulary has 12 tokens, the model's has 5"},
		{"other seed", func(c *Config, m *bigram) { resume(c); c.Seed = &other }, "its run had seed 1234, this one 77"},
		{"other model", func(c *Config, m *bigram) { resume(c); m.manifest.Model = "trigram" }, "of model bigram, this one is trigram"},
		{"other data", func(c *Config, m *bigram) { resume(c); c.Data = corpus(t, 8*50) }, "not the data of the run to be continued"},
		{"state missing", func(c *Config, m *bigram) { resume(c); m.manifest.States[2].Persist = true }, "it has no grads/w"},
		{"state too much", func(c *Config, m *bigram) { resume(c); m.manifest.States[1].Persist = false }, "it has sgd.momentum/w, which the model has not"},
		{"other shape", func(c *Config, m *bigram) { resume(c); m.manifest.States[0].Shape = []int64{vocab * vocab} }, "w is f32[12, 12], in the model f32[144]"},
		{"logs", func(c *Config, m *bigram) { c.Logs = func(int64) (logs.Multi, error) { return nil, errDevice } }, "device lost"},
	} {
		c, model, r := config(t)
		x.change(&c, model)
		_, err := Run(context.Background(), c)
		require.ErrorContains(t, err, x.reason, x.name)
		require.Empty(t, r.steps, x.name)
	}
	c, _, r := config(t) // after all of these the folder is not locked, and holds what it held
	resume(&c)
	c.Artifact = "other"
	_, err := Run(context.Background(), c)
	require.NoError(t, err)
	require.Contains(t, r.notes[0].Text, "step-00000030 was saved by another compilation of the model")
}

func TestPassedOverCheckpointsAreReported(t *testing.T) {
	dir := t.TempDir()
	sessions(t, dir)
	require.NoError(t, os.Truncate(filepath.Join(dir, "step-00000030", "rank-00000.safetensors"), 100))
	c, _, r := config(t)
	c.CheckpointDir, c.Resume = dir, true
	_, err := Run(context.Background(), c)
	require.NoError(t, err)
	require.Equal(t, int64(28), r.first)
	require.True(t, slices.ContainsFunc(r.notes, func(n logs.Note) bool {
		return strings.HasPrefix(n.Text, "passed over "+dir+"/step-00000030: rank-00000.safetensors: it has 100 bytes, the manifest lists ")
	}), "%v", r.notes)
}
