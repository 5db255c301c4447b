package ref

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	"github.com/stretchr/testify/require"
)

// A model of one weight row: y = x w, loss = sum (y - t)^2, trained by plain descent.
const program = `
builtin.module @line {
  blu.param @w {type = tensor<2xf32>, init = {kind = "ones"}}
  blu.state @"grads/w" {type = tensor<2xf32>, role = "gradient", persist = false}
  func.func @init(%seed: tensor<i64> {blu.scalar = "seed"}) -> (tensor<2xf32> {blu.state = @w}) {
    %w = blu.random_normal %seed {stream = 0 : i64, mean = 1.0 : f64, std = 0.0 : f64} : (tensor<i64>) -> tensor<2xf32>
    func.return %w : (tensor<2xf32>) -> ()
  }
  func.func @accumulate(%w: tensor<2xf32> {blu.state = @w}, %sum: tensor<2xf32> {blu.state = @"grads/w"}, %x: tensor<3x2xf32> {blu.input = "x"},
      %t: tensor<3xf32> {blu.input = "t"}, %first: tensor<i1> {blu.scalar = "first"}) -> (tensor<2xf32> {blu.state = @"grads/w"}, tensor<3xf32> {blu.output = "y"}) {
    %y = blu.dot %x, %w {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>} : (tensor<3x2xf32>, tensor<2xf32>) -> tensor<3xf32>
    %d = blu.sub %y, %t : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    %unused = blu.exp %d : (tensor<3xf32>) -> tensor<3xf32>
    %g = blu.dot %d, %x {lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 0>, rhs_contract = array<i64: 0>} : (tensor<3xf32>, tensor<3x2xf32>) -> tensor<2xf32>
    %s = blu.accumulate %sum, %g, %first : (tensor<2xf32>, tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
    func.return %s, %y : (tensor<2xf32>, tensor<3xf32>) -> ()
  }
  func.func @apply(%w: tensor<2xf32> {blu.state = @w}, %g: tensor<2xf32> {blu.state = @"grads/w"}, %lr: tensor<f32> {blu.scalar = "lr"}) -> (tensor<2xf32> {blu.state = @w}) {
    %b = blu.broadcast %lr {axes = array<i64>} : (tensor<f32>) -> tensor<2xf32>
    %step = blu.mul %g, %b : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %n = blu.sub %w, %step : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    func.return %n : (tensor<2xf32>) -> ()
  }
  func.func @pick(%w: tensor<2xf32> {blu.state = @w}, %i: tensor<2xi32> {blu.input = "i"}) -> (tensor<2xf32> {blu.output = "y"}) {
    %y = func.call %w, %i {callee = @rows} : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32>
    func.return %y : (tensor<2xf32>) -> ()
  }
  func.func private @rows(%w: tensor<2xf32>, %i: tensor<2xi32>) -> tensor<2xf32> {
    %y = blu.gather %w, %i : (tensor<2xf32>, tensor<2xi32>) -> tensor<2xf32> loc("line.blu":3:7)
    func.return %y : (tensor<2xf32>) -> ()
  }
}
`

func value(name string, d formats.DType, shape ...int64) artifact.Value {
	return artifact.Value{Name: name, DType: d, Shape: shape}
}

func lineArtifact() *artifact.Artifact {
	x, t, w := value("x", formats.F32, 3, 2), value("t", formats.F32, 3), value("w", formats.F32, 2)
	return &artifact.Artifact{
		Manifest: artifact.Manifest{
			Format: artifact.Format, Version: artifact.Version, Target: "ref", Model: "line",
			States: []artifact.State{{Value: w, Role: artifact.Param, Persist: true}, {Value: value("grads/w", formats.F32, 2), Role: artifact.Gradient}},
			Functions: []artifact.Function{
				{Name: "init", Scalars: []artifact.Value{value("seed", formats.I64)}},
				{Name: "accumulate", Inputs: []artifact.Value{x, t}, Outputs: []artifact.Value{value("y", formats.F32, 3)}, Scalars: []artifact.Value{value("first", formats.Bool)}},
				{Name: "apply", Scalars: []artifact.Value{value("lr", formats.F32)}},
				{Name: "pick", Inputs: []artifact.Value{value("i", formats.I32, 2)}, Outputs: []artifact.Value{value("y", formats.F32, 2)}},
			},
		},
		Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte(program)}},
	}
}

