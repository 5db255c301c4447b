package driver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
)

// Operands of more elements than indices of copies have are multiplied by kernels that need no copy of them: logits with a bias, which are in
// memory whole, and their gradient. In tf32 such a copy was chosen, and then could not be made.
func TestVeryLargeOperands(t *testing.T) {
	const source = `model m(V = 50257, C = 64) {
  param e: f32[V, C] = normal(std: 0.5)
  param w: f32[V, C] = normal(std: 0.1)
  param b: f32[V] = zeros
  fn loss(tokens: i32[B], targets: i32[B]) -> (f32, f32) { return cross_entropy(linear(e[tokens], w, b), targets, ignore: -1) }
}
train m {
  minimize loss
  batch B = 64
  optimizer sgd(lr: 0.01)
}
`
	for _, precision := range []string{"fp32", "tf32", "bf16"} {
		for _, rows := range []float64{42000, 69952, 86000} { // 2^31 elements, 3.5e9, and 2^32
			_, err := driver.Compile("m.blu", []byte(source), driver.Options{Target: "cuda", Precision: precision, Set: map[string]float64{"B": rows}})
			require.NoError(t, err, fmt.Sprint(precision, " ", rows))
		}
	}
}
