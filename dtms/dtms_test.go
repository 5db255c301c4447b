package dtms

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
)

func TestRanks(t *testing.T) {
	for want, ranks := range map[string][]int{
		"no rank": nil, "rank 3": {3}, "ranks 1 and 2": {2, 1}, "ranks 0-3": {3, 1, 0, 2}, "ranks 1, 2, 4-6 and 9": {9, 4, 5, 6, 1, 2},
	} {
		require.Equal(t, want, Ranks(ranks))
	}
}

func TestRankErrors(t *testing.T) {
	cause := errors.New("no space left")
	errs := RankErrors{{Rank: 3, Fault: Dead, What: "died"}, {Rank: 1, Fault: Failed, What: "gave up", Err: cause}, {Rank: 3, Fault: Late, What: "is late"}}.Sorted()
	require.EqualError(t, errs, "rank 1 gave up; rank 3 died")
	wrapped := fmt.Errorf("step 7: %w", errs)
	require.Equal(t, errs, Faults(wrapped))
	require.ErrorIs(t, wrapped, cause)
	var one *RankError
	require.ErrorAs(t, wrapped, &one)
	require.Equal(t, 1, one.Rank)
	require.Equal(t, RankErrors{one}, Faults(fmt.Errorf("step 8: %w", one)))
	require.Nil(t, Faults(cause))

	text, err := json.Marshal(errs)
	require.NoError(t, err)
	var back RankErrors
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, errs.Error(), back.Error())
}

func TestNames(t *testing.T) {
	for _, o := range Ops() {
		require.True(t, o.Valid())
		require.NotContains(t, o.String(), "op(")
	}
	require.Equal(t, "op(0)", Op(0).String())
	require.Equal(t, "late", Late.String())
	require.Equal(t, "fault(200)", Fault(200).String())
	require.Equal(t, "reduce-scatter of 3 bf16", Call{Op: ReduceScatter, In: Host(formats.BF16, make([]byte, 12)), Out: Host(formats.BF16, make([]byte, 6))}.Describe())
}

func TestMemory(t *testing.T) {
	m := Of([]float64{1, 2, 3, 4})
	require.EqualValues(t, 4, m.Count())
	require.EqualValues(t, 32, m.Bytes())
	require.Equal(t, m.Address()+8, m.Slice(1, 3).Address())
	require.Len(t, m.Slice(1, 3).Data(), 16)
	d := Device(formats.F16, 1000, 10)
	require.True(t, d.OnDevice())
	require.EqualValues(t, 1006, d.Slice(3, 5).Address())
	require.EqualValues(t, 4, d.Slice(3, 5).Bytes())
}

// TestCheck holds arguments to the table of Call, for rank 1 of 2.
func TestCheck(t *testing.T) {
	m := Of(make([]float32, 8))
	device := Device(formats.F32, 4096, 8)
	for name, tc := range map[string]struct {
		call Call
		want string // "" for none
	}{
		"in place":                  {Call{Op: AllReduce, In: m, Out: m}, ""},
		"shifted":                   {Call{Op: AllReduce, In: m.Slice(0, 4), Out: m.Slice(2, 6)}, "overlap"},
		"device in place":           {Call{Op: AllReduce, In: device, Out: device}, ""},
		"two devices":               {Call{Op: AllReduce, In: m, Out: device}, "not on the same device"},
		"two types":                 {Call{Op: AllReduce, In: m, Out: Of(make([]int32, 8))}, "input is f32, output i32"},
		"bool":                      {Call{Op: AllReduce, In: Host(formats.Bool, make([]byte, 2)), Out: Host(formats.Bool, make([]byte, 2))}, "bool can't be summed"},
		"own block":                 {Call{Op: ReduceScatter, In: m, Out: m.Slice(4, 8)}, ""},
		"another's block":           {Call{Op: ReduceScatter, In: m, Out: m.Slice(0, 4)}, "overlap"},
		"too small":                 {Call{Op: ReduceScatter, In: m, Out: Of(make([]float32, 3))}, "input has 8 elements, 2 ranks times output's 3 expected"},
		"gathered in place":         {Call{Op: AllGather, In: m.Slice(4, 8), Out: m}, ""},
		"gathered from another's":   {Call{Op: AllGather, In: m.Slice(0, 4), Out: m}, "overlap"},
		"gathered count":            {Call{Op: AllGather, In: m, Out: m}, "output has 8 elements, 2 ranks times input's 8 expected"},
		"all-to-all in place":       {Call{Op: AllToAll, In: m, Out: m}, "overlap"},
		"all-to-all of odd count":   {Call{Op: AllToAll, In: Of(make([]float32, 3)), Out: Of(make([]float32, 3))}, "equal multiples of 2 ranks expected"},
		"root":                      {Call{Op: Broadcast, Out: m, Peer: 1}, ""},
		"no root":                   {Call{Op: Broadcast, Out: m, Peer: 2}, "rank 2 does not exist among 2"},
		"negative root":             {Call{Op: Broadcast, Out: m, Peer: -1}, "rank -1 does not exist"},
		"to itself":                 {Call{Op: Send, In: m, Peer: 1}, "rank 1 is this rank itself"},
		"half an element":           {Call{Op: Broadcast, Out: Host(formats.F32, make([]byte, 6))}, "no whole number of f32"},
		"no type":                   {Call{Op: Broadcast, Out: Host(formats.Invalid, make([]byte, 6))}, "no element type"},
		"negative count":            {Call{Op: Broadcast, Out: Device(formats.F32, 4096, -1)}, "-1 elements"},
		"misaligned":                {Call{Op: Broadcast, Out: Device(formats.F32, 4097, 1)}, "not aligned"},
		"nothing":                   {Call{Op: AllReduce, In: Of([]float32{}), Out: Of([]float32(nil))}, ""},
		"no operation":              {Call{In: m, Out: m}, "unknown operation"},
		"barrier":                   {Call{Op: Barrier}, ""},
		"receive more than is sent": {Call{Op: Recv, Out: m, Peer: 0}, ""}, // which only the sender can tell
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.call.check(1, 2)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestMajority(t *testing.T) {
	equal := func(a, b int) bool { return a == b }
	require.Equal(t, 1, Majority([]int{4, 5, 5}, equal))
	require.Equal(t, 0, Majority([]int{4, 5}, equal))
	require.Equal(t, 0, Majority([]int{4}, equal))
}
