package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/formats/atomicfile"
	"blutrain/train/checkpoint"
)

// asProgram makes the test binary be blurun, for tests that need a process to kill.
const asProgram = "BLURUN_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// start runs blurun in a process of its own.
func (w work) start(args ...string) (*exec.Cmd, *bytes.Buffer) {
	w.t.Helper()
	var stderr bytes.Buffer
	p := exec.Command(os.Args[0], args...)
	p.Env, p.Stderr = append(os.Environ(), asProgram+"=1"), &stderr
	require.NoError(w.t, p.Start())
	w.t.Cleanup(func() { _ = p.Process.Kill() })
	return p, &stderr
}

// latest is the step of the newest valid checkpoint, or -1.
func (w work) latest(dir string) int64 {
	c, _, err := checkpoint.Latest(atomicfile.OS{}, w.path(dir))
	if err != nil {
		return -1
	}
	return c.Manifest.Step
}

func (w work) waitFor(what string, ok func() bool) {
	w.t.Helper()
	require.Eventually(w.t, ok, time.Minute, 2*time.Millisecond, what)
}

func (w work) longRun(dir string, steps string) []string {
	return []string{"train", w.path("tiny.blx"), "--data", w.path("text.bin"), "--steps", steps, "--json",
		"--checkpoint-dir", w.path(dir), "--checkpoint-every", "2", "--log-dir", w.path("logs-" + dir), "--resume"}
}

// TestTerminated: at SIGTERM the step at hand is finished and saved, and the status is the signal's.
func TestTerminated(t *testing.T) {
	w := setUp(t)
	for name, c := range map[string]struct {
		signal syscall.Signal
		status int
	}{"term": {syscall.SIGTERM, 143}, "int": {syscall.SIGINT, 130}} {
		p, stderr := w.start(w.longRun(name, "1000000")...)
		w.waitFor("a checkpoint", func() bool { return w.latest(name) > 0 })
		require.NoError(t, p.Process.Signal(c.signal))
		require.Error(t, p.Wait())
		require.Equal(t, c.status, p.ProcessState.ExitCode(), stderr)
		require.Regexp(t, `^blurun: error: interrupted after step \d+ of 1000000\n$`, stderr.String())
	}
}

// TestReaderThatLeaves: when nobody reads the log any more the run ends, and what it had reached is saved.
func TestReaderThatLeaves(t *testing.T) {
	w := setUp(t)
	p := exec.Command(os.Args[0], "train", w.path("tiny.blx"), "--data", w.path("text.bin"), "--steps", "1000000", "--json", "--checkpoint-dir", w.path("ckpt"))
	var stderr bytes.Buffer
	p.Env, p.Stderr = append(os.Environ(), asProgram+"=1"), &stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Contains(t, line, `{"step":1,`)
	require.NoError(t, out.Close())
	require.Error(t, p.Wait())
	require.Equal(t, 1, p.ProcessState.ExitCode(), "not killed by a signal")
	require.Contains(t, stderr.String(), "broken pipe")
	require.Positive(t, w.latest("ckpt"))
}

// TestKilledAgainAndAgain: a run that is killed without warning, many times, always goes on from a valid checkpoint that is
// not older than the one before, and ends in the bytes of a run that was left alone.
func TestKilledAgainAndAgain(t *testing.T) {
	w := setUp(t)
	w.compile("tiny.blx", source, "cpu")
	reached := int64(0)
	for range 5 {
		p, stderr := w.start(w.longRun("ckpt", "1000000")...)
		w.waitFor("progress", func() bool { return w.latest("ckpt") > reached+3 })
		require.NoError(t, p.Process.Kill())
		_ = p.Wait()
		require.Empty(t, stderr.String())
		now := w.latest("ckpt")
		require.Greater(t, now, reached)
		reached = now
	}
	end := fmt.Sprint(reached + 5)
	for _, dir := range []string{"ckpt", "alone"} {
		out, _ := w.ok(w.longRun(dir, end)...)
		require.Contains(t, out, `{"done":true,`)
	}
	require.Equal(t, w.saved("alone", reached+5), w.saved("ckpt", reached+5))
}

// saved is the bytes of a checkpoint's tensors.
func (w work) saved(dir string, step int64) []byte {
	b, err := os.ReadFile(w.path(fmt.Sprintf("%s/step-%08d/rank-00000.safetensors", dir, step)))
	require.NoError(w.t, err)
	return b
}

// TestResumeIsBitForBitOnCPU: stopped and resumed, and on another number of workers, a run ends in the same bytes.
func TestResumeIsBitForBitOnCPU(t *testing.T) {
	w := setUp(t)
	w.compile("tiny.blx", source, "cpu")
	end := func(dir string, args ...string) []byte {
		_, _, done := w.train(append(args, "--checkpoint-dir", w.path(dir), "--seed", "7")...)
		return w.saved(dir, done.Steps)
	}
	want := end("whole")
	require.Equal(t, want, end("threads", "--threads", "3"))
	require.NotEqual(t, want, end("parts", "--steps", "7"))
	require.Equal(t, want, end("parts", "--resume", "--threads", "1"))
}
