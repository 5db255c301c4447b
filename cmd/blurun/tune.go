package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"blutrain/artifact"
	"blutrain/formats/atomicfile"
	"blutrain/formats/tuning"
	"blutrain/runtime"
	"blutrain/runtime/tune"
)

type tuneCmd struct {
	Model  string  `arg:"" help:"Model compiled with bluc compile --candidates, NAME.blx."`
	Output string  `short:"o" required:"" placeholder:"FILE" help:"The table, for bluc compile --tuning. If there is one, its choices that this model doesn't leave are kept."`
	Rounds int     `placeholder:"N" default:"5" help:"Times that each candidate is timed, many launches in a row; medians count (${default})."`
	Least  float64 `placeholder:"PART" default:"0.01" help:"Leave choices as they are whose kernels take less than this part of a step of training (${default})."`
	Seed   uint64  `placeholder:"N" help:"Seed of the random numbers that kernels read (0)."`
	JSON   bool    `help:"Print one JSON object for each choice."`
	deviceFlags
}

// Run implements the command.
func (c *tuneCmd) Run(e *env) (err error) {
	if c.DebugMemory {
		return usagef("--debug-memory: kernels are timed as they run in training, without guards")
	}
	if c.Rounds < 1 || !(c.Least >= 0 && c.Least <= 1) {
		return usagef("--rounds must be at least 1, --least from 0 to 1")
	}
	if err := errors.Join(checkSeed(c.Seed), atomicfile.Distinct([]string{c.Model}, []string{c.Output})); err != nil {
		return usageError(err.Error())
	}
	a, err := artifact.Open(c.Model)
	if err != nil {
		return err
	}
	list, err := tune.List(a)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	table, err := c.before()
	if err != nil {
		return err
	}
	p, err := e.openDevice(a, c.Device, runtime.Options{Helpers: e.helpers(1), Apart: true})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	b, ok := p.(runtime.Bencher)
	if !ok {
		return fmt.Errorf("%s: its device does not run kernels by themselves", c.Model)
	}
	if table == nil {
		table = &tuning.Table{Arch: a.Manifest.Arch, Device: b.DeviceName(), Compiler: a.Manifest.Compiler}
	}
	if err := table.Merge(&tuning.Table{Arch: a.Manifest.Arch, Device: b.DeviceName(), Compiler: a.Manifest.Compiler}); err != nil {
		return fmt.Errorf("%s: %w", c.Output, err)
	}
	return c.measure(e, b, list, table)
}

// before is the table that there is already; nil where there is none.
func (c *tuneCmd) before() (*tuning.Table, error) {
	t, _, err := tuning.Open(c.Output)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return t, err
}

// measure measures, writes the table and says what it comes to.
func (c *tuneCmd) measure(e *env, b runtime.Bencher, list *tuning.Candidates, table *tuning.Table) error {
	if !c.JSON {
		fmt.Fprintf(e.stdout, "%8s  %10s  %10s  %6s  %s\n", "launches", "us", "best us", "gain", "key: choice")
	}
	var all, gain float64
	measured, err := tune.Run(e.ctx, b, list, tune.Options{Rounds: c.Rounds, Least: c.Least, Seed: c.Seed,
		Done: func(r tune.Row) error {
			all, gain = all+float64(r.Launches)*r.DefaultMicros, gain+r.Gain()
			return c.print(e.stdout, r)
		},
		Wrong: func(err error) { printErrors(e.stderr, err) },
	})
	if measured == nil {
		return err
	}
	if err := errors.Join(table.Merge(measured), c.write(table)); err != nil {
		return err
	}
	if !c.JSON && all > 0 {
		fmt.Fprintf(e.stdout, "%d of %d choices; their kernels take %.2f ms of a step, %.2f ms less with the best of each (%.1f%%)\n", len(measured.Entries), len(list.Sites), all/1e3, gain/1e3, 100*gain/all)
	}
	return err
}

func (c *tuneCmd) print(w io.Writer, r tune.Row) error {
	if c.JSON {
		return json.NewEncoder(w).Encode(struct {
			tuning.Entry
			Launches   int     `json:"launches"`
			Candidates int     `json:"candidates"`
			Gain       float64 `json:"gain_us"`
		}{r.Entry, r.Launches, r.Options, r.Gain()})
	}
	choice := r.Choice
	if choice == r.Default {
		choice = "as it is, of " + fmt.Sprint(r.Options)
	}
	_, err := fmt.Fprintf(w, "%8d  %10.1f  %10.1f  %5.1f%%  %s: %s\n", r.Launches, r.DefaultMicros, r.Micros, 100*(1-r.Micros/r.DefaultMicros), r.Key, choice)
	return err
}

func (c *tuneCmd) write(table *tuning.Table) error {
	text, err := table.Encode()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(atomicfile.OS{}, c.Output, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
