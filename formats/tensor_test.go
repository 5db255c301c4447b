package formats

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesAreReadBack(t *testing.T) {
	for d := Bool; d.Valid(); d++ {
		for _, c := range []struct {
			parse func(string) (DType, error)
			name  string
		}{{ParseDType, d.String()}, {ParseSafetensors, d.Safetensors()}, {ParseNpy, d.Npy()}} {
			got, err := c.parse(c.name)
			require.NoError(t, err)
			require.Equal(t, d, got, c.name)
		}
	}
	b, err := ParseDType("i1")
	require.NoError(t, err)
	require.Equal(t, Bool, b)
	text, err := json.Marshal([]DType{F32, BF16})
	require.NoError(t, err)
	require.Equal(t, `["f32","bf16"]`, string(text))
	var back []DType
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, []DType{F32, BF16}, back)
	require.Error(t, json.Unmarshal([]byte(`["f31"]`), &back))
	_, err = json.Marshal(Invalid)
	require.Error(t, err)
	_, err = ParseDType("float99")
	require.ErrorContains(t, err, `element type "float99" is not supported`)
	_, err = ParseSafetensors("")
	require.Error(t, err)
}

func TestByteSize(t *testing.T) {
	for _, c := range []struct {
		d     DType
		shape []int64
		want  int64
		err   string
	}{
		{F32, nil, 4, ""},
		{F32, []int64{3, 0, 5}, 0, ""},
		{F64, []int64{1 << 59}, 1 << 62, ""},
		{F64, []int64{1 << 60}, 0, "overflows"},
		{U8, []int64{math.MaxInt64}, math.MaxInt64, ""},
		{U8, []int64{math.MaxInt64, 0, 2}, 0, "overflows"},
		{U8, []int64{1 << 32, 1 << 32}, 0, "overflows"},
		{U8, []int64{2, -1}, 0, "negative"},
		{U8, make([]int64, 65), 0, "65 dimensions"},
		{Invalid, nil, 0, "no size"},
	} {
		got, err := ByteSize(c.d, c.shape)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
}

// Every half widens to the value its definition gives: (-1)^s * 2^(e-25) * (1024 + f), 2^-24 * f for subnormals.
func TestF16ToF32(t *testing.T) {
	for h := range 1 << 16 {
		e, f := h>>10&31, float64(h&1023)
		want := math.Ldexp(1024+f, e-25)
		switch {
		case e == 0:
			want = math.Ldexp(f, -24)
		case e == 31 && f == 0:
			want = math.Inf(1)
		case e == 31:
			want = math.NaN()
		}
		if h>>15 == 1 {
			want = -want
		}
		got := float64(F16ToF32(uint16(h)))
		if math.IsNaN(want) {
			require.True(t, math.IsNaN(got))
			continue
		}
		if want != got || math.Signbit(want) != math.Signbit(got) {
			t.Fatalf("%#04x: got %g, want %g", h, got, want)
		}
	}
}

func TestElementsOfEveryType(t *testing.T) {
	for _, c := range []struct {
		d    DType
		data []byte
		want float64
	}{
		{Bool, []byte{1}, 1}, {U8, []byte{255}, 255}, {I8, []byte{255}, -1},
		{U16, []byte{0, 255}, 65280}, {I16, []byte{0, 255}, -256},
		{U32, []byte{0, 0, 0, 255}, 4278190080}, {I32, []byte{0, 0, 0, 255}, -16777216},
		{U64, []byte{0, 0, 0, 0, 0, 0, 0, 128}, 1 << 63}, {I64, []byte{0, 0, 0, 0, 0, 0, 0, 128}, -1 << 63},
		{F16, []byte{0, 0x3e}, 1.5}, {BF16, []byte{0xc0, 0x3f}, 1.5},
		{F32, []byte{0, 0, 0xc0, 0x3f}, 1.5}, {F64, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 1.5},
	} {
		x := Tensor{c.d, []int64{1}, c.data}
		require.NoError(t, x.Check())
		require.Equal(t, []float64{c.want}, x.Float64s(), c.d)
		require.Equal(t, []float32{float32(c.want)}, x.Float32s(), c.d)
	}
	require.Equal(t, []float64{-2, 7}, FromInt32s([]int32{-2, 7}, 2).Float64s())
	require.Equal(t, []float64{0.5}, FromFloat32s([]float32{0.5}, 1).Float64s())
	require.Equal(t, []float64{0.1}, FromFloat64s([]float64{0.1}, 1).Float64s())
	require.ErrorContains(t, Tensor{F32, []int64{2}, nil}.Check(), "needs 8 bytes, has 0")
}

func TestTypesAsModelsWriteThem(t *testing.T) {
	require.Equal(t, "f32[8, 64]", F32.Of([]int64{8, 64}))
	require.Equal(t, "bool[3]", Bool.Of([]int64{3}))
	require.Equal(t, "i64", I64.Of(nil))
}
