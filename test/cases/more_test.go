package cases

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/runtime"
	"blutrain/runtime/device"
	"blutrain/runtime/ref"
	"blutrain/runtime/verify"
)

func intText(i int32) string { return strconv.Itoa(int(i)) }

// example compiles an example model.
func example(t testing.TB, name string, options driver.Options) *artifact.Artifact {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", name))
	require.NoError(t, err)
	r, err := driver.Compile(name, src, options)
	require.NoError(t, err)
	return r.Artifact
}

// verified compares every function of an artifact with the reference: every output and state within a relative bound, or within
// what roundings do to its terms where they cancel.
func verified(t testing.TB, a *artifact.Artifact, oracle *artifact.Artifact) {
	t.Helper()
	reference, err := ref.Open(oracle, runtime.Options{})
	require.NoError(t, err)
	rows, err := verify.Compare(open(t, a), reference, 1e-4, 5)
	require.NoError(t, err)
	for _, r := range rows {
		require.False(t, r.Off(), "%s: %s is off by %.2g of %.2g, more than %.2g, largest %.2g", r.Function, r.Name, r.Error.Error, r.Norm, r.Bound, r.Largest)
	}
}

// TestCase_OddSizes: nothing is a multiple of a block, GPT-2's vocabulary included; forward and every gradient.
func TestCase_OddSizes(t *testing.T) {
	for _, set := range []map[string]float64{
		{"V": 50257, "T": 5, "L": 1, "H": 1, "C": 2, "B": 1, "S": 3},
		{"V": 257, "T": 131, "L": 1, "H": 3, "C": 33, "B": 3, "S": 129},
		{"V": 2, "T": 1, "L": 1, "H": 1, "C": 1, "B": 1, "S": 1},
		{"V": 1, "T": 1, "L": 1, "H": 1, "C": 1, "B": 1, "S": 1},
		{"V": 1, "T": 7, "L": 1, "H": 1, "C": 4, "B": 2, "S": 7},
	} {
		a := example(t, "gpt2.blu", driver.Options{Target: "cpu", Set: set})
		verified(t, a, a)
	}
}

// TestCase_HugeTensor: sizes whose elements need more than 31 bits are addressed right, and sizes beyond 63 bits are refused.
func TestCase_HugeTensor(t *testing.T) {
	if testing.Short() {
		t.Skip("needs eight gigabytes of addresses")
	}
	const source = `
model m(N = 1073741825) {
  param w: f32[N, 2] = zeros
  fn rows(at: i32[B]) -> f32[B, 2] { return w[at] }
}
`
	compile := func(n float64) (*driver.Result, error) {
		return driver.Compile("case.blu", []byte(source), driver.Options{Target: "cpu", Set: map[string]float64{"B": 2, "N": n}})
	}
	r, err := compile(1<<30 + 1) // 2^31 + 2 elements
	require.NoError(t, err)
	p, err := device.Open(r.Artifact, "", runtime.Options{Threads: 1})
	if err != nil {
		require.ErrorContains(t, err, "out of memory: 8589934600 bytes")
		t.Skip(err)
	}
	defer p.Close()
	out, err := p.Call("rows", map[string]runtime.Array{"at": ints([]int32{0, 1 << 30}, 2)}, nil)
	require.NoError(t, err, "the last row is there")
	require.Equal(t, make([]float64, 4), value(out["rows"]))
	_, err = p.Call("rows", map[string]runtime.Array{"at": ints([]int32{0, 1<<30 + 1}, 2)}, nil)
	require.ErrorContains(t, err, "index 1073741825 at position 1 is out of range")

}

// TestCase_TooHugeTensor: what no machine can address is refused at its place in the source.
func TestCase_TooHugeTensor(t *testing.T) {
	const source = `
model m(N = 2, K = 2) {
  param w: f32[N, K] = zeros
  fn y(x: f32[B, K]) -> f32[B, N] { return linear(x, w) }
}
`
	for _, c := range []struct {
		n, k   float64
		reason string
	}{
		{1 << 30, 1 << 30, "case.blu:3:12: error: f32[N, K] has more bytes than 63 bits can count"},
		{1 << 50, 2, "case.blu:4:44: error: a matrix of 2251799813685248 elements is more than the target can address"},
	} {
		_, err := driver.Compile("case.blu", []byte(source), driver.Options{Target: "cpu", Set: map[string]float64{"B": 16, "N": c.n, "K": c.k}})
		require.ErrorContains(t, err, c.reason)
	}
}

// TestCase_SameBytesInEveryProcess: the same artifact from two processes, whose maps are in another order.
func TestCase_SameBytesInEveryProcess(t *testing.T) {
	const variable = "CASES_PRINT_HASH"
	hash := func() string {
		b, err := example(t, "llama.blu", driver.Options{Target: "cpu", Set: map[string]float64{"V": 19, "L": 2, "H": 2, "K": 1, "C": 8, "F": 12, "B": 1, "S": 5}}).Encode()
		require.NoError(t, err)
		return fmt.Sprintf("%x", sha256.Sum256(b))
	}
	if os.Getenv(variable) != "" {
		fmt.Println(hash())
		return
	}
	want := hash()
	require.Equal(t, want, hash())
	for range 2 {
		p := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		p.Env = append(os.Environ(), variable+"=1")
		out, err := p.Output()
		require.NoError(t, err)
		require.Contains(t, string(out), want)
	}
}

// TestCase_ShuffledOperations: whatever order independent operations come in, the artifact computes the same function.
func TestCase_ShuffledOperations(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	set := map[string]float64{"V": 19, "T": 9, "L": 2, "H": 2, "C": 8, "B": 2, "S": 9}
	oracle := example(t, "gpt2.blu", driver.Options{Target: "ref", Set: set})
	var hashes []string
	for seed := range seeds {
		o := driver.Options{Target: "cpu", Set: set}
		o.Passes.Shuffle, o.Passes.Seed = true, seed
		a := example(t, "gpt2.blu", o)
		verified(t, a, oracle)
		_, err := a.Encode()
		require.NoError(t, err)
		hashes = append(hashes, a.Hash)
	}
	slices.Sort(hashes)
	require.Greater(t, len(slices.Compact(hashes)), 1, "the order was another")
}
