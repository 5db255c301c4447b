package inspect_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/ir"
	"blutrain/lower/inspect"
)

func compiled(t *testing.T, target string, sizes map[string]float64) (*artifact.Artifact, *ir.Op) {
	t.Helper()
	src, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	r, err := driver.Compile("dir/gpt2.blu", src, driver.Options{Target: target, Recompute: "none", Set: sizes})
	require.NoError(t, err)
	return r.Artifact, r.Module
}

var small = map[string]float64{"L": 3, "H": 2, "C": 32, "V": 64, "T": 16, "B": 2, "S": 16}

// What is found in the program agrees with what the phases that made it knew: the bytes in use at the peak, as the buffers
// phase counted them, and the work of each function, as counted before it was cut into kernels.
func TestAgainstThePhases(t *testing.T) {
	for name, sizes := range map[string]map[string]float64{"small": small, "124M": nil} {
		t.Run(name, func(t *testing.T) {
			a, program := compiled(t, "cpu", sizes)
			r, err := inspect.Read(a)
			require.NoError(t, err)
			require.Len(t, r.Functions, len(a.Manifest.Functions))
			total := a.Manifest.Memory.Arena
			for _, s := range a.Manifest.States { // accumulators too
				total += s.Bytes()
			}
			require.Equal(t, total, a.Manifest.Memory.Total)
			work := map[string]float64{}
			launches := map[string]int{}
			for _, k := range r.Kernels {
				for _, l := range k.Functions {
					work[l.Function] += float64(l.Count) * k.Flops
					launches[l.Function] += l.Count
				}
			}
			for _, f := range r.Functions {
				m, ok := a.Manifest.Function(f.Name)
				require.True(t, ok)
				require.Equal(t, m.Arena, f.Arena)
				require.LessOrEqual(t, f.Peak, f.Arena)
				if d, ok := ir.LookupSymbol(program, f.Name).Attr("mem.peak").(*ir.DictAttr); ok {
					bytes, _ := ir.Attrs(d.Entries).Int("bytes")
					require.Equal(t, bytes, f.Peak, f.Name)
				}
				held := int64(0)
				for _, h := range f.Holders {
					held += h.Bytes
				}
				require.Equal(t, f.Peak, held, f.Name)
				require.InEpsilon(t, 1+m.Flops, 1+work[f.Name], 1e-12, f.Name)
				require.Equal(t, f.Launches, launches[f.Name])
				require.Equal(t, f.Steps, f.Launches+f.Copies)
			}
		})
	}
}

// GPT-2's largest holder is the perceptron's hidden layer, twice for each layer, as line 34 of the model says.
func TestHolders(t *testing.T) {
	a, _ := compiled(t, "cpu", nil)
	r, err := inspect.Read(a)
	require.NoError(t, err)
	var f inspect.Function
	for _, g := range r.Functions {
		if g.Name == "accumulate" {
			f = g
		}
	}
	h := f.Holders[0]
	require.Equal(t, 24, h.Count)
	require.Equal(t, int64(24*16*1024*4*768*4), h.Bytes)
	require.Equal(t, "gpt2.blu", h.Place.File)
	require.True(t, strings.HasPrefix(h.Place.Text, "let m = gelu(linear("), h.Place.Text)

	var memory, kernels, params strings.Builder
	r.WriteMemory(&memory)
	require.Regexp(t, `(?m)^474\.70 MiB +148 +parameters$`, memory.String())
	require.Regexp(t, `(?m)^949\.40 MiB +296 +optimizer state$`, memory.String())
	require.Regexp(t, `(?m)^accumulate: arena of \d+\.\d\d GiB; \d+\.\d\d GiB in use at the peak, step \d+ of \d+, .*\(gpt2\.blu:\d+:\d+\)$`, memory.String())
	require.Regexp(t, `(?m)^4\.50 GiB +\d\d\.\d% +24 +16384x3072 f32 +gemm\S+ +gpt2\.blu:\d+:\d+  let m = gelu`, memory.String())
	r.WriteKernels(&kernels)
	require.Regexp(t, `(?m)^12 +1 +- +77\.3 +\d+\.\d\d MiB +\d+ +\S+ +gemm_tn_accumulate_3072x768x16384\S* +accumulate 12$`, kernels.String())
	require.Regexp(t, `(?m)^\d+ kernels, \d+ launches$`, kernels.String())
	r.WriteParams(&params)
	require.Regexp(t, `(?m)^h\.0\.proj_w +768x768 f32 +\[C, C\] +normal\(std: \S+ / sqrt\(2\*L\)\) +0\.1$`, params.String())
	require.Contains(t, params.String(), "148 parameters with 124439808 elements, 474.70 MiB\n")
}

