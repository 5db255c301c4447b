package cuda

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dtms"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/collective"
)

// machine is a driver that writes down what streams are given, and an engine that writes down what it is asked.
type machine struct {
	log    []string
	stuck  int // looks at a stream until its work has ended
	graphs uintptr
	events uintptr
	fail   string // the collective that fails
	gaveUp error
}

func (m *machine) note(format string, args ...any) result {
	m.log = append(m.log, fmt.Sprintf(format, args...))
	return 0
}

func (m *machine) driver() *Driver {
	d := &Driver{}
	d.fn.CtxSetCurrent = func(uintptr) result { return 0 }
	d.fn.StreamSynchronize = func(s uintptr) result { return m.note("wait for stream %d", s) }
	d.fn.StreamWaitEvent = func(s, e uintptr, _ uint32) result { return m.note("stream %d after event %d", s, e) }
	d.fn.StreamQuery = func(uintptr) result {
		if m.stuck--; m.stuck >= 0 {
			return notReady
		}
		return 0
	}
	d.fn.EventCreate = func(e *uintptr, _ uint32) result { m.events++; *e = m.events; return 0 }
	d.fn.EventRecord = func(e, s uintptr) result { return m.note("event %d on stream %d", e, s) }
	d.fn.EventDestroy = func(uintptr) result { return 0 }
	d.fn.BeginCapture = func(uintptr, int32) result { return 0 }
	d.fn.EndCapture = func(_ uintptr, g *uintptr) result { m.graphs++; *g = m.graphs; return 0 }
	d.fn.GraphInstantiate = func(exec *uintptr, g uintptr, _ uint64) result { *exec = g; return 0 }
	d.fn.GraphLaunch = func(g, s uintptr) result { return m.note("graph %d on stream %d", g, s) }
	d.fn.MemcpyDtoDAsync = func(to, from, bytes uint64, s uintptr) result {
		return m.note("copy %d bytes from %d to %d on stream %d", bytes, from, to, s)
	}
	d.fn.LaunchKernelEx = func(c *launchConfig, f uintptr, _ *unsafe.Pointer, _ uintptr) result { return m.note("kernel %d", f) }
	return d
}

func (m *machine) Rank() int           { return 1 }
func (m *machine) Size() int           { return 2 }
func (m *machine) WorldRank(r int) int { return r }
func (m *machine) Err() error          { return nil }
func (m *machine) Close() error        { return nil }
func (m *machine) Abort(reason error)  { m.gaveUp = reason }
func (m *machine) Traffic() (t dtms.Traffic) {
	return t
}
func (m *machine) Announce(context.Context, dtms.Call) dtms.Pending { panic("not here") }
func (m *machine) Split(context.Context, time.Time, int, int) (dtms.Engine, error) {
	panic("not here")
}

type flight struct {
	m    *machine
	what string
}

func (m *machine) Start(_ context.Context, c dtms.Call) dtms.Pending {
	m.note("%s at %d to %d on stream %d", c.Describe(), c.In.Address(), c.Out.Address(), c.Stream)
	return flight{m, c.Describe()}
}

func (f flight) Wait() error {
	f.m.note("ended %s", f.what)
	if f.what == f.m.fail {
		return errors.New("rank 0 died")
	}
	return nil
}

const meetings = `builtin.module {
  exec.func @f attributes {arena = 4096 : i64} {
    %a = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<64xf32>
    %b = exec.ref {offset = 256 : i64, space = "arena"} : () -> memref<32xf32>
    %c = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<8xf32>
    %d = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<8xf32>
    exec.collective %a, %a {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<64xf32>, memref<64xf32>) -> ()
    exec.collective %c, %d {group = "cp", id = 1 : i64, op = "permute", ranks = 1 : i64, shift = 0 : i64} : (memref<8xf32>, memref<8xf32>) -> ()
    exec.wait {id = 0 : i64}
    exec.wait {id = 1 : i64}
    exec.collective %a, %b {group = "world", id = 2 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<64xf32>, memref<32xf32>) -> ()
    exec.wait {id = 2 : i64}
    exec.end
  }
}
`

// program opens the module on a machine, with kernels put between its steps.
func (m *machine) program(t *testing.T) (*program, *function) {
	t.Helper()
	c := dialects.NewContext()
	module, err := ir.Parse(c, "meetings.mlir", []byte(meetings))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, module))
	ctx := &Context{d: m.driver(), Device: &Device{}}
	world := dtms.New(m)
	alone := dtms.New(single{m})
	p := &program{
		manifest: &artifact.Manifest{Functions: []artifact.Function{{Name: "f"}}}, ctx: ctx, stream: &Stream{ctx, 1}, arena: 1 << 20,
		options: runtime.Options{Mesh: &dtms.Mesh{World: world, DP: world, CP: alone}, Between: runtime.NCCLEngine},
		network: &network{comms: map[line]*dtms.Communicator{{group: "world"}: world}, stream: &Stream{ctx, 2}, before: &Event{ctx, 99}},
	}
	f, err := p.decodeFunction(ir.LookupSymbol(module, "f"))
	require.NoError(t, err)
	kernel := func(n uintptr) step {
		return step{kernel: &kernel{blocks: 1, threads: 32, code: &Function{handle: n}}, params: [][]any{nil}}
	}
	s := f.steps
	f.steps = []step{kernel(1), s[0], kernel(2), s[1], s[2], kernel(3), kernel(4), s[3], s[4], s[5]}
	f.status, f.ready = &pinned{}, true
	p.functions = map[string]*function{"f": f}
	return p, f
}

