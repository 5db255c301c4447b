package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/train/logs"
)

// trial kills one run again and again, each time at another moment, and holds what its lives print to a run that was left alone.
type trial struct {
	work
	ranks  int
	args   []string // of the run, without --resume
	random *rand.Rand

	losses map[int64]logs.Number // of every step that was printed
	known  int64                 // the newest step whose checkpoint was reported as durable
	phases map[string]int        // what was going on when a process was killed
	inside int                   // kills within a save
}

// newTrial takes the model with more to write, so that a save takes as long as some steps.
func (w work) newTrial(ranks int, seed uint64) *trial {
	options := driver.Options{Target: "cpu"}
	if ranks > 1 { // parameters that every rank has, and an optimizer's state of which each has its shard
		options.Sharding = driver.Sharding{Mesh: fmt.Sprintf("dp=%d", ranks), Zero: 1}
	}
	r, err := driver.Compile("tiny.blu", []byte(strings.Replace(source, "C = 8", "C = 96", 1)), options)
	require.NoError(w.t, err)
	require.NoError(w.t, r.Artifact.Write(w.path("wide.blx")))
	t := &trial{work: w, ranks: ranks, random: rand.New(rand.NewPCG(seed, 1)), losses: map[int64]logs.Number{}, phases: map[string]int{}}
	t.args = []string{"train", w.path("wide.blx"), "--data", w.path("text.bin"), "--json", "--threads", "1", "--keep", "2"}
	if ranks > 1 {
		t.args = append(t.args, "--nproc-per-node", fmt.Sprint(ranks))
	}
	return t
}

func (t *trial) run(more ...string) []string { return append(slices.Clone(t.args), more...) }

// phase says how far a save has come by what is in the folder.
func (t *trial) phase() (name string, inside bool) {
	entries, _ := os.ReadDir(t.path("ckpt"))
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".tmp-") {
			continue
		}
		files, written := 0, int64(0)
		manifest := false
		parts, _ := os.ReadDir(t.path("ckpt/" + e.Name()))
		for _, p := range parts {
			if p.Name() == "manifest.json" {
				manifest = true
				continue
			}
			files++
			if info, err := p.Info(); err == nil {
				written += info.Size()
			}
		}
		step := e.Name()[strings.Index(e.Name(), "step-"):]
		switch _, err := os.Stat(t.path("ckpt/" + step)); {
		case strings.Count(e.Name(), "-") == 3 && err != nil && manifest && files > 0 && t.older(step):
			return "5 an old checkpoint is being removed", true
		case manifest:
			return "4 manifest written", true
		case files == 0:
			return "1 folder made", true
		case written < t.whole():
			return "2 tensors being written", true
		default:
			return "3 tensors written", true
		}
	}
	return "0 between saves", false
}

// older reports whether a newer checkpoint than this step's is there.
func (t *trial) older(step string) bool {
	names, _ := filepath.Glob(t.path("ckpt/step-*"))
	return len(names) > 0 && filepath.Base(slices.Max(names)) > step
}

// whole is the bytes of a checkpoint's tensors.
func (t *trial) whole() (n int64) {
	names, _ := filepath.Glob(t.path("ckpt/step-*/rank-*"))
	if len(names) == 0 {
		return 3 * 4 * (2*256*96 + 256)
	}
	folder := filepath.Dir(slices.Max(names))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && filepath.Dir(name) == folder {
			n += info.Size()
		}
	}
	return n
}

// listen reads what a life prints, and tells of each line.
func (t *trial) listen(out io.Reader, line chan<- struct{}) (first int64, err error) {
	defer close(line)
	in := bufio.NewScanner(out)
	for in.Scan() {
		var r struct {
			logs.Step
			Stall *float64 `json:"checkpoint_stall_ms"`
			Done  *bool    `json:"done"`
			Note  string   `json:"note"`
		}
		if err := json.Unmarshal(in.Bytes(), &r); err != nil {
			return first, fmt.Errorf("%q: %w", in.Text(), err)
		}
		switch {
		case r.Note != "":
			if !strings.Contains(r.Note, "never completed") && !strings.Contains(r.Note, "checkpoint of step") {
				return first, fmt.Errorf("note %q", r.Note)
			}
		case r.Done != nil:
		case r.Stall != nil:
			t.known = max(t.known, r.Step.Step)
		default:
			if first == 0 {
				first = r.Step.Step
			}
			if old, ok := t.losses[r.Step.Step]; ok && old != r.Loss {
				return first, fmt.Errorf("step %d has loss %v, and had %v in a life before", r.Step.Step, r.Loss, old)
			}
			t.losses[r.Step.Step] = r.Loss
		}
		select {
		case line <- struct{}{}:
		default:
		}
	}
	return first, nil
}

