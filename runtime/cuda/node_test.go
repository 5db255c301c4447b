package cuda

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/dtms/nccl"
	"blutrain/internal/upstream"
	"blutrain/ir"
	"blutrain/runtime"
)

// node is a stand-in for NCCL and the GPUs of a machine, on which ranks get stuck as they would there (dtms/nccl/testdata/ranks.c).
type node struct {
	bind func(device int32)
	done func(device int32) int32
	die  func(device int32)
	// stuck is how many calls gave up waiting, mixed whether ranks met with different calls, log what a device was asked.
	stuck, mixed func() int32
	log          func(device int32) string
	between      runtime.GPUEngine // of programs
	self         func(rank int) (host, process string, err error)
	memory       result // the driver's answer to who asks for memory
	hidden       result // its answer to who asks for another rank's GPU
}

// standIn builds it.
func standIn(t *testing.T) (path string) {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv(upstream.RequireVariable) == "1" {
			t.Fatalf("gcc is not installed; %s=1 requires it", upstream.RequireVariable)
		}
		t.Skip("gcc, which builds the stand-in for NCCL, is not installed")
	}
	path = filepath.Join(t.TempDir(), "libnode.so")
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-pthread", "-o", path, "../../dtms/nccl/testdata/ranks.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// newNode loads a copy of its own, since it has state.
func newNode(t *testing.T, standIn string) *node {
	t.Helper()
	code, err := os.ReadFile(standIn)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "libnode.so")
	require.NoError(t, os.WriteFile(path, code, 0o777))
	t.Setenv(nccl.LibraryVariable, path)
	lib, err := purego.Dlopen(path, purego.RTLD_NOW)
	require.NoError(t, err)
	n := &node{between: runtime.NCCLEngine}
	for name, f := range map[string]any{"fakeBind": &n.bind, "fakeDone": &n.done, "fakeDie": &n.die, "fakeStuck": &n.stuck, "fakeMixed": &n.mixed, "fakeLog": &n.log} {
		purego.RegisterLibFunc(f, lib, name)
	}
	return n
}

// driver is that of a rank's process. Binding a thread to its GPU fails the time of that number, unless it is 0.
func (n *node) driver(rank, unbound int) *Driver {
	d := &Driver{}
	var bound atomic.Int64 // siblings are aborted at once
	d.fn.CtxSetCurrent = func(uintptr) result {
		if int(bound.Add(1)) == unbound {
			return 999
		}
		n.bind(int32(rank))
		return 0
	}
	nameless := func(result, **byte) result { return 0 }
	d.fn.GetErrorName, d.fn.GetErrorString = nameless, nameless
	d.fn.StreamCreate = func(s *uintptr, _ uint32) result { *s = 1; return 0 }
	d.fn.StreamDestroy = func(uintptr) result { return 0 }
	d.fn.StreamWaitEvent = func(uintptr, uintptr, uint32) result { return 0 }
	d.fn.StreamQuery = func(uintptr) result {
		if n.done(int32(rank)) == 0 {
			return notReady
		}
		return 0
	}
	d.fn.StreamSynchronize = func(uintptr) result {
		for begun := time.Now(); n.done(int32(rank)) == 0; time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				return 999
			}
		}
		return 0
	}
	d.fn.EventCreate = func(e *uintptr, _ uint32) result { *e = 1; return 0 }
	d.fn.EventRecord = func(uintptr, uintptr) result { return 0 }
	d.fn.EventDestroy = func(uintptr) result { return 0 }
	d.fn.BeginCapture = func(uintptr, int32) result { return 0 }
	d.fn.EndCapture = func(_ uintptr, g *uintptr) result { *g = 1; return 0 }
	d.fn.GraphInstantiate = func(exec *uintptr, _ uintptr, _ uint64) result { *exec = 1; return 0 }
	d.fn.GraphLaunch = func(uintptr, uintptr) result { return 0 }
	d.fn.MemcpyDtoDAsync = func(uint64, uint64, uint64, uintptr) result { return 0 }
	n.shares(d)
	return d
}