// For a GPU the time of a launch is that of its work or of its bytes, whichever is longer, with the starts of its kernels; what
// kernels work in is beside the total.
func TestPredicted(t *testing.T) {
	a, _ := compiled(t, "cuda", small)
	r, err := inspect.Read(a)
	require.NoError(t, err)
	var memory, kernels strings.Builder
	r.WriteKernels(&kernels)
	require.Regexp(t, `(?m)^least time on NVIDIA H200$`, kernels.String())
	require.Regexp(t, `(?m)^  accumulate: [\d.]+ ms, \d+ kernels started$`, kernels.String())
	require.NotRegexp(t, `(?m)^\d+ +\d+ +- `, kernels.String()) // every kernel has a time
	r.WriteMemory(&memory)
	require.Regexp(t, `(?m)^\d+\.\d\d [KM]iB +beside it: what kernels work in, one after the other; \S+ needs most$`, memory.String())
}

func TestTargetWithoutKernels(t *testing.T) {
	a, _ := compiled(t, "ref", small)
	r, err := inspect.Read(a)
	require.NoError(t, err)
	var memory, kernels strings.Builder
	r.WriteMemory(&memory)
	require.Contains(t, memory.String(), "The target ref places no values in memory beforehand.")
	r.WriteKernels(&kernels)
	require.Equal(t, "The target ref has no kernels.\n", kernels.String())
}

// kernel is a kernel of n references of which it writes the last.
func kernel(name string, refs int) string {
	args := make([]string, refs)
	for i := range args {
		args[i] = "%a" + string(rune('0'+i)) + ": memref<16xf32>"
	}
	return "host.kernel @" + name + " attributes {grid = array<i64>, outs = 1 : i64, scratch = 0 : i64, steps = array<i64>} (" + strings.Join(args, ", ") + ") {\nhost.end\n}\n"
}

// program is an artifact whose function f has these steps, on 16-element references %0, %64, ... at those offsets of the
// arena, %x and %y.
func program(steps string) *artifact.Artifact {
	text := kernel("one", 2) + kernel("two", 3) + `
exec.func @f attributes {arena = 256 : i64} {
  %x = exec.ref {name = "x", offset = 0 : i64, space = "input"} : () -> memref<16xf32>
  %y = exec.ref {name = "y", offset = 0 : i64, space = "output"} : () -> memref<16xf32>
  %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<16xf32> loc("m.blu":2:3)
  %64 = exec.ref {offset = 64 : i64, space = "arena"} : () -> memref<16xf32> loc("m.blu":3:3)
  %128 = exec.ref {offset = 128 : i64, space = "arena"} : () -> memref<16xf32> loc("m.blu":4:3)
  %even = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<16xf32, strided<[2]>> loc("m.blu":5:3)
  %odd = exec.ref {offset = 4 : i64, space = "arena"} : () -> memref<16xf32, strided<[2]>> loc("m.blu":5:3)
  %both = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<32xf32> loc("m.blu":5:3)
` + steps + `
  exec.end
}
`
	return &artifact.Artifact{
		Manifest: artifact.Manifest{Target: "cpu"},
		Files:    []artifact.File{{Name: artifact.ProgramName, Data: []byte(text)}, {Name: "source/m.blu", Data: []byte("one\n  two\nthree\nfour\nfive\n")}},
	}
}

// launch is a step on 16-element references.
func launch(kernel string, refs ...string) string {
	types := make([]string, len(refs))
	for i, r := range refs {
		types[i] = "memref<16xf32>"
		switch r {
		case "%even", "%odd":
			types[i] = "memref<16xf32, strided<[2]>>"
		case "%both":
			types[i] = "memref<32xf32>"
		}
	}
	return "  exec.launch " + strings.Join(refs, ", ") + " {kernel = @" + kernel + "} : (" + strings.Join(types, ", ") + ") -> ()\n"
}

