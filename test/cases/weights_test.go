package cases

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/formats/safetensors"
	"blutrain/runtime"
	"blutrain/train"
)

// Hugging Face's GPT-2 keeps c_attn as [in, out] (Conv1D), where linear has [out, in]. Such a file is refused by its shape, before
// anything of it is taken; transposed it gives the same numbers.
func TestCase_TransposedWeights(t *testing.T) {
	m := Compile(t, `
model m() {
  param qkv_w: f32[6, 2] = zeros
  param qkv_b: f32[6] = zeros
  fn qkv(x: f32[B, 2]) -> f32[B, 6] { return linear(x, qkv_w, qkv_b) }
}`, map[string]float64{"B": 1})
	conv1d := []float32{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60} // [in, out]
	var linear []float32
	for out := range 6 {
		linear = append(linear, conv1d[out], conv1d[6+out])
	}
	file := func(weight formats.Tensor) string {
		var b bytes.Buffer
		bias := formats.FromFloat32s([]float32{.5, .5, .5, .5, .5, .5}, 6)
		require.NoError(t, safetensors.Write(&b, []safetensors.Entry{safetensors.Of("qkv_w", weight), safetensors.Of("qkv_b", bias)}, nil))
		path := filepath.Join(t.TempDir(), "model.safetensors")
		require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
		return path
	}
	in := map[string]runtime.Array{"x": floats([]float64{2, 3}, 1, 2)}
	output := func(want ...float64) {
		m.Call("qkv", in, nil, func(target string, out map[string][]float64) {
			for _, y := range out {
				require.Equal(t, want, y, target)
			}
			require.Len(t, out, 1)
		})
	}
	m.Each(func(target string, p runtime.Program) {
		_, err := train.LoadParams(p, file(formats.FromFloat32s(conv1d, 2, 6)))
		require.ErrorContains(t, err, "model.safetensors: qkv_w is f32[2, 6], in the model f32[6, 2]: it is transposed", target)
	})
	output(0, 0, 0, 0, 0, 0)
	m.Each(func(target string, p runtime.Program) {
		_, err := train.LoadParams(p, file(formats.FromFloat32s(linear, 6, 2)))
		require.NoError(t, err, target)
	})
	output(32.5, 64.5, 96.5, 128.5, 160.5, 192.5) // 2 * 1 + 3 * 10 + 0.5, ...
}
