package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/runtime"
	"blutrain/test/numbers"
)

// example compiles an example model for the CPU.
func example(t testing.TB, name string, set map[string]float64) *artifact.Artifact {
	t.Helper()
	file := filepath.Join("..", "..", "examples", name)
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	r, err := driver.Compile(file, src, driver.Options{Target: "cpu", Set: set})
	require.NoError(t, err)
	return r.Artifact
}

// model is a small model with stored values.
type model struct {
	file, golden string
	set          map[string]float64
}

// models is those of tokens.
var models = []model{
	{"gpt2.blu", "gpt2-small", map[string]float64{"V": 97, "T": 32, "L": 2, "H": 2, "C": 32, "B": 2, "S": 24}},
	{"llama.blu", "llama-small", map[string]float64{"V": 97, "L": 2, "H": 4, "K": 2, "C": 32, "F": 48, "B": 2, "S": 24}},
}

// imageModels is the same for models of images.
var imageModels = []model{
	{"convnet.blu", "convnet-small", map[string]float64{"IN": 2, "N": 12, "CLASSES": 5, "C": 4, "M": 9, "DROP": 0, "B": 6}},
	{"vit.blu", "vit-small", map[string]float64{"IN": 3, "N": 8, "P": 2, "CLASSES": 5, "L": 2, "H": 2, "C": 12, "DROP": 0, "B": 4}},
}

// Each float32 gradient on the CPU is as good as PyTorch's float32, judged by float64: at most 1.5 times its error, or, of the models
// of images, the worst error of nine runs.
func TestGradientsAgainstPyTorch(t *testing.T) {
	for _, m := range slices.Concat(models, imageModels) {
		t.Run(m.golden, func(t *testing.T) {
			a := example(t, m.file, m.set)
			for _, threads := range []int{1, 2, 5} {
				gradients(t, a, m.golden, threads)
			}
		})
	}
}

func gradients(t *testing.T, a *artifact.Artifact, golden string, threads int) {
	p := Open(t, a, threads)
	inputs, want, torch := numbers.Golden(t, golden+".inputs"), numbers.Golden(t, golden+".float64"), numbers.Golden(t, golden+".torch32")
	load(t, p, inputs)
	_, err := p.Call("accumulate", batch(t, inputs), runtime.Scalars{"first": 1, "seed": 1})
	require.NoError(t, err)
	count := want.Scalar(t, "count")
	require.Equal(t, count, state(t, p, "count")[0])
	checkError(t, "loss_sum", state(t, p, "loss_sum"), want.Float64s(t, "loss_sum"), torch.Scalar(t, "error.loss_sum"))
	for _, name := range want.Names("grad.") {
		allowed := torch.Scalar(t, "error.grad."+name)
		if slices.Contains(inputs.Names(""), "images") { // smaller tensors, of which one draw says less
			allowed = max(allowed, numbers.Golden(t, golden+".spread").Scalar(t, "error.grad."+name)/1.5)
		}
		got := state(t, p, "grads/"+name)
		for i := range got {
			got[i] /= count // what is summed is the gradient of the sum
		}
		checkError(t, name, got, want.Float64s(t, "grad."+name), allowed)
	}
}

// checkError holds a relative error to 1.5 times PyTorch's. A unit in the last place is always allowed: PyTorch's error of a
// scalar is one draw, and where it happens to be less than that it says nothing.
func checkError(t *testing.T, name string, got, want []float64, torch float64) {
	t.Helper()
	const ulp = 1.0 / (1 << 23)
	require.LessOrEqual(t, numbers.RelativeError(got, want), max(1.5*torch, ulp), name)
}

func load(t *testing.T, p runtime.Program, inputs *numbers.Values) {
	t.Helper()
	for _, s := range p.Manifest().States {
		if s.Role == artifact.Param {
			require.NoError(t, p.WriteState(s.Name, inputs.Tensor(t, s.Name).Data), s.Name)
		}
	}
}

