// Package ranks shows compiled programs on several ranks, which are goroutines here: on the CPU and on the reference, against numbers
// computed by hand.
package ranks

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/runtime/ranks"
)

var targets = []string{"cpu", "ref"}

func compile(t *testing.T, target string, dp, cp int, text string) *artifact.Artifact {
	t.Helper()
	r, err := driver.Compile("m.mlir", []byte(fmt.Sprintf(head, cp, dp)+text), driver.Options{Target: target})
	require.NoError(t, err)
	return r.Artifact
}

// run calls f on each of a program's ranks within half a minute.
func run(t *testing.T, a *artifact.Artifact, dp, cp int, f func(r *ranks.Rank) error) error {
	t.Helper()
	return runThreads(t, a, dp, cp, 1, f)
}

func runThreads(t *testing.T, a *artifact.Artifact, dp, cp, threads int, f func(r *ranks.Rank) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return ranks.Run(ctx, a, "", dp, cp, runtime.Options{Threads: threads, Poison: true, Guard: true}, f)
}

func numbers(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func array(x []float32, shape ...int64) runtime.Array {
	return runtime.Array(formats.FromFloat32s(x, shape...))
}

func floats(a runtime.Array) []float32 { return formats.Tensor(a).Float32s() }

func state(r *ranks.Rank, name string) ([]float32, error) {
	s, _ := r.Manifest().State(name)
	b := make([]byte, s.Bytes())
	err := r.ReadState(name, b)
	return floats(runtime.Array{DType: s.DType, Shape: s.Shape, Data: b}), err
}

// near compares with float64 numbers, to a few roundings.
func near(what string, got []float32, want func(i int) float64) error {
	for i, v := range got {
		if w := want(i); math.Abs(float64(v)-w) > 1e-5*(1+math.Abs(w)) {
			return fmt.Errorf("%s: element %d is %v, %v expected", what, i, v, w)
		}
	}
	return nil
}

// Sums are those of all ranks, while what is computed meanwhile is its own.
func TestSums(t *testing.T) {
	for _, target := range targets {
		for _, dp := range []int{1, 2, 3} {
			a := compile(t, target, 0, 1, sums)
			require.NoError(t, run(t, a, dp, 1, func(r *ranks.Rank) error {
				me := r.Mesh.Rank()
				total := func(f func(rank int) float64) (sum float64) {
					for p := range dp {
						sum += f(p)
					}
					return sum
				}
				x := func(rank int) []float32 { return numbers(uint64(rank), 35) }
				y := func(rank int) []float32 { return numbers(uint64(100+rank), 3) }
				grads := make([]float64, 35) // as the calls before left them
				for call := range 3 {
					out, err := r.Call("f", map[string]runtime.Array{"x": array(x(me), 5, 7), "y": array(y(me), 3)}, nil)
					if err != nil {
						return err
					}
					for i := range grads {
						grads[i] = total(func(p int) float64 { return grads[i] + float64(x(p)[i]) })
					}
					ga, err := state(r, "grads/a")
					if err != nil {
						return err
					}
					square := func(rank, i int) float64 { return float64(x(rank)[i]) * float64(x(rank)[i]) }
					for _, err := range []error{
						near("grads/a", ga, func(i int) float64 { return grads[i] }),
						near("square", floats(out["square"]), func(i int) float64 { return grads[i] * square(me, i) }),
						near("total", floats(out["total"]), func(i int) float64 {
							i = i%5*7 + i/5
							return total(func(p int) float64 { return math.Exp(square(p, i)) }) + math.Exp(square(me, i))
						}),
					} {
						if err != nil {
							return fmt.Errorf("%s, rank %d of %d, call %d: %w", target, me, dp, call, err)
						}
					}
				}
				gb, err := state(r, "grads/b")
				if err != nil {
					return err
				}
				// s -> dp s + sum(y), three times
				return near("grads/b", gb, func(i int) float64 {
					n, sum := float64(dp), total(func(p int) float64 { return float64(y(p)[i]) })
					return sum * (1 + n + n*n)
				})
			}))
		}
	}
}

// A gradient that is scattered, added to a piece and gathered again is that of all ranks, where the ranks divide it and where not.
func TestShards(t *testing.T) {
	for _, target := range targets {
		a := compile(t, target, 2, 1, shards)
		m := a.Manifest
		require.Equal(t, &artifact.Mesh{DP: 2, CP: 1, Context: "ring"}, m.Mesh)
		s, _ := m.State("m")
		require.Equal(t, &artifact.Shard{Group: "world", Ranks: 2, Shape: []int64{3, 5}}, s.Shard)
		require.Equal(t, []artifact.Collective{
			{Op: "reduce_scatter", Group: "world", DType: formats.F32, Elements: 28, Sent: 56},
			{Op: "all_gather", Group: "world", DType: formats.F32, Elements: 14, Sent: 56},
		}, m.Functions[0].Collectives)
		require.NoError(t, run(t, a, 2, 1, func(r *ranks.Rank) error {
			me := r.Mesh.Rank()
			g := func(rank int) []float32 { return numbers(uint64(rank), 15) }
			h := func(rank int) []float32 { return numbers(uint64(rank+50), 12) }
			for call := range 2 {
				out, err := r.Call("f", map[string]runtime.Array{"g": array(g(me), 3, 5), "h": array(h(me), 3, 4)}, nil)
				if err != nil {
					return err
				}
				if rank := formats.Tensor(out["rank"]).Float64s()[0]; rank != float64(me) {
					return fmt.Errorf("the program takes rank %d for rank %v", me, rank)
				}
				p, err := state(r, "p")
				if err != nil {
					return err
				}
				q, err := state(r, "q")
				if err != nil {
					return err
				}
				mine, err := state(r, "m")
				if err != nil {
					return err
				}
				sum := func(i int) float64 { return float64(call+1) * (float64(g(0)[i]) + float64(g(1)[i])) }
				for _, err := range []error{
					near("p", p, sum),
					near("q", q, func(i int) float64 { return -float64(h(0)[i]) - float64(h(1)[i]) }),
					near("m", mine, func(i int) float64 {
						if i += 8 * me; i < 15 {
							return sum(i)
						}
						return 0
					}),
				} {
					if err != nil {
						return fmt.Errorf("%s, rank %d, call %d: %w", target, me, call, err)
					}
				}
			}
			return nil
		}))
	}
}

// Values go around the ranks of a sequence, of each of which there are several.
func TestRing(t *testing.T) {
	for _, target := range targets {
		a := compile(t, target, 0, 2, ring)
		for _, dp := range []int{1, 2} {
			require.NoError(t, run(t, a, dp, 2, func(r *ranks.Rank) error {
				me, row := r.Mesh.CPRank(), r.Mesh.DPRank()
				x := func(cp int) []float32 { return numbers(uint64(10*row+cp), 24) }
				out, err := r.Call("f", map[string]runtime.Array{"x": array(x(me), 4, 6)}, nil)
				if err != nil {
					return err
				}
				other := func(i int) float64 { return math.Exp(float64(x(1 - me)[i])) - float64(x(me)[i]) }
				own := func(i int) float64 { return math.Exp(float64(x(me)[i])) - float64(x(1 - me)[i]) }
				if err := near(target+": y", floats(out["y"]), other); err != nil {
					return err
				}
				if rank := formats.Tensor(out["rank"]).Float64s()[0]; rank != float64(me) {
					return fmt.Errorf("the program takes place %d for %v", me, rank)
				}
				return near(target+": z", floats(out["z"]), func(i int) float64 { // row j of z is from rank j: its block me
					from := own
					if i/6 != me {
						from = other
					}
					return from(12*me + i%6)
				})
			}))
		}
	}
}

// The same call gives the same bits, whatever arrives first.
func TestSameBits(t *testing.T) {
	for _, target := range targets {
		a := compile(t, target, 0, 1, sums)
		var mu sync.Mutex
		var first [3][]byte
		for range 4 {
			require.NoError(t, run(t, a, 3, 1, func(r *ranks.Rank) error {
				me := r.Mesh.Rank()
				out, err := r.Call("f", map[string]runtime.Array{"x": array(numbers(uint64(me), 35), 5, 7), "y": array(numbers(9, 3), 3)}, nil)
				if err != nil {
					return err
				}
				ga := make([]byte, 140)
				if err := r.ReadState("grads/a", ga); err != nil {
					return err
				}
				got := bytes.Join([][]byte{ga, out["square"].Data, out["total"].Data}, nil)
				mu.Lock()
				defer mu.Unlock()
				if first[me] == nil {
					first[me] = got
				} else if !bytes.Equal(first[me], got) {
					return fmt.Errorf("rank %d has other bits", me)
				}
				return nil
			}))
		}
	}
}
