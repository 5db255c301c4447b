package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/runtime/verify"
)

// Every kernel of the example models is within its bound of what float64 gives for the same inputs, in blocks that the
// sizes divide and in blocks that they don't.
func TestKernelsWithinBounds(t *testing.T) {
	for _, m := range []struct {
		name, file string
		set        map[string]float64
	}{
		{"gpt2", "gpt2.blu", models[0].set},
		{"gpt2 in several blocks", "gpt2.blu", map[string]float64{"V": 301, "T": 200, "L": 1, "H": 2, "C": 48, "B": 2, "S": 200}},
		{"llama", "llama.blu", models[1].set},
		{"mlp", "mlp.blu", nil},
	} {
		t.Run(m.name, func(t *testing.T) {
			for _, r := range kernelRows(t, example(t, m.file, m.set)) {
				require.False(t, r.Off(), "%s: %+v", r.Kernel, r)
				require.Positive(t, r.Checked, r.Kernel)
			}
		})
	}
}

func kernelRows(t *testing.T, a *artifact.Artifact) []verify.KernelRow {
	rows, err := verify.Kernels(Open(t, a, 2).(runtime.Tracer), a, 1)
	require.NoError(t, err)
	return rows
}

// A kernel that computes something else is found, and it alone, however little of what follows it is right.
func TestBrokenKernelsAreNamed(t *testing.T) {
	whole := example(t, "gpt2.blu", map[string]float64{"V": 301, "T": 64, "L": 2, "H": 4, "C": 64, "B": 2, "S": 64})
	for _, m := range []struct{ kernel, old, new string }{
		{"layernorm_", "value = 9.999999747378752e-06", "value = 1.1e-05"},
		{"gemm_nt_bias_gelu_", `fn = "gelu_tanh"`, `fn = "gelu_erf"`},
		{"attention_causal_", `fn = "exp"`, `fn = "sigmoid"`},
		{"attention_grad_", `fn = "sub"`, `fn = "add"`},
		{"gemm_tn_accumulate_", `host.unary %10, %8 {fn = "not"}`, "host.copy %10, %8"},
		{"gemm_nt_bias_", `fn = "add"`, `fn = "sub"`},
		{"reduce_sum_accumulate_", `fn = "sum"`, `fn = "max"`},
		{"scatter_into_", "cols = 64", "cols = 63"},
		{"sum_squares_", `fn = "mul"`, `fn = "add"`},
		{"adamw_", "value = 8.999999761581421e-01", "value = 9.0001e-01"},
	} {
		t.Run(m.kernel, func(t *testing.T) {
			a, name := mutate(t, whole, m.kernel, m.old, m.new)
			var off []string
			for _, r := range kernelRows(t, a) {
				if r.Off() {
					off = append(off, r.Kernel)
				}
			}
			require.Equal(t, []string{name}, off)
		})
	}
}

// mutate gives an artifact with a text replaced in one kernel of its program, the first that has it and whose name starts so.
func mutate(t *testing.T, a *artifact.Artifact, prefix, old, new string) (mutant *artifact.Artifact, kernel string) {
	t.Helper()
	m := *a
	m.Files = slices.Clone(a.Files)
	i := slices.IndexFunc(m.Files, func(f artifact.File) bool { return f.Name == artifact.ProgramName })
	parts := strings.Split(string(m.Files[i].Data), "host.kernel @")
	for n, p := range parts[1:] {
		body, _, _ := strings.Cut(p, "exec.func")
		if strings.HasPrefix(p, prefix) && strings.Contains(body, old) {
			parts[n+1] = strings.ReplaceAll(body, old, new) + p[len(body):]
			kernel, _, _ = strings.Cut(p, " ")
			m.Files[i].Data = []byte(strings.Join(parts, "host.kernel @"))
			return &m, kernel
		}
	}
	require.Fail(t, "no such kernel", "%s... with %s", prefix, old)
	return nil, ""
}