func batch(t *testing.T, inputs *numbers.Values) map[string]runtime.Array {
	in := map[string]runtime.Array{}
	for _, name := range []string{"tokens", "targets", "images", "labels"} {
		if !slices.Contains(inputs.Names(""), name) {
			continue
		}
		x := inputs.Tensor(t, name)
		in[name] = runtime.Array{DType: x.DType, Shape: x.Shape, Data: x.Data}
	}
	return in
}

// state is the elements of a state of float32.
func state(t *testing.T, p runtime.Program, name string) []float64 {
	t.Helper()
	s, ok := p.Manifest().State(name)
	require.True(t, ok, name)
	raw := make([]byte, s.Bytes())
	require.NoError(t, p.ReadState(name, raw))
	x := runtime.Array{DType: s.DType, Shape: s.Shape, Data: raw}
	return Floats(x)
}

// Logits of the model agree with float64 as PyTorch's do, and eval gives the loss that accumulate gives.
func TestForwardAgainstPyTorch(t *testing.T) {
	for _, m := range slices.Concat(models, imageModels) {
		t.Run(m.golden, func(t *testing.T) {
			p := Open(t, example(t, m.file, m.set), 2)
			inputs, want, torch := numbers.Golden(t, m.golden+".inputs"), numbers.Golden(t, m.golden+".float64"), numbers.Golden(t, m.golden+".torch32")
			load(t, p, inputs)
			in := batch(t, inputs)
			out, err := p.Call("eval", in, nil)
			require.NoError(t, err)
			checkError(t, "loss_sum", Floats(out["loss_sum"]), want.Float64s(t, "loss_sum"), torch.Scalar(t, "error.loss_sum"))
			delete(in, "targets")
			delete(in, "labels")
			out, err = p.Call("logits", in, nil)
			require.NoError(t, err)
			checkError(t, "logits", Floats(out["logits"]), want.Float64s(t, "logits"), torch.Scalar(t, "error.logits"))
		})
	}
}

// A token or a target out of range is an error that names its position and value, and nothing is read there.
func TestIndexOutOfRange(t *testing.T) {
	m := models[0]
	p := Open(t, example(t, m.file, m.set), 2)
	inputs := numbers.Golden(t, m.golden+".inputs")
	load(t, p, inputs)
	for input, value := range map[string]int32{"tokens": 97, "targets": -2} {
		in := batch(t, inputs)
		bad := in[input]
		bad.Data = append([]byte{}, bad.Data...)
		copy(bad.Data[4*30:], []byte{byte(value), byte(value >> 8), byte(value >> 16), byte(value >> 24)})
		in[input] = bad
		_, err := p.Call("accumulate", in, runtime.Scalars{"first": 1})
		require.ErrorContains(t, err, fmt.Sprintf("index %d at position 30", value), input)
		require.True(t, strings.Contains(err.Error(), "gpt2.blu:"), "%v", err)
	}
}

// Every matrix product of GPT-2 outside attention is one product on all workers, and nothing that a step of training
// computes is copied.
func TestProductsAreWhole(t *testing.T) {
	a := example(t, "gpt2.blu", map[string]float64{"V": 301, "T": 64, "L": 2, "H": 4, "C": 64, "B": 2, "S": 64})
	text, _ := a.File(artifact.ProgramName)
	kernel, function, products := "", "", 0
	for line := range strings.Lines(string(text)) {
		if _, name, ok := strings.Cut(line, "host.kernel @"); ok {
			kernel, _, _ = strings.Cut(name, " ")
		}
		if _, name, ok := strings.Cut(line, "exec.func @"); ok {
			function, _, _ = strings.Cut(name, " ")
		}
		if strings.Contains(line, "host.gemm") {
			products++
		}
		if strings.Contains(line, "host.dot") {
			require.Contains(t, kernel, "attention", "a product computed block by block")
		}
		if function == "accumulate" || function == "apply" {
			require.NotContains(t, line, "exec.copy")
		}
	}
	require.GreaterOrEqual(t, products, 12, "one for each layout and shape")
}