// shares has a driver offer memory to other processes.
func (n *node) shares(d *Driver) {
	d.fn.StreamPriorities = func(*int32, *int32) result { return 0 }
	d.fn.StreamCreateAt = func(s *uintptr, _ uint32, _ int32) result { *s = 3; return 0 }
	d.fn.ModuleLoadDataEx = func(*uintptr, *byte, uint32, *int32, *uintptr) result { return 0 }
	d.fn.ModuleUnload = func(uintptr) result { return 0 }
	d.fn.ModuleGetFunction = func(*uintptr, uintptr, *byte) result { return 0 }
	d.fn.FuncGetAttribute = func(*int32, int32, uintptr) result { return 0 }
	d.fn.DeviceGetBusID = func(*byte, int32, int32) result { return 0 }
	d.fn.MemAlloc = func(p *uint64, _ uint64) result { *p = 1 << 20; return n.memory }
	d.fn.MemFree = func(uint64) result { return 0 }
	d.fn.DeviceByBusID = func(other *int32, _ *byte) result { *other = 1; return n.hidden }
	d.fn.CanAccessPeer = func(can *int32, _, _ int32) result { *can = 1; return 0 }
	d.fn.IpcOpenMemHandle = func(p *uint64, _ memoryHandle, _ uint32) result { *p = 1 << 30; return 0 }
	d.fn.IpcCloseMemHandle = func(uint64) result { return 0 }
	d.fn.StreamWriteValue = func(uintptr, uint64, uint32, uint32) result { return 0 }
	d.fn.StreamWaitValue = func(uintptr, uint64, uint32, uint32) result { return 0 }
	d.fn.LaunchKernelEx = func(*launchConfig, uintptr, *unsafe.Pointer, uintptr) result { return 0 }
	d.fn.MemsetD32Async = func(uint64, uint32, uint64, uintptr) result { return 0 }
	d.fn.IpcGetMemHandle = func(*memoryHandle, uint64) result { return 0 }
}

// context is that of a rank's GPU.
func (n *node) context(rank, unbound int) *Context {
	d := n.driver(rank, unbound)
	return &Context{d: d, Device: &Device{d: d}}
}

// layouts are the programs of testdata/node: what models' programs have their ranks tell each other (test/ranks writes them).
var layouts = []struct {
	file   string
	dp, cp int
}{
	{"dp2-zero0", 2, 1}, {"dp2-zero1", 2, 1}, {"dp4-zero0", 4, 1}, {"dp1-cp2-zero0", 1, 2}, {"dp2-cp2-zero0", 2, 2}, {"dp2-cp2-zero1", 2, 2},
	{"dp2-cp2-ulysses-zero0", 2, 2}, {"dp2-cp2-ulysses-zero1", 2, 2}, {"dp2-cp4-zero0", 2, 4}, {"dp2-cp4-ulysses-zero1", 2, 4},
}

// member is a rank with its program.
type member struct {
	*program
	rank int
}

// errPower is that of a rank that ends without a word.
var errPower = errors.New("the power failed")

// onNode runs f as each rank of a layout, with a program that is connected, and ends them. It gives each rank's error.
func (n *node) onNode(t *testing.T, layout int, unbound func(rank int) int, f func(m member) error) []error {
	t.Helper()
	l := layouts[layout]
	text, err := os.ReadFile(filepath.Join("testdata/node", l.file+".mlir"))
	require.NoError(t, err)
	errs := make([]error, l.dp*l.cp)
	var all sync.WaitGroup
	for rank, world := range local.New(l.dp * l.cp) {
		all.Go(func() {
			err := n.asRank(world.WithDeadline(20*time.Second), rank, layout, text, unbound(rank), f)
			if err != nil {
				world.Abort(err)
			}
			errs[rank] = errors.Join(err, world.Close())
		})
	}
	all.Wait()
	return errs
}