// single is the group of one rank.
type single struct{ *machine }

func (single) Rank() int { return 0 }
func (single) Size() int { return 1 }

// A collective begins after what the kernels' stream has been given, and what waits for it comes after it; the rest is graphs. On the
// only rank of a group it is a copy.
func TestCollectivesBesideKernels(t *testing.T) {
	m := &machine{}
	p, _ := m.program(t)
	want := []string{
		"graph 1 on stream 1",
		"event 99 on stream 1", "stream 2 after event 99", "all-reduce of 64 f32 at 1048576 to 1048576 on stream 2", "event 1 on stream 2",
		"graph 2 on stream 1",
		"event 99 on stream 1", "stream 2 after event 99", "copy 32 bytes from 1049088 to 1049600 on stream 2", "event 2 on stream 2",
		"stream 1 after event 1",
		"graph 3 on stream 1",
		"stream 1 after event 2",
		"event 99 on stream 1", "stream 2 after event 99", "reduce-scatter of 32 f32 at 1048576 to 1048832 on stream 2", "event 3 on stream 2",
		"stream 1 after event 3",
		"graph 4 on stream 1",
		"ended all-reduce of 64 f32", "ended reduce-scatter of 32 f32", "wait for stream 1",
	}
	for call := range 3 {
		m.log = nil
		_, err := p.Call("f", nil, nil)
		require.NoError(t, err)
		if call == 0 { // while graphs are recorded
			require.Equal(t, []string{"kernel 1", "kernel 2", "kernel 3", "kernel 4"}, m.log[:4])
			m.log = m.log[4:]
		}
		require.Equal(t, want, m.log)
	}
	require.EqualValues(t, 4, m.graphs, "recorded once")
}

// A collective that fails is named, with the rank and the function; the others are waited for, and end.
func TestCollectivesFail(t *testing.T) {
	m := &machine{fail: "all-reduce of 64 f32"}
	p, f := m.program(t)
	_, err := p.Call("f", nil, nil)
	require.EqualError(t, err, "rank 1: f: collective 0 (all_reduce over world): rank 0 died")
	require.ErrorContains(t, m.gaveUp, "rank 0 died")
	require.Contains(t, m.log, "ended reduce-scatter of 32 f32")
	require.Empty(t, f.flying)
}

// Traced, they are steps of their own.
func TestCollectivesTraced(t *testing.T) {
	m := &machine{}
	p, _ := m.program(t)
	var steps []string
	_, err := p.Trace("f", nil, nil, func(s *runtime.Step, run func() error) error {
		if s.Collective == nil {
			steps = append(steps, "kernel")
			return run()
		}
		err := run()
		steps = append(steps, fmt.Sprintf("%s over %s: %d bytes, waits %v", s.Collective.Op, s.Collective.Group, s.Collective.Bytes, s.Collective.Waits))
		require.Equal(t, s.Collective.Waits, !s.Collective.Ended.IsZero())
		return err
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"kernel", "all_reduce over world: 256 bytes, waits false", "kernel", "permute over cp: 32 bytes, waits false", "all_reduce over world: 256 bytes, waits true",
		"kernel", "kernel", "permute over cp: 32 bytes, waits true", "reduce_scatter over world: 256 bytes, waits false", "reduce_scatter over world: 256 bytes, waits true",
	}, steps)
}

func TestStreamIsDone(t *testing.T) {
	m := &machine{stuck: 2}
	c := &Context{d: m.driver(), Device: &Device{}}
	for _, want := range []bool{false, false, true} {
		done, err := c.Done(7)
		require.NoError(t, err)
		require.Equal(t, want, done)
	}
	release, err := c.Bind()
	require.NoError(t, err)
	release()
}

// Functions are cut at their collectives, and nowhere else.
func TestCut(t *testing.T) {
	k, b, w := step{kernel: &kernel{}}, step{begin: &meeting{spec: collective.Spec{}}}, step{wait: &meeting{}}
	for _, c := range []struct {
		steps []step
		want  []span
	}{
		{nil, []span{{0, 0, false}}},
		{[]step{k, k}, []span{{0, 2, false}}},
		{[]step{b, w}, []span{{0, 0, false}, {0, 1, true}, {1, 2, true}, {2, 2, false}}},
		{[]step{k, b, k, k, w, k}, []span{{0, 1, false}, {1, 2, true}, {2, 4, false}, {4, 5, true}, {5, 6, false}}},
	} {
		require.Equal(t, c.want, cut(c.steps))
	}
}

// named is the communicator of a group, which writes down when it is closed.
type named struct {
	*machine
	group string
}

func (n named) Close() error { n.note("close %s", n.group); return nil }

// What several ranks exchange is no copy because nothing connects them.
func TestCollectivesAreConnected(t *testing.T) {
	m := &machine{}
	p, _ := m.program(t)
	p.options.Between = runtime.PeerEngine
	_, err := p.Call("f", nil, nil)
	require.ErrorContains(t, err, "collective 0 (all_reduce over world): its 2 ranks were not connected")
}

// NCCL's communicators are ended in one order on all ranks, whatever the order of a map: else ranks wait for each other.
func TestCommunicatorsEndInOneOrder(t *testing.T) {
	for range 100 {
		m := &machine{}
		n := &network{comms: map[line]*dtms.Communicator{}}
		for _, group := range []string{"cp", "world", "dp"} {
			n.comms[line{group: group}] = dtms.New(named{m, group})
		}
		require.NoError(t, n.close())
		require.Equal(t, []string{"close world", "close dp", "close cp"}, m.log)
	}
}
