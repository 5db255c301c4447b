package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/formats"
	"blutrain/formats/npy"
	"blutrain/internal/bars"
)

// images is a folder with a convolutional network, compiled for one rank and for a mesh, and pictures for it.
func images(t *testing.T) work {
	w := work{t, t.TempDir()}
	src, err := os.ReadFile("../../examples/convnet.blu")
	require.NoError(t, err)
	set := map[string]float64{"N": bars.Size, "CLASSES": bars.Classes, "C": 4, "M": 8, "B": 8, "DROP": 0, "STEPS": 40}
	for name, mesh := range map[string]string{"one.blx": "", "dp.blx": "dp"} {
		r, err := driver.Compile("convnet.blu", src, driver.Options{Target: "cpu", Set: set, Sharding: driver.Sharding{Mesh: mesh}})
		require.NoError(t, err)
		require.NoError(t, r.Artifact.Write(w.path(name)))
	}
	for folder, seed := range map[string]uint64{"train": 1, "val": 2} {
		require.NoError(t, os.Mkdir(w.path(folder), 0o755))
		for name, x := range bars.Pictures(rand.New(rand.NewPCG(seed, 0)), 60) {
			w.array(filepath.Join(folder, name+".npy"), x)
		}
	}
	return w
}

func (w work) array(name string, x formats.Tensor) {
	f, err := os.Create(w.path(name))
	require.NoError(w.t, err)
	require.NoError(w.t, npy.Write(f, x))
	require.NoError(w.t, f.Close())
}

// TestTrainOnImages: training, evaluation and resumption on arrays are those on tokens, but for what speaks of tokens.
func TestTrainOnImages(t *testing.T) {
	w := images(t)
	train := func(model, dir string, more ...string) []string {
		return append([]string{"train", w.path(model), "--data", w.path("train"), "--seed", "2", "--json", "--checkpoint-dir", w.path(dir), "--keep", "0"}, more...)
	}
	whole, _ := w.ok(train("one.blx", "whole", "--accumulate", "2", "--steps", "12", "--val-data", w.path("val/*.npy"), "--val-batches", "0")...)
	require.Contains(t, whole, `"samples_per_s":`)
	require.NotContains(t, whole, "tokens")
	want := lossesOf(t, whole)
	require.Len(t, want, 12)

	part := train("one.blx", "parts", "--accumulate", "2", "--resume", "--steps")
	first, _ := w.ok(append(part, "5")...)
	rest, _ := w.ok(append(part, "12")...)
	require.Equal(t, want, append(lossesOf(t, first), lossesOf(t, rest)...), "to the bit")
	saved := func(dir string) string {
		b, err := os.ReadFile(w.path(dir + "/step-00000012/rank-00000.safetensors"))
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, saved("whole"), saved("parts"))

	first, _ = w.ok(train("one.blx", "ranks", "--accumulate", "2", "--steps", "5")...)
	status, rest, stderr := w.process(train("dp.blx", "ranks", "--accumulate", "1", "--steps", "12", "--resume", "--nproc-per-node", "2")...)
	require.Zero(t, status, stderr)
	require.InDeltaSlice(t, want, append(lossesOf(t, first), lossesOf(t, rest)...), 1e-5)

	eval := []string{"eval", w.path("one.blx"), "--data", w.path("val/images.npy"), "--data", w.path("val/labels.npy"), "--params", w.path("whole")}
	out, _ := w.ok(eval...)
	require.Regexp(t, `^loss \d\.\d{6}\n$`, out)
	out, _ = w.ok(append(eval, "--json")...)
	require.Regexp(t, `^{"loss":[\d.]+}\n$`, out)
	require.Contains(t, whole, strings.TrimSuffix(strings.TrimPrefix(out, `{"loss":`), "}\n"), "the last evaluation of the training was the same")
	status, out, stderr = w.process("eval", w.path("dp.blx"), "--data", w.path("val"), "--params", w.path("whole"), "--nproc-per-node", "3")
	require.Zero(t, status, stderr)
	require.Regexp(t, `^loss \d\.\d{6}\n$`, out)

	_, stderr = w.ok("train", w.path("one.blx"), "--data", w.path("train"), "--steps", "2")
	require.Contains(t, stderr, "samples/s")
}

// TestArraysThatDoNotFit: one error, that says what the model takes.
func TestArraysThatDoNotFit(t *testing.T) {
	w := images(t)
	w.write("text.bin", strings.Repeat("some tokens ", 1000))
	require.NoError(t, os.Mkdir(w.path("wide"), 0o755))
	w.array("wide/images.npy", formats.FromFloat64s(make([]float64, 20*64), 20, 1, 8, 8))
	w.array("wide/labels.npy", formats.FromInt32s(make([]int32, 20), 20))
	for data, reason := range map[string]string{
		"text.bin":         "the model takes images: f32[8, 1, 8, 8], labels: i32[8]; files of tokens have tokens, targets: i32[B, S]: other data comes as arrays",
		"train/images.npy": "the data has no labels, which the model takes (i32[N]); it has images: f32[60, 1, 8, 8]",
		"wide":             "wide/images.npy: images is f64[20, 1, 8, 8], the model takes f32[N, 1, 8, 8] for N samples",
	} {
		for _, flag := range []string{"--data", "--val-data"} {
			args := []string{"train", w.path("one.blx"), flag, w.path(data), "--checkpoint-dir", w.path("none")}
			if flag == "--val-data" {
				args = append(args, "--data", w.path("train"))
			}
			status, _, stderr := w.run(args...)
			require.Equal(t, 1, status)
			require.Contains(t, stderr, reason)
			require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		}
	}
}
