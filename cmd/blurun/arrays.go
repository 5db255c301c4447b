package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/formats/atomicfile"
	"blutrain/formats/npy"
	"blutrain/formats/safetensors"
	"blutrain/internal/near"
	"blutrain/runtime"
)

// checkFiles refuses to write over the model or an input, or two outputs to one file.
func checkFiles(model string, in, out []string) error {
	file := func(arg string) string {
		if _, file, named := strings.Cut(arg, "="); named {
			return file
		}
		return arg
	}
	inputs, outputs := []string{model}, []string{}
	for _, arg := range in {
		inputs = append(inputs, file(arg))
	}
	for _, arg := range out {
		outputs = append(outputs, file(arg))
	}
	if err := atomicfile.Distinct(inputs, outputs); err != nil {
		return usageError(err.Error())
	}
	return nil
}

// readInputs reads the files that stand on the command line as NAME=FILE, or FILE.safetensors for all that are missing.
func readInputs(args []string, want []artifact.Value) (map[string]runtime.Array, error) {
	var known []string
	for _, v := range want {
		known = append(known, v.Name)
	}
	in := map[string]runtime.Array{}
	for _, arg := range args {
		name, file, named := strings.Cut(arg, "=")
		if !named {
			if err := readAll(arg, known, in); err != nil {
				return nil, err
			}
			continue
		}
		if !slices.Contains(known, name) {
			return nil, usagef("--in %s: no input %q%s", arg, name, near.Suggest(name, known))
		}
		if _, twice := in[name]; twice {
			return nil, usagef("--in %s: input %q is given twice", arg, name)
		}
		t, err := readTensor(file, name)
		if err != nil {
			return nil, err
		}
		in[name] = runtime.Array(t)
	}
	for _, v := range want {
		t, ok := in[v.Name]
		if !ok {
			return nil, usagef("input %q (%s) is missing: give --in %s=FILE", v.Name, v.DType.Of(v.Shape), v.Name)
		}
		if t.DType != v.DType || !slices.Equal(t.Shape, v.Shape) {
			return nil, fmt.Errorf("input %q is %s, the function takes %s", v.Name, t.DType.Of(t.Shape), v.DType.Of(v.Shape))
		}
	}
	return in, nil
}

// readTensor reads a .npy file, or the tensor of this name in a .safetensors file.
func readTensor(file, name string) (t formats.Tensor, err error) {
	if filepath.Ext(file) == ".safetensors" {
		err = withSafetensors(file, func(f *safetensors.File) error {
			t, err = f.Read(name)
			return err
		})
		return t, err
	}
	if filepath.Ext(file) != ".npy" {
		return t, usagef("%q: inputs are .npy or .safetensors files", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return t, err
	}
	defer f.Close()
	if t, err = npy.ReadAll(f); err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return t, err
}

// readAll takes every tensor of a file, each of which must be an input.
func readAll(file string, known []string, in map[string]runtime.Array) error {
	if filepath.Ext(file) != ".safetensors" {
		return usagef("--in %s: say which input it is, NAME=%s", file, file)
	}
	return withSafetensors(file, func(f *safetensors.File) error {
		for _, info := range f.Tensors {
			if !slices.Contains(known, info.Name) {
				return fmt.Errorf("no input %q%s", info.Name, near.Suggest(info.Name, known))
			}
			if _, twice := in[info.Name]; twice {
				return fmt.Errorf("input %q is given twice", info.Name)
			}
			t, err := f.Read(info.Name)
			if err != nil {
				return err
			}
			in[info.Name] = runtime.Array(t)
		}
		return nil
	})
}

func withSafetensors(file string, use func(f *safetensors.File) error) error {
	r, err := atomicfile.OS{}.Open(file)
	if err != nil {
		return err
	}
	defer r.Close()
	f, err := safetensors.Open(r, r.Size())
	if err == nil {
		err = use(f)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// writeOutputs writes outputs as the command line asks: NAME=FILE.npy, FILE.npy when there is one, FILE.safetensors for all.
func writeOutputs(args []string, out map[string]runtime.Array) error {
	known := slices.Sorted(maps.Keys(out))
	type job struct {
		file  string
		write func(io.Writer) error
	}
	var jobs []job // first see that all can be meant, then write
	for _, arg := range args {
		name, file, named := strings.Cut(arg, "=")
		if !named {
			name, file = known[0], arg
		}
		switch ext := filepath.Ext(file); {
		case ext == ".safetensors" && !named:
			jobs = append(jobs, job{file, func(w io.Writer) error { return writeAll(w, out) }})
		case ext != ".npy":
			return usagef("--out %s: outputs are NAME=FILE.npy or FILE.safetensors", arg)
		case !named && len(known) > 1:
			return usagef("--out %s: say which output, NAME=%s (%s)", arg, file, strings.Join(known, ", "))
		default:
			t, ok := out[name]
			if !ok {
				return usagef("--out %s: no output %q%s", arg, name, near.Suggest(name, known))
			}
			jobs = append(jobs, job{file, func(w io.Writer) error { return npy.Write(w, formats.Tensor(t)) }})
		}
	}
	for _, j := range jobs {
		if err := atomicfile.WriteFile(atomicfile.OS{}, j.file, j.write); err != nil {
			return err
		}
	}
	return nil
}

func writeAll(w io.Writer, out map[string]runtime.Array) error {
	var entries []safetensors.Entry
	for name, t := range out {
		entries = append(entries, safetensors.Of(name, formats.Tensor(t)))
	}
	return safetensors.Write(w, entries, nil)
}

// printOutputs shows each output's type and its first elements.
func printOutputs(w io.Writer, out map[string]runtime.Array) error {
	for _, name := range slices.Sorted(maps.Keys(out)) {
		t := out[name]
		if _, err := fmt.Fprintf(w, "%s: %s %s\n", name, t.DType.Of(t.Shape), preview(formats.Tensor(t))); err != nil {
			return err
		}
	}
	return nil
}

func preview(t formats.Tensor) string {
	const most = 8
	if t.Len() <= most {
		return fmt.Sprint(t.Float64s())
	}
	t.Data = t.Data[:most*t.DType.Size()]
	return strings.TrimSuffix(fmt.Sprint(t.Float64s()), "]") + " ...]"
}