// life starts the run and kills it, or one of its ranks: aimed at a save, or at any moment.
func (t *trial) life(aimed bool) {
	known := t.known
	p := exec.Command(os.Args[0], t.run("--steps", "1000000", "--checkpoint-dir", t.path("ckpt"), "--checkpoint-every", fmt.Sprint(1+t.random.IntN(2)), "--resume")...)
	var stderr bytes.Buffer
	p.Env, p.Stderr = append(os.Environ(), asProgram+"=1"), &stderr
	out, err := p.StdoutPipe()
	require.NoError(t.t, err)
	require.NoError(t.t, p.Start())
	lines := make(chan struct{}, 1)
	heard := make(chan error, 1)
	var first int64
	go func() {
		var err error
		first, err = t.listen(out, lines)
		heard <- err
	}()
	ended := t.await(lines, 1+t.random.IntN(8))
	require.False(t.t, ended, "it ended by itself: %s", &stderr)
	if aimed {
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			if _, inside := t.phase(); inside {
				break
			}
		}
	}
	time.Sleep(time.Duration(t.random.IntN(3000)) * time.Microsecond)
	victim := t.victim(p.Process.Pid)
	name, inside := t.phase()
	require.NoError(t.t, victim.Kill())
	if t.ranks == 1 {
		_ = p.Wait()
		name, inside = t.phase()
	}
	t.phases[name]++
	if inside {
		t.inside++
	}
	if t.ranks > 1 { // the other ranks notice and end
		timer := time.AfterFunc(time.Minute, func() { _ = p.Process.Kill() })
		require.Error(t.t, p.Wait())
		require.True(t.t, timer.Stop(), "the other ranks hung")
		require.NotEmpty(t.t, stderr.String())
	}
	require.NoError(t.t, <-heard)
	if first != 0 { // it came as far as a step
		require.Greater(t.t, first, known, "an acknowledged checkpoint was lost")
	}
}

// await waits for lines of output.
func (t *trial) await(lines <-chan struct{}, n int) (ended bool) {
	for range n {
		select {
		case _, ok := <-lines:
			if !ok {
				return true
			}
		case <-time.After(time.Minute):
			require.Fail(t.t, "no progress in a minute")
		}
	}
	return false
}

// victim is the process itself, or one of the ranks that it started.
func (t *trial) victim(pid int) *os.Process {
	if t.ranks > 1 {
		children := childrenOf(t.t, pid)
		require.Len(t.t, children, t.ranks)
		pid = children[t.random.IntN(t.ranks)]
	}
	p, err := os.FindProcess(pid)
	require.NoError(t.t, err)
	return p
}

func childrenOf(t *testing.T, pid int) (children []int) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[1] == strconv.Itoa(pid) {
			child, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			require.NoError(t, err)
			children = append(children, child)
		}
	}
	return children
}

// end lets the run reach its end, and compares all that its lives printed, and its last state, with a run that was left alone.
func (t *trial) end() {
	last := fmt.Sprint(slices.Max(keys(t.losses)) + 3)
	outcome := func(dir string, more ...string) map[string][]byte {
		out, err := t.process(t.run(append(more, "--steps", last, "--checkpoint-dir", t.path(dir))...)...)
		require.NoError(t.t, err)
		lines := make(chan struct{}, 1)
		_, err = t.listen(bytes.NewReader(out), lines) // compares
		require.NoError(t.t, err)
		files := map[string][]byte{}
		names, err := filepath.Glob(t.path(fmt.Sprintf("%s/step-%08s/rank-*", dir, last)))
		require.NoError(t.t, err)
		require.NotEmpty(t.t, names)
		for _, name := range names {
			files[filepath.Base(name)], err = os.ReadFile(name)
			require.NoError(t.t, err)
		}
		return files
	}
	require.Equal(t.t, outcome("alone"), outcome("ckpt", "--resume"))
	require.Len(t.t, t.losses, int(slices.Max(keys(t.losses))), "every step was compared")
}

// process runs the program to its end and gives what it printed.
func (t *trial) process(args ...string) ([]byte, error) {
	p := exec.Command(os.Args[0], args...)
	var stderr bytes.Buffer
	p.Env, p.Stderr = append(os.Environ(), asProgram+"=1"), &stderr
	out, err := p.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &stderr)
	}
	return out, err
}

func keys[V any](m map[int64]V) (list []int64) {
	for k := range m {
		list = append(list, k)
	}
	return list
}

func (t *trial) kill(times, inside int) {
	for i := 0; i < times || t.inside < inside; i++ {
		require.Less(t.t, i, 3*times, "%d kills were within a save", t.inside)
		t.life(i%3 != 0)
	}
	t.end()
	var names []string
	total := 0
	for name, n := range t.phases {
		names = append(names, name)
		total += n
	}
	slices.Sort(names)
	t.t.Logf("%d kills, %d within a save, %d steps:", total, t.inside, len(t.losses))
	for _, name := range names {
		t.t.Logf("%4d  %s", t.phases[name], name[2:])
	}
}

// TestKilled200Times: whenever a run is killed, the next goes on from a whole checkpoint that is not older than the newest that was
// reported, and every loss, and the last state, is that of a run that was left alone, bit for bit.
func TestKilled200Times(t *testing.T) {
	times := 200
	if testing.Short() {
		times = 8
	}
	setUp(t).newTrial(1, 1).kill(times, times/2)
}

// TestARankIsKilled100Times: the same, with a random one of three ranks as the victim.
func TestARankIsKilled100Times(t *testing.T) {
	times := 100
	if testing.Short() {
		times = 4
	}
	setUp(t).newTrial(3, 2).kill(times, times/2)
}
