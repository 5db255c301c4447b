package train

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
	"blutrain/internal/near"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
)

// LoadParams gives a program the parameters found at a path: the folder of one checkpoint, a folder of checkpoints (the newest
// whose parameters are whole counts), or a safetensors file. It says which it took.
func LoadParams(p runtime.Program, path string) (taken string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return path, loadFile(p, path)
	}
	var done []func() error
	params := func(m *checkpoint.Manifest) (list []checkpoint.Want, err error) {
		list, done, err = paramsOf(p, m)
		return list, err
	}
	c, err := readCheckpoint(path, params)
	if err != nil {
		return "", err
	}
	for _, end := range done {
		if err := end(); err != nil {
			return "", err
		}
	}
	return c.Path, nil
}

func readCheckpoint(path string, params func(*checkpoint.Manifest) ([]checkpoint.Want, error)) (*checkpoint.Checkpoint, error) {
	if _, err := os.Stat(filepath.Join(path, "manifest.json")); err != nil {
		c, _, err := checkpoint.Newest(atomicfile.OS{}, path, params)
		return c, err
	}
	c, err := checkpoint.Read(atomicfile.OS{}, path, params)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// paramsOf wants a checkpoint's parameters, whatever its optimizer and whatever the ranks that saved it.
func paramsOf(p runtime.Program, m *checkpoint.Manifest) ([]checkpoint.Want, []func() error, error) {
	var names []string
	for _, t := range m.Tensors {
		if t.Role == string(artifact.Param) {
			names = append(names, t.Name)
		}
	}
	states, err := match(p, names, func(name string) (formats.DType, []int64, bool) {
		t, ok := m.Tensor(name)
		return t.DType, t.Shape, ok
	})
	if err != nil {
		return nil, nil, err
	}
	var shares []share
	for _, s := range states {
		shares = append(shares, share{state: s, shape: s.Shape, end: s.Bytes() / int64(s.DType.Size())})
	}
	return wants(p, m, shares)
}

func loadFile(p runtime.Program, path string) error {
	f, err := atomicfile.OS{}.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	tensors, err := safetensors.Open(f, f.Size())
	if err == nil {
		err = loadTensors(p, tensors)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func loadTensors(p runtime.Program, f *safetensors.File) error {
	var names []string
	for _, t := range f.Tensors {
		names = append(names, t.Name)
	}
	states, err := match(p, names, func(name string) (formats.DType, []int64, bool) {
		t, ok := f.Lookup(name)
		return t.DType, t.Shape, ok
	})
	if err != nil {
		return err
	}
	for _, s := range states {
		t, err := f.Read(s.Name)
		if err != nil {
			return err
		}
		if err := p.WriteState(s.Name, t.Data); err != nil {
			return err
		}
	}
	return nil
}

// match gives the program's parameters, if the tensors of these names have all of them; it refuses tensors that are no state of the
// program: they are a sign of another model.
func match(p runtime.Program, names []string, shape func(name string) (formats.DType, []int64, bool)) (params []artifact.State, err error) {
	states := map[string]artifact.State{}
	for _, t := range p.Manifest().Own() {
		states[t.Name] = t
	}
	known := slices.Sorted(maps.Keys(states))
	for _, name := range names {
		if _, ok := states[name]; !ok {
			return nil, fmt.Errorf("tensor %q is not in model %s%s", name, p.Manifest().Model, near.Suggest(name, known))
		}
	}
	for _, name := range known {
		want := states[name]
		if want.Role != artifact.Param {
			continue
		}
		dtype, shape, ok := shape(name)
		if !ok {
			return nil, fmt.Errorf("parameter %q is missing", name)
		}
		if dtype != want.DType || !slices.Equal(shape, want.Shape) {
			return nil, otherType(name, dtype, shape, want.DType, want.Shape)
		}
		params = append(params, want)
	}
	return params, nil
}

// otherType is the error for a tensor of a file that isn't what the model has. A weight matrix the other way round is told as such.
func otherType(name string, dtype formats.DType, shape []int64, modelDType formats.DType, modelShape []int64) error {
	hint := ""
	if len(shape) == 2 && len(modelShape) == 2 && shape[0] == modelShape[1] && shape[1] == modelShape[0] && shape[0] != shape[1] {
		hint = ": it is transposed"
	}
	return fmt.Errorf("%s is %s, in the model %s%s", name, dtype.Of(shape), modelDType.Of(modelShape), hint)
}
