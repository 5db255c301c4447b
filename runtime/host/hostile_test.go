package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// open opens a program whose function f has input x and output y, f32[8, 4], and state w of that type, which is declared behind what the
// text says, between pages that may not be touched.
func open(t *testing.T, text string, threads int) (runtime.Program, error) {
	t.Helper()
	v := func(name string) artifact.Value {
		return artifact.Value{Name: name, DType: formats.F32, Shape: []int64{8, 4}}
	}
	a := &artifact.Artifact{
		Manifest: artifact.Manifest{
			Target: "cpu", States: []artifact.State{{Value: v("w"), Role: artifact.Param, Persist: true}},
			Functions: []artifact.Function{{Name: "f", Inputs: []artifact.Value{v("x")}, Outputs: []artifact.Value{v("y")}}},
		},
		Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte(strings.TrimSuffix(text, "}\n") + declaredW + "}\n")}},
	}
	p, err := Open(a, runtime.Options{Threads: threads, Poison: true, Guard: true})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, p.Close()) })
	}
	return p, err
}

const declaredW = `  exec.state @w {persist = true, role = "param", type = memref<8x4xf32>}
`

// callF opens a program and calls f.
func callF(t *testing.T, text string, threads int) ([]float32, error) {
	p, err := open(t, text, threads)
	if err != nil {
		return nil, err
	}
	x := make([]float32, 32)
	for i := range x {
		x[i] = float32(i)
	}
	out, err := p.Call("f", map[string]runtime.Array{"x": runtime.Array(formats.FromFloat32s(x, 8, 4))}, nil)
	if err != nil {
		return nil, err
	}
	return formats.Tensor(out["y"]).Float32s(), nil
}

// kernelProgram launches a kernel on x and y.
func kernelProgram(attrs, axes, body string) string {
	return fmt.Sprintf(`builtin.module {
  host.kernel @k attributes {%s, outs = 1 : i64} (%%x: memref<8x4xf32>, %%y: memref<8x4xf32>%s) {
    %%0 = arith.constant {value = 0 : index} : () -> index
    %%1 = arith.constant {value = 1 : index} : () -> index
    %%4 = arith.constant {value = 4 : index} : () -> index
    %%8 = arith.constant {value = 8 : index} : () -> index
    %%most = arith.constant {value = 9223372036854775807 : index} : () -> index
    %%minus = arith.constant {value = -1 : index} : () -> index
%s    host.end
  }
  exec.func @f attributes {arena = 0 : i64} {
    %%x = exec.ref {name = "x", offset = 0 : i64, space = "input"} : () -> memref<8x4xf32>
    %%y = exec.ref {name = "y", offset = 0 : i64, space = "output"} : () -> memref<8x4xf32>
    exec.launch %%x, %%y {kernel = @k} : (memref<8x4xf32>, memref<8x4xf32>) -> ()
    exec.end
  }
}
`, attrs, axes, body)
}

const (
	once   = "grid = array<i64>, scratch = 256 : i64, steps = array<i64>"
	window = "(memref<8x4xf32>, index, index, index, index) -> !host.block<8x4xf32>"
	whole  = "    %a = host.window %x, %8, %4, %0, %0 {col = 1 : i64, row = 0 : i64} : " + window + "\n" +
		"    %b = host.window %y, %8, %4, %0, %0 {col = 1 : i64, row = 0 : i64} : " + window + "\n"
	tile8x4 = "!host.block<8x4xf32>"
)

func TestAKernel(t *testing.T) {
	double := whole + "    host.binary %a, %a, %b {fn = \"add\"} : (" + tile8x4 + ", " + tile8x4 + ", " + tile8x4 + ") -> ()\n"
	y, err := callF(t, kernelProgram(once, "", double), 2)
	require.NoError(t, err)
	for i, v := range y {
		require.Equal(t, float32(2*i), v)
	}
}

