package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/runtime/verify"
	"blutrain/train/logs"
)

type verifyCmd struct {
	Model     string   `arg:"" help:"Compiled model, NAME.blx."`
	Kernels   bool     `xor:"what" help:"Only compare kernel by kernel."`
	Functions bool     `xor:"what" help:"Only compare function by function."`
	Tolerance *float64 `placeholder:"X" help:"Largest relative error of a function's output or state. Default: 1e-4; 1e-2 for tf32, 5e-2 for bf16. Kernels have bounds of their own."`
	Seed      uint64   `placeholder:"N" help:"Seed of the random inputs (0)."`
	JSON      bool     `help:"Print one JSON object for each kernel, and one for each output and state."`
	deviceFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *verifyCmd) Validate() error {
	if c.Tolerance != nil && !(*c.Tolerance >= 0) {
		return errors.New("--tolerance must be a number from 0 on")
	}
	return errors.Join(checkSeed(c.Seed), c.deviceFlags.Validate())
}

// Run implements the command.
func (c *verifyCmd) Run(e *env) (err error) {
	a, err := artifact.Open(c.Model)
	if err != nil {
		return err
	}
	var faults []error
	if !c.Functions {
		faults = append(faults, c.kernels(e, a))
	}
	if !c.Kernels {
		faults = append(faults, c.functions(e, a))
	}
	return errors.Join(faults...)
}

// kernels compares every kernel with its reference, on what it reads in a step of training. What nobody wrote is poisoned.
func (c *verifyCmd) kernels(e *env, a *artifact.Artifact) (err error) {
	p, err := e.openDevice(a, c.Device, runtime.Options{Threads: c.Threads, Poison: true})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	tracer, ok := p.(runtime.Tracer)
	if !ok {
		if c.Kernels {
			return fmt.Errorf("%s: its device does not run functions launch by launch", c.Model)
		}
		return nil
	}
	rows, err := verify.Kernels(tracer, a, c.Seed)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	if err := c.printKernels(e, rows); err != nil {
		return err
	}
	wrong := 0
	for _, r := range rows {
		if r.Off {
			wrong++
			fmt.Fprintf(e.stderr, "%s: kernel %s is off by %.2e, more than %.0e\n", r.Location, r.Kernel, worst(r).Relative, worst(r).Bound)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d kernels differ from the reference", wrong, len(rows))
	}
	return c.verdict(e, "all %d kernels are within their bounds\n\n", len(rows))
}

// worst is the output that is nearest to its bound or furthest beyond it.
func worst(r verify.KernelRow) (w verify.OutputRow) {
	most := -1.0
	for _, o := range r.Outputs {
		share := o.Relative / o.Bound
		if o.Relative == 0 {
			share = 0
		}
		if share > most || math.IsNaN(share) {
			w, most = o, share
		}
	}
	return w
}

func (c *verifyCmd) printKernels(e *env, rows []verify.KernelRow) error {
	if c.JSON {
		lines := json.NewEncoder(e.stdout)
		for _, r := range rows {
			type output struct {
				Elements int         `json:"elements"`
				Relative logs.Number `json:"relative_error"`
				Bound    logs.Number `json:"bound"`
			}
			var outputs []output
			for _, o := range r.Outputs {
				outputs = append(outputs, output{o.Elements, logs.Number(o.Relative), logs.Number(o.Bound)})
			}
			err := lines.Encode(struct {
				Kernel   string   `json:"kernel"`
				Source   string   `json:"source"`
				Launches int      `json:"launches"`
				Outputs  []output `json:"outputs"`
				Off      bool     `json:"off"`
			}{r.Kernel, r.Location, r.Launches, outputs, r.Off})
			if err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "kernel\tlaunches\telements\trelative errors\tbound\tsource")
	for _, r := range rows {
		elements, errs := 0, []string{}
		for _, o := range r.Outputs {
			elements += o.Elements
			errs = append(errs, fmt.Sprintf("%.1e", o.Relative))
		}
		const most = 4 // outputs; of more, the one that is nearest to its bound
		if len(errs) > most {
			errs = []string{fmt.Sprintf("%.1e, worst of %d", worst(r).Relative, len(errs))}
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%.0e\t%s\n", r.Kernel, r.Launches, elements, strings.Join(errs, " "), worst(r).Bound, r.Location)
	}
	return table.Flush()
}

// verdict says below a table that nothing in it is wrong.
func (c *verifyCmd) verdict(e *env, format string, args ...any) error {
	if c.JSON {
		return nil
	}
	_, err := fmt.Fprintf(e.stdout, format, args...)
	return err
}

// functions compares whole functions.
func (c *verifyCmd) functions(e *env, a *artifact.Artifact) (err error) {
	p, err := e.openDevice(a, c.Device, runtime.Options{Threads: c.Threads})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	oracle, err := e.openReference(a)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	defer func() { err = errors.Join(err, oracle.Close()) }()
	rows, err := verify.Compare(p, oracle, c.Seed)
	if err != nil {
		return err
	}
	if err := c.printFunctions(e, rows); err != nil {
		return err
	}
	wrong := 0
	limit := c.limit(a.Manifest.Precision)
	for _, r := range rows {
		if !(r.Relative <= limit) {
			wrong++
			fmt.Fprintf(e.stderr, "%s: %s is off by %.2e, more than %.0e\n", r.Function, r.Name, r.Relative, limit)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d outputs and states differ from the reference", wrong, len(rows))
	}
	return c.verdict(e, "all %d outputs and states are within %.0e\n", len(rows), limit)
}

func (c *verifyCmd) limit(precision string) float64 {
	switch {
	case c.Tolerance != nil:
		return *c.Tolerance
	case precision == "tf32":
		return 1e-2
	case precision == "bf16":
		return 5e-2
	}
	return 1e-4
}

func (c *verifyCmd) printFunctions(e *env, rows []verify.Row) error {
	if c.JSON {
		lines := json.NewEncoder(e.stdout)
		for _, r := range rows {
			err := lines.Encode(struct {
				Function string      `json:"function"`
				Name     string      `json:"name"`
				Elements int         `json:"elements"`
				Relative logs.Number `json:"relative_error"`
				Largest  logs.Number `json:"largest_error"`
			}{r.Function, r.Name, r.Elements, logs.Number(r.Relative), logs.Number(r.Largest)})
			if err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "function\toutput or state\telements\trelative error\tlargest error")
	seen := map[verify.Row]bool{}
	for _, r := range rows {
		name, key := r.Name, verify.Row{Function: r.Function, Name: r.Name}
		if seen[key] { // gradients of a second micro-batch are added
			name += " (added)"
		}
		seen[key] = true
		fmt.Fprintf(table, "%s\t%s\t%d\t%.2e\t%.2e\n", r.Function, name, r.Elements, r.Relative, r.Largest)
	}
	return table.Flush()
}
