package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"blutrain/dialects"
	"blutrain/driver"
	"blutrain/internal/verifydiag"
	"blutrain/ir"
	"blutrain/ir/diag"
	"blutrain/passes"
)

type optCmd struct {
	File                     string `arg:"" default:"-" help:"A module, or - for the standard input."`
	Output                   string `short:"o" placeholder:"FILE" help:"Where to write, by default the standard output."`
	PassPipeline             string `placeholder:"PIPELINE" help:"Passes to run, as in builtin.module(canonicalize,cse); by default those of a reproducer's comment, or none."`
	SplitInputFile           bool   `help:"Treat the parts between lines of // ----- as modules of their own."`
	VerifyDiagnostics        bool   `help:"Compare the diagnostics with the file's expected-error comments, and print no module."`
	AllowUnregisteredDialect bool   `help:"Accept operations, types and attributes of dialects that are not known."`
	passFlags
	printFlags
}

// Run implements the command.
func (c *optCmd) Run(s *streams) error {
	if err := distinct(c.File, c.DumpHTML, c.CrashReproducer); err != nil {
		return err
	}
	if err := distinct("", c.Output, c.DumpHTML, c.CrashReproducer); err != nil {
		return err
	}
	src, err := readInput(c.File, maxModule, s)
	if err != nil {
		return err
	}
	name := inputName(c.File)
	pipeline := c.PassPipeline
	if pipeline == "" {
		pipeline, _ = passes.Replay(src)
	}
	var pl *passes.Pipeline
	if pipeline != "" {
		if pl, err = passes.ParsePipeline(driver.Passes(), pipeline); err != nil {
			return usageError{err.Error()}
		}
	}
	if c.DumpHTML != "" && c.SplitInputFile {
		return usageError{"--dump-html shows one module: not with --split-input-file"}
	}
	cfg := c.config(c.printFlags, s.err)
	if err := cfg.CheckNames(driver.Passes()); err != nil {
		return usageError{err.Error()}
	}
	pieces := [][]byte{src}
	if c.SplitInputFile {
		pieces = split(src)
	}
	var out bytes.Buffer
	var diags diag.List
	for i, piece := range pieces {
		text, err := c.piece(name, piece, pl, &cfg)
		var f *passes.Failure
		if errors.As(err, &f) && !c.VerifyDiagnostics {
			return c.saved(err)
		}
		diags = append(diags, driver.Diagnostics(err)...)
		if i > 0 {
			fmt.Fprintf(&out, "\n%s\n", separator)
		}
		out.Write(text)
	}
	timings(cfg, s.err)
	if c.VerifyDiagnostics {
		return verifyDiagnostics(s.err, name, src, diags)
	}
	if diags.HasErrors() {
		render(s.err, diags, diag.Sources{name: src})
		return reported
	}
	return writeOutput(c.Output, out.Bytes(), s, driver.WriteFile)
}

// piece runs the passes on one module.
func (c *optCmd) piece(name string, src []byte, pl *passes.Pipeline, cfg *passes.Config) ([]byte, error) {
	ctx := dialects.NewContext()
	ctx.AllowUnregistered = c.AllowUnregisteredDialect
	m, err := driver.ReadModule(ctx, name, src)
	if err != nil {
		return nil, err
	}
	rec := c.recorder(c.File, src, c.printFlags)
	rec.Phase("input", "the module as read", m, true)
	cfg.Observe = func(pass *passes.Pass, op *ir.Op) { rec.Pass("", pass.Name, pass.Summary, op, m) }
	if pl != nil {
		err = cfg.Run(ctx, m, pl)
	}
	if err = c.page(rec, err); err != nil {
		return nil, err
	}
	return ir.Print(m, c.options()), nil
}

// separator is the line between the parts of a file.
const separator = "// -----"

// split cuts a file at the separators. Each part begins with as many empty lines as there were before it, so that places
// in it are places in the file.
func split(src []byte) [][]byte {
	var pieces [][]byte
	var piece strings.Builder
	lines := 0
	for line := range strings.Lines(string(src)) {
		lines++
		if strings.TrimSpace(line) == separator {
			pieces = append(pieces, []byte(piece.String()))
			piece.Reset()
			piece.WriteString(strings.Repeat("\n", lines))
			continue
		}
		piece.WriteString(line)
	}
	return append(pieces, []byte(piece.String()))
}

// verifyDiagnostics prints how diagnostics differ from what a file's comments announce.
func verifyDiagnostics(w io.Writer, name string, src []byte, got diag.List) error {
	if l := verifydiag.Verify(name, src, got, verifydiag.Options{}); len(l) > 0 {
		render(w, l, diag.Sources{name: src})
		return reported
	}
	return nil
}