func array(t formats.Tensor) runtime.Array {
	return runtime.Array{DType: t.DType, Shape: t.Shape, Data: t.Data}
}

func floats(b []byte) []float32 {
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func state(t *testing.T, p runtime.Program, name string) []float32 {
	b := make([]byte, 8)
	require.NoError(t, p.ReadState(name, b))
	return floats(b)
}

func TestTrainingStep(t *testing.T) {
	p, err := Open(lineArtifact(), runtime.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	require.Equal(t, int64(2*2*8), p.MemoryInUse())
	_, err = p.Call("init", nil, runtime.Scalars{"seed": 1})
	require.NoError(t, err)
	require.Equal(t, []float32{1, 1}, state(t, p, "w"))

	in := map[string]runtime.Array{
		"x": array(formats.FromFloat32s([]float32{1, 2, 3, 4, 5, 6}, 3, 2)),
		"t": array(formats.FromFloat32s([]float32{2, 7, 13}, 3)),
	}
	nan := math.Float32bits(float32(math.NaN()))
	garbage := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, nan), nan)
	require.NoError(t, p.WriteState("grads/w", garbage))
	for i, want := range [][]float32{{1 - 10, 2 - 12}, {2 * (1 - 10), 2 * (2 - 12)}} { // residuals 1, 0, -2
		out, err := p.Call("accumulate", in, runtime.Scalars{"first": float64(1 - i)})
		require.NoError(t, err)
		require.Equal(t, []float32{3, 7, 11}, floats(out["y"].Data))
		require.Equal(t, want, state(t, p, "grads/w"))
	}
	_, err = p.Call("apply", nil, runtime.Scalars{"lr": 0.5})
	require.NoError(t, err)
	require.Equal(t, []float32{10, 11}, state(t, p, "w"))
}

// Steps far below half a unit in the last place of f32 add up: state is not rounded between calls.
func TestStateIsFloat64(t *testing.T) {
	p, err := Open(lineArtifact(), runtime.Options{})
	require.NoError(t, err)
	one := array(formats.FromFloat32s([]float32{1, -1}, 2)).Data
	require.NoError(t, p.WriteState("w", one))
	require.NoError(t, p.WriteState("grads/w", one))
	for range 1 << 10 {
		_, err := p.Call("apply", nil, runtime.Scalars{"lr": math.Ldexp(1, -30)})
		require.NoError(t, err)
	}
	require.Equal(t, []float32{1 - 1.0/(1<<20), -1 + 1.0/(1<<20)}, state(t, p, "w"))
}

func TestCallErrors(t *testing.T) {
	p, err := Open(lineArtifact(), runtime.Options{})
	require.NoError(t, err)
	_, err = p.Call("fly", nil, nil)
	require.ErrorContains(t, err, `no function "fly"`)
	_, err = p.Call("apply", nil, nil)
	require.ErrorContains(t, err, `scalar "lr" is missing`)
	_, err = p.Call("init", nil, runtime.Scalars{"seed": 0.5})
	require.ErrorContains(t, err, `scalar "seed" is 0.5, wants a whole number`)
	_, err = p.Call("pick", map[string]runtime.Array{"i": array(formats.FromInt32s([]int32{1, 2}, 2))}, nil)
	require.EqualError(t, err, "line.blu:3:7: error: blu.gather: index 2 at position [1] is out of range: the table has 2 rows")
	out, err := p.Call("pick", map[string]runtime.Array{"i": array(formats.FromInt32s([]int32{1, 0}, 2))}, nil)
	require.NoError(t, err)
	require.Len(t, out["y"].Data, 8)
	require.ErrorContains(t, p.ReadState("w", make([]byte, 7)), `state "w" has 8 bytes, not 7`)
	require.ErrorContains(t, p.WriteState("v", nil), `there is no state "v"`)
}

