// Package inspect reads compiled programs for people: what memory is for, who holds it when most is in use, which kernels
// run how often, what ranks tell each other. It knows the manifest and the exec dialect, and of kernels their names, how many references they write,
// and what their reference functions say they compute.
package inspect

import (
	"fmt"
	"path"
	"strings"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/dtms"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/ir"
)

// Report is what an artifact's program tells.
type Report struct {
	Manifest  *artifact.Manifest
	Functions []Function // in the order of the program; nil for targets that place nothing in memory beforehand
	Kernels   []Kernel   // by work, then by bytes, the most first
	Evaluated []Function // for a target that evaluates operations: their collectives, nothing else
	Mesh      dtms.Mesh  // the ranks the program is for
	Sharded   bool       // whether these are many
	lines     map[string][]string
}

// communicating lists the functions with their collectives, of whatever target.
func (r *Report) communicating() []Function { return append(r.Evaluated, r.Functions...) }

// Place is a line of source, and the text there where the artifact has it.
type Place struct {
	File      string // without folders
	Line, Col int
	Text      string
}

func (p Place) String() string {
	if p.Line == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Read makes the report of an artifact.
func Read(a *artifact.Artifact) (*Report, error) {
	r := &Report{Manifest: &a.Manifest, lines: sources(a)}
	ctx := dialects.NewContext()
	program, err := module(ctx, a, artifact.ProgramName)
	if err != nil {
		return nil, err
	}
	if program == nil {
		return nil, fmt.Errorf("the artifact has no %s", artifact.ProgramName)
	}
	reference, err := module(ctx, a, artifact.ReferenceName)
	if err != nil {
		return nil, err
	}
	if r.Mesh, r.Sharded, err = dtms.MeshOf(program); err != nil {
		return nil, err
	}
	kernels := newKernels(program, reference)
	for op := range program.Body().Ops() {
		if op.Is(fn.Func) && r.Sharded {
			r.Evaluated = append(r.Evaluated, evaluated(op))
		}
		if !op.Is(exec.Func) {
			continue
		}
		f, err := r.function(op, kernels)
		if err != nil {
			return nil, err
		}
		r.Functions = append(r.Functions, f)
	}
	r.Kernels = kernels.sorted()
	return r, nil
}

// module parses and verifies a file of the artifact; it is nil where there is none.
func module(ctx *ir.Context, a *artifact.Artifact, name string) (*ir.Op, error) {
	text, ok := a.File(name)
	if !ok {
		return nil, nil
	}
	m, err := ir.Parse(ctx, name, text)
	if err == nil {
		err = ir.Verify(ctx, m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// sources is the lines of the source files in the artifact, by name.
func sources(a *artifact.Artifact) map[string][]string {
	out := map[string][]string{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "source/"); ok {
			out[name] = strings.Split(string(f.Data), "\n")
		}
	}
	return out
}

// place is where an operation, or what it was made of, is written.
func (r *Report) place(loc *ir.Location) Place {
	s := loc.Source()
	if s == nil {
		return Place{}
	}
	p := Place{File: path.Base(s.File), Line: s.Line, Col: s.Col}
	if lines := r.lines[p.File]; 0 < p.Line && p.Line <= len(lines) {
		p.Text = strings.TrimSpace(lines[p.Line-1])
	}
	return p
}
