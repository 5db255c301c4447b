package nccl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/formats"
	"blutrain/internal/upstream"
)

func TestNoLibrary(t *testing.T) {
	_, err := Connect(context.Background(), Config{Library: "libnowhere.so.2", Control: local.New(1)[0]})
	require.ErrorContains(t, err, "NCCL can't be loaded (tried libnowhere.so.2; BLUTRAIN_NCCL_LIBRARY names another file)")
	_, err = Connect(context.Background(), Config{Library: "libc.so.6", Control: local.New(1)[0]})
	require.ErrorContains(t, err, "libc.so.6 is not NCCL")
	t.Setenv(LibraryVariable, "libelsewhere.so.2")
	_, err = Connect(context.Background(), Config{Control: local.New(1)[0]})
	require.ErrorContains(t, err, "NCCL can't be loaded (tried libelsewhere.so.2;")
}

// TestEnvironment holds that what Go sets in the environment is what C libraries see.
func TestEnvironment(t *testing.T) {
	t.Setenv("BLUTRAIN_TEST_VARIABLE", "seen")
	c, err := purego.Dlopen("libc.so.6", purego.RTLD_NOW)
	require.NoError(t, err)
	var getenv func(string) string
	purego.RegisterLibFunc(&getenv, c, "getenv")
	require.Equal(t, "seen", getenv("BLUTRAIN_TEST_VARIABLE"))
}

