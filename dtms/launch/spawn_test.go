package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain is also what the ranks of these tests run: this binary with SPAWN_ROLE set.
func TestMain(m *testing.M) {
	role := os.Getenv("SPAWN_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	if role == "launcher" { // the process that TestLauncherDies kills
		os.Setenv("SPAWN_ROLE", "sleep")
		Spawn(context.Background(), Spec{Ranks: 2, Program: os.Args[0], Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
		return
	}
	p, err := Detect(os.Environ())
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	fmt.Printf("%s\nworking as %d\n", p, os.Getpid())
	play(role, p.Rank)
}

func play(role string, rank int) {
	switch role {
	case "fail":
		if rank == 1 {
			fmt.Fprint(os.Stderr, "no end of line")
			os.Exit(7)
		}
		time.Sleep(time.Minute)
	case "crash":
		if rank == 1 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		time.Sleep(time.Minute)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ignoring")
		time.Sleep(time.Minute)
	case "sleep":
		time.Sleep(time.Minute)
	}
}

// safe is a buffer that tests may read while it is written.
type safe struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *safe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// spec starts n ranks in a role. Variables of another launcher must not reach them.
func spec(role string, n int, out *safe) Spec {
	env := append(os.Environ(), "SPAWN_ROLE="+role, "RANK=17", "BLUTRAIN_MASTER_PORT=1")
	return Spec{Ranks: n, Program: os.Args[0], Env: env, Stdout: out, Stderr: out, Settle: 100 * time.Millisecond, Grace: 500 * time.Millisecond}
}

func TestSpawn(t *testing.T) {
	var out safe
	require.NoError(t, Spawn(context.Background(), spec("print", 3, &out)))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 6)
	slices.Sort(lines)
	port := regexp.MustCompile(`:\d+$`)
	for r := range 3 {
		require.Equal(t, fmt.Sprintf("[%d] launcher: --nproc-per-node, rank %d of 3 (%d of 3 on this host), rank 0 at 127.0.0.1:", r, r, r), port.ReplaceAllString(lines[2*r], ":"))
		require.Regexp(t, fmt.Sprintf(`^\[%d\] working as`, r), lines[2*r+1])
	}
}

func TestPlain(t *testing.T) {
	var out safe
	s := spec("print", 2, &out)
	s.Plain = true
	require.NoError(t, Spawn(context.Background(), s))
	require.Regexp(t, `(?m)^launcher: --nproc-per-node, rank 0 of 2`, out.String())
	require.Regexp(t, `(?m)^\[1\] launcher: --nproc-per-node, rank 1 of 2`, out.String())
}

func TestSpawnFailures(t *testing.T) {
	for role, want := range map[string]Ended{
		"fail":  {1, 7, "ended with status 7"},
		"crash": {1, 128 + 9, "was ended by signal 9 (killed)"},
	} {
		t.Run(role, func(t *testing.T) {
			var out safe
			begun := time.Now()
			err := Spawn(context.Background(), spec(role, 4, &out))
			var ended *Ended
			require.ErrorAs(t, err, &ended)
			require.Equal(t, want, *ended)
			require.Less(t, time.Since(begun), 20*time.Second)
			if role == "fail" {
				require.Contains(t, out.String(), "[1] no end of line\n")
			}
			requireGone(t, out.String())
		})
	}
}

func TestSpawnInterrupted(t *testing.T) {
	for role, status := range map[string]int{"sleep": 128 + 15, "stubborn": 128 + 9} {
		t.Run(role, func(t *testing.T) {
			var out safe
			ctx, cancel := context.WithCancel(context.Background())
			go func() {
				for strings.Count(out.String(), map[string]string{"sleep": "working", "stubborn": "ignoring"}[role]) < 2 {
					time.Sleep(5 * time.Millisecond)
				}
				cancel()
			}()
			err := Spawn(ctx, spec(role, 2, &out))
			var ended *Ended
			require.ErrorAs(t, err, &ended)
			require.Equal(t, status, ended.Status)
			requireGone(t, out.String())
		})
	}
}

func TestLauncherDies(t *testing.T) {
	var out safe
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SPAWN_ROLE=launcher")
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return strings.Count(out.String(), "working as") == 2 }, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	requireGone(t, out.String())
}

func TestSpawnRefusals(t *testing.T) {
	require.ErrorContains(t, Spawn(context.Background(), Spec{}), "--nproc-per-node must be at least 1, not 0")
	var out safe
	s := spec("print", 2, &out)
	s.Program = "/nonexistent/program"
	require.ErrorContains(t, Spawn(context.Background(), s), "rank 0 can't be started")
}

// requireGone checks that no process lives that said it was working.
func requireGone(t *testing.T, out string) {
	t.Helper()
	pids := regexp.MustCompile(`working as (\d+)`).FindAllStringSubmatch(out, -1)
	require.NotEmpty(t, pids)
	for _, m := range pids {
		pid, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.Eventually(t, func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }, 5*time.Second, 10*time.Millisecond)
	}
}
