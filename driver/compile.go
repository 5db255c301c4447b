package driver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/formats/atomicfile"
	"blutrain/frontend"
	"blutrain/internal/release"
	"blutrain/ir"
	"blutrain/ir/diag"
	"blutrain/lower/binary"
	"blutrain/passes"
	"blutrain/passes/irhtml"
)

// Version of the compiler, which every artifact carries.
const Version = release.Version

// Options of a compilation.
type Options struct {
	Target       string             // one of Targets; "" is the first, or what a module was compiled for
	Precision    string             // one that the target has; "" is its default
	Arch         string             // one that the target has; "" is its default
	Recompute    string             // none, auto or full; "" is auto
	Budget       int64              // bytes a function may use, states included; recomputation is chosen so that the plan stays within. 0: no limit
	estimate     int64              // what recomputation may estimate, so that it does; 0: not known yet
	Sharding                        // between ranks
	Set          map[string]float64 // arguments of the model and sizes of the batch that replace those in its text
	Truths       map[string]bool    // the same for arguments that are truth values
	Tuning       string             // the file of a tuning table, shipped or none; "" is shipped
	Candidates   int                // kernels that the artifact holds for each choice between them, to be measured; 0: the one that is used
	ThreadStores bool               // kernels for GPUs have threads store all results, nothing by the copy engine
	CompileTo    string             // the last phase; "" is all of them
	DumpDir      string             // where the module goes after each phase, as NAME.1.input.mlir; "" is nowhere
	Passes       passes.Config
	Record       *irhtml.Recorder // records the module after each phase and pass, unless nil
}

// Result is what a compilation comes to.
type Result struct {
	Ctx      *ir.Context
	Module   *ir.Op
	Phase    string             // the last phase that ran
	Artifact *artifact.Artifact // after the phase binary
	Warnings diag.List          // and remarks
}

// OptionError says which of the Options names nothing there is.
type OptionError struct{ msg string }

func (e *OptionError) Error() string { return e.msg }

func optionErrorf(format string, args ...any) error {
	return &OptionError{fmt.Sprintf(format, args...)}
}

// Errors is an error that is a list of diagnostics.
type Errors struct{ List diag.List }

func (e *Errors) Error() string { return e.List.Err().Error() }

// Diagnostics is what an error says to a person.
func Diagnostics(err error) diag.List {
	var e *Errors
	if errors.As(err, &e) {
		return e.List
	}
	return ir.Diagnostics(err)
}

// Compile compiles a model (.blu), or a module (.mlir) from the phase on that its attribute blu.phase names. file is the
// source's name in messages, and the end of it says which of the two it is.
func Compile(file string, src []byte, o Options) (*Result, error) {
	c := &compilation{Options: o, file: file, src: src, result: &Result{Ctx: dialects.NewContext()}}
	next, err := c.begin()
	if err != nil {
		return nil, err
	}
	return c.result, c.run(next)
}

type compilation struct {
	Options
	file   string
	src    []byte
	phases []Phase
	result *Result
}

// alignment is the bytes that offsets in the arena are multiples of.
func alignment(target string) int64 {
	for _, t := range Targets {
		if t.Name == target {
			return cmp.Or(t.Align, 64)
		}
	}
	return 64
}

func (c *compilation) index(phase string) int {
	return slices.IndexFunc(c.phases, func(p Phase) bool { return p.Name == phase })
}

// begin reads a module, checks the options, and gives the index of the phase that comes first.
func (c *compilation) begin() (int, error) {
	module, err := isModule(c.file)
	if err != nil {
		return 0, err
	}
	if !module {
		return 0, c.checkNames()
	}
	m, err := ReadModule(c.result.Ctx, c.file, c.src)
	if err != nil {
		return 0, err
	}
	if err := c.inherit(m); err != nil {
		return 0, err
	}
	if err := c.checkNames(); err != nil {
		return 0, err
	}
	name := m.Attrs().Str(PhaseAttr)
	if name == "" {
		return 0, m.Errorf("the module has no attribute %s, which says what phase it is the result of", PhaseAttr)
	}
	c.result.Module, c.result.Phase = m, name
	c.Record.Phase(name, "the module as read", m, true)
	i := c.index(name)
	if i < 0 {
		return 0, m.Errorf("%s: %v", PhaseAttr, c.noPhase(name))
	}
	if err := c.checkLate(i + 1); err != nil {
		return 0, err
	}
	if made := m.Attrs().IntOr(budgetAttr, 0); made > 0 {
		c.Budget = made
	}
	return i + 1, nil
}

// run does the phases that are left.
func (c *compilation) run(next int) error {
	last := len(c.phases) - 1
	if c.CompileTo != "" {
		last = c.index(c.CompileTo)
	}
	if next > last+1 {
		return fmt.Errorf("%s is past the phase %s: it is the result of %s", c.file, c.CompileTo, c.result.Phase)
	}
	for i := next; i <= last; i++ {
		if err := c.phase(i); err != nil {
			return err
		}
	}
	return nil
}

