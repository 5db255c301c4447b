package train

import (
	"errors"
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
// valid one counts), or a safetensors file. It says which it took.
func LoadParams(p runtime.Program, path string) (taken string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return path, loadFile(p, path)
	}
	c, err := openCheckpoint(path)
	if err != nil {
		return "", err
	}
	if err := loadCheckpoint(p, c); err != nil {
		return "", errors.Join(fmt.Errorf("%s: %w", c.Path, err), c.Close())
	}
	return c.Path, c.Close()
}

func openCheckpoint(path string) (*checkpoint.Checkpoint, error) {
	if _, err := os.Stat(filepath.Join(path, "manifest.json")); err == nil {
		c, err := checkpoint.Open(atomicfile.OS{}, path)
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
		return c, err
	}
	c, _, err := checkpoint.Latest(atomicfile.OS{}, path)
	return c, err
}

// source is where parameters are read from.
type source struct {
	shape func(name string) (formats.DType, []int64, bool)
	read  func(name string, dst []byte) error
	names []string
}

func loadCheckpoint(p runtime.Program, c *checkpoint.Checkpoint) error {
	s := source{read: c.Read}
	s.shape = func(name string) (formats.DType, []int64, bool) {
		t, ok := c.Tensor(name)
		return t.DType, t.Shape, ok
	}
	for _, t := range c.Manifest.Tensors {
		if t.Role == string(artifact.Param) { // its optimizer may be another
			s.names = append(s.names, t.Name)
		}
	}
	return s.load(p)
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
	s := source{}
	s.shape = func(name string) (formats.DType, []int64, bool) {
		t, ok := f.Lookup(name)
		return t.DType, t.Shape, ok
	}
	s.read = func(name string, dst []byte) error {
		t, _ := f.Lookup(name)
		return f.ReadInto(t, dst)
	}
	for _, t := range f.Tensors {
		s.names = append(s.names, t.Name)
	}
	return s.load(p)
}

// load needs every parameter of the program, and refuses tensors that are no state of it: they are a sign of another model.
func (s source) load(p runtime.Program) error {
	states := map[string]artifact.State{}
	for _, t := range p.Manifest().States {
		states[t.Name] = t
	}
	known := slices.Sorted(maps.Keys(states))
	for _, name := range s.names {
		if _, ok := states[name]; !ok {
			return fmt.Errorf("tensor %q is not in model %s%s", name, p.Manifest().Model, near.Suggest(name, known))
		}
	}
	for _, name := range known {
		want := states[name]
		if want.Role != artifact.Param {
			continue
		}
		dtype, shape, ok := s.shape(name)
		if !ok {
			return fmt.Errorf("parameter %q is missing", name)
		}
		if dtype != want.DType || !slices.Equal(shape, want.Shape) {
			return fmt.Errorf("%s is %s, in the model %s", name, dtype.Of(shape), want.DType.Of(want.Shape))
		}
		buffer := make([]byte, want.Bytes())
		if err := s.read(name, buffer); err != nil {
			return err
		}
		if err := p.WriteState(name, buffer); err != nil {
			return err
		}
	}
	return nil
}
