package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
)

// verify compares the kernels of a program for the CPU, and names the one that is broken.
func TestVerifyKernels(t *testing.T) {
	w := work{t, t.TempDir()}
	w.compile("tiny.blx", source, "cpu")
	out, _ := w.ok("verify", w.path("tiny.blx"))
	require.Regexp(t, `(?m)^kernel +launches +elements +relative errors +bound +source\n`, out)
	require.Regexp(t, `(?m)^gemm_nt_bias_\S+ +\d+ +4096 +\d\.\de-0\d +\de-0\d +tiny.blu:8:12$`, out)
	require.Contains(t, out, "function    output or state")
	out, _ = w.ok("verify", w.path("tiny.blx"), "--kernels", "--json")
	require.NotContains(t, out, `"function"`)
	for line := range strings.Lines(out) {
		var row struct {
			Kernel  string
			Outputs []struct {
				Error, Bound float64
			}
			Off *bool
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		require.False(t, *row.Off, row.Kernel)
		for _, o := range row.Outputs {
			require.LessOrEqual(t, o.Error, o.Bound)
		}
	}
	out, _ = w.ok("verify", w.path("tiny.blx"), "--functions")
	require.NotContains(t, out, "kernel")

	a, err := artifact.Open(w.path("tiny.blx"))
	require.NoError(t, err)
	for i, f := range a.Files {
		if f.Name == artifact.ProgramName {
			text := string(f.Data)
			at := strings.Index(text, "host.kernel @adamw_")
			require.Contains(t, text[at:], `value = 8.999999761581421e-01`)
			a.Files[i].Data = []byte(text[:at] + strings.Replace(text[at:], `value = 8.999999761581421e-01`, `value = 5.0e-01`, 1))
		}
	}
	require.NoError(t, a.Write(w.path("broken.blx")))
	status, _, stderr := w.run("verify", w.path("broken.blx"), "--kernels")
	require.Equal(t, 1, status)
	require.Regexp(t, `^tiny.blu:\d+:\d+: kernel adamw_\S+ is off by \d\.\de\S+, more than \de-0\d\nblurun: error: 1 of \d+ kernels differ from the reference\n$`, stderr)

	w.compile("ref.blx", source, "ref")
	status, _, stderr = w.run("verify", w.path("ref.blx"), "--kernels")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "its device does not run functions launch by launch")
}

func TestProfile(t *testing.T) {
	w := work{t, t.TempDir()}
	w.compile("tiny.blx", source, "cpu")
	trace := w.path("trace.json")
	out, _ := w.ok("profile", w.path("tiny.blx"), "--steps", "2", "--trace", trace, "--top", "3")
	require.Regexp(t, `^ *launches +ms +share +GFLOP/s +peak +GB/s +kernel +source\n`, out)
	require.Len(t, strings.Split(strings.TrimSpace(out), "\n"), 1+3+1+1)
	require.Regexp(t, `\d+ others`, out)
	data, err := os.ReadFile(trace)
	require.NoError(t, err)
	require.True(t, json.Valid(data))

	out, _ = w.ok("profile", w.path("tiny.blx"), "--fn", "logits", "--json")
	var last struct {
		Kernel string
		Share  float64
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	require.Equal(t, "all", last.Kernel)
	require.Equal(t, 1.0, last.Share)

	status, _, stderr := w.run("profile", w.path("tiny.blx"), "--fn", "probs")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, `no function "probs"`)
	status, _, _ = w.run("profile", w.path("tiny.blx"), "--steps", "0")
	require.Equal(t, 2, status)
}

func TestBench(t *testing.T) {
	w := work{t, t.TempDir()}
	w.compile("tiny.blx", source, "cpu")
	out, _ := w.ok("bench", w.path("tiny.blx"), "--steps", "3")
	require.Regexp(t, `^\d+\.\d ms a step, median of 3, from \d+\.\d to \d+\.\d; \d+ tokens/s; \d+\.\d GFLOP/s`, out)
	out, _ = w.ok("bench", w.path("tiny.blx"), "--steps", "4", "--json", "--threads", "1")
	var r benchResult
	require.NoError(t, json.Unmarshal([]byte(out), &r))
	require.Equal(t, 1, r.Threads)
	require.Len(t, r.Millis, 4)
	// A step is two micro-batches of 2 sequences of 8 tokens.
	require.InEpsilon(t, 32/(r.Median/1e3), r.TokensPerSec, 1e-9)
	status, _, _ := w.run("bench", w.path("tiny.blx"), "--steps", "0")
	require.Equal(t, 2, status)
}
