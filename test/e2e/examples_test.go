package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/train"
	"blutrain/train/data"
	"blutrain/train/logs"
)

// trained is the examples at a tiny size, and the loss they reach in 60 steps: from ln 256 = 5.55 nats a byte, that of a guess, to less
// than this. What they were seen to reach is in brackets.
var trained = []struct {
	file string
	set  map[string]float64
	loss float64 // mean of the last ten steps
}{
	{"mlp.blu", map[string]float64{"E": 16, "M": 64, "B": 4, "S": 32}, 1.0}, // (0.82)
	{"gpt2.blu", map[string]float64{
		"V": 256, "T": 32, "L": 2, "H": 2, "C": 32, "B": 4, "S": 32, "STD": 0.1, "LR": 0.01, "WARMUP": 5, "STEPS": 60,
	}, 1.1}, // (0.88)
	{"llama.blu", map[string]float64{
		"V": 256, "L": 2, "H": 4, "K": 2, "C": 32, "F": 64, "B": 4, "S": 32, "STD": 0.1, "LR": 0.01, "WARMUP": 5, "STEPS": 60,
	}, 0.8}, // (0.58)
}

const steps60 = 60

// Every example learns, and ends in the same bytes on one worker, on two, and when it is stopped and resumed.
func TestExamplesTrain(t *testing.T) {
	text := corpus(t)
	for _, x := range trained {
		t.Run(x.file, func(t *testing.T) {
			a := example(t, x.file, x.set)
			whole := &run{t: t, a: a, data: text, steps: steps60, dir: t.TempDir(), threads: 1}
			require.NoError(t, whole.train(steps60))
			require.InDelta(t, 5.55, float64(whole.losses[0]), 0.4, "a guess")
			end := 0.0
			for _, l := range whole.losses[steps60-10:] {
				end += float64(l) / 10
			}
			require.Less(t, end, x.loss)

			two := &run{t: t, a: a, data: text, steps: steps60, dir: t.TempDir(), threads: 2}
			require.NoError(t, two.train(steps60))
			require.Equal(t, whole.losses, two.losses)
			require.Equal(t, whole.saved(), two.saved())

			parts := &run{t: t, a: a, data: text, steps: steps60, dir: t.TempDir(), threads: 2}
			require.ErrorIs(t, parts.train(23), train.ErrInterrupted)
			parts.threads = 1
			require.NoError(t, parts.train(steps60))
			require.Equal(t, whole.losses, parts.losses)
			require.Equal(t, whole.saved(), parts.saved())
		})
	}
}

// corpus is a text with something to learn: assignments whose names, numbers and sums follow rules.
func corpus(t *testing.T) *data.Shards {
	var text strings.Builder
	for i := range 400 {
		fmt.Fprintf(&text, "x%d = add(%d, %d) // %d\n", i%10, i%7, i%11, i%7+i%11)
	}
	dir := t.TempDir()
	source, tokens := filepath.Join(dir, "text"), filepath.Join(dir, "text.bin")
	require.NoError(t, os.WriteFile(source, []byte(text.String()), 0o644))
	tokenizer, err := data.NewTokenizer("byte")
	require.NoError(t, err)
	_, err = data.Prepare(tokens, tokenizer, []string{source})
	require.NoError(t, err)
	s, err := data.OpenShards([]string{tokens})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// run is a training run, of several processes' worth if it is stopped. It hears of every step.
type run struct {
	t       *testing.T
	a       *artifact.Artifact
	data    data.Source
	val     data.Source // nil: none
	steps   int64
	dir     string
	threads int
	stop    func() // set while it trains to a step before the last
	losses  []logs.Number
	held    logs.Number // the last loss on what it was not trained on
}

// train takes steps up to one, going on where the run stands; before the last step it is a signal that ends it.
func (r *run) train(until int64) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	r.stop = func() {
		if int64(len(r.losses)) == until && until < r.steps {
			stop()
		}
	}
	seed := uint64(3)
	_, err := train.Run(ctx, train.Config{
		Program: Open(r.t, r.a, r.threads), Data: r.data, Val: r.val, Steps: r.steps, Seed: &seed,
		CheckpointDir: r.dir, Resume: len(r.losses) > 0,
		Logs: func(first int64) (logs.Multi, error) {
			require.Len(r.t, r.losses, int(first))
			return logs.Multi{r}, nil
		},
	})
	return err
}

// saved is the bytes of the last checkpoint's tensors.
func (r *run) saved() []byte {
	b, err := os.ReadFile(filepath.Join(r.dir, fmt.Sprintf("step-%08d", r.steps), "rank-00000.safetensors"))
	require.NoError(r.t, err)
	return b
}

func (r *run) Step(s logs.Step) error {
	r.losses = append(r.losses, s.Loss)
	r.stop()
	return nil
}
func (r *run) Eval(e logs.Eval) error           { r.held = e.Loss; return nil }
func (r *run) Checkpoint(logs.Checkpoint) error { return nil }
func (r *run) Note(n logs.Note) error {
	r.t.Errorf("unexpected note: %s", n.Text)
	return nil
}
func (r *run) Done(logs.Done) error { return nil }
func (r *run) Close() error         { return nil }