// asRank does so as one.
func (n *node) asRank(world *dtms.Communicator, rank, layout int, text []byte, unbound int, f func(m member) error) error {
	mesh, err := dtms.NewMesh(context.Background(), world, layouts[layout].dp, layouts[layout].cp)
	if err != nil {
		return err
	}
	p := &program{manifest: &artifact.Manifest{}, ctx: n.context(rank, unbound), arena: 1 << 30, functions: map[string]*function{}, options: runtime.Options{Mesh: mesh, Between: n.between}}
	if n.self != nil {
		p.self = func() (string, string, error) { return n.self(rank) }
	}
	p.stream = &Stream{p.ctx, 2}
	if err := p.decodeAll(text); err != nil {
		return err
	}
	if err := p.connect(context.Background()); err != nil {
		p.network.abort(err)
		return errors.Join(err, p.network.close())
	}
	if err := f(member{p, rank}); err != nil {
		if errors.Is(err, errPower) {
			n.die(int32(rank))
			return err
		}
		return errors.Join(err, p.network.close())
	}
	return p.network.close()
}

// decodeAll decodes a program's functions.
func (p *program) decodeAll(text []byte) error {
	module, err := ir.Parse(dialects.NewContext(), "node.mlir", text)
	if err != nil {
		return err
	}
	for op := range module.Body().Ops() {
		f, err := p.decodeFunction(op)
		if err != nil {
			return err
		}
		f.ready, f.status = true, &pinned{}
		p.functions[f.name] = f
		p.manifest.Functions = append(p.manifest.Functions, artifact.Function{Name: f.name}) // of collectives it says nothing: a device goes by its program
	}
	return nil
}

// functionNames are a step's, in order.
var functionNames = []string{"accumulate", "accumulate_last", "apply", "eval"}

