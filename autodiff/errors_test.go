package autodiff

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/blu"
	"blutrain/dialects/kinds"
	"blutrain/ir"
)

// Wrong programs: the error names the operation and stands at its source line.
func TestErrors(t *testing.T) {
	at := func(b *blu.Builder, line int) *blu.Builder {
		b.Builder.At(b.Ctx.FileLoc("test.blu", line, 5))
		return b
	}
	for _, c := range []struct {
		name   string
		inputs []input
		wrt    []int
		body   build
		want   string
	}{
		{"through a comparison", []input{dims(3)}, []int{0}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			positive := at(b, 7).Compare(in[0], number(b, in[0], 0), "gt")
			return single(at(b, 8).Mul(in[0], b.Cast(positive, in[0].Type())))
		}, "test.blu:7:5: error: no gradient can pass through a comparison: it gives truth values (stop_gradient says that none is wanted)"},
		{"through argmax alone", []input{dims(3)}, []int{0}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			best := at(b, 7).Argmax(in[0], 0)
			return single(at(b, 8).Cast(best, b.Ctx.Tensor(nil, b.Ctx.F64())))
		}, "test.blu:7:5: error: no gradient can pass through argmax: it gives whole numbers"},
		{"through the index of a constant table", []input{dims(3), dims(3)}, []int{0}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			return single(b.Gather(in[1], at(b, 9).Argmax(in[0], 0)))
		}, "test.blu:9:5: error: no gradient can pass through argmax"},
		{"one argument only through an index", []input{dims(3), dims(3)}, []int{0, 1}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			return single(b.Gather(in[1], at(b, 9).Argmax(in[0], 0)))
		}, "test.blu:9:5: error: no gradient can pass through argmax"},
		{"by an integer", []input{indices([]int64{2}, 0, 1), dims(3)}, []int{0}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			return single(b.Gather(in[1], in[0]))
		}, "no gradient by a value of type tensor<2xi32>"},
		{"through a loop that uses a value from outside", []input{dims(3)}, []int{0}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			loop := ir.Define("test", ir.OpDef{
				Name: "loop", Regions: []ir.RegionDef{{Name: "body"}}, Results: []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}}, Traits: ir.NoTerminator,
			})
			op := at(b, 6).CreateState(loop, ir.OpState{Regions: 1, Results: []ir.Type{in[0].Type()}})
			use := ir.Define("test", ir.OpDef{Name: "use", Operands: []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}}})
			ir.NewBuilder(b.Ctx, op.Region(0).AddBlock()).CreateState(use, ir.OpState{Operands: in})
			return single(op.Result(0))
		}, "test.blu:6:5: error: test.loop can't be reversed: its body depends on what the gradient is taken by"},
		{"through an operation that claims none", []input{dims(3)}, []int{0}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
			some, one := []ir.OperandDef{{Name: "x", Type: kinds.AnyTensor}}, []ir.ResultDef{{Name: "y", Type: kinds.AnyTensor}}
			opaque := ir.Define("test", ir.OpDef{Name: "opaque", Operands: some, Results: one})
			op := at(b, 4).CreateState(opaque, ir.OpState{Operands: in, Results: []ir.Type{in[0].Type()}})
			return single(op.Result(0))
		}, "test.blu:4:5: error: test.opaque has no gradient rule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProgram(t, c.inputs, c.body)
			_, err := VJP(p.c, p.module, p.fn, "g", c.wrt)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// stop_gradient allows what would be an error.
func TestStopGradientAllowsIntegers(t *testing.T) {
	ds := gradientAt(t, []input{dims(3)}, func(b *blu.Builder, in []*ir.Value) []*ir.Value {
		positive := b.Compare(b.StopGradient(in[0]), number(b, in[0], 0), "gt")
		return single(b.Mul(in[0], b.Cast(positive, in[0].Type())))
	}, []float64{-1, 0, 2})
	require.Equal(t, []float64{0, 0, 1}, ds[0])
}
