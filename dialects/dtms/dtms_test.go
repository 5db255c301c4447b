package dtms_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// parse is the module with a function f of one tensor, whose body is given.
func parse(t *testing.T, body string) (*ir.Context, *ir.Op, error) {
	t.Helper()
	c := dialects.NewContext()
	m, err := ir.Parse(c, "test.mlir", []byte("builtin.module {\n"+body+"\n}\n"))
	require.NoError(t, err)
	return c, m, ir.Verify(c, m)
}

// f is a function that returns what op makes of x.
func f(op, from, to string) string {
	return fmt.Sprintf("func.func @f(%%x: %s) -> %s {\n  %%y = %s : (%s) -> %s\n  func.return %%y : (%s) -> ()\n}", from, to, op, from, to, to)
}

// What each rank gets, when rank r has 10r, 10r+1, ...
func TestMeaning(t *testing.T) {
	tests := []struct {
		op, from, to string
		want         string // of all ranks
	}{
		{`dtms.all_reduce %x {group = "world"}`, "tensor<2xf32>", "tensor<2xf32>", "[60 64] [60 64] [60 64] [60 64]"},
		{`dtms.all_reduce %x {group = "dp"}`, "tensor<2xf32>", "tensor<2xf32>", "[20 22] [40 42] [20 22] [40 42]"},
		{`dtms.all_reduce %x {group = "cp"}`, "tensor<2xf32>", "tensor<2xf32>", "[10 12] [10 12] [50 52] [50 52]"},
		{`dtms.reduce_scatter %x {group = "world", ranks = 4 : i64}`, "tensor<4x1xf32>", "tensor<1xf32>", "[60] [64] [68] [72]"},
		{`dtms.reduce_scatter %x {group = "cp", ranks = 2 : i64}`, "tensor<2x1xi32>", "tensor<1xi32>", "[10] [12] [50] [52]"},
		{`dtms.all_gather %x {group = "dp", ranks = 2 : i64}`, "tensor<2xf32>", "tensor<2x2xf32>", "[0 1 20 21] [10 11 30 31] [0 1 20 21] [10 11 30 31]"},
		{`dtms.all_to_all %x {group = "cp", ranks = 2 : i64}`, "tensor<2x2xf32>", "tensor<2x2xf32>", "[0 1 10 11] [2 3 12 13] [20 21 30 31] [22 23 32 33]"},
		{`dtms.permute %x {group = "world", ranks = 4 : i64, shift = 1 : i64}`, "tensor<f32>", "tensor<f32>", "[30] [0] [10] [20]"},
		{`dtms.permute %x {group = "world", ranks = 4 : i64, shift = -1 : i64}`, "tensor<f32>", "tensor<f32>", "[10] [20] [30] [0]"},
	}
	for _, tt := range tests {
		c, m, err := parse(t, f(tt.op, tt.from, tt.to))
		require.NoError(t, err, tt.op)
		arg := ir.LookupSymbol(m, "f").Body().Arg(0)
		got := make([]string, 4)
		err = dtms.Evaluate(2, 2, func(r *dtms.Rank) error {
			x := ir.NewTensor(arg.Elem(), arg.Shape()...)
			for i := range x.Data {
				x.Data[i] = float64(10*r.World + i)
			}
			in := ir.Interp{Ctx: c, Module: m, Exchange: r.Exchange}
			out, err := in.Call("f", x)
			if err != nil {
				return err
			}
			got[r.World] = fmt.Sprint(out[0].(*ir.Tensor).Data)
			return nil
		})
		require.NoError(t, err, tt.op)
		require.Equal(t, tt.want, strings.Join(got, " "), tt.op)
	}
}

