package launch

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"blutrain/internal/freeport"
)

// Spec says what Spawn starts.
type Spec struct {
	Ranks          int
	Program        string
	Args           []string
	Env            []string // as os.Environ; the ranks' own variables are added
	Stdout, Stderr io.Writer
	// Plain leaves rank 0's standard output as it is, for programs that read it.
	Plain bool
	// Settle is how long the other ranks may take to end by themselves after one has failed, and say why; 0 means 5 s.
	Settle time.Duration
	// Grace is how long ranks may take to end after SIGTERM, before SIGKILL; 0 means 30 s.
	Grace time.Duration
}

// Ended says how a rank ended first that did not end well.
type Ended struct {
	Rank   int
	Status int // 128 + the signal's number if a signal ended it, as a shell reports it
	What   string
}

func (e *Ended) Error() string { return fmt.Sprintf("rank %d %s", e.Rank, e.What) }

// child is a rank's process.
type child struct {
	rank  int
	cmd   *exec.Cmd
	err   error // of Wait
	ended bool
}

// Spawn starts the ranks of a job on this machine and returns when all have ended: nil if all ended well, else an *Ended of
// the first that did not. Each line they print goes out with their number in front. When one fails, or the context ends,
// so do the others, and they don't outlive this process.
func Spawn(ctx context.Context, s Spec) error {
	if s.Ranks < 1 {
		return fmt.Errorf("--nproc-per-node must be at least 1, not %d", s.Ranks)
	}
	if s.Settle == 0 {
		s.Settle = 5 * time.Second
	}
	if s.Grace == 0 {
		s.Grace = 30 * time.Second
	}
	// Linux sends a child's death signal when the thread that started it ends, so that must be this one until all have ended.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, flush := s.outputs()
	defer flush()
	env, err := s.environment()
	if err != nil {
		return err
	}
	ended := make(chan *child, s.Ranks)
	var children []*child
	for r := range s.Ranks {
		c := &child{rank: r, cmd: exec.Command(s.Program, s.Args...)}
		c.cmd.Env = append(slices.Clone(env), fmt.Sprintf("RANK=%d", r), fmt.Sprintf("LOCAL_RANK=%d", r))
		c.cmd.Stdout, c.cmd.Stderr = out[r].stdout, out[r].stderr
		c.cmd.WaitDelay = time.Second
		// A group of its own: a terminal's interrupt goes to this process alone, which passes it on once.
		c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		if err := c.cmd.Start(); err != nil {
			signalAll(children, syscall.SIGKILL)
			for range children {
				<-ended
			}
			return fmt.Errorf("rank %d can't be started: %w", r, err)
		}
		children = append(children, c)
		go func() {
			c.err = c.cmd.Wait()
			ended <- c
		}()
	}
	return s.watch(ctx, children, ended)
}

// watch waits for all children and ends those that must not go on.
func (s Spec) watch(ctx context.Context, children []*child, ended <-chan *child) error {
	var first *Ended
	var term, kill <-chan time.Time
	interrupted := ctx.Done()
	for left := len(children); left > 0; {
		select {
		case c := <-ended:
			left--
			c.ended = true
			if e := c.failure(); e != nil && first == nil {
				first, term = e, time.After(s.Settle)
			}
		case <-interrupted:
			interrupted = nil
			term = time.After(0)
		case <-term:
			signalAll(children, syscall.SIGTERM)
			signalAll(children, syscall.SIGCONT) // one that was stopped hears of it only then
			term, kill = nil, time.After(s.Grace)
		case <-kill:
			signalAll(children, syscall.SIGKILL)
		}
	}
	if first != nil {
		return first
	}
	return nil
}

// signalAll sends a signal to the process group of every rank that has not ended.
func signalAll(children []*child, signal syscall.Signal) {
	for _, c := range children {
		if !c.ended {
			syscall.Kill(-c.cmd.Process.Pid, signal)
		}
	}
}

// failure is how a child that has ended failed, nil if it did not.
func (c *child) failure() *Ended {
	if c.err == nil {
		return nil
	}
	var exit *exec.ExitError
	if !errors.As(c.err, &exit) {
		return &Ended{c.rank, 1, "failed: " + c.err.Error()}
	}
	if w, ok := exit.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return &Ended{c.rank, 128 + int(w.Signal()), fmt.Sprintf("was ended by signal %d (%s)", w.Signal(), w.Signal())}
	}
	return &Ended{c.rank, exit.ExitCode(), fmt.Sprintf("ended with status %d", exit.ExitCode())}
}

// environment is what all ranks see.
func (s Spec) environment() ([]string, error) {
	own := map[string]string{
		"WORLD_SIZE": strconv.Itoa(s.Ranks), "LOCAL_WORLD_SIZE": strconv.Itoa(s.Ranks), "MASTER_ADDR": "127.0.0.1",
		launcherVariable: string(Spawned), TokenVariable: rand.Text(), "RANK": "", "LOCAL_RANK": "", PortVariable: "",
	}
	port, err := freeport.On("127.0.0.1")
	if err != nil {
		return nil, fmt.Errorf("rank 0: %w", err)
	}
	own["MASTER_PORT"] = strconv.Itoa(port)
	env := slices.DeleteFunc(slices.Clone(s.Env), func(line string) bool {
		name, _, _ := strings.Cut(line, "=")
		_, ours := own[name]
		return ours
	})
	for name, value := range own {
		if value != "" {
			env = append(env, name+"="+value)
		}
	}
	slices.Sort(env)
	return env, nil
}
