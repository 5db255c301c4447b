package train

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/formats"
	"blutrain/train/data"
)

// Names of a loss's inputs that the data feeds.
const (
	tokensName  = "tokens"
	targetsName = "targets"
)

// lastName is the function that stands in for accumulate at a step's last micro-batch, in programs that have it: it sums over the
// ranks, too.
const lastName = "accumulate_last"

// CheckFunctions says why a program cannot be trained on tokens.
func CheckFunctions(m *artifact.Manifest) error {
	if m.Train == nil {
		return fmt.Errorf("model %s has no train block", m.Model)
	}
	if b := m.Train.Batch; b.B < 1 || b.S < 1 {
		return fmt.Errorf("model %s does not train on tokens: its batch has no B rows of S tokens", m.Model)
	}
	scalars := map[string][]string{
		"init": {"seed"}, "accumulate": {"first", "seed"}, lastName: {"first", "seed"}, "apply": {"lr", "step"}, "eval": {"seed"},
	}
	outputs := map[string][]string{"apply": {"loss", "grad_norm"}, "eval": {"loss_sum", "count"}}
	for _, name := range []string{"init", "accumulate", lastName, "apply", "eval"} {
		f, ok := m.Function(name)
		if !ok && name == lastName {
			continue
		}
		if !ok {
			return fmt.Errorf("the program has no function %s", name)
		}
		for _, s := range f.Scalars {
			if !slices.Contains(scalars[name], s.Name) && !m.IsMeshScalar(s.Name) {
				return fmt.Errorf("function %s needs a scalar %q, which training does not have", name, s.Name)
			}
		}
		for _, want := range outputs[name] {
			i := slices.IndexFunc(f.Outputs, func(v artifact.Value) bool { return v.Name == want })
			if i < 0 || len(f.Outputs[i].Shape) != 0 {
				return fmt.Errorf("function %s has no scalar output %q", name, want)
			}
		}
		if err := checkInputs(m, f); err != nil {
			return err
		}
	}
	return nil
}

// checkInputs: accumulate and eval take tokens and targets of a batch, init and apply nothing.
func checkInputs(m *artifact.Manifest, f *artifact.Function) error {
	var want []string
	if f.Name == "accumulate" || f.Name == lastName || f.Name == "eval" {
		want = []string{tokensName, targetsName}
	}
	shape := []int64{m.Train.Batch.B, m.Train.Batch.S}
	for _, v := range f.Inputs {
		if !slices.Contains(want, v.Name) || v.DType != formats.I32 || !slices.Equal(v.Shape, shape) {
			return fmt.Errorf("function %s takes %s: %s; the data gives %s: %s", f.Name, v.Name, v.DType.Of(v.Shape), nameList(want), formats.I32.Of(shape))
		}
	}
	if len(f.Inputs) != len(want) {
		return fmt.Errorf("function %s takes %d inputs; the data gives %s", f.Name, len(f.Inputs), nameList(want))
	}
	return nil
}

func nameList(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// vocabulary is the model's argument V, which by convention is the size of its vocabulary, or, without one, that of all 16-bit
// tokens; the program itself checks each index, too.
func vocabulary(m *artifact.Manifest) int64 {
	if v, ok := m.Args["V"]; ok && v >= 1 && v <= 1<<16 {
		return int64(v)
	}
	return 1 << 16
}

// DataConfig is the loader's configuration for a model on a rank of a mesh; without a mesh, on the only one. Ranks that share
// sequences read the same rows.
func DataConfig(m *artifact.Manifest, mesh *dtms.Mesh) data.Config {
	r := ranks{mesh}
	return data.Config{B: m.Train.Batch.B, S: m.Train.Batch.S, Vocab: vocabulary(m), Rank: r.dpRank(), Ranks: r.dp()}
}