func TestLifetimes(t *testing.T) {
	for _, tc := range []struct {
		name, steps string
		peak        int64
		step        int
		holders     []string // place, kernel, count
	}{
		{"a chain", launch("one", "%x", "%0") + launch("one", "%0", "%64") + launch("one", "%64", "%y"),
			128, 2, []string{"m.blu:2:3 one 1", "m.blu:3:3 one 1"}},
		{"memory used again", launch("one", "%x", "%0") + launch("one", "%0", "%64") + launch("one", "%64", "%0") + launch("one", "%0", "%y"),
			128, 2, []string{"m.blu:2:3 one 1", "m.blu:3:3 one 1"}},
		{"taken over in one step", launch("one", "%x", "%0") + launch("one", "%0", "%0") + launch("one", "%0", "%y"),
			64, 1, []string{"m.blu:2:3 one 1"}},
		{"kept until a late use", launch("one", "%x", "%0") + launch("one", "%x", "%64") + launch("one", "%64", "%128") + launch("two", "%0", "%128", "%y"),
			192, 3, []string{"m.blu:2:3 one 1", "m.blu:3:3 one 1", "m.blu:4:3 one 1"}},
		{"parts between each other's elements are one value", launch("one", "%x", "%even") + launch("one", "%x", "%odd") + launch("one", "%x", "%128") + launch("two", "%both", "%128", "%y"),
			192, 3, []string{"m.blu:5:3 one 1", "m.blu:4:3 one 1"}},
		{"neighbours read as one are one value", launch("one", "%x", "%0") + launch("one", "%x", "%64") + launch("one", "%both", "%y"),
			128, 1, []string{"m.blu:2:3 one 1"}},
		{"copies count", "  exec.copy %x, %0 : (memref<16xf32>, memref<16xf32>) -> ()\n" + launch("one", "%0", "%y"),
			64, 1, []string{"m.blu:2:3 (copy) 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := inspect.Read(program(tc.steps))
			require.NoError(t, err)
			f := r.Functions[0]
			require.Equal(t, tc.peak, f.Peak)
			require.Equal(t, tc.step, f.PeakStep)
			var got []string
			for _, h := range f.Holders {
				got = append(got, h.Place.String()+" "+h.By+" "+string(rune('0'+h.Count)))
			}
			require.Equal(t, tc.holders, got)
		})
	}
}

func TestText(t *testing.T) {
	r, err := inspect.Read(program(launch("one", "%x", "%0") + launch("one", "%0", "%64") + launch("two", "%0", "%64", "%y")))
	require.NoError(t, err)
	var memory, kernels strings.Builder
	r.WriteMemory(&memory)
	require.Equal(t, `bytes  tensors  
0 B    0        parameters
0 B    0        gradients
0 B    0        optimizer state
0 B    0        accumulators
0 B             arena of the function that needs most
0 B             total

f: arena of 256 B; 128 B in use at the peak, step 2 of 3, one (program.mlir:18:3)
bytes  share  count  type of each  written by  for
64 B   50.0%  1      16 f32        one         m.blu:2:3  two
64 B   50.0%  1      16 f32        one         m.blu:3:3  three
`, memory.String())
	r.WriteKernels(&kernels)
	require.Equal(t, `launches  steps  us each  GFLOP each  bytes each  FLOP/byte  grid  kernel  in
2         1      -        -           128 B       -          -     one     f 2
1         1      -        -           192 B       -          -     two     f 1
2 kernels, 3 launches
`, kernels.String())
}

func TestErrors(t *testing.T) {
	_, err := inspect.Read(&artifact.Artifact{})
	require.EqualError(t, err, "the artifact has no program.mlir")
	_, err = inspect.Read(&artifact.Artifact{Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte("exec.funk")}}})
	require.ErrorContains(t, err, "program.mlir: program.mlir:1:1: error: unknown operation exec.funk")
	_, err = inspect.Read(program("  exec.launch %x, %y {kernel = @three} : (memref<16xf32>, memref<16xf32>) -> ()\n"))
	require.ErrorContains(t, err, "@three")
}
