package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
)

const copying16 = `builtin.module {
` + declaredW + `  exec.state @"bf16/w" {of = @w, persist = false, role = "copy", type = memref<8x4xbf16>}
  host.kernel @round attributes {grid = array<i64>, outs = 1 : i64, scratch = 0 : i64, steps = array<i64>} (%x: memref<8x4xf32>, %y: memref<8x4xbf16>) {
    %0 = arith.constant {value = 0 : index} : () -> index
    %4 = arith.constant {value = 4 : index} : () -> index
    %8 = arith.constant {value = 8 : index} : () -> index
    %a = host.window %x, %8, %4, %0, %0 {col = 1 : i64, row = 0 : i64} : (memref<8x4xf32>, index, index, index, index) -> !host.block<8x4xf32>
    %b = host.window %y, %8, %4, %0, %0 {col = 1 : i64, row = 0 : i64} : (memref<8x4xbf16>, index, index, index, index) -> !host.block<8x4xbf16>
    host.cast %a, %b : (!host.block<8x4xf32>, !host.block<8x4xbf16>) -> ()
    host.end
  }
  exec.func @refresh attributes {arena = 0 : i64} {
    %x = exec.ref {name = "w", offset = 0 : i64, space = "state"} : () -> memref<8x4xf32>
    %y = exec.ref {name = "bf16/w", offset = 0 : i64, space = "state"} : () -> memref<8x4xbf16>
    exec.launch %x, %y {kernel = @round} : (memref<8x4xf32>, memref<8x4xbf16>) -> ()
    exec.end
  }
  exec.func @f attributes {arena = 0 : i64} {
    %x = exec.ref {name = "bf16/w", offset = 0 : i64, space = "state"} : () -> memref<8x4xbf16>
    %y = exec.ref {name = "y", offset = 0 : i64, space = "output"} : () -> memref<8x4xbf16>
    exec.copy %x, %y : (memref<8x4xbf16>, memref<8x4xbf16>) -> ()
    exec.end
  }
}
`

// A function that reads a copy reads the parameter as it was last written, in one piece or in several.
func TestRefresh(t *testing.T) {
	value := func(name string, d formats.DType) artifact.Value {
		return artifact.Value{Name: name, DType: d, Shape: []int64{8, 4}}
	}
	p, err := Open(&artifact.Artifact{
		Manifest: artifact.Manifest{
			Target:    "cpu",
			States:    []artifact.State{{Value: value("w", formats.F32), Role: artifact.Param, Persist: true}, {Value: value("bf16/w", formats.BF16), Role: artifact.Copy, Of: "w"}},
			Functions: []artifact.Function{{Name: "refresh"}, {Name: "f", Outputs: []artifact.Value{value("y", formats.BF16)}}},
		},
		Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte(copying16)}},
	}, runtime.Options{Threads: 1, Poison: true, Guard: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	x := make([]float32, 32)
	for i := range x {
		x[i] = float32(i) + 1.0/3
	}
	check := func() {
		out, err := p.Call("f", nil, nil)
		require.NoError(t, err)
		var want []byte
		for _, v := range x {
			want = ir.EncodeElement(want, ir.NewContext().Float(ir.BF16), float64(v))
		}
		require.Equal(t, want, out["y"].Data)
	}
	require.NoError(t, p.WriteState("w", formats.FromFloat32s(x, 8, 4).Data))
	check()
	x[3] = -7
	require.NoError(t, p.(runtime.StateWriter).WriteStateAt("w", 12, formats.FromFloat32s(x[3:4], 1).Data))
	check()
	require.ErrorContains(t, p.WriteState("bf16/w", make([]byte, 64)), `is a copy of parameter "w"`)
	require.ErrorContains(t, p.(runtime.StateWriter).WriteStateAt("bf16/w", 2, []byte{1}), `is a copy of parameter "w"`)
}
