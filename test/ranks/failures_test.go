package ranks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/device"
	"blutrain/runtime/ranks"
)

// rows picks rows of a table, which fails for an index out of range, while a sum is under way, and then sums what it picked.
const picks = `
  blu.state @s {persist = false, role = "accumulator", type = tensor<4xf32>}
  func.func @f(%s: tensor<4xf32> {blu.state = @s}, %x: tensor<4xf32> {blu.input = "x"}, %i: tensor<2xi32> {blu.input = "i"}, %t: tensor<3x4xf32> {blu.input = "t"})
      -> (tensor<4xf32> {blu.state = @s}, tensor<2x4xf32> {blu.output = "y"}) {
    %f = dtms.start %x {group = "world", op = "all_reduce"} : (tensor<4xf32>) -> tensor<4xf32>
    %p = blu.gather %t, %i : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
    %e = blu.exp %p : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %w = dtms.wait %f, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %y = dtms.all_reduce %e {group = "world"} : (tensor<2x4xf32>) -> tensor<2x4xf32>
    func.return %w, %y : (tensor<4xf32>, tensor<2x4xf32>) -> ()
  }
  func.func @g(%x: tensor<5xf32> {blu.input = "x"}) -> (tensor<5xf32> {blu.output = "y"}) {
    %y = dtms.all_reduce %x {group = "world"} : (tensor<5xf32>) -> tensor<5xf32>
    func.return %y : (tensor<5xf32>) -> ()
  }
}
`

func pick(r *ranks.Rank, index int32) error {
	in := map[string]runtime.Array{
		"x": array(make([]float32, 4), 4), "i": runtime.Array(formats.FromInt32s([]int32{0, index}, 2)), "t": array(make([]float32, 12), 3, 4),
	}
	_, err := r.Call("f", in, nil)
	return err
}

// everyError runs f as each of three ranks and gives every rank's error.
func everyError(t *testing.T, target string, f func(ctx context.Context, r *ranks.Rank) error) []error {
	t.Helper()
	a := compile(t, target, 0, 1, picks)
	errs := make([]error, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for i, world := range local.New(3) {
		all.Go(func() {
			mesh, err := dtms.NewMesh(ctx, world, 0, 1)
			if err == nil {
				var p runtime.Program
				mine, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				if p, err = device.Open(a, "", runtime.Options{Threads: 1, Guard: true, Mesh: mesh, Context: mine}); err == nil {
					err = errors.Join(f(context.WithValue(mine, stopKey{}, cancel), &ranks.Rank{Program: p, Mesh: mesh}), p.Close())
				}
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errs
}

type stopKey struct{}

// A kernel that fails on one rank ends the call on all: each says which rank, and why, and its own collective.
func TestAFailedKernel(t *testing.T) {
	for _, target := range targets {
		begun := time.Now()
		errs := everyError(t, target, func(_ context.Context, r *ranks.Rank) error {
			if err := pick(r, 1); err != nil {
				return err
			}
			return pick(r, int32(2+7*(r.Mesh.Rank()%2))) // 9 on rank 1
		})
		require.ErrorContains(t, errs[1], "rank 1: f: ")
		require.ErrorContains(t, errs[1], "index 9")
		for _, r := range []int{0, 2} {
			require.ErrorContains(t, errs[r], "rank "+string(rune('0'+r))+": f: ", target)
			require.ErrorContains(t, errs[r], "over world): ", target)
			require.ErrorContains(t, errs[r], "rank 1 gave up: ", target)
			require.ErrorContains(t, errs[r], "index 9", target)
			require.Len(t, dtms.Faults(errs[r]), 1)
			require.Equal(t, 1, dtms.Faults(errs[r])[0].Rank)
		}
		require.Less(t, time.Since(begun), 10*time.Second)
	}
}

// A rank that stops is named by the others; one that leaves, too.
func TestCanceled(t *testing.T) {
	for _, target := range targets {
		errs := everyError(t, target, func(ctx context.Context, r *ranks.Rank) error {
			if r.Mesh.Rank() == 2 {
				return nil // never comes
			}
			if r.Mesh.Rank() == 0 {
				stop := ctx.Value(stopKey{}).(context.CancelCauseFunc)
				time.AfterFunc(100*time.Millisecond, func() { stop(errors.New("someone pressed a key")) })
			}
			return pick(r, 1)
		})
		require.ErrorContains(t, errs[0], "someone pressed a key")
		require.ErrorContains(t, errs[1], "rank 0 gave up: someone pressed a key")
		require.NoError(t, errs[2])
	}
}

// Ranks that call different functions are told so.
func TestDifferentFunctions(t *testing.T) {
	for _, target := range targets {
		errs := everyError(t, target, func(_ context.Context, r *ranks.Rank) error {
			if r.Mesh.Rank() != 1 {
				return pick(r, 1)
			}
			_, err := r.Call("g", map[string]runtime.Array{"x": array(make([]float32, 5), 5)}, nil)
			return err
		})
		for _, err := range errs {
			require.ErrorContains(t, err, "rank 1 called all-reduce of 5 f", target)
		}
	}
}

// A program runs on the mesh it was compiled for, and says how it wants to be started.
func TestOtherMeshes(t *testing.T) {
	alone := compile(t, "cpu", 2, 2, ring[:0]+"}\n")
	_, err := device.Open(alone, "", runtime.Options{})
	require.EqualError(t, err, "the program was compiled for a mesh of dp = 2, cp = 2: start 4 ranks of it, with --nproc-per-node 4 or with a launcher such as mpiexec or torchrun")
	err = run(t, alone, 4, 1, func(*ranks.Rank) error { return nil })
	require.ErrorContains(t, err, "compiled for a mesh of dp = 2, cp = 2, and is opened on one of dp = 4, cp = 1")

	_, err = device.Open(compile(t, "cpu", 0, 2, ring[:0]+"}\n"), "", runtime.Options{})
	require.EqualError(t, err, "the program was compiled for a mesh of dp = any, cp = 2: start 2 ranks of it or a multiple of that, with --nproc-per-node 2 or with a launcher such as mpiexec or torchrun")

	any := compile(t, "cpu", 0, 1, sums)
	p, err := device.Open(any, "", runtime.Options{}) // as the only rank
	require.NoError(t, err)
	out, err := p.Call("f", map[string]runtime.Array{"x": array(make([]float32, 35), 5, 7), "y": array(make([]float32, 3), 3)}, nil)
	require.NoError(t, err)
	require.Equal(t, float32(2), floats(out["total"])[0])
	require.NoError(t, p.Close())

	one := *any
	one.Manifest.Mesh = nil
	err = run(t, &one, 2, 1, func(*ranks.Rank) error { return nil })
	require.ErrorContains(t, err, "the program was compiled for one rank and is opened on 2: compile it with bluc compile --mesh dp")
}
