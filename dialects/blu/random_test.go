package blu

import (
	"math"
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

// The known answers that come with Random123, the generator's reference implementation.
func TestPhiloxKnownAnswers(t *testing.T) {
	ones := uint32(math.MaxUint32)
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{ones, ones, ones, ones}, [2]uint32{ones, ones}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		require.Equal(t, c.want, philox(c.counter, c.key))
	}
	require.Equal(t, philox([4]uint32{1, 2, 3, 4}, [2]uint32{5, 6}), randomWords(6<<32|5, 4<<32|3, 2<<32|1))
}

func (n *bench) seed(v float64) *ir.Value { return n.arg(n.of(n.ctx.I64(), nil, v)) }

func TestRandomDistributions(t *testing.T) {
	const count = 100_000
	n := newBench(t)
	typ := n.ctx.Tensor(dims(count), n.ctx.F32())
	seed := n.seed(42)
	out := n.eval(n.b.RandomUniform(seed, 0, typ), n.b.RandomNormal(seed, 0, 3, 2, typ), n.b.RandomUniform(seed, 1, typ), n.b.RandomUniform(n.seed(43), 0, typ))
	// Five standard errors of the mean and of the variance.
	moments := func(x []float64) (mean, variance float64) {
		mean = meanOf(x)
		for _, v := range x {
			variance += (v - mean) * (v - mean) / count
		}
		return mean, variance
	}
	mean, variance := moments(out[0].Data)
	require.InDelta(t, 0.5, mean, 5*math.Sqrt(1.0/12/count))
	require.InDelta(t, 1.0/12, variance, 5*math.Sqrt(1.0/180/count))
	mean, variance = moments(out[1].Data)
	require.InDelta(t, 3, mean, 5*2/math.Sqrt(count))
	require.InDelta(t, 4, variance, 5*4*math.Sqrt(2.0/count))
	for i, u := range out[0].Data {
		require.True(t, u >= 0 && u < 1 && u == math.Trunc(u*(1<<24))/(1<<24))
		require.Equal(t, float64(float32(out[1].Data[i])), out[1].Data[i], "rounded to f32")
	}
	// Other streams and seeds are other numbers.
	require.NotEqual(t, out[0].Data[:4], out[2].Data[:4])
	require.NotEqual(t, out[0].Data[:4], out[3].Data[:4])
}
