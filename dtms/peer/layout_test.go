package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/formats"
)

func call(op dtms.Op, in uintptr, ins int64, out uintptr, outs int64) dtms.Call {
	return dtms.Call{Op: op, In: dtms.Device(formats.F32, in, ins), Out: dtms.Device(formats.F32, out, outs)}
}

func TestParts(t *testing.T) {
	require.Equal(t, [][]span{
		{{0, 256, 4096, 8192}},
		{{0, 40, 4352, 8448}},
		{{0, 4, 512, 1024}},
	}, parts([]dtms.Call{call(dtms.AllReduce, 512, 1, 1024, 1), call(dtms.AllReduce, 4096, 74, 8192, 74)}, 1, 3), "all-reduce")
	require.Equal(t, [][]span{
		{{0, 12, 512, 0}},
		{{0, 12, 524, 1024}},
	}, parts([]dtms.Call{call(dtms.ReduceScatter, 512, 6, 1024, 3)}, 1, 2), "reduce-scatter")
	require.Equal(t, [][]span{
		{{0, 12, 0, 1024}, {256, 4, 0, 2048}},
		{{0, 12, 512, 1036}, {256, 4, 4, 2052}},
	}, parts([]dtms.Call{call(dtms.AllGather, 4, 1, 2048, 2), call(dtms.AllGather, 512, 3, 1024, 6)}, 1, 2), "all-gather")
	require.Equal(t, [][]span{nil, nil}, parts([]dtms.Call{call(dtms.AllReduce, 512, 0, 512, 0)}, 0, 2), "nothing")
}

func TestCut(t *testing.T) {
	spans := []span{{0, 300, 1000, 0}, {512, 100, 5000, 6000}}
	require.Equal(t, []span{{0, 44, 1256, 0}}, cut(spans, 256, 512))
	require.Equal(t, []span{{156, 100, 1200, 0}, {412, 56, 5000, 6000}}, cut([]span{{256, 100, 1200, 0}, {512, 100, 5000, 6000}}, 100, 568))
	require.Nil(t, cut(spans, 612, 900))
}

// Spans are joined where they are neighbours in the part, in what is given and in what is got.
func TestJoined(t *testing.T) {
	require.Equal(t, []span{{0, 768, 1024, 8192}}, joined([]span{{0, 256, 1024, 8192}, {256, 256, 1280, 8448}, {512, 256, 1536, 8704}}))
	require.Equal(t, []span{{0, 512, 1024, 0}}, joined([]span{{0, 256, 1024, 0}, {256, 256, 1280, 0}}))
	for _, apart := range [][]span{
		{{0, 256, 1024, 8192}, {256, 256, 1280, 9999}},
		{{0, 256, 1024, 8192}, {256, 256, 4096, 8448}},
		{{0, 200, 1024, 8192}, {256, 256, 1224, 8392}},
		{{0, 256, 1024, 0}, {256, 256, 1280, 256}},
	} {
		require.Equal(t, apart, joined(apart))
	}
	require.Nil(t, joined(nil))
}
