package tcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/internal/enginetest"
	"blutrain/dtms/local"
	"blutrain/internal/freeport"
)

// silence is the time without a sign of life in these tests: short, but long for a busy machine.
const silence = 3 * time.Second

// job is a job under test.
type job struct {
	t     *testing.T
	ranks []*process
}

type process struct {
	cmd    *exec.Cmd
	output lines
	done   chan struct{}
}

// lines collects output and tells when a line has come.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// freeAddress is an address where nobody listens at the moment.
func freeAddress(t *testing.T) string {
	address, err := freeport.Address("127.0.0.1")
	require.NoError(t, err)
	return address
}

// settings are the environment of a rank; wrap, if any, is a command in front of it.
type settings struct {
	role, master string
	size         int
	join         time.Duration
	wrap         func(rank int) []string
	edit         func(rank int, env map[string]string)
}

// start starts the given ranks of a job, all of them if none are given.
func start(t *testing.T, s settings, ranks ...int) *job {
	if s.master == "" {
		s.master = freeAddress(t)
	}
	if s.join == 0 {
		s.join = time.Minute
	}
	if ranks == nil {
		for r := range s.size {
			ranks = append(ranks, r)
		}
	}
	j := &job{t: t}
	for _, r := range ranks {
		env := map[string]string{
			"DTMS_ROLE": s.role, "DTMS_RANK": fmt.Sprint(r), "DTMS_SIZE": fmt.Sprint(s.size), "DTMS_MASTER": s.master, "DTMS_TOKEN": "secret",
			"DTMS_JOIN_MS": fmt.Sprint(s.join.Milliseconds()), "DTMS_SILENCE_MS": fmt.Sprint(silence.Milliseconds()), "DTMS_ARTIFACT": "ab12",
		}
		if s.edit != nil {
			s.edit(r, env)
		}
		command := []string{os.Args[0]}
		if s.wrap != nil {
			command = append(s.wrap(r), command...)
		}
		p := &process{cmd: exec.Command(command[0], command[1:]...), done: make(chan struct{})}
		p.cmd.Env = os.Environ()
		for k, v := range env {
			p.cmd.Env = append(p.cmd.Env, k+"="+v)
		}
		p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
		require.NoError(t, p.cmd.Start())
		go func() {
			p.cmd.Wait()
			close(p.done)
		}()
		t.Cleanup(func() {
			p.cmd.Process.Kill()
			<-p.done
		})
		j.ranks = append(j.ranks, p)
	}
	return j
}

// connected returns when all ranks are connected.
func (j *job) connected() {
	for _, p := range j.ranks {
		require.Eventually(j.t, func() bool { return strings.Contains(p.output.String(), "connected") }, time.Minute, 5*time.Millisecond, "%s", &p.output)
	}
}

// end waits for a rank at most this long and returns its exit status and its report.
func (j *job) end(rank int, within time.Duration) (int, report) {
	j.t.Helper()
	p := j.ranks[rank]
	select {
	case <-p.done:
	case <-time.After(within):
		require.FailNow(j.t, "too late", "rank %d has not ended within %s; its output:\n%s", rank, within, &p.output)
	}
	var r report
	all := strings.Split(strings.TrimSpace(p.output.String()), "\n")
	if status := p.cmd.ProcessState.ExitCode(); status >= 0 {
		require.NoError(j.t, json.Unmarshal([]byte(all[len(all)-1]), &r), "%s", &p.output)
	}
	return p.cmd.ProcessState.ExitCode(), r
}

// requireNamed checks that a rank ended with status 1 and named these ranks and nobody else.
func (j *job) requireNamed(rank int, within time.Duration, ranks ...int) report {
	j.t.Helper()
	status, r := j.end(rank, within)
	require.Equal(j.t, 1, status, "rank %d: %s", rank, &j.ranks[rank].output)
	var named []int
	for _, f := range r.Faults {
		named = append(named, f.Rank)
	}
	require.Equal(j.t, ranks, named, "rank %d: %s", rank, r.Error)
	return r
}

func TestEverything(t *testing.T) {
	for size := 1; size <= 4; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			want := make([]string, size)
			require.NoError(t, local.Run(context.Background(), size, func(ctx context.Context, c *dtms.Communicator) (err error) {
				want[c.Rank()], err = enginetest.Run(ctx, c)
				return err
			}))
			j := start(t, settings{role: "suite", size: size})
			for r := range size {
				status, report := j.end(r, 3*time.Minute)
				require.Zero(t, status, report.Error)
				require.Equal(t, want[r], report.Digest, "the results of tcp are not those of local")
			}
		})
	}
}

