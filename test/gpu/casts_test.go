package gpu

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	rtdevice "blutrain/runtime/device"
)

// Whatever is cast to whatever, of what is computed and of what is read, has the same value on every device; numbers that the type
// has not are rounded, those with a fraction lose it where the type has none.
func TestCastsBetweenAllTypes(t *testing.T) {
	types := map[string]formats.DType{"f32": formats.F32, "bf16": formats.BF16, "f16": formats.F16, "i32": formats.I32, "i64": formats.I64, "bool": formats.Bool}
	numbers := []float64{0, 1, -1, 2.75, -3.5, 1027, -70000, 0.0625, 3}
	for from, dtype := range types {
		for to := range types {
			computed := "x"
			switch from {
			case "bool":
				computed = "!x"
			case "f32", "f16", "bf16":
				computed = "x * 0.5" // exact: whether a number is rounded before it is cast shows in none
			case "i32":
				computed = "x + 1"
			}
			source := fmt.Sprintf(`model m {
  fn f(x: %[1]s[3, 3]) -> (%[2]s[3, 3], %[2]s[3, 3]) { return (cast(x, %[2]s), cast(%[3]s, %[2]s)) }
  fn g(x: %[1]s[3, 3]) -> %[1]s[3, 3] { return cast(cast(x, %[2]s), %[1]s) }
}`, from, to, computed)
			for _, precision := range []string{"fp32", "bf16"} {
				t.Run(fmt.Sprint(from, " ", to, " ", precision), func(t *testing.T) {
					t.Parallel()
					c := ir.NewContext()
					in := runtime.Array{DType: dtype, Shape: []int64{3, 3}}
					for _, x := range numbers {
						if from == "bool" && x != 0 {
							x = 1
						}
						in.Data = append(in.Data, ir.EncodeElement(nil, elementOf(c, dtype), x)...)
					}
					compile := func(target string) *artifact.Artifact {
						r, err := driver.Compile("m.blu", []byte(source), driver.Options{Target: target, Precision: precision})
						require.NoError(t, err)
						return r.Artifact
					}
					program := func(target string) runtime.Program {
						p, err := rtdevice.Open(compile(target), "", runtime.Options{Threads: 1})
						require.NoError(t, err)
						t.Cleanup(func() { require.NoError(t, p.Close()) })
						return p
					}
					compile("cuda")
					ref, cpu := program("ref"), program("cpu")
					d := newDevice(t, "m.blu", []byte(source), driver.Options{Target: "cuda", Precision: precision, Arch: ptx.SM90A}, "auto")
					for _, fn := range []string{"f", "g"} {
						info, ok := ref.Manifest().Function(fn)
						require.True(t, ok)
						inputs := map[string]runtime.Array{"x": in}
						want, err := ref.Call(fn, inputs, nil)
						require.NoError(t, err)
						got, err := cpu.Call(fn, inputs, nil)
						require.NoError(t, err)
						emulated := d.call(fn, info, inputs, nil)
						for name, a := range want {
							require.Equal(t, floats(a.DType, a.Data), floats(a.DType, got[name].Data), "cpu, %s %s", fn, name)
							require.Equal(t, floats(a.DType, a.Data), floats(a.DType, emulated[name].Data), "cuda, %s %s", fn, name)
						}
					}
				})
			}
		}
	}
}