// A program alone is the only rank of its mesh.
func TestAlone(t *testing.T) {
	c, m, err := parse(t, f(`dtms.all_reduce %x {group = "world"}`, "tensor<2xf32>", "tensor<2xf32>"))
	require.NoError(t, err)
	out, err := (&ir.Interp{Ctx: c, Module: m}).Call("f", &ir.Tensor{Shape: []int64{2}, Data: []float64{3, 4}})
	require.NoError(t, err)
	require.Equal(t, []float64{3, 4}, out[0].(*ir.Tensor).Data)

	c, m, err = parse(t, f(`dtms.all_gather %x {group = "cp", ranks = 2 : i64}`, "tensor<2xf32>", "tensor<2x2xf32>"))
	require.NoError(t, err)
	_, err = (&ir.Interp{Ctx: c, Module: m}).Call("f", &ir.Tensor{Shape: []int64{2}, Data: []float64{3, 4}})
	require.ErrorContains(t, err, "2 ranks of group cp take part, and this program is evaluated alone")
}

func TestVerify(t *testing.T) {
	const started = "func.func @f(%x: tensor<2xf32>, %z: tensor<2xf32>) -> tensor<2xf32> {\n" +
		"  %f = dtms.start %x {group = \"world\", op = \"OP\"} : (tensor<2xf32>) -> tensor<2xf32>\nREST\n}"
	start := func(op, rest string) string {
		return strings.NewReplacer("OP", op, "REST", rest).Replace(started)
	}
	const wait = "  %y = dtms.wait %f, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"
	const ret = "  func.return %y : (tensor<2xf32>) -> ()"
	tests := []struct{ body, want string }{
		{start("all_reduce", wait+ret), ""},
		{f(`dtms.all_reduce %x {group = "tp"}`, "tensor<2xf32>", "tensor<2xf32>"), `there is no group "tp": expected world, dp or cp`},
		{f(`dtms.all_gather %x {group = "dp", ranks = 0 : i64}`, "tensor<2xf32>", "tensor<0x2xf32>"), "ranks is 0"},
		{f(`dtms.reduce_scatter %x {group = "dp", ranks = 3 : i64}`, "tensor<2xf32>", "tensor<f32>"), "operand 0: the first dimension of shape [2] is not that of 3 blocks"},
		{f(`dtms.permute %x {group = "cp", ranks = 2 : i64, shift = 2 : i64}`, "tensor<2xf32>", "tensor<2xf32>"), "shift is 2: expected less than the 2 ranks"},
		{f(`dtms.permute %x {group = "cp", ranks = 2 : i64}`, "tensor<2xf32>", "tensor<2xf32>"), "shift"},
		{f(`dtms.all_reduce %x {group = "dp"}`, "tensor<2xi1>", "tensor<2xi1>"), "tensor of numbers"},
		{"func.func @f(%x: tensor<2xf32>, %z: tensor<2xbf16>) {\n  %y:2 = dtms.all_reduce %x, %z {group = \"dp\"} : (tensor<2xf32>, tensor<2xbf16>) -> (tensor<2xf32>, tensor<2xbf16>)\n  func.return : () -> ()\n}",
			"a bucket has one element type"},
		{"func.func @f() {\n  dtms.all_reduce {group = \"dp\"} : () -> ()\n  func.return : () -> ()\n}", "nothing to communicate"},
		{start("sum", wait+ret), `there is no collective "sum"`},
		{start("all_reduce", "  func.return %f : (tensor<2xf32>) -> ()"), "result 0 is used by func.return, expected the dtms.wait of this start"},
		{start("all_reduce", "  func.return %z : (tensor<2xf32>) -> ()"), "result 0 has 0 uses, expected one, by its dtms.wait"},
		{start("all_reduce", wait+"  %w = dtms.wait %f, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>\n"+ret), "result 0 has 2 uses"},
		{start("all_reduce", strings.Replace(wait, "%f, %x", "%f, %z", 1)+ret), "expected the results of one dtms.start, in order, then its operands"},
		{start("all_reduce", strings.Replace(wait, "%f, %x", "%z, %x", 1)+ret), "the first operand is no result of a dtms.start"},
	}
	for _, tt := range tests {
		_, _, err := parse(t, tt.body)
		if tt.want == "" {
			require.NoError(t, err, tt.body)
		} else {
			require.ErrorContains(t, err, tt.want, tt.body)
		}
	}
}

