package main

import (
	"fmt"
	"io"
	"strings"

	"blutrain/artifact"
	"blutrain/lower/inspect"
)

type inspectCmd struct {
	File    string `arg:"" help:"An artifact (.blx)."`
	Memory  bool   `help:"Print what memory is for, and who holds what of the arena when it is fullest."`
	Kernels bool   `help:"Print the kernels, a line each. launches: of all functions, each called once; in: how many of them in which function (accumulate 4: four in a call of accumulate); steps: kernels that a launch runs one after the other; us, GFLOP, bytes each: of a launch, its time as predicted, bytes read and written; grid: points that workers share on the CPU."`
	Params  bool   `help:"Print the parameters and how they start."`
	Mesh    bool   `help:"Print what ranks communicate: each call, how much of the work it goes on behind, what a step sends."`
}

// Run implements the command.
func (c *inspectCmd) Run(s *streams) error {
	a, err := artifact.Open(c.File)
	if err != nil {
		return err
	}
	if !c.Memory && !c.Kernels && !c.Params && !c.Mesh {
		summary(s, &a.Manifest)
		return nil
	}
	r, err := inspect.Read(a)
	if err != nil {
		return err
	}
	between := ""
	for _, part := range []struct {
		wanted bool
		write  func(io.Writer)
	}{{c.Params, r.WriteParams}, {c.Memory, r.WriteMemory}, {c.Kernels, r.WriteKernels}, {c.Mesh, r.WriteCommunication}} {
		if part.wanted {
			fmt.Fprint(s.out, between)
			part.write(s.out)
			between = "\n"
		}
	}
	return nil
}

func summary(s *streams, m *artifact.Manifest) {
	fmt.Fprintf(s.out, "model      %s\ntarget     %s\nprecision  %s\ncompiler   %s\n", m.Model, strings.TrimSpace(m.Target+" "+m.Arch), m.Precision, m.Compiler)
	if t := m.Train; t != nil {
		fmt.Fprintf(s.out, "train      minimize %s, batch %s, optimizer %s, schedule %s\n", t.Minimize, batch(t.Batch), t.Optimizer.Kind, t.Schedule.Kind)
	}
	if t := m.Tuning; t != nil {
		fmt.Fprintf(s.out, "tuning     %d of %d choices between kernels are those of the table with SHA-256 %s\n", t.Found, t.Keys, t.SHA256)
	}
	if m.ThreadStores {
		fmt.Fprintln(s.out, "stores     of all results by threads, none by the copy engine (--thread-stores)")
	}
	if mesh := m.Mesh; mesh != nil {
		fmt.Fprintf(s.out, "mesh       dp = %s, cp = %d, zero = %d\n", ranks(mesh.DP), mesh.CP, mesh.Zero)
	}
	fmt.Fprintln(s.out, "functions")
	for _, f := range m.Functions {
		fmt.Fprintf(s.out, "  %s(%s) -> (%s)  scalars (%s), %.3g GFLOP, arena %s\n", f.Name, values(f.Inputs), values(f.Outputs), values(f.Scalars), f.Flops/1e9, size(f.Arena))
	}
	fmt.Fprintln(s.out, "files")
	width := 0
	for _, f := range m.Files {
		width = max(width, len(f.Name))
	}
	for _, f := range m.Files {
		fmt.Fprintf(s.out, "  %-*s  %s\n", width, f.Name, size(f.Bytes))
	}
}

// ranks is a number of ranks that is 0 where any number will do.
func ranks(n int) string {
	if n == 0 {
		return "any"
	}
	return fmt.Sprint(n)
}

// batch prints the sizes that the model has.
func batch(b artifact.Batch) string {
	text := ""
	for _, size := range []struct {
		name string
		n    int64
	}{{"B", b.B}, {"S", b.S}} {
		if size.n > 0 {
			text += fmt.Sprintf("%s = %d, ", size.name, size.n)
		}
	}
	return text + fmt.Sprintf("accumulate = %d", b.Accumulate)
}

func values(vs []artifact.Value) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, v.Name+": "+v.DType.Of(v.Shape))
	}
	return strings.Join(parts, ", ")
}

// size is a size in the largest unit it has at least one of.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	x, i := float64(n), 0
	for x >= 1024 && i+1 < len(units) {
		x /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", x, units[i])
}