// rounds is how often faults at random points are tried.
func rounds() int {
	if testing.Short() {
		return 3
	}
	return 16
}

func TestKill(t *testing.T) {
	var slowest time.Duration
	for round := range rounds() {
		j := start(t, settings{role: "work", size: 4, join: 10 * time.Second})
		victim := rand.IntN(4)
		if round%2 == 0 { // else it may be hit while the ranks meet
			j.connected()
		}
		time.Sleep(time.Duration(rand.IntN(300)/(1+4*(round%2))) * time.Millisecond)
		j.ranks[victim].cmd.Process.Kill()
		begun := time.Now()
		for r := range j.ranks {
			if r != victim {
				j.requireNamed(r, 60*time.Second, victim) // 30 s is what connecting may take
			}
		}
		if round%2 == 0 {
			slowest = max(slowest, time.Since(begun))
		}
	}
	t.Logf("all others ended with the victim's number within %s", slowest)
}

func TestStop(t *testing.T) {
	for range max(2, rounds()/4) {
		j := start(t, settings{role: "work", size: 3})
		victim := rand.IntN(3)
		j.connected()
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		require.NoError(t, j.ranks[victim].cmd.Process.Signal(syscall.SIGSTOP))
		begun := time.Now()
		for r := range j.ranks {
			if r != victim {
				report := j.requireNamed(r, silence+20*time.Second, victim)
				require.Equal(t, dtms.Silent, report.Faults[0].Fault, report.Error)
			}
		}
		t.Logf("named after %s, silence is %s", time.Since(begun).Round(time.Millisecond), silence)
		require.NoError(t, j.ranks[victim].cmd.Process.Signal(syscall.SIGCONT))
		j.requireNamed(victim, 20*time.Second, victim) // which learns from the others what happened
	}
}

func TestOtherArtifact(t *testing.T) {
	j := start(t, settings{role: "work", size: 4, edit: func(rank int, env map[string]string) {
		if rank == 2 {
			env["DTMS_ARTIFACT"] = "cd34"
		}
	}})
	for r := range j.ranks {
		report := j.requireNamed(r, time.Minute, 2)
		require.Contains(t, report.Error, "rank 2 has artifact cd34, where ab12 is expected")
	}
}

func TestOtherCall(t *testing.T) {
	j := start(t, settings{role: "other", size: 3})
	for r := range j.ranks {
		report := j.requireNamed(r, time.Minute, 1)
		require.Contains(t, report.Error, "rank 1 called barrier as call 2, where ranks 0 and 2 called all-reduce of 9 f32")
	}
}

func TestMissing(t *testing.T) {
	j := start(t, settings{role: "work", size: 5, join: 3 * time.Second}, 0, 1, 3)
	for r := range j.ranks {
		report := j.requireNamed(r, 20*time.Second, 2, 4)
		require.Equal(t, dtms.Missing, report.Faults[0].Fault)
		require.Contains(t, report.Error, "within 3s")
	}
	j = start(t, settings{role: "work", size: 2, join: time.Second}, 1)
	require.Contains(t, j.requireNamed(0, 20*time.Second, 0).Error, "rank 0 can't be reached at 127.0.0.1:")
}

func TestToken(t *testing.T) {
	j := start(t, settings{role: "work", size: 3, join: 5 * time.Second, edit: func(rank int, env map[string]string) {
		if rank == 1 {
			env["DTMS_TOKEN"] = "guess"
		}
	}})
	require.Contains(t, j.requireNamed(1, 20*time.Second, 1).Error, "the token is not the same on both sides")
	for _, r := range []int{0, 2} {
		report := j.requireNamed(r, 20*time.Second, 1)
		require.Contains(t, report.Error, "refused: 127.0.0.1 (the token is not the same on both sides")
	}
}

func TestOtherSize(t *testing.T) {
	j := start(t, settings{role: "work", size: 3, edit: func(rank int, env map[string]string) {
		if rank == 2 {
			env["DTMS_SIZE"] = "4"
		}
	}})
	for r := range j.ranks {
		require.Contains(t, j.requireNamed(r, 20*time.Second, 2).Error, "was started as one of 4 ranks, rank 0 as one of 3")
	}
}

func TestTwice(t *testing.T) {
	j := start(t, settings{role: "work", size: 4, edit: func(rank int, env map[string]string) {
		if rank == 3 {
			env["DTMS_RANK"] = "1"
		}
	}})
	for r := range j.ranks {
		require.Contains(t, j.requireNamed(r, 20*time.Second, 1).Error, "was started twice")
	}
}
