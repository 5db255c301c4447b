package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/runtime/ref"
)

// Every command that runs a model opens it as --debug-memory says, and without it as ever. What it computes is the same.
func TestDebugMemory(t *testing.T) {
	w := setUp(t)
	w.compile("oracle.blx", source, "ref")
	w.compile("tiny.blx", source, "cpu")
	model, data := w.path("tiny.blx"), w.path("text.bin")
	stop := errors.New("stop")
	for _, args := range [][]string{
		{"train", model, "--data", data, "--steps", "1"}, {"eval", model, "--data", data, "--params", w.path("p")}, {"sample", model, "--params", w.path("p"), "--prompt", "a"},
		{"exec", model, "--fn", "logits"}, {"verify", model}, {"bench", model}, {"profile", model},
	} {
		for _, debug := range []bool{false, true} {
			var got []runtime.Options
			var out bytes.Buffer
			e := &env{ctx: context.Background(), stdout: &out, stderr: &out,
				openDevice: func(_ *artifact.Artifact, _ string, o runtime.Options) (runtime.Program, error) {
					got = append(got, o)
					return nil, stop
				},
				openReference: func(a *artifact.Artifact) (runtime.Program, error) { return ref.Open(a, runtime.Options{}) }}
			if debug {
				args = append(args, "--debug-memory")
			}
			require.Equal(t, 1, run(args, e), "%v: %s", args, out.String())
			require.NotEmpty(t, got, "%v: %s", args, out.String())
			for _, o := range got {
				require.Equal(t, debug, o.Guard, "%v", args)
				require.True(t, o.Poison || !debug, "%v", args)
			}
		}
	}
	steps, _, done := w.train("--steps", "5")
	guarded, _, guardedDone := w.train("--steps", "5", "--debug-memory")
	require.Equal(t, done.Loss, guardedDone.Loss)
	require.Len(t, guarded, len(steps))
	status, _, stderr := w.run("train", w.path("oracle.blx"), "--data", data, "--debug-memory")
	require.Equal(t, 1, status)
	require.Equal(t, "blurun: error: "+w.path("oracle.blx")+": the reference has no memory of its own that kernels could touch: --debug-memory is for the devices cpu and cuda\n", stderr)
}
