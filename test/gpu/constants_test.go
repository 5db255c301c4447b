package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/ref"
)

// constants is the numbers of references to constants in an artifact's program: of those whose elements are all the same, and of others.
func constants(t *testing.T, a *artifact.Artifact) (equal, others int) {
	t.Helper()
	text, _ := a.File(artifact.ProgramName)
	module, err := ir.Parse(dialects.NewContext(), artifact.ProgramName, text)
	require.NoError(t, err)
	ir.Walk(module, func(op *ir.Op) ir.WalkResult {
		if !op.Is(exec.Ref) || op.Attr("value") == nil {
			return ir.Advance
		}
		if op.Attr("value").(*ir.DenseAttr).Splat {
			equal++
		} else {
			others++
		}
		return ir.Advance
	})
	return equal, others
}

// Programs for GPUs have no constants of equal elements in memory, in no example and no precision: kernels make them where they need them,
// and fill in what begins so.
func TestExamplesHaveNoEqualConstants(t *testing.T) {
	for _, file := range examples(t) {
		for _, precision := range []string{"fp32", "tf32", "bf16"} {
			for _, arch := range []string{ptx.SM90A, ptx.SM80} {
				t.Run(fmt.Sprint(file, " ", precision, " ", arch), func(t *testing.T) {
					t.Parallel()
					src, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
					require.NoError(t, err)
					r, err := driver.Compile(file, src, driver.Options{Target: "cuda", Precision: precision, Arch: arch, Set: small(t, file)})
					require.NoError(t, err)
					equal, others := constants(t, r.Artifact)
					require.Zero(t, equal)
					require.Equal(t, file == "llama.blu", others > 0, "rotations' angles, and nothing else")
				})
			}
		}
	}
}

// Equal elements of every dtype are filled in: as a result, between other elements, beside others, and where a product reads them. Every bit is
// that of the reference.
func TestEqualConstants(t *testing.T) {
	const source = `model m {
  fn whole(x: f32[2, 3]) -> (f32[3], f64[2, 3], f16[5], bf16[7], i32[4], i64[3], bool[9], f32[40, 50]) {
    return (full([3], 0.1), full([2, 3], 1 / 3.0, dtype: f64), full([5], -2.5, dtype: f16), full([7], 1.5, dtype: bf16), full([4], -7, dtype: i32),
      full([3], -9007199254740991, dtype: i64), full([9], 1, dtype: i32) == full([9], 1, dtype: i32), full([40, 50], 3))
  }
  fn between(x: f32[2, 3]) -> (f32[2, 7], f32[5, 3], f32[2, 4]) {
    return (concat(full([2, 2], 0.5), x, full([2, 2], 0.5), axis: 1), concat(x, ones([1, 3]), 2 * x, axis: 0), pad(x, axis: 1, low: 1))
  }
  fn product(x: f32[2, 3]) -> f32[2, 4] { return einsum("ij,jk->ik", x, full([3, 4], 0.25)) }
}`
	src := []byte(source)
	want, err := driver.Compile("m.blu", src, driver.Options{Target: "ref", Precision: "fp32"})
	require.NoError(t, err)
	p, err := ref.Open(want.Artifact, runtime.Options{})
	require.NoError(t, err)
	defer p.Close()
	in := runtime.Array{DType: formats.F32, Shape: []int64{2, 3}}
	for i := range 6 {
		in.Data = ir.EncodeElement(in.Data, ir.NewContext().F32(), float64(i)-2.5)
	}
	for _, arch := range ptx.Targets {
		t.Run(arch, func(t *testing.T) {
			o := driver.Options{Target: "cuda", Precision: "fp32", Arch: arch}
			r, err := driver.Compile("m.blu", src, o)
			require.NoError(t, err)
			equal, _ := constants(t, r.Artifact)
			require.Zero(t, equal)
			d := newDevice(t, "m.blu", src, o, "auto")
			for _, fn := range []string{"whole", "between", "product"} {
				info, ok := p.Manifest().Function(fn)
				require.True(t, ok)
				want, err := p.Call(fn, map[string]runtime.Array{"x": in}, nil)
				require.NoError(t, err)
				got := d.call(fn, info, map[string]runtime.Array{"x": in}, nil)
				require.Len(t, got, len(want))
				for name, a := range want {
					require.Equal(t, a.Data, got[name].Data, "%s %s", fn, name)
				}
			}
		})
	}
}
