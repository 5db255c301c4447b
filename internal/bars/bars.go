// Package bars makes small pictures to train on, for examples and tests: what a model learns from them is known beforehand.
package bars

import (
	"math/rand/v2"

	"blutrain/formats"
)

// Classes is how many kinds of pictures there are: a bar that lies high or low, or stands left or right.
const Classes = 4

// Size is how many pixels a picture has in each direction.
const Size = 8

// Pictures makes n noisy pictures, images: f32[n, 1, 8, 8], and says which kind each is, labels: i32[n].
func Pictures(r *rand.Rand, n int64) map[string]formats.Tensor {
	pixels, labels := make([]float32, n*Size*Size), make([]int32, n)
	for i := range labels {
		labels[i] = int32(r.IntN(Classes))
		at := int(labels[i]%2)*Size/2 + r.IntN(Size/2)
		for k := range Size * Size {
			row, col := k/Size, k%Size
			if labels[i] >= Classes/2 {
				row, col = col, row
			}
			p := &pixels[i*Size*Size+k]
			*p = 0.5 * float32(r.NormFloat64())
			if row == at {
				*p++
			}
		}
	}
	return map[string]formats.Tensor{"images": formats.FromFloat32s(pixels, n, 1, Size, Size), "labels": formats.FromInt32s(labels, n)}
}
