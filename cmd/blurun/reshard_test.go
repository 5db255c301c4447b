package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
	"blutrain/train/checkpoint"
	"blutrain/train/logs"
)

// TestResumeOnOtherRanks: a run goes on with another number of ranks and other shards again and again, and takes the steps that it
// would have taken on one rank. The micro-batches of a step stay the same twelve.
func TestResumeOnOtherRanks(t *testing.T) {
	w := setUp(t)
	tr := &trial{work: w, random: rand.New(rand.NewPCG(1, 1))}
	train := func(dir string, ranks, zero int, steps int64) (losses []logs.Number) {
		options, args := driver.Options{Target: "cpu"}, []string{}
		if ranks > 1 {
			options.Sharding = driver.Sharding{Mesh: fmt.Sprintf("dp=%d", ranks), Zero: zero}
			args = append(args, "--nproc-per-node", fmt.Sprint(ranks))
		}
		r, err := driver.Compile("tiny.blu", []byte(source), options)
		require.NoError(t, err)
		require.NoError(t, r.Artifact.Write(w.path("now.blx")))
		out, err := tr.process(append([]string{"train", w.path("now.blx"), "--data", w.path("text.bin"), "--json", "--threads", "1", "--steps", fmt.Sprint(steps),
			"--accumulate", fmt.Sprint(12 / ranks), "--checkpoint-dir", w.path(dir), "--keep", "0", "--resume"}, args...)...)
		require.NoError(t, err)
		for line := range bytes.Lines(out) {
			var s logs.Step
			require.NoError(t, json.Unmarshal(line, &s))
			if s.Milliseconds > 0 {
				losses = append(losses, s.Loss)
			}
		}
		return losses
	}
	alone := train("alone", 1, 0, 18)
	require.Len(t, alone, 18)
	var got []logs.Number
	for i, c := range []struct{ ranks, zero int }{{4, 1}, {2, 1}, {3, 1}, {3, 0}, {4, 1}, {1, 0}} {
		steps := int64(3 * (i + 1))
		got = append(got, train("moved", c.ranks, c.zero, steps)...)
		require.Len(t, got, int(steps))
		checkRanks(t, w.path(fmt.Sprintf("moved/step-%08d", steps)), c.ranks)
	}
	for i := range alone {
		require.InEpsilon(t, float64(alone[i]), float64(got[i]), 1e-5, "step %d", i+1)
	}
}

// checkRanks: all ranks have written, about as much each, and every file is one that any program reads.
func checkRanks(t *testing.T, path string, ranks int) {
	c, err := checkpoint.Open(atomicfile.OS{}, path)
	require.NoError(t, err)
	require.Equal(t, ranks, c.Manifest.World)
	require.Len(t, c.Manifest.Files, ranks)
	var sizes []int64
	for _, f := range c.Manifest.Files {
		sizes = append(sizes, f.Bytes)
		file, err := os.Open(fmt.Sprintf("%s/rank-%05d.safetensors", path, f.Rank))
		require.NoError(t, err)
		_, err = safetensors.Open(file, f.Bytes)
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	largest := int64(4 * 256 * 8) // a table of parameters is written by one rank
	require.LessOrEqual(t, slices.Max(sizes)-slices.Min(sizes), largest+1024, "%v", sizes)
}
