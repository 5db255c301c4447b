package cluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/internal/freeport"
	"blutrain/internal/upstream"
)

var root = filepath.Join("..", "..")

// bin is where the programs are.
var bin = filepath.Join(os.TempDir(), fmt.Sprintf("blutrain-cluster-%d", os.Getpid()))

// programs builds bluc and blurun, once for all tests.
var programs = sync.OnceValue(func() error {
	c := exec.Command("go", "build", "-trimpath", "-o", bin+"/", "./cmd/...")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(bin)
	os.Exit(status)
}

// work is a folder with a model for any number of ranks and its data.
type work struct {
	t   *testing.T
	dir string
}

// tiny is examples/gpt2.blu in small.
const tiny = "L=1,H=2,C=16,V=256,T=16,B=2,S=16,WARMUP=2,STEPS=40,LR=1e-2"

func setUp(t *testing.T) work {
	require.NoError(t, programs())
	w := work{t, t.TempDir()}
	w.compile("model.blx", "--mesh", "dp")
	w.ok("blurun", "data", "prepare", filepath.Join(root, "README.md"), "-o", w.path("text.bin"), "--tokenizer", "byte")
	return w
}

func (w work) compile(name string, flags ...string) {
	w.ok("bluc", append([]string{"compile", filepath.Join(root, "examples", "gpt2.blu"), "--set", tiny, "-o", w.path(name)}, flags...)...)
}

func (w work) path(name string) string { return filepath.Join(w.dir, name) }

func (w work) ok(program string, args ...string) string {
	w.t.Helper()
	out, err := exec.Command(filepath.Join(bin, program), args...).CombinedOutput()
	require.NoError(w.t, err, "%s %v: %s", program, args, out)
	return string(out)
}

// train is a command line of blurun.
func (w work) train(flags ...string) []string {
	return append([]string{filepath.Join(bin, "blurun"), "train", w.path("model.blx"), "--data", w.path("text.bin"), "--json", "--seed", "3"}, flags...)
}

// process is a running command.
type process struct {
	*exec.Cmd
	stdout, stderr safe
	ended          chan struct{}
}

// safe is a buffer that is read while it is written.
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

// start runs a command with more variables.
func (w work) start(env []string, command ...string) *process {
	w.t.Helper()
	p := &process{Cmd: exec.Command(command[0], command[1:]...), ended: make(chan struct{})}
	p.Stdout, p.Stderr = &p.stdout, &p.stderr
	p.Env = append(os.Environ(), env...)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	require.NoError(w.t, p.Start())
	w.t.Cleanup(func() { _ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) })
	go func() {
		_ = p.Wait() // its status is what is looked at
		close(p.ended)
	}()
	return p
}

// end waits for a process and gives its status.
func (p *process) end(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(within):
		require.Fail(t, "a process has not ended", "%s\n%s", within, &p.stderr)
	}
	return p.ProcessState.ExitCode()
}

// losses of a JSON log.
func losses(t *testing.T, log string) (all []float64) {
	for line := range strings.Lines(log) {
		var s struct {
			Loss *float64 `json:"loss"`
			Norm *float64 `json:"grad_norm"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		if s.Norm != nil {
			all = append(all, *s.Loss)
		}
	}
	return all
}

// freePort is one where nobody listens at the moment.
func freePort(t *testing.T) string {
	port, err := freeport.On("127.0.0.1")
	require.NoError(t, err)
	return strconv.Itoa(port)
}

// required skips a test that can't run here, unless all tools must be there.
func required(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(upstream.RequireVariable) == "1" {
		t.Fatalf("%s; %s=1 requires it", why, upstream.RequireVariable)
	}
	t.Skip(why)
}
