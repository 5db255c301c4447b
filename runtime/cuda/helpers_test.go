package cuda

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/runtime"
)

// helperRole is the variable that makes a process of this test one of those that help, or one that starts such.
const helperRole = "CUDA_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperRole) {
	case "assembles":
		os.Exit(status(answerOrders(os.Stdin, os.Stdout, func(o order) (answer, error) {
			if string(o.Text) == "bad" {
				return answer{}, errors.New("no such instruction")
			}
			return answer{Loss: fmt.Sprintf("%s of %s by %d", o.Entry, o.Name, os.Getpid())}, nil
		})))
	case "fails":
		os.Exit(1)
	case "parent":
		os.Setenv(helperRole, "assembles")
		h, err := startHelper(context.Background(), []string{os.Args[0]})
		if err == nil {
			_, err = h.assemble(order{Name: "a"})
		}
		fmt.Println(h.process.Process.Pid)
		time.Sleep(time.Minute)
		os.Exit(status(err))
	default:
		os.Exit(m.Run())
	}
}

func status(err error) int {
	if err != nil {
		return 1
	}
	return 0
}

// testCrew has files of which the first takes a while here.
func testCrew(n, helpers int, slow time.Duration) (c *crew, here *[]string, said map[string]string) {
	var mu sync.Mutex
	here, said = new([]string), map[string]string{}
	c = &crew{helpers: helpers, atOnce: 10 * time.Millisecond}
	for i := range n {
		c.files = append(c.files, &codeFile{name: fmt.Sprint("f", i), text: []byte("text"), kernels: []*kernel{{entry: "k"}}})
	}
	c.load = func(f *codeFile) error {
		time.Sleep(slow)
		mu.Lock()
		defer mu.Unlock()
		*here = append(*here, f.name)
		return nil
	}
	c.loss = func(file, loss string) {
		mu.Lock()
		defer mu.Unlock()
		said[file] = loss
	}
	c.start = func() (*helper, error) { return startHelper(context.Background(), []string{os.Args[0]}) }
	return c, here, said
}

// Where the first file takes long, each of the others is assembled once: here or by one of the helpers, which have ended then.
func TestHelpers(t *testing.T) {
	t.Setenv(helperRole, "assembles")
	c, here, said := testCrew(24, 3, 200*time.Millisecond)
	var started []*helper
	var mu sync.Mutex
	start := c.start
	c.start = func() (*helper, error) {
		h, err := start()
		mu.Lock()
		defer mu.Unlock()
		started = append(started, h)
		return h, err
	}
	require.NoError(t, c.work())
	require.Len(t, started, 3)
	require.Equal(t, "f0", (*here)[0])
	by := map[string]bool{}
	for _, f := range c.files {
		loss, helped := said[f.name]
		require.NotEqual(t, helped, slices.Contains(*here, f.name), f.name)
		if helped {
			require.True(t, strings.HasPrefix(loss, "k of "+f.name+" by "), loss)
			by[loss[strings.LastIndex(loss, " ")+1:]] = true
		}
	}
	require.NotEmpty(t, by)
	for _, h := range started {
		require.True(t, h.process.ProcessState.Success())
	}
}

// Where the first is loaded at once nothing else is done.
func TestNoHelpersWhereKernelsWereMade(t *testing.T) {
	c, here, said := testCrew(8, 3, 0)
	c.atOnce = time.Hour
	c.start = func() (*helper, error) { return nil, errors.New("nobody is needed") }
	require.NoError(t, c.work())
	require.Equal(t, []string{"f0"}, *here)
	require.Empty(t, said)
}

// Helpers that fail, at a text or at once, or can't be started, are done without.
func TestHelpersFail(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, c *crew){
		"at a text": func(t *testing.T, c *crew) {
			t.Setenv(helperRole, "assembles")
			for _, f := range c.files {
				f.text = []byte("bad")
			}
		},
		"at once": func(t *testing.T, c *crew) { t.Setenv(helperRole, "fails") },
		"to start": func(t *testing.T, c *crew) {
			c.start = func() (*helper, error) {
				return startHelper(context.Background(), []string{os.Args[0] + ".missing"})
			}
		},
		"when all ends": func(t *testing.T, c *crew) {
			t.Setenv(helperRole, "assembles")
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			c.start = func() (*helper, error) { return startHelper(ctx, []string{os.Args[0]}) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, here, said := testCrew(4, 2, 100*time.Millisecond)
			change(t, c)
			require.NoError(t, c.work())
			require.Contains(t, *here, "f0")
			require.Empty(t, said)
		})
	}
	c, _, _ := testCrew(4, 0, 0)
	c.load = func(f *codeFile) error { time.Sleep(100 * time.Millisecond); return errors.New("no memory") }
	require.EqualError(t, c.work(), "no memory")
}

// A helper ends when the process that started it is killed.
func TestHelpersEndWithTheirParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperRole+"=parent")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0), "it runs")
	require.NoError(t, parent.Process.Kill())
	_ = parent.Wait()
	require.Eventually(t, func() bool { return gone(pid) }, 10*time.Second, 10*time.Millisecond)
}

// gone reports whether a process has ended, whoever is to take note of it.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// Orders that are cut short are an error, no orders none.
func TestOrders(t *testing.T) {
	never := func(order) (answer, error) { return answer{}, errors.New("never") }
	require.NoError(t, answerOrders(strings.NewReader(""), io.Discard, never))
	require.ErrorContains(t, answerOrders(strings.NewReader("\x05ab"), io.Discard, never), "reading a kernel to assemble: unexpected EOF")
}