func TestOpenErrors(t *testing.T) {
	edit := func(change func(a *artifact.Artifact)) error {
		a := lineArtifact()
		change(a)
		_, err := Open(a, runtime.Options{})
		return err
	}
	swap := func(old, new string) func(a *artifact.Artifact) {
		require.Contains(t, program, old)
		return func(a *artifact.Artifact) { a.Files[0].Data = []byte(strings.Replace(program, old, new, 1)) }
	}
	for want, change := range map[string]func(a *artifact.Artifact){
		"the artifact has no reference.mlir to evaluate":                                                      func(a *artifact.Artifact) { a.Manifest.Target = "cpu" },
		"the artifact has no program.mlir to evaluate":                                                        func(a *artifact.Artifact) { a.Files = nil },
		`function "init": it is not in the program`:                                                           swap("@init", "@start"),
		`there is no symbol @w2`:                                                                              swap("-> (tensor<2xf32> {blu.state = @w})", "-> (tensor<2xf32> {blu.state = @w2})"),
		`result 1: nothing says what it is for`:                                                               swap(`{blu.output = "y"}`, ""),
		`declares @grads/w, and the manifest has no such state`:                                               func(a *artifact.Artifact) { a.Manifest.States = a.Manifest.States[:1] },
		`declares @w as param of f32[2], kept in checkpoints, the manifest lists it as param of f32[3], kept`: func(a *artifact.Artifact) { a.Manifest.States[0].Shape = []int64{3} },
		`output "z" is not among its results`: func(a *artifact.Artifact) {
			f := &a.Manifest.Functions[1]
			f.Outputs = append(f.Outputs, value("z", formats.F32))
		},
		"program.mlir:": func(a *artifact.Artifact) { a.Files[0].Data = a.Files[0].Data[:900] },
	} {
		require.ErrorContains(t, edit(change), want)
	}
}

// Every value is dropped exactly once, after the last operation that uses it; results and what is returned are not.
func TestLastUses(t *testing.T) {
	p, err := Open(lineArtifact(), runtime.Options{})
	require.NoError(t, err)
	f := p.(*device).functions["accumulate"]
	var drops []string
	for op := range f.body.Ops() {
		for _, v := range f.dead[op] {
			drops = append(drops, op.Def().Name+" "+ir.ValueName(v))
		}
	}
	require.Equal(t, "dot %arg0, sub %arg3, exp %2, dot %1, dot %arg2, accumulate %arg1, accumulate %3, accumulate %arg4", strings.Join(drops, ", "))
}

// A function that reads a copy reads the parameter as it was last written, in a call with changes, too.
func TestRefresh(t *testing.T) {
	w := value("w", formats.F32, 2)
	p, err := Open(&artifact.Artifact{
		Manifest: artifact.Manifest{
			Format: artifact.Format, Version: artifact.Version, Target: "ref", Model: "m",
			States:    []artifact.State{{Value: w, Role: artifact.Param, Persist: true}, {Value: value("bf16/w", formats.BF16, 2), Role: artifact.Copy, Of: "w"}},
			Functions: []artifact.Function{{Name: "refresh"}, {Name: "f", Outputs: []artifact.Value{value("y", formats.F32, 2)}}},
		},
		Files: []artifact.File{{Name: artifact.ProgramName, Data: []byte(`builtin.module @m {
  blu.param @w {type = tensor<2xf32>, init = {kind = "ones"}}
  blu.state @"bf16/w" {of = @w, persist = false, role = "copy", type = tensor<2xbf16>}
  func.func @f(%w: tensor<2xbf16> {blu.state = @"bf16/w"}) -> (tensor<2xf32> {blu.output = "y"}) {
    %y = blu.cast %w : (tensor<2xbf16>) -> tensor<2xf32>
    func.return %y : (tensor<2xf32>) -> ()
  }
  func.func @refresh(%w: tensor<2xf32> {blu.state = @w}) -> (tensor<2xbf16> {blu.state = @"bf16/w"}) {
    %h = blu.cast %w : (tensor<2xf32>) -> tensor<2xbf16>
    func.return %h : (tensor<2xbf16>) -> ()
  }
}
`)}},
	}, runtime.Options{})
	require.NoError(t, err)
	require.NoError(t, p.WriteState("w", array(formats.FromFloat32s([]float32{1 + 1.0/256, -1 - 3.0/256}, 2)).Data))
	out, err := p.Call("f", nil, nil)
	require.NoError(t, err)
	require.Equal(t, []float32{1, -1 - 4.0/256}, floats(out["y"].Data), "ties go to even")
	require.NoError(t, p.WriteState("w", array(formats.FromFloat32s([]float32{3, 4}, 2)).Data))
	changed, _, err := p.(Program).CallChanged("f", nil, nil, nil)
	require.NoError(t, err)
	require.Equal(t, []float64{3, 4}, changed["y"].Data)
	require.ErrorContains(t, p.WriteState("bf16/w", make([]byte, 4)), `is a copy of parameter "w"`)
}
