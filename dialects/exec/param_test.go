package exec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/ir"
)

// Parameters read back as they were written, and what is none is refused with the reason.
func TestParams(t *testing.T) {
	kernel := func(scratch int64, params ...exec.Param) (*ir.Op, error) {
		c := dialects.NewContext()
		var list []ir.Attr
		for _, p := range params {
			list = append(list, p.Attr(c))
		}
		op := c.NewOp(exec.Kernel, ir.OpState{Attrs: []ir.NamedAttr{
			{Name: "sym_name", Value: c.String("k")}, {Name: "file", Value: c.String("k.ptx")}, {Name: "entry", Value: c.String("k")},
			{Name: "refs", Value: c.Array(c.TypeAttr(c.MemRef([]int64{64, 128}, c.Float(ir.BF16))))}, {Name: "outs", Value: c.Int64(1)},
			{Name: "blocks", Value: c.Int64(1)}, {Name: "threads", Value: c.Int64(32)}, {Name: "scratch", Value: c.Int64(scratch)},
			{Name: "params", Value: c.Array(list...)},
		}})
		return op, ir.Verify(c, op)
	}
	tile := func() *exec.Map {
		return &exec.Map{Elem: "bf16", Dims: []int64{128, 64}, Strides: []int64{256}, Box: []int64{64, 64}}
	}
	number := int64(-7)
	all := []exec.Param{{Ref: 0}, {Ref: 0, Offset: 128}, {Ref: -1, Offset: 512}, {Ref: 0, Map: tile()}, {Ref: -1, Offset: 1024, Map: tile()}, {Ref: -1, Value: &number}}
	op, err := kernel(1024+64*256, all...)
	require.NoError(t, err)
	got, err := exec.Params(op, "params")
	require.NoError(t, err)
	require.Equal(t, all, got)

	for want, p := range map[string]exec.Param{
		"offset 0 in reference 1 of 1":                     {Ref: 1},
		"it ends beyond the 1024 bytes that there are":     {Ref: -1, Offset: 4096},
		"it ends beyond the 16384 bytes that there are":    {Ref: 0, Offset: 16, Map: tile()},
		"beyond the 16384 bytes":                           {Ref: 0, Map: &exec.Map{Elem: "bf16", Dims: []int64{64, 1<<31 + 1, 1 << 31, 3}, Strides: []int64{1 << 39, 1 << 39, 1 << 39}, Box: []int64{64, 8, 1, 1}}},
		`no elements of type "i8"`:                         {Ref: 0, Map: &exec.Map{Elem: "i8"}},
		"2 dimensions, 0 strides, a box of 2":              {Ref: 0, Map: &exec.Map{Elem: "bf16", Dims: []int64{8, 8}, Box: []int64{8, 8}}},
		"a box has 1 to 256 in each dimension":             {Ref: 0, Map: &exec.Map{Elem: "bf16", Dims: []int64{128, 64}, Strides: []int64{256}, Box: []int64{64, 512}}},
		"rows of 256 bytes; a multiple of 16, at most 128": {Ref: 0, Map: &exec.Map{Elem: "bf16", Dims: []int64{128, 64}, Strides: []int64{256}, Box: []int64{128, 64}}},
		"a stride of 250 bytes; a multiple of 16":          {Ref: 0, Map: &exec.Map{Elem: "bf16", Dims: []int64{64, 64}, Strides: []int64{250}, Box: []int64{64, 64}}},
	} {
		_, err := kernel(1024, p)
		require.ErrorContains(t, err, want)
	}
}
