package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/train/logs"
)

// compileMesh compiles the test's model for a mesh.
func (w work) compileMesh(name string, s driver.Sharding) {
	r, err := driver.Compile("tiny.blu", []byte(source), driver.Options{Target: "cpu", Sharding: s})
	require.NoError(w.t, err)
	require.NoError(w.t, r.Artifact.Write(w.path(name)))
}

// process runs blurun in a process of its own, which may start others.
func (w work) process(args ...string) (status int, stdout, stderr string) {
	w.t.Helper()
	var out, errs bytes.Buffer
	p := exec.Command(os.Args[0], args...)
	p.Env, p.Stdout, p.Stderr = append(os.Environ(), asProgram+"=1"), &out, &errs
	_ = p.Run() // its status is what is looked at
	return p.ProcessState.ExitCode(), out.String(), errs.String()
}

// lossesOf reads the steps of a JSON log, which must be all there is besides its end.
func lossesOf(t *testing.T, out string) (losses []float64) {
	for line := range strings.Lines(out) {
		var s logs.Step
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		if strings.Contains(line, "grad_norm") {
			losses = append(losses, float64(s.Loss))
		}
	}
	return losses
}

// TestRanksOfOneCommand: three ranks do what one does with three times the micro-batches, and only rank 0 writes to standard output.
func TestRanksOfOneCommand(t *testing.T) {
	w := setUp(t)
	w.compile("tiny.blx", source, "cpu")
	w.compileMesh("dp.blx", driver.Sharding{Mesh: "dp"})
	train := func(model string, more ...string) []string {
		return append([]string{"train", w.path(model), "--data", w.path("text.bin"), "--json", "--steps", "5", "--seed", "2"}, more...)
	}
	alone, _ := w.ok(train("tiny.blx", "--accumulate", "6")...)
	status, out, stderr := w.process(train("dp.blx", "--nproc-per-node", "3", "--checkpoint-dir", w.path("ckpt"), "--log-dir", w.path("logs"))...)
	require.Zero(t, status, stderr)
	require.Regexp(t, `^\[0\] launcher: --nproc-per-node, rank 0 of 3 \(0 of 3 on this host\), rank 0 at 127.0.0.1:\d+\n$`, stderr)
	want, got := lossesOf(t, alone), lossesOf(t, out)
	require.Len(t, got, 5)
	require.InDeltaSlice(t, want, got, 1e-5)
	history, err := logs.ReadHistory(w.path("logs/log.jsonl"))
	require.NoError(t, err)
	require.Len(t, history.Steps, 5, "one rank writes the log")

	eval := []string{"eval", w.path("dp.blx"), "--data", w.path("text.bin"), "--params", w.path("ckpt"), "--json"}
	one, _ := w.ok(eval...)
	status, out, stderr = w.process(append(eval, "--nproc-per-node", "2")...)
	require.Zero(t, status, stderr)
	var a, b struct{ Loss float64 }
	require.NoError(t, json.Unmarshal([]byte(one), &a))
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	require.InEpsilon(t, a.Loss, b.Loss, 1e-6)
	require.Equal(t, 1, strings.Count(stderr, "parameters from"))
}

// TestOneRankUsesWhatManyHaveTrained: what needs no other rank, to sample say, one process does with the artifact of a mesh, as with that
// of one rank. What the ranks compute together it refuses.
func TestOneRankUsesWhatManyHaveTrained(t *testing.T) {
	w := setUp(t)
	w.compile("tiny.blx", source, "cpu")
	w.compileMesh("zero.blx", driver.Sharding{Mesh: "dp=2", Zero: 1})
	w.compileMesh("cp.blx", driver.Sharding{Mesh: "cp=2"})
	w.ok("train", w.path("tiny.blx"), "--data", w.path("text.bin"), "--steps", "3", "--checkpoint-dir", w.path("ckpt"))
	sample := func(model string) string {
		out, _ := w.ok("sample", w.path(model), "--params", w.path("ckpt"), "--prompt", "a", "--tokens", "12", "--seed", "4")
		return out
	}
	for _, model := range []string{"zero.blx", "cp.blx"} {
		require.Equal(t, sample("tiny.blx"), sample(model))
		status, _, stderr := w.run("profile", w.path(model), "--steps", "1")
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "compute it together, and there is one here: compile the model without --mesh for it")
	}
}

