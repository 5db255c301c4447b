package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"blutrain/formats/atomicfile"
	"blutrain/ir"
	"blutrain/passes"
)

// passFlags is how passes run: for compile and opt.
type passFlags struct {
	PrintIRBefore      []string `placeholder:"PASS" help:"Print the module before these passes."`
	PrintIRAfter       []string `placeholder:"PASS" help:"Print the module after these passes."`
	PrintIRAfterAll    bool     `help:"Print the module after every pass."`
	PrintIRAfterChange bool     `help:"Print the module after every pass that changed it."`
	DumpHTML           string   `name:"dump-html" placeholder:"FILE" help:"Save a page that shows the module after each pass, side by side."`
	Timing             bool     `help:"Print how long each pass took."`
	CrashReproducer    string   `placeholder:"FILE" type:"path" help:"Where to save the module if a pass fails, instead of a temporary file."`
	ShuffleOps         *uint64  `placeholder:"SEED" help:"Permute independent operations before each pass, to find dependence on their order."`
}

// printFlags is how modules are printed.
type printFlags struct {
	PrintGeneric   bool `help:"Print modules in MLIR's generic form."`
	PrintLocations bool `help:"Print where every operation came from."`
	ElideAbove     int  `default:"16" placeholder:"N" help:"Leave out constants of more than N elements where modules are printed; -1 leaves out none."`
}

func (f printFlags) options() ir.PrintOptions {
	elide := f.ElideAbove
	if elide == 0 { // PrintOptions has another meaning for 0, and a constant of one element is a splat
		elide = 1
	}
	return ir.PrintOptions{Generic: f.PrintGeneric, Locations: f.PrintLocations, ElideAbove: elide}
}

// config is the passes' configuration; what they print goes to log.
func (f passFlags) config(print printFlags, log io.Writer) passes.Config {
	cfg := passes.Config{
		PrintBefore: f.PrintIRBefore, PrintAfter: f.PrintIRAfter, PrintAfterAll: f.PrintIRAfterAll, PrintAfterChange: f.PrintIRAfterChange,
		Print: print.options(), Log: log,
	}
	if f.ShuffleOps != nil {
		cfg.Shuffle, cfg.Seed = true, *f.ShuffleOps
	}
	if f.Timing {
		cfg.Timing = &passes.Timing{}
	}
	return cfg
}

// inputName is how messages call a file.
func inputName(path string) string {
	if path == "-" {
		return "<stdin>"
	}
	return path
}

// Bounds on what is read, so that a wrong name doesn't fill the memory.
const (
	maxModel  = 64 << 20
	maxModule = 1 << 30
)

// readInput reads a file of at most limit bytes, or the standard input for "-".
func readInput(path string, limit int64, s *streams) ([]byte, error) {
	in := s.in
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, errors.Unwrap(err))
		}
		defer f.Close()
		in = f
	}
	src, err := io.ReadAll(io.LimitReader(in, limit+1))
	if err == nil && int64(len(src)) > limit {
		err = fmt.Errorf("%s: longer than %d MiB", inputName(path), limit>>20)
	}
	return src, err
}

// distinct refuses outputs that would take the place of the input, or of each other.
func distinct(input string, outputs ...string) error {
	if err := atomicfile.Distinct([]string{input}, outputs); err != nil {
		return usageError{err.Error()}
	}
	return nil
}

// writeOutput writes a file whole, or the standard output for "" and "-".
func writeOutput(path string, data []byte, s *streams, write func(string, []byte) error) error {
	if path == "" || path == "-" {
		_, err := s.out.Write(data)
		return err
	}
	return write(path, data)
}

// timings prints the table that --timing asks for.
func timings(cfg passes.Config, w io.Writer) {
	if cfg.Timing != nil {
		fmt.Fprintln(w)
		cfg.Timing.Print(w)
	}
}
