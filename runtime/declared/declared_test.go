package declared

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/formats"
	"blutrain/ir"
)

const program = `builtin.module @m {
  exec.state @w {persist = true, role = "param", type = memref<2x3xf32>}
  exec.state @"bf16/w" {of = @w, persist = false, role = "copy", type = memref<2x3xbf16>}
  exec.state @m {persist = true, role = "optimizer", shard = {group = "world", ranks = 4 : i64, shape = array<i64: 2, 3>}, type = memref<2xf32>}
  exec.state @n {persist = false, role = "accumulator", type = memref<f32>}
}
`

func manifest() *artifact.Manifest {
	value := func(name string, d formats.DType, shape ...int64) artifact.Value {
		return artifact.Value{Name: name, DType: d, Shape: append([]int64{}, shape...)}
	}
	return &artifact.Manifest{States: []artifact.State{
		{Value: value("w", formats.F32, 2, 3), Role: artifact.Param, Persist: true},
		{Value: value("bf16/w", formats.BF16, 2, 3), Role: artifact.Copy, Of: "w"},
		{Value: value("m", formats.F32, 2), Role: artifact.Optimizer, Persist: true, Shard: &artifact.Shard{Group: "world", Ranks: 4, Shape: []int64{2, 3}}},
		{Value: value("n", formats.F32), Role: artifact.Accumulator},
	}}
}

// check parses a program as devices do.
func check(t *testing.T, m *artifact.Manifest, text string) error {
	c := dialects.NewContext()
	module, err := ir.Parse(c, "program.mlir", []byte(text))
	require.NoError(t, err)
	return Check(m, module)
}

func TestCheck(t *testing.T) {
	require.NoError(t, check(t, manifest(), program))
	require.NoError(t, check(t, &artifact.Manifest{States: manifest().States[:1]}, "builtin.module @m {\n  blu.param @w {type = tensor<2x3xf32>, init = {kind = \"ones\"}}\n}\n"))
	for _, c := range []struct {
		want   string
		change func(m *artifact.Manifest)
	}{
		{"program.mlir:3:3: error: the program declares @bf16/w as copy of bf16[2 3], of w, the manifest lists it as accumulator of bf16[2 3]",
			func(m *artifact.Manifest) { m.States[1].Role, m.States[1].Of = artifact.Accumulator, "" }},
		{"the manifest lists it as param of f32[3 2], kept in checkpoints", func(m *artifact.Manifest) { m.States[0].Shape = []int64{3, 2} }},
		{"the manifest lists it as param of f16[2 3]", func(m *artifact.Manifest) { m.States[0].DType = formats.F16 }},
		{"declares @w as param of f32[2 3], kept in checkpoints, the manifest lists it as param of f32[2 3]", func(m *artifact.Manifest) { m.States[0].Persist = false }},
		{"kept in checkpoints, a shard of [2 3] among 4 ranks of world, the manifest lists it as optimizer of f32[2], kept in checkpoints", func(m *artifact.Manifest) { m.States[2].Shard = nil }},
		{"a shard of [2 3] among 2 ranks of dp", func(m *artifact.Manifest) { m.States[2].Shard.Ranks, m.States[2].Shard.Group = 2, "dp" }},
		{"program.mlir:5:3: error: the program declares @n, and the manifest has no such state", func(m *artifact.Manifest) { m.States = m.States[:3] }},
		{`the manifest lists the state "k", which the program doesn't declare`, func(m *artifact.Manifest) {
			m.States = append(m.States, artifact.State{Value: artifact.Value{Name: "k", DType: formats.F32}, Role: artifact.Accumulator})
		}},
	} {
		m := manifest()
		c.change(m)
		require.ErrorContains(t, check(t, m, program), c.want)
	}
	require.ErrorContains(t, check(t, manifest(), strings.Replace(program, `role = "copy"`, `role = "boss"`, 1)), "declares @bf16/w as boss")
}

const called = `builtin.module @m {
  exec.func @f attributes {arena = 0 : i64, mem.interface = [{name = "tokens", space = "input", type = memref<2x8xi32>}, {name = "lr", space = "scalar", type = memref<f32>}, {name = "loss", space = "output", type = memref<f32>}]} {
  }
}
`

func TestCheckFunctions(t *testing.T) {
	calls := func() *artifact.Manifest {
		value := func(name string, d formats.DType, shape ...int64) artifact.Value {
			return artifact.Value{Name: name, DType: d, Shape: append([]int64{}, shape...)}
		}
		return &artifact.Manifest{Functions: []artifact.Function{{Name: "f", Inputs: []artifact.Value{value("tokens", formats.I32, 2, 8)},
			Outputs: []artifact.Value{value("loss", formats.F32)}, Scalars: []artifact.Value{value("lr", formats.F32)}}}}
	}
	require.NoError(t, check(t, calls(), called))
	for _, c := range []struct {
		want   string
		change func(f *artifact.Function)
	}{
		{"has input tokens i32[2 8], output loss f32[], scalar lr f32[], the manifest says input tokens i32[2147483647 8], output loss f32[], scalar lr f32[]",
			func(f *artifact.Function) { f.Inputs[0].Shape[0] = 2147483647 }},
		{"the manifest says input tokens i64[2 8]", func(f *artifact.Function) { f.Inputs[0].DType = formats.I64 }},
		{"the manifest says input tokens i32[2 8], scalar lr f32[]", func(f *artifact.Function) { f.Outputs = nil }},
		{"the program has a function @f, and the manifest none", func(f *artifact.Function) { f.Name = "g" }},
	} {
		m := calls()
		c.change(&m.Functions[0])
		require.ErrorContains(t, check(t, m, called), c.want)
	}
}