// TestRanksThatCantStart: each says why with its number, and the status is not 0.
func TestRanksThatCantStart(t *testing.T) {
	w := setUp(t)
	w.compile("tiny.blx", source, "cpu")
	w.compileMesh("four.blx", driver.Sharding{Mesh: "dp=2,cp=2"})
	for model, want := range map[string]string{
		"tiny.blx":   "the program was compiled for one rank and is opened on 2: compile it with bluc compile --mesh dp",
		"four.blx":   "a mesh of dp = 2, cp = 2 needs 4 ranks, there are 2",
		"absent.blx": "no such file",
	} {
		status, out, stderr := w.process("train", w.path(model), "--data", w.path("text.bin"), "--steps", "2", "--nproc-per-node", "2")
		require.Equal(t, 1, status)
		require.Empty(t, out)
		require.Contains(t, stderr, want)
		require.Regexp(t, `(?m)^\[0\] blurun: error: rank 0: `, stderr)
		require.Regexp(t, `(?m)^\[1\] blurun: error: rank 1: `, stderr)
		require.Regexp(t, `(?m)^blurun: error: rank [01] ended with status 1\n`, stderr)
	}
	w.compileMesh("two.blx", driver.Sharding{Mesh: "dp=2"})
	for _, args := range [][]string{{"train", w.path("two.blx"), "--data", w.path("text.bin")}, {"bench", "--collectives", "--sizes", "1"}} {
		status, _, stderr := w.process(append(args, "--steps", "2", "--nproc-per-node", "2", "--gpu-engine", "peer")...)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, "--gpu-engine peer is for GPUs, and this runs on cpu")
	}
	status, _, stderr := w.run("train", w.path("four.blx"), "--data", w.path("text.bin"), "--steps", "2")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "start 4 ranks of it, with --nproc-per-node 4 or with a launcher")
	for _, flag := range []string{"--nproc-per-node=-1", "--nproc-per-node=0", "--nproc-per-node=2000", "--collective-timeout=0s", "--engine=gloo", "--accumulate=-1"} {
		status, _, stderr := w.run("train", w.path("four.blx"), "--data", w.path("text.bin"), "--steps", "2", flag)
		require.Equal(t, 2, status, flag)
		require.Contains(t, stderr, strings.Split(flag, "=")[0], flag)
	}
}

func TestCollectives(t *testing.T) {
	w := work{t, t.TempDir()}
	status, out, stderr := w.process("bench", "--collectives", "--nproc-per-node", "2", "--sizes", "1", "--steps", "2")
	require.Zero(t, status, stderr)
	require.Regexp(t, `(?s)^ *on 2 ranks +MiB +ms +bus GB/s *\n *all_reduce +1 .*reduce_scatter +1 .*all_gather +1 .*send_recv +1 `, out)
	status, _, stderr = w.run("bench", "--collectives")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "start them with --nproc-per-node")
	status, _, stderr = w.run("bench")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "give a model, or --collectives without one")
}

// TestVerifyMesh: what ranks compute together is compared with one rank; a rank's program that is wrong is found.
func TestVerifyMesh(t *testing.T) {
	w := work{t, t.TempDir()}
	w.compile("one.blx", source, "cpu")
	for _, s := range []driver.Sharding{{Mesh: "dp"}, {Mesh: "dp=3", Zero: 1}, {Mesh: "dp=2,cp=2"}} {
		w.compileMesh("mesh.blx", s)
		out, _ := w.ok("verify", "--mesh", w.path("mesh.blx"))
		require.Regexp(t, `(?m)^accumulate +grads/wte +2048 +\d\.\d\de-0\d `, out)
		require.Regexp(t, `(?m)^apply +loss +1 `, out)
		require.Regexp(t, `(?m)^eval +loss_sum +1 `, out)
		require.Regexp(t, `\nall \d+ outputs and states are within 1e-04`, out)
	}
	status, _, stderr := w.run("verify", w.path("mesh.blx"))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "was compiled for several ranks: give --mesh")
	status, _, stderr = w.run("verify", "--mesh", w.path("one.blx"))
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "was compiled for one rank: compile it with bluc compile --mesh")
	status, _, stderr = w.run("verify", "--mesh", w.path("mesh.blx"), "--ranks", "3")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "can't run on 3 ranks")

	// An update that is another, and sums over fewer ranks than there are.
	w.compileMesh("mesh.blx", driver.Sharding{Mesh: "dp"})
	w.mutate("mesh.blx", "host.kernel @adamw_", `value = 8.999999761581421e-01`, `value = 5.0e-01`)
	status, _, stderr = w.run("verify", "--mesh", w.path("mutant.blx"))
	require.Equal(t, 1, status)
	require.Regexp(t, `apply: \S+ is off by \S+, more than `, stderr)
	require.Regexp(t, `blurun: error: \d+ of \d+ outputs and states differ from the reference`, stderr)
	w.mutate("mesh.blx", "exec.collective", `group = "world"`, `group = "cp"`)
	status, _, stderr = w.run("verify", "--mesh", w.path("mutant.blx"))
	require.Equal(t, 1, status)
	require.Regexp(t, `state \S+ should be the same on all ranks, and has other bits on rank 1 than on rank 0`, stderr)
}

// mutate writes mutant.blx: a program with a text replaced, once, behind another.
func (w work) mutate(name, behind, old, new string) {
	w.t.Helper()
	a, err := artifact.Open(w.path(name))
	require.NoError(w.t, err)
	for i, f := range a.Files {
		if f.Name == artifact.ProgramName {
			text := string(f.Data)
			at := strings.Index(text, behind)
			require.GreaterOrEqual(w.t, at, 0)
			require.Contains(w.t, text[at:], old)
			a.Files[i].Data = []byte(text[:at] + strings.Replace(text[at:], old, new, 1))
		}
	}
	require.NoError(w.t, a.Write(w.path("mutant.blx")))
}