// Ranks that don't meet are an error, not a wait without end.
func TestRanksThatDoNotMeet(t *testing.T) {
	const two = "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = dtms.all_reduce %x {group = \"world\"} : (tensor<2xf32>) -> tensor<2xf32>\n  func.return %y : (tensor<2xf32>) -> ()\n}\n" +
		"func.func @g(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = dtms.permute %x {group = \"world\", ranks = 3 : i64, shift = 1 : i64} : (tensor<2xf32>) -> tensor<2xf32>\n  func.return %y : (tensor<2xf32>) -> ()\n}"
	c, m, err := parse(t, two)
	require.NoError(t, err)
	run := func(dp int, of func(rank int) string) error {
		return dtms.Evaluate(dp, 1, func(r *dtms.Rank) error {
			if of(r.World) == "" {
				return nil
			}
			in := ir.Interp{Ctx: c, Module: m, Exchange: r.Exchange}
			_, err := in.Call(of(r.World), ir.NewTensor(c.F32(), 2))
			return err
		})
	}
	require.NoError(t, run(3, func(int) string { return "g" }))
	require.ErrorContains(t, run(3, func(r int) string { return []string{"f", "", "f"}[r] }), "1 ranks of group world never come to the all_reduce where the others wait")
	require.ErrorContains(t, run(3, func(r int) string { return []string{"f", "g", "f"}[r] }), "to where others do")
	require.ErrorContains(t, run(2, func(int) string { return "g" }), "permute of 3 ranks in group world, which has 2")
	require.ErrorContains(t, run(3, func(r int) string { return []string{"f", "nothing", "f"}[r] }), `rank 1: no function "nothing"`)
}

// The bytes that a rank sends, of 12 float32 elements among 4 ranks.
func TestSent(t *testing.T) {
	for op, want := range map[string]float64{"all_reduce": 72, "reduce_scatter": 36, "all_to_all": 36, "all_gather": 144, "permute": 48} {
		c := ir.NewContext()
		call := dtms.Call{Op: op, Elem: c.F32(), Elems: 12, Shift: 1}
		require.Equal(t, want, call.Sent(4), op)
		require.Zero(t, call.Sent(1), op)
	}
}

func TestMesh(t *testing.T) {
	c, m, err := parse(t, "")
	require.NoError(t, err)
	_, ok, err := dtms.MeshOf(m)
	require.NoError(t, err)
	require.False(t, ok)
	mesh := dtms.Mesh{DP: 3, CP: 2, Zero: 1, Context: "ulysses"}
	m.SetAttr(dtms.MeshAttr, mesh.Attr(c))
	got, ok, err := dtms.MeshOf(m)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, mesh, got)
	require.Equal(t, []int{6, 3, 2}, []int{mesh.Ranks(dtms.World), mesh.Ranks(dtms.DP), mesh.Ranks(dtms.CP)})
	for _, tt := range []struct {
		mesh dtms.Mesh
		want string
	}{
		{dtms.Mesh{CP: 0}, "expected 1 to 65536 in all"},
		{dtms.Mesh{DP: 1 << 10, CP: 1 << 10, Context: "ring"}, "expected 1 to 65536 in all"},
		{dtms.Mesh{DP: 2, CP: 1, Zero: 2}, "zero=2"},
		{dtms.Mesh{CP: 1, Zero: 1}, "say dp=N in the mesh"},
		{dtms.Mesh{CP: 2, Context: "star"}, `context "star"`},
	} {
		require.ErrorContains(t, tt.mesh.Check(), tt.want)
		m.SetAttr(dtms.MeshAttr, tt.mesh.Attr(c))
		_, _, err = dtms.MeshOf(m)
		require.ErrorContains(t, err, tt.want)
	}
}
