package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"blutrain/driver"
	"blutrain/ir"
	"blutrain/ir/diag"
	"blutrain/passes"
)

type compileCmd struct {
	File         string       `arg:"" help:"A model (.blu) or a module (.mlir) that a phase left."`
	Output       string       `short:"o" placeholder:"FILE" help:"The artifact, by default the input's name with .blx; with --compile-to the module, by default the standard output."`
	Target       string       `placeholder:"TARGET" help:"What to compile for: ${targets}; the first is the default."`
	Arch         string       `placeholder:"ARCH" help:"The machine to compile for: cuda has sm_90a, sm_89, sm_80; the first is the default."`
	Precision    string       `placeholder:"PRECISION" help:"${precisions}"`
	Recompute    string       `placeholder:"MODE" help:"What of the forward pass is computed again in the backward pass: none, auto (the default: what is cheap), full (all but the values between layers)."`
	MemoryBudget passes.Bytes `placeholder:"SIZE" help:"Choose what is recomputed so that a step takes the least time for which all that bluc inspect --memory lists stays within this memory, what kernels work in too: 6GiB, 512MiB; 0: no limit."`
	Mesh         string       `placeholder:"AXES" help:"Make the program of one rank of many: dp (any number that share the batch), dp=4, cp=2 (that share each sequence), or both: dp,cp=2."`
	Zero         int          `enum:"0,1" default:"0" placeholder:"LEVEL" help:"1: cut gradients and optimizer state into shards, one a rank of --mesh; 0, the default: every rank has all."`
	Context      string       `placeholder:"WAY" help:"How ranks that share a sequence share attention: ring (the default), ulysses, gather."`
	BucketSize   passes.Bytes `placeholder:"SIZE" help:"How much is communicated in one call, in early ones up to four times as much: 25MiB is the default."`
	Set          settings     `placeholder:"NAME=VALUE,..." help:"Arguments of the model and sizes of the batch."`
	Ptxas        string       `placeholder:"FILE" help:"Have NVIDIA's assembler, ptxas, make machine code of the kernels for cuda, so that the driver needn't when the artifact first runs: its path, or a name to look for in PATH."`
	Tuning       string       `placeholder:"FILE" help:"Choose between kernels for cuda as this table of 'blurun tune' says, where it has measured them; shipped, the default: the one that comes with bluc, if it has one for the arch; none: by prediction alone."`
	Candidates   candidates   `placeholder:"N" help:"Put the kernels that are predicted to be best, for each choice between kernels for cuda, into the artifact, for 'blurun tune' to measure: 16, or N with --candidates=N."`
	ThreadStores bool         `help:"Have threads store all results of kernels for cuda, none the copy engine: slower, for tools that don't see what the copy engine writes, such as compute-sanitizer's initcheck."`
	CompileTo    string       `placeholder:"PHASE" help:"Stop after this phase and print the module: ${phases}."`
	DumpPhasesTo string       `placeholder:"DIR" help:"Save the module after each phase, as NAME.1.input.mlir and so on."`
	passFlags
	printFlags
}

// candidates is a number that needn't be said: a flag without a value, or with one after "=".
type candidates int

// defaultCandidates is enough for every tile shape, and for a few numbers of parts that sums are cut into.
const defaultCandidates = 16

// IsBool implements kong.BoolMapperValue: the flag needs no value.
func (*candidates) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (c *candidates) Decode(ctx *kong.DecodeContext) error {
	*c = defaultCandidates
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	text := fmt.Sprint(ctx.Scan.Pop().Value)
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("expected a number of kernels, not %q", text)
	}
	*c = candidates(n)
	return nil
}

// Run implements the command.
func (c *compileCmd) Run(s *streams) error {
	if err := c.checkFiles(); err != nil {
		return err
	}
	assembler, err := c.assembler()
	if err != nil {
		return err
	}
	limit := int64(maxModule)
	if filepath.Ext(c.File) == ".blu" {
		limit = maxModel
	}
	src, err := readInput(c.File, limit, s)
	if err != nil {
		return err
	}
	cfg := c.config(c.printFlags, s.err)
	rec := c.recorder(c.File, src, c.printFlags)
	r, err := driver.Compile(c.File, src, driver.Options{
		Target: c.Target, Arch: c.Arch, Precision: c.Precision, Recompute: c.Recompute, Budget: int64(c.MemoryBudget), Set: c.Set.numbers, Truths: c.Set.truths,
		Sharding: driver.Sharding{Mesh: c.Mesh, Zero: c.Zero, Context: c.Context, Bucket: int64(c.BucketSize)},
		Tuning:   c.Tuning, Candidates: int(c.Candidates), ThreadStores: c.ThreadStores,
		CompileTo: c.CompileTo, DumpDir: c.DumpPhasesTo, Passes: cfg,
		Record: rec,
	})
	if r != nil {
		render(s.err, r.Warnings.Merged(), diag.Sources{c.File: src})
	}
	timings(cfg, s.err)
	if err = c.page(rec, err); err != nil {
		return c.saved(err)
	}
	if r.Artifact != nil {
		if c.Ptxas != "" {
			if err := driver.Assemble(r.Artifact, assembler); err != nil {
				return err
			}
		}
		data, err := r.Artifact.Encode()
		if err != nil {
			return err
		}
		return writeOutput(c.artifactName(), data, s, driver.WriteFile)
	}
	if c.Ptxas != "" {
		return usageError{"--ptxas assembles an artifact's kernels, and --compile-to makes none"}
	}
	text := driver.Text(r.Module, c.PrintGeneric)
	if c.Output == "" || c.Output == "-" {
		text = ir.Print(r.Module, c.options())
	}
	return writeOutput(c.Output, text, s, driver.WriteFile)
}

// assembler finds the program that --ptxas names, before time is spent on what it is to assemble.
func (c *compileCmd) assembler() (string, error) {
	if c.Ptxas == "" {
		return "", nil
	}
	return driver.FindAssembler(c.Ptxas)
}

// checkFiles keeps the model from being written over. A module may be: that is how it is changed in place.
func (c *compileCmd) checkFiles() error {
	output := c.Output
	if output == "" && c.CompileTo == "" {
		output = c.artifactName()
	}
	if err := distinct("", output, c.DumpHTML, c.CrashReproducer); err != nil {
		return err
	}
	if filepath.Ext(c.File) == ".mlir" {
		output = ""
	}
	return distinct(c.File, output, c.DumpHTML, c.CrashReproducer)
}

// artifactName is the output given, or the input's name with another ending.
func (c *compileCmd) artifactName() string {
	if c.Output != "" {
		return c.Output
	}
	return strings.TrimSuffix(filepath.Base(c.File), filepath.Ext(c.File)) + ".blx"
}
