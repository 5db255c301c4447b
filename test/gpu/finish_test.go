package gpu

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/driver"
	"blutrain/ir"
)

// The last steps of small sums, as of biases' gradients, wait for the collective that tells other ranks of them, and are one launch there:
// a program for many ranks starts a list of them for each bucket, where one for a single rank has a list at the end.
func TestSumsFinishBeforeTheirCollective(t *testing.T) {
	set := map[string]float64{"V": 61, "T": 8, "L": 4, "H": 2, "C": 16, "B": 2, "S": 8}
	r, err := driver.Compile("gpt2.blu", example(t, "gpt2.blu"), driver.Options{Target: "cuda", Precision: "bf16", Set: set, Sharding: driver.Sharding{Mesh: "dp=2", Bucket: 4096}})
	require.NoError(t, err)
	text, _ := r.Artifact.File(artifact.ProgramName)
	module, err := ir.Parse(dialects.NewContext(), artifact.ProgramName, text)
	require.NoError(t, err)
	calls, lists := 0, 0
	var steps []*ir.Op // since the last collective
	for op := range ir.LookupSymbol(module, "accumulate_last").Body().Ops() {
		switch {
		case op.Is(exec.Launch):
			steps = append(steps, op)
		case op.Is(exec.Collective):
			calls++
			for i, launch := range steps {
				kernel := launch.Attrs().Sym("kernel")
				if strings.HasPrefix(kernel, "finish_") && !strings.Contains(kernel, "cross_entropy") {
					require.Equal(t, len(steps)-1, i, "%s is not next to its collective", kernel)
					lists++
				}
			}
			steps = nil
		}
	}
	require.Greater(t, calls, 2)
	require.Greater(t, lists, 2)
	require.LessOrEqual(t, lists, calls)
}