// What a kernel must not do stops it, or is refused before it runs.
func TestHostileKernels(t *testing.T) {
	at := func(rows, cols, i, j string) string {
		return fmt.Sprintf("    %%a = host.window %%x, %s, %s, %s, %s {col = 1 : i64, row = 0 : i64} : %s\n", rows, cols, i, j, window)
	}
	loop := func(lo, hi, step string) string {
		return fmt.Sprintf("    scf.for %s, %s, %s : (index, index, index) -> () (%%i: index) {\n      scf.yield\n    }\n", lo, hi, step)
	}
	for _, c := range []struct{ name, attrs, axes, body, want string }{
		{"a window that begins beyond", once, "", at("%1", "%4", "%8", "%0"), "beyond a reference of [8 4]"},
		{"one that ends beyond", once, "", at("%8", "%4", "%1", "%0"), "beyond a reference of [8 4]"},
		{"one before the first element", once, "", at("%1", "%4", "%minus", "%0"), "beyond a reference of [8 4]"},
		{"one so far that the end overflows", once, "", at("%8", "%4", "%most", "%0"), "beyond a reference of [8 4]"},
		{"one larger than its type", once, "", at("%8", "%8", "%0", "%0"), "a window of 8x8, at most 8x4"},
		{"one of fewer than no rows", once, "", at("%minus", "%4", "%0", "%0"), "a window of -1x4"},
		{"a scratch block larger than its type", once, "", "    %s = host.scratch %8, %8 {offset = 0 : i64} : (index, index) -> " + tile8x4 + "\n", "a scratch block of 8x8, at most 8x4"},
		{"one beyond the kernel's scratch memory", once, "", "    %s = host.scratch %8, %4 {offset = 192 : i64} : (index, index) -> " + tile8x4 + "\n", "ends beyond the kernel's scratch memory of 256 bytes"},
		{"one at an offset that overflows", once, "", "    %s = host.scratch %8, %4 {offset = 9223372036854775744 : i64} : (index, index) -> " + tile8x4 + "\n", "ends beyond the kernel's scratch memory"},
		{"a block of more elements than there are", once, "", "    %s = host.scratch %8, %4 {offset = 0 : i64} : (index, index) -> !host.block<4294967296x4294967296xf32>\n", "4294967296 rows of 4294967296 columns"},
		{"a loop that stands still", once, "", loop("%0", "%8", "%0"), "a loop with step 0"},
		{"a loop without end", once, "", loop("%0", "%most", "%1"), "more than 67108864 iterations of loops"},
		{"a loop whose index overflows", once, "", loop("%8", "%most", "%most"), ""},
		{"a division by zero", once, "", "    %q = arith.divsi %8, %0 : (index, index) -> index\n", "division of an index by zero"},
		{"a grid of too many points", "grid = array<i64: 4294967296, 4294967296>, scratch = 0 : i64, steps = array<i64: 1, 1>", ", %i: index, %j: index", "", "has more than 2147483647 points"},
		{"scratch memory that nobody has", "grid = array<i64>, scratch = 1152921504606846976 : i64, steps = array<i64>", "", "", "out of memory"},
		{"elements that an instruction has no routine for", once, "",
			whole + "    %s = host.scratch %8, %4 {offset = 0 : i64} : (index, index) -> !host.block<8x4xbf16>\n" +
				"    host.binary %a, %s, %b {fn = \"add\"} : (" + tile8x4 + ", !host.block<8x4xbf16>, " + tile8x4 + ") -> ()\n",
			"host.binary on [!host.block<8x4xf32> !host.block<8x4xbf16> !host.block<8x4xf32>] has no instruction on this device"},
		{"rows whose elements are apart", once, "",
			"    %a = host.window %x, %4, %8, %0, %0 {col = 0 : i64, row = 1 : i64} : (memref<8x4xf32>, index, index, index, index) -> !host.block<4x8xf32>\n" +
				"    %s = host.scratch %4, %8 {offset = 0 : i64} : (index, index) -> !host.block<4x8xf32>\n" +
				"    host.unary %a, %s {fn = \"exp\"} : (!host.block<4x8xf32>, !host.block<4x8xf32>) -> ()\n",
			"the elements of a row of operand 0 are apart"},
		{"operands that don't fit", once, "",
			"    %a = host.window %x, %4, %4, %0, %0 {col = 1 : i64, row = 0 : i64} : " + window + "\n" +
				"    %b = host.window %y, %8, %4, %0, %0 {col = 1 : i64, row = 0 : i64} : " + window + "\n" +
				"    host.unary %a, %b {fn = \"exp\"} : (" + tile8x4 + ", " + tile8x4 + ") -> ()\n",
			"an operand of 4x4 for a destination of 8x4"},
		{"matrices that don't fit", once, "",
			whole + "    host.gemm %a, %a, %b attributes {piece = array<i64: 8, 4>, ta = false, tb = false} : (" + tile8x4 + ", " + tile8x4 + ", " + tile8x4 + ") -> () (%i: index, %j: index, %m: index, %n: index) {\n      host.end\n    }\n",
			"matrix product of 8x4 and 8x4 (transposed: false, false) into 8x4"},
		{"an operation of another dialect", once, "", "    %z = arith.constant {value = 1.0e+00 : f32} : () -> f32\n", "arith.constant on f32 has no instruction on this device"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := callF(t, kernelProgram(c.attrs, c.axes, c.body), 2)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

// The error of the first grid point that fails is reported, whatever the number of workers: here of the ninth.
func TestFirstErrorWins(t *testing.T) {
	body := `    %step = arith.subi %8, %i : (index, index) -> index
    scf.for %0, %1, %step : (index, index, index) -> () (%n: index) {
      scf.yield
    }
`
	text := kernelProgram("grid = array<i64: 100000>, scratch = 0 : i64, steps = array<i64: 1>", ", %i: index", body)
	for _, threads := range []int{1, 2, 5} {
		for range 5 {
			_, err := callF(t, text, threads)
			require.EqualError(t, err, "f: program.mlir:18:5: kernel k: a loop with step 0")
		}
	}
}

// Places and launches are held to the memory there is before anything runs.
func TestHostileFunctions(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a place beyond its state", `%r = exec.ref {name = "w", offset = 16 : i64, space = "state"} : () -> memref<8x4xf32>`, "of a buffer of 32"},
		{"strides that overflow", `%r = exec.ref {name = "w", offset = 0 : i64, space = "state"} : () -> memref<5x5x5x5xf32, strided<[1152921504606846976, 1152921504606846976, 1152921504606846976, 1152921504606846976]>>`, "of a buffer of 32"},
		{"a size that overflows to nothing", `%r = exec.ref {name = "w", offset = 0 : i64, space = "state"} : () -> memref<4294967296x4294967296xf32, strided<[0, 0]>>`, "more than 2^40 elements"},
		{"a state that isn't there", `%r = exec.ref {name = "v", offset = 0 : i64, space = "state"} : () -> memref<8x4xf32>`, `no state "v"`},
		{"an output that isn't there", `%r = exec.ref {name = "z", offset = 0 : i64, space = "output"} : () -> memref<8x4xf32>`, `function f has no output "z"`},
		{"more arena than the function has", `%r = exec.ref {offset = 64 : i64, space = "arena"} : () -> memref<8x4xf32>`, "arena"},
		{"elements that can't be stored", `%r = exec.ref {name = "w", offset = 0 : i64, space = "state"} : () -> memref<8xindex>`, "elements of type index can't be stored"},
		{"a copy to elements that repeat", `%r = exec.ref {name = "w", offset = 0 : i64, space = "state"} : () -> memref<8x4xf32>
    %s = exec.ref {name = "y", offset = 0 : i64, space = "output"} : () -> memref<8x4xf32, strided<[0, 1]>>
    exec.copy %r, %s : (memref<8x4xf32>, memref<8x4xf32, strided<[0, 1]>>) -> ()`, "the destination of a copy repeats its elements"},
		{"a launch on places of another type", `%r = exec.ref {name = "w", offset = 0 : i64, space = "state"} : () -> memref<4x8xf32>
    exec.launch %r {kernel = @k} : (memref<4x8xf32>) -> ()`, "kernel k: reference 0 is f32[4 8] with strides [8 1], wants f32[8 4] with strides [4 1]"},
		{"a launch on too few places", `exec.launch {kernel = @k} : () -> ()`, "kernel k takes 1 references, not 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, `builtin.module {
  host.kernel @k attributes {grid = array<i64>, outs = 1 : i64, scratch = 0 : i64, steps = array<i64>} (%x: memref<8x4xf32>) {
    host.end
  }
  exec.func @f attributes {arena = 128 : i64} {
    `+c.body+`
    exec.end
  }
}
`, 1)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := open(t, "builtin.module {\n}\n", 1)
	require.EqualError(t, err, `the program has no function "f", which the manifest lists`)
	_, err = open(t, "builtin.module {\n  exec.func @f attributes {arena = -1 : i64} {\n    exec.end\n  }\n}\n", 1)
	require.ErrorContains(t, err, "an arena of -1 bytes")
}