func TestHelpersFor(t *testing.T) {
	for _, c := range []struct {
		most        int
		bytes, free int64
		want        int
	}{
		{8, 4 << 20, 100 << 30, 8}, // a large model
		{8, 250 << 10, 100 << 30, 2},
		{8, 90 << 10, 100 << 30, 0}, // not worth it
		{8, 4 << 20, 4 << 30, 3},    // the GPU is full
		{8, 4 << 20, 1 << 20, 0},
		{0, 4 << 20, 100 << 30, 0}, // few cores
	} {
		require.Equal(t, c.want, helpersFor(c.most, c.bytes, c.free))
	}
}

// Files are loaded once, with most text first; those with machine code, and those that were loaded, have none to assemble.
func TestMissing(t *testing.T) {
	m := &machine{}
	d := m.driver()
	var mu sync.Mutex
	images := map[string]int{}
	d.fn.ModuleLoadDataEx = func(h *uintptr, image *byte, _ uint32, _ *int32, _ *uintptr) result {
		mu.Lock()
		defer mu.Unlock()
		images[cString(image)]++
		*h = uintptr(len(images))
		return 0
	}
	d.fn.ModuleGetFunction = func(f *uintptr, m uintptr, name *byte) result { *f = 100 + m; return 0 }
	d.fn.FuncGetAttribute = func(v *int32, _ int32, _ uintptr) result { return 0 }
	ctx := &Context{d: d, Device: &Device{}}
	p := &program{ctx: ctx, modules: map[string]*Module{}, artifact: &artifact.Artifact{Files: []artifact.File{
		{Name: "kernels/a.ptx", Data: []byte("short")}, {Name: "kernels/b.ptx", Data: []byte("much longer")}, {Name: "kernels/c.ptx", Data: []byte("the longest of all")},
		{Name: "kernels/c.cubin", Data: []byte("code")}}}}
	a, b, c := &kernel{file: "kernels/a.ptx"}, &kernel{file: "kernels/b.ptx"}, &kernel{file: "kernels/c.ptx"}
	again := &kernel{file: "kernels/a.ptx", then: b}
	f := &function{p: p, steps: []step{{kernel: a}, {kernel: c}, {kernel: again}, {kernel: a}, {}}}
	names := func() (all []string) {
		for _, file := range p.missing(f) {
			all = append(all, fmt.Sprintf("%s %q %d", file.name, file.text, len(file.kernels)))
		}
		return all
	}
	require.Equal(t, []string{`kernels/b.ptx "much longer" 1`, `kernels/a.ptx "short" 2`, `kernels/c.ptx "" 1`}, names())
	require.NoError(t, p.assemble(f))
	require.Equal(t, map[string]int{"short": 1, "much longer": 1, "code": 1}, images)
	require.Same(t, a.code.c, ctx)
	require.Equal(t, a.code.handle, again.code.handle)
	require.Empty(t, names())
	other := &kernel{file: "kernels/b.ptx"}
	f.steps = append(f.steps, step{kernel: other})
	require.Equal(t, []string{`kernels/b.ptx "" 1`}, names())
	require.NoError(t, p.assemble(f))
	require.Equal(t, b.code.handle, other.code.handle)
	require.Len(t, images, 3)
}

// Helpers are given what the whole program has to assemble, once the first text of a function takes long; what they leave is loaded here.
func TestHelpersAssembleTheWholeProgram(t *testing.T) {
	t.Setenv(helperRole, "assembles")
	m := &machine{}
	d := m.driver()
	var mu sync.Mutex
	d.fn.MemGetInfo = func(free, total *uint64) result { *free, *total = 100<<30, 100<<30; return 0 }
	d.fn.ModuleLoadDataEx = func(h *uintptr, image *byte, _ uint32, _ *int32, _ *uintptr) result {
		time.Sleep(2 * atOnce) // an assembler
		*h = 1
		return 0
	}
	d.fn.ModuleGetFunction = func(f *uintptr, m uintptr, name *byte) result { *f = 2; return 0 }
	d.fn.FuncGetAttribute = func(v *int32, _ int32, _ uintptr) result { return 0 }
	var warned []string
	p := &program{ctx: &Context{d: d, Device: &Device{}}, modules: map[string]*Module{}, functions: map[string]*function{}, artifact: &artifact.Artifact{},
		options: runtime.Options{Helpers: runtime.Helpers{Command: []string{os.Args[0]}, Most: 2}}, warn: func(s string) { mu.Lock(); warned = append(warned, s); mu.Unlock() }}
	for name, kernels := range map[string]int{"f": 1, "g": 12} {
		f := &function{p: p, name: name}
		for i := range kernels {
			file := fmt.Sprintf("%s%02d", name, i)
			p.artifact.Files = append(p.artifact.Files, artifact.File{Name: file, Data: []byte(strings.Repeat("text "+file, 4<<10))})
			f.steps = append(f.steps, step{kernel: &kernel{file: file, entry: "k"}})
		}
		p.functions[name] = f
	}
	require.NoError(t, p.assemble(p.functions["f"]))
	require.NotNil(t, p.functions["f"].steps[0].kernel.code)
	here := len(p.modules)
	require.Equal(t, 12, here-1+len(warned), "the rest by helpers")
	require.NotEmpty(t, warned)
	for _, text := range warned {
		require.Regexp(t, `^g\d\d: k of g\d\d by \d+$`, text)
	}
	require.NoError(t, p.assemble(p.functions["g"]))
	for _, s := range p.functions["g"].steps {
		require.NotNil(t, s.kernel.code)
	}
	require.Len(t, p.modules, 13)
}