// fake builds the stand-in for NCCL.
func fake(t *testing.T) string {
	t.Helper()
	compiler, err := exec.LookPath("gcc")
	if err != nil {
		if os.Getenv(upstream.RequireVariable) == "1" {
			t.Fatalf("gcc is not installed; %s=1 requires it", upstream.RequireVariable)
		}
		t.Skip("gcc, which builds the stand-in for NCCL, is not installed")
	}
	path := filepath.Join(t.TempDir(), "libfakenccl.so")
	out, err := exec.Command(compiler, "-shared", "-fPIC", "-o", path, "testdata/fake.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// device is a GPU whose memory is the process's and whose stream 77 is done after two looks, unless it is stuck.
type device struct {
	mu    sync.Mutex
	looks int
	stuck bool
}

func (d *device) Bind() (func(), error) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread, nil
}

func (d *device) Done(s dtms.Stream) (bool, error) {
	if s != 77 {
		return false, errors.New("another stream")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.looks++
	return d.looks%3 == 0 && !d.stuck, nil
}

// kept holds what calls were given the address of: addresses don't keep memory where it is, and stacks move.
var kept sync.Map

func on[T any](s []T, d formats.DType) dtms.Memory {
	kept.Store(unsafe.SliceData(s), nil)
	return dtms.Device(d, uintptr(unsafe.Pointer(unsafe.SliceData(s))), int64(len(s)))
}

// pair connects two ranks and runs f as each.
func pair(t *testing.T, d *device, f func(ctx context.Context, c *dtms.Communicator) error) []error {
	t.Helper()
	path := fake(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	errs := make([]error, 2)
	var all sync.WaitGroup
	for r, control := range local.New(2) {
		all.Go(func() {
			c, err := Connect(ctx, Config{Library: path, Control: control, Device: d})
			if err == nil {
				err = errors.Join(f(ctx, c.WithDeadline(2*time.Second)), c.Close())
			}
			errs[r] = err
		})
	}
	all.Wait()
	return errs
}

func TestCalls(t *testing.T) {
	errs := pair(t, &device{}, func(ctx context.Context, c *dtms.Communicator) error {
		r := c.Rank()
		run := func(call dtms.Call) error {
			call.Stream = 77
			return c.Start(ctx, call).Wait()
		}
		in, out, whole := []float32{1, 2, 3}, make([]float32, 3), make([]float32, 6)
		half := []uint16{9, 8, 7, 6}
		block, copied, turned := make([]uint16, 2), make([]uint16, 4), make([]float32, 3)
		err := errors.Join(
			run(dtms.Call{Op: dtms.AllReduce, In: on(in, formats.F32), Out: on(out, formats.F32)}),
			run(dtms.Call{Op: dtms.AllGather, In: on(in, formats.F32), Out: on(whole, formats.F32)}),
			run(dtms.Call{Op: dtms.ReduceScatter, In: on(half, formats.BF16), Out: on(block, formats.BF16)}),
			run(dtms.Call{Op: dtms.Broadcast, Out: on(in, formats.F32), Peer: 1}),
			run(dtms.Call{Op: dtms.AllToAll, In: on(half, formats.BF16), Out: on(copied, formats.BF16)}),
			run(dtms.Call{Op: dtms.Permute, In: on(in, formats.F32), Out: on(turned, formats.F32)}),
			run(dtms.Call{Op: dtms.Permute, In: on(in, formats.F32), Out: on(make([]float32, 3), formats.F32), Peer: 1}),
			run(dtms.Call{Op: dtms.Barrier}),
			run(dtms.Call{Op: dtms.Send, In: on(in, formats.F32), Peer: 1 - r}),
			run(dtms.Call{Op: dtms.Recv, Out: on(make([]float32, 3), formats.F32), Peer: 1 - r}),
		)
		if err != nil {
			return err
		}
		if out[2] != 3 || whole[3*r+1] != 2 || block[1] != half[2*r+1] || copied[2*r+1] != half[2*r+1] || turned[2] != in[2] {
			return errors.New("the calls got other memory than they were given")
		}
		a, b := []float32{5, 6}, []float32{7}
		sums, others := make([]float32, 2), make([]float32, 1)
		err = c.StartAll(ctx, []dtms.Call{
			{Op: dtms.AllReduce, In: on(a, formats.F32), Out: on(sums, formats.F32), Stream: 77},
			{Op: dtms.AllReduce, In: on(b, formats.F32), Out: on(others, formats.F32), Stream: 77},
		}).Wait()
		if err != nil || sums[1] != 6 || others[0] != 7 {
			return fmt.Errorf("a bundle of sums gives %v, %v, %w", sums, others, err)
		}
		wide, part := make([]float32, 8), make([]float32, 4)
		if err := c.StartAll(ctx, []dtms.Call{
			{Op: dtms.ReduceScatter, In: on(wide, formats.F32), Out: on(part, formats.F32), Stream: 77},
			{Op: dtms.ReduceScatter, In: on(wide[:4], formats.F32), Out: on(part[:2], formats.F32), Stream: 77},
		}).Wait(); err != nil {
			return err
		}
		sub, err := c.Split(ctx, r, 0)
		if err != nil {
			return err
		}
		if sub.Size() != 1 || sub.WorldRank(0) != r {
			return errors.New("split made another group")
		}
		if nobody, err := c.Split(ctx, -1, 0); nobody != nil || err != nil {
			return errors.New("split made a group where none was wanted")
		}
		volume := c.Traffic().Of(dtms.AllReduce)
		if volume != (dtms.Volume{Calls: 3, Sent: 24, Received: 24}) {
			return errors.New("wrong count of bytes")
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, "0", os.Getenv("NCCL_NVLS_ENABLE"))
}

func TestRefusals(t *testing.T) {
	errs := pair(t, &device{}, func(ctx context.Context, c *dtms.Communicator) error {
		host := dtms.Of([]float32{1})
		if err := c.AllReduce(ctx, host, host); err == nil {
			return errors.New("host memory was taken")
		}
		m := on([]uint16{1}, formats.U16)
		if err := c.Start(ctx, dtms.Call{Op: dtms.Broadcast, Out: m, Stream: 77}).Wait(); err == nil {
			return errors.New("u16 was taken")
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
}

// TestFailures holds that what goes wrong in NCCL, on a device or on a rank ends all ranks with a rank's number.
func TestFailures(t *testing.T) {
	reduce := func(ctx context.Context, c *dtms.Communicator, count int) error {
		m := on(make([]float32, count), formats.F32)
		return c.Start(ctx, dtms.Call{Op: dtms.AllReduce, In: m, Out: m, Stream: 77}).Wait()
	}
	for name, tc := range map[string]struct {
		stuck bool
		run   func(ctx context.Context, c *dtms.Communicator) error
		fault dtms.Fault
		text  string
	}{
		"NCCL": {true, func(ctx context.Context, c *dtms.Communicator) error { return reduce(ctx, c, 13) }, dtms.Failed, "remote process exited: the cable was cut"},
		"another bundle": {true, func(ctx context.Context, c *dtms.Communicator) error {
			m, n := on(make([]float32, 2), formats.F32), on(make([]float32, 1+c.Rank()), formats.F32)
			return c.StartAll(ctx, []dtms.Call{{Op: dtms.AllReduce, In: m, Out: m, Stream: 77}, {Op: dtms.AllReduce, In: n, Out: n, Stream: 77}}).Wait()
		}, dtms.Mismatched, "rank 1 called all-reduce of 4 f32"},
		"another call": {true, func(ctx context.Context, c *dtms.Communicator) error { return reduce(ctx, c, 4+c.Rank()) },
			dtms.Mismatched, "rank 1 called all-reduce of 5 f32"},
		"late": {true, func(ctx context.Context, c *dtms.Communicator) error {
			if c.Rank() == 1 {
				time.Sleep(3 * time.Second)
			}
			return reduce(ctx, c, 4)
		}, dtms.Late, "rank 1 is late"},
		"stuck": {true, func(ctx context.Context, c *dtms.Communicator) error { return reduce(ctx, c, 4) }, dtms.Failed, "the device has not ended it"},
	} {
		t.Run(name, func(t *testing.T) {
			for r, err := range pair(t, &device{stuck: tc.stuck}, tc.run) {
				require.ErrorContains(t, err, tc.text, "rank %d", r)
				faults := dtms.Faults(err)
				require.Len(t, faults, 1, "rank %d: %v", r, err)
				require.Equal(t, tc.fault, faults[0].Fault)
				if name != "stuck" { // where the first to lose patience is at fault
					require.Equal(t, 1, faults[0].Rank)
				}
			}
		})
	}
}

// A communicator that can't be finalized is aborted, and the others hear which rank's it was.
func TestFailsAtTheEnd(t *testing.T) {
	errs := pair(t, &device{}, func(ctx context.Context, c *dtms.Communicator) error {
		m := on(make([]float32, 14), formats.F32)
		return c.Start(ctx, dtms.Call{Op: dtms.AllReduce, In: m, Out: m, Stream: 77}).Wait()
	})
	require.ErrorContains(t, errs[1], "ncclCommFinalize")
	faults := dtms.Faults(errs[1])
	require.Len(t, faults, 1, "%v", errs[1])
	require.Equal(t, 1, faults[0].Rank)
}
