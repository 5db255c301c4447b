package main

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/artifact"
)

type inspectCmd struct {
	File   string `arg:"" type:"existingfile" help:"An artifact (.blx)."`
	Memory bool   `help:"Print what memory is for."`
	Params bool   `help:"Print the parameters and how they start."`
}

// Run implements the command.
func (c *inspectCmd) Run(s *streams) error {
	a, err := artifact.Open(c.File)
	if err != nil {
		return err
	}
	m := &a.Manifest
	if !c.Memory && !c.Params {
		summary(s, m)
	}
	if c.Params {
		params(s, m)
	}
	if c.Memory {
		memory(s, m)
	}
	return nil
}

func summary(s *streams, m *artifact.Manifest) {
	fmt.Fprintf(s.out, "model      %s\ntarget     %s %s\nprecision  %s\ncompiler   %s\n", m.Model, m.Target, m.Arch, m.Precision, m.Compiler)
	if t := m.Train; t != nil {
		fmt.Fprintf(s.out, "train      minimize %s, batch B = %d, S = %d, accumulate = %d, optimizer %s, schedule %s\n",
			t.Minimize, t.Batch.B, t.Batch.S, t.Batch.Accumulate, t.Optimizer.Kind, t.Schedule.Kind)
	}
	fmt.Fprintln(s.out, "functions")
	for _, f := range m.Functions {
		fmt.Fprintf(s.out, "  %s(%s) -> (%s)  scalars (%s), %.3g GFLOP, arena %s\n", f.Name, values(f.Inputs), values(f.Outputs), values(f.Scalars), f.Flops/1e9, size(f.Arena))
	}
	fmt.Fprintln(s.out, "files")
	for _, f := range m.Files {
		fmt.Fprintf(s.out, "  %-32s %s\n", f.Name, size(f.Bytes))
	}
}

func values(vs []artifact.Value) string {
	var parts []string
	for _, v := range vs {
		parts = append(parts, v.Name+": "+typeOf(v))
	}
	return strings.Join(parts, ", ")
}

func typeOf(v artifact.Value) string {
	if len(v.Shape) == 0 {
		return v.DType.String()
	}
	return v.DType.String() + strings.ReplaceAll(fmt.Sprint(v.Shape), " ", ", ")
}

func params(s *streams, m *artifact.Manifest) {
	var n int64
	for _, st := range m.States {
		if st.Role != artifact.Param {
			continue
		}
		count := int64(1)
		for _, d := range st.Shape {
			count *= d
		}
		n += count
		fmt.Fprintf(s.out, "%-24s %-20s %-28s %s\n", st.Name, typeOf(st.Value), "["+strings.Join(st.Dims, ", ")+"]", st.Init)
	}
	fmt.Fprintf(s.out, "%d parameters\n", n)
}

func memory(s *streams, m *artifact.Manifest) {
	line := func(n int64, what string) { fmt.Fprintf(s.out, "%12s  %s\n", size(n), what) }
	line(m.Memory.Params, "parameters")
	line(m.Memory.Gradients, "gradients")
	line(m.Memory.Optimizer, "optimizer state")
	line(m.Memory.Arena, "arena")
	line(m.Memory.Total, "total")
	fs := slices.Clone(m.Functions)
	slices.SortStableFunc(fs, func(a, b artifact.Function) int { return int(max(-1, min(1, b.Arena-a.Arena))) })
	for _, f := range fs {
		line(f.Arena, "arena of "+f.Name)
	}
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