// steps trains and evaluates, as far as collectives go, with pauses that are the rank's own.
func (m member) steps(steps int) error {
	r := rand.New(rand.NewPCG(uint64(m.rank), 0))
	for range steps {
		for _, f := range functionNames {
			if m.functions[f] == nil {
				continue
			}
			time.Sleep(time.Duration(r.IntN(3)) * time.Millisecond)
			if _, err := m.Call(f, nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// begins starts a number of collectives of a function and waits for none.
func (m member) begins(collectives int) error {
	for _, name := range functionNames {
		f := m.functions[name]
		if f == nil {
			continue
		}
		for i := range f.steps {
			if f.steps[i].begin == nil {
				continue
			}
			if collectives--; collectives < 0 {
				return nil
			}
			if err := f.communicate(&f.steps[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func bound(int) int { return 0 }

// The ranks of a node begin, use and end their communicators in one order, whatever each does between, and so never wait for each other.
func TestNodeMeets(t *testing.T) {
	library := standIn(t)
	for i, l := range layouts {
		t.Run(l.file, func(t *testing.T) {
			n := newNode(t, library)
			errs := n.onNode(t, i, bound, func(m member) error { return m.steps(3) })
			require.NoError(t, errors.Join(errs...))
			require.Zero(t, n.stuck())
			require.Zero(t, n.mixed())
			require.Contains(t, n.log(0), "destroy 0")
			for rank := range errs {
				require.Equal(t, n.log(0), n.log(int32(rank)), "rank %d", rank)
			}
		})
	}
}

// A rank that dies, whatever it has begun, ends the others, with its name, and none waits for ever.
func TestNodeLosesRank(t *testing.T) {
	library := standIn(t)
	for i, l := range layouts {
		t.Run(l.file, func(t *testing.T) {
			for seed := range uint64(3) {
				n := newNode(t, library)
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				victim, steps, more := r.IntN(l.dp*l.cp), r.IntN(2), r.IntN(12)
				errs := n.onNode(t, i, bound, func(m member) error {
					if m.rank != victim {
						return m.steps(1 << 20)
					}
					return errors.Join(m.steps(steps), m.begins(more), errPower)
				})
				for rank, err := range errs {
					require.ErrorContains(t, err, errPower.Error(), "rank %d, seed %d", rank, seed)
					if rank != victim {
						require.Equal(t, victim, dtms.Faults(err)[0].Rank, "rank %d, seed %d", rank, seed)
					}
				}
				require.Zero(t, n.stuck(), "seed %d", seed)
			}
		})
	}
}

// A rank whose GPU can't be used when communicators start, are used, or end is named by the others.
func TestNodeFailsOnRank(t *testing.T) {
	library := standIn(t)
	for i, l := range layouts {
		t.Run(l.file, func(t *testing.T) {
			for _, at := range []int{1, 5, 40} {
				n := newNode(t, library)
				victim := at % (l.dp * l.cp)
				errs := n.onNode(t, i, func(rank int) int {
					if rank == victim {
						return at
					}
					return 0
				}, func(m member) error { return m.steps(1) })
				for rank, err := range errs {
					require.ErrorContains(t, err, "GPU 0", "rank %d, bound %d times", rank, at)
				}
				require.Zero(t, n.stuck(), "bound %d times", at)
			}
		})
	}
}

// A rank that ends while others go on is named, instead of waited for.
func TestNodeLeavesAlone(t *testing.T) {
	n := newNode(t, standIn(t))
	begun := time.Now()
	for rank, err := range n.onNode(t, 4, bound, func(m member) error {
		if m.rank == 2 {
			return m.steps(1)
		}
		return m.steps(1 << 20)
	}) {
		require.ErrorContains(t, err, "rank 2 called barrier", "rank %d", rank)
	}
	require.Zero(t, n.stuck())
	require.Less(t, time.Since(begun), 5*time.Second)
}

// GPUs whose memory can't be opened are refused at the start, on all ranks, and nothing is left waiting.
func TestNodeRefusesPeers(t *testing.T) {
	n := newNode(t, standIn(t))
	n.between = runtime.PeerEngine
	for rank, err := range n.onNode(t, 4, bound, func(m member) error { return m.steps(1) }) {
		require.ErrorContains(t, err, "opening the memory of other GPUs", "rank %d", rank)
		require.ErrorContains(t, err, "it is in the same process", "rank %d", rank)
	}
	require.Zero(t, n.stuck())
}

// processes of one machine, or of a machine each.
func oneMachine(rank int) (host, process string, err error) { return "here", fmt.Sprint(rank), nil }
func severalMachines(rank int) (host, process string, err error) {
	return fmt.Sprint("host ", rank), "1", nil
}

// Programs that only sum, between two GPUs that reach each other's memory, go by copies; whatever is in the way, NCCL makes them instead, on all ranks, in one order.
func TestNodeChooses(t *testing.T) {
	library := standIn(t)
	for name, tc := range map[string]struct {
		self   func(int) (string, string, error)
		hidden result
		links  string // of two ranks, of which the program needs sums alone
	}{
		"one machine":  {oneMachine, 0, "peer"},
		"two machines": {severalMachines, 0, "nccl (rank 0 can't open rank 1's: it is on another machine (host 1, not host 0))"},
		"hidden":       {oneMachine, 101, "nccl (rank 0 can't open rank 1's: looking for the GPU at , which this process may not see: CUDA error 101 ())"},
		"one process":  {nil, 0, "nccl (rank 0 can't open rank 1's: it is in the same process: only other processes' memory can be opened)"},
	} {
		for i, l := range layouts {
			t.Run(name+", "+l.file, func(t *testing.T) {
				n := newNode(t, library)
				n.between, n.self, n.hidden = runtime.AutoEngine, tc.self, tc.hidden
				want := tc.links
				if l.file != "dp2-zero0" { // others exchange in other ways, or between more ranks
					want = "nccl"
				}
				errs := n.onNode(t, i, bound, func(m member) error {
					if m.Links() != want {
						return fmt.Errorf("%q, not %q", m.Links(), want)
					}
					return m.steps(2)
				})
				require.NoError(t, errors.Join(errs...))
				require.Zero(t, n.stuck())
				require.Zero(t, n.mixed())
				require.Equal(t, want == "peer", n.log(0) == "", "what NCCL was asked: %s", n.log(0))
				for rank := range errs {
					require.Equal(t, n.log(0), n.log(int32(rank)), "rank %d", rank)
				}
			})
		}
	}
}

// A fault is none of the reasons to take NCCL.
func TestNodeWithoutMemory(t *testing.T) {
	n := newNode(t, standIn(t))
	n.between, n.memory = runtime.AutoEngine, 2
	for rank, err := range n.onNode(t, 0, bound, func(m member) error { return m.steps(1) }) {
		require.ErrorContains(t, err, "opening the memory of other GPUs", "rank %d", rank)
		require.ErrorContains(t, err, "CUDA error 2", "rank %d", rank)
	}
	require.Zero(t, n.stuck())
}
