package synthetic

import (
	"math"
	"math/rand/v2"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// Shake makes the persistent states of a program what they are in the middle of a training, when none is zero: random
// numbers with a standard deviation of 0.02 are added to parameters, and their magnitudes to the optimizer's states, some
// of which must not be negative.
func Shake(p runtime.Program, r *rand.Rand) error {
	for _, s := range p.Manifest().States {
		if !s.Persist || s.Role != artifact.Param && s.Role != artifact.Optimizer || !s.DType.IsFloat() {
			continue
		}
		data := make([]byte, s.Bytes())
		if err := p.ReadState(s.Name, data); err != nil {
			return err
		}
		old := formats.Tensor{DType: s.DType, Shape: s.Shape, Data: data}.Float64s()
		data = data[:0]
		for _, v := range old {
			x := 0.02 * r.NormFloat64()
			if s.Role == artifact.Optimizer {
				x = math.Abs(x)
			}
			data = appendValue(data, s.DType, v+x, 0)
		}
		if err := p.WriteState(s.Name, data); err != nil {
			return err
		}
	}
	return nil
}