// ReadModule parses and verifies a module.
func ReadModule(c *ir.Context, file string, src []byte) (*ir.Op, error) {
	m, err := ir.Parse(c, file, src)
	if err != nil {
		return nil, err
	}
	return m, ir.Verify(c, m)
}

func (c *compilation) phase(i int) error {
	p := c.phases[i]
	if c.Budget != 0 && c.estimate == 0 && p.recomputes() {
		if err := c.meetBudget(i); err != nil {
			return err
		}
	}
	if p.Passes != "" {
		pl, err := passes.ParsePipeline(Passes(), "builtin.module("+c.Pipeline(p)+")")
		if err != nil {
			return fmt.Errorf("phase %s: %w", p.Name, err)
		}
		cfg := c.Passes
		cfg.Remarks = &c.result.Warnings
		if c.Record != nil {
			cfg.Observe = func(pass *passes.Pass, op *ir.Op) {
				c.Record.Pass(p.Name, pass.Name, pass.Summary, op, c.result.Module)
			}
		}
		if err := cfg.Run(c.result.Ctx, c.result.Module, pl); err != nil {
			return err
		}
	}
	if p.Run != nil {
		start := time.Now()
		err := p.Run(c)
		if c.Passes.Timing != nil {
			c.Passes.Timing.Add("(phase "+p.Name+")", time.Since(start))
		}
		if err != nil {
			return err
		}
	}
	c.result.Phase = p.Name
	if c.result.Artifact != nil {
		return nil
	}
	c.result.Module.SetAttr(PhaseAttr, c.result.Ctx.String(p.Name))
	c.remember(p)
	c.Record.Phase(p.Name, p.Summary, c.result.Module, p.Run != nil)
	return c.dump(i)
}

// Pipeline is a phase's passes with the options put in.
func (o Options) Pipeline(p Phase) string {
	text := p.Passes
	if o.Mesh != "" && p.Sharded != "" {
		text = p.Sharded
	}
	return strings.NewReplacer("$PRECISION", o.Precision, "$TARGET", o.Target, "$ARCH", o.Arch, "$ALIGN", fmt.Sprint(alignment(o.Target)), "$RECOMPUTE", o.recomputation(),
		"$MESH", o.passOptions(), "$BUCKET", fmt.Sprint(cmp.Or(o.Bucket, bucketSize)), "$INTENSITY", fmt.Sprint(intensity(o.Target, o.Precision)),
		"$TUNING", o.tableName(), "$CANDIDATES", fmt.Sprint(o.Candidates), "$STORES", fmt.Sprint(o.ThreadStores), "$MEMORY", fmt.Sprint(o.Budget)).Replace(text)
}

// dumpSuffix is what dump adds to a name.
var dumpSuffix = regexp.MustCompile(`\.[0-9]+\.[a-z]+$`)

// dump writes the module after phase i. It is complete, constants and locations included, so that it can be compiled on.
func (c *compilation) dump(i int) error {
	if c.DumpDir == "" {
		return nil
	}
	if err := os.MkdirAll(c.DumpDir, 0o777); err != nil {
		return err
	}
	base := strings.TrimSuffix(filepath.Base(c.file), filepath.Ext(c.file))
	base = dumpSuffix.ReplaceAllString(base, "")
	name := filepath.Join(c.DumpDir, fmt.Sprintf("%s.%d.%s.mlir", base, i+1, c.phases[i].Name))
	return WriteFile(name, Text(c.result.Module, c.Passes.Print.Generic))
}

// WriteFile writes a file whole or not at all.
func WriteFile(name string, data []byte) error {
	return atomicfile.WriteFile(atomicfile.OS{}, name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Text is a module with everything in it, as text that can be compiled on, in the short or the generic form.
func Text(m *ir.Op, generic bool) []byte {
	return ir.Print(m, ir.PrintOptions{Generic: generic, Locations: true, ElideAbove: -1})
}

// input reads the model.
func (c *compilation) input() error {
	m, diags := frontend.Compile(c.result.Ctx, c.file, c.src, frontend.Options{Set: c.Set, Truths: c.Truths})
	if m == nil {
		return &Errors{diags}
	}
	c.result.Warnings = diags
	c.result.Module = m
	return ir.Verify(c.result.Ctx, m)
}

// binary packs the artifact.
func (c *compilation) binary() error {
	o := binary.Options{Compiler: Version, Target: c.Target, Arch: c.Arch, Precision: c.Precision}
	if filepath.Ext(c.file) == ".blu" {
		o.Source, o.Text = c.file, c.src
	}
	a, err := binary.Build(c.result.Ctx, c.result.Module, o)
	c.result.Artifact = a
	return err
}
