package train

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/train/data"
)

// CheckFunctions says why a program cannot be trained.
func CheckFunctions(m *artifact.Manifest) error {
	if m.Train == nil {
		return fmt.Errorf("model %s has no train block", m.Model)
	}
	if m.Train.Batch.B < 1 {
		return fmt.Errorf("model %s does not train on samples: its batch has no size B", m.Model)
	}
	scalars := map[string][]string{
		"init": {"seed"}, artifact.Accumulate: {"first", "seed"}, artifact.AccumulateLast: {"first", "seed"}, "apply": {"lr", "step"}, "eval": {"seed"},
	}
	outputs := map[string][]string{"apply": {"loss", "grad_norm"}, "eval": {"loss_sum", "count"}}
	for _, name := range []string{"init", artifact.Accumulate, m.LastAccumulate(), "apply", "eval"} {
		f, ok := m.Function(name)
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

// checkInputs: accumulate and eval take a batch, init and apply nothing.
func checkInputs(m *artifact.Manifest, f *artifact.Function) error {
	var want []artifact.Value
	if f.Name == artifact.Accumulate || f.Name == artifact.AccumulateLast || f.Name == "eval" {
		want = m.Train.Inputs
	}
	same := func(a, b artifact.Value) bool {
		return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape)
	}
	if !slices.EqualFunc(f.Inputs, want, same) {
		return fmt.Errorf("function %s takes %s; a batch has %s", f.Name, nameAll(f.Inputs), nameAll(want))
	}
	return nil
}

func nameAll(inputs []artifact.Value) string {
	if len(inputs) == 0 {
		return "nothing"
	}
	var list []string
	for _, v := range inputs {
		list = append(list, v.Name+": "+v.DType.Of(v.Shape))
	}
	return strings.Join(list, ", ")
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
// samples read the same rows.
func DataConfig(m *artifact.Manifest, mesh *dtms.Mesh) data.Config {
	r := ranks{mesh}
	return data.Config{Inputs: m.Train.Inputs, Vocab: vocabulary(m), Rank: r.dpRank(), Ranks: r.dp()}
}
