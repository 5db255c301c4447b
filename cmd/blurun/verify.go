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
	Mesh      bool     `xor:"what" help:"Compare a step of the ranks that the model was compiled for, in this process, with the step of one rank."`
	Ranks     *int     `placeholder:"N" help:"Ranks for --mesh, where the model runs on any number (2)."`
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
	if n := c.Ranks; n != nil && (*n < 1 || *n > mostLocalRanks || !c.Mesh) {
		return fmt.Errorf("--ranks must be from 1 to %d, and goes with --mesh", mostLocalRanks)
	}
	return errors.Join(checkSeed(c.Seed), c.deviceFlags.Validate())
}

// Run implements the command.
func (c *verifyCmd) Run(e *env) (err error) {
	a, err := artifact.Open(c.Model)
	if err != nil {
		return err
	}
	if c.Mesh {
		return c.mesh(e, a)
	}
	if m := a.Manifest.Mesh; m != nil && (m.DP > 1 || m.CP > 1) {
		return fmt.Errorf("%s was compiled for several ranks: give --mesh", c.Model)
	}
	var faults []error
	if !c.Functions {
		faults = append(faults, c.kernels(e, a))
	}
	if !c.Kernels {
		faults = append(faults, c.functions(e, a))
	}
	if len(faults) == 2 && faults[0] != nil && faults[1] != nil && faults[0].Error() == faults[1].Error() {
		return faults[0] // the device doesn't open, which is said once
	}
	return errors.Join(faults...)
}

// kernels compares every kernel with its reference, on what it reads in a step of training. What nobody wrote is poisoned.
func (c *verifyCmd) kernels(e *env, a *artifact.Artifact) (err error) {
	p, err := e.openOn(a, c.deviceFlags, runtime.Options{Threads: c.Threads, Helpers: e.helpers(1), Poison: true})
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
		if r.Off() {
			wrong++
			is, bound := tell(worst(r))
			fmt.Fprintf(e.stderr, "%s: kernel %s is off by %s, more than %s\n", r.Location, r.Kernel, is, bound)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d kernels differ from the reference", wrong, len(rows))
	}
	return c.verdict(e, "all %d kernels are within their bounds%s\n\n", len(rows), except(rows))
}

// worst is the output that is nearest to its bound or furthest beyond it.
func worst(r verify.KernelRow) (w verify.Error) {
	for i, o := range r.Outputs {
		if i == 0 || !(o.Share() <= w.Share()) {
			w = o
		}
	}
	return w
}

// tell writes an error and its bound in proportion to the result, or, where that is nothing but roundings itself, as they are.
func tell(x verify.Error) (is, bound string) {
	if x.Bound < x.Norm || x.Norm == 0 && x.Error == 0 {
		return fmt.Sprintf("%.1e", x.Relative()), fmt.Sprintf("%.0e", x.Bound/math.Max(x.Norm, math.SmallestNonzeroFloat64))
	}
	return fmt.Sprintf("%.1e abs", x.Error), fmt.Sprintf("%.0e abs", x.Bound)
}

// except says what a table's notes mean, and what was not compared.
func except(rows []verify.KernelRow) (text string) {
	loose, absolute := 0, false
	for _, r := range rows {
		for _, o := range r.Outputs {
			is, _ := tell(o)
			loose, absolute = loose+o.Loose, absolute || strings.HasSuffix(is, "abs")
		}
	}
	text += butFor(loose)
	if absolute {
		text += "\nabs: what is left of terms that cancel; error and bound follow from the terms, and are not in proportion to it"
	}
	return text
}

// butFor says that elements were not compared.
func butFor(loose int) string {
	if loose == 0 {
		return ""
	}
	return fmt.Sprintf(", but for %d elements that rounding an input can make infinite or no number: they are not compared", loose)
}

func (c *verifyCmd) printKernels(e *env, rows []verify.KernelRow) error {
	if c.JSON {
		lines := json.NewEncoder(e.stdout)
		for _, r := range rows {
			type output struct {
				Elements int         `json:"elements"`
				Relative logs.Number `json:"relative_error"`
				Error    logs.Number `json:"error"`
				Bound    logs.Number `json:"bound"`
				Loose    int         `json:"not_compared"`
			}
			var outputs []output
			for _, o := range r.Outputs {
				outputs = append(outputs, output{o.Elements, logs.Number(o.Relative()), logs.Number(o.Error), logs.Number(o.Bound), o.Loose})
			}
			err := lines.Encode(struct {
				Kernel   string   `json:"kernel"`
				Source   string   `json:"source"`
				Launches int      `json:"launches"`
				Outputs  []output `json:"outputs"`
				Off      bool     `json:"off"`
			}{r.Kernel, r.Location, r.Launches, outputs, r.Off()})
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
			is, _ := tell(o)
			errs = append(errs, is)
		}
		is, bound := tell(worst(r))
		const most = 4 // outputs; of more, the one that is nearest to its bound
		if len(errs) > most {
			errs = []string{fmt.Sprintf("%s, worst of %d", is, len(errs))}
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%s\n", r.Kernel, r.Launches, elements, strings.Join(errs, " "), bound, r.Location)
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
	p, err := e.openOn(a, c.deviceFlags, runtime.Options{Threads: c.Threads, Helpers: e.helpers(1)})
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	oracle, err := e.openReference(a)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	defer func() { err = errors.Join(err, oracle.Close()) }()
	limit := c.limit(a.Manifest.Precision)
	rows, err := verify.Compare(p, oracle, limit, c.Seed)
	if err != nil {
		return err
	}
	return c.judge(e, a, rows)
}

// mesh compares what all ranks of a mesh arrive at together.
func (c *verifyCmd) mesh(e *env, a *artifact.Artifact) error {
	m := a.Manifest.Mesh
	if m == nil {
		return fmt.Errorf("%s was compiled for one rank: compile it with bluc compile --mesh", c.Model)
	}
	dp, err := c.dataParallel(m)
	if err != nil {
		return fmt.Errorf("%s %w", c.Model, err)
	}
	j := &job{localSize: dp * m.CP}
	rows, err := verify.Mesh(e.ctx, a, c.Device, dp, m.CP, runtime.Options{Threads: j.threads(c.Threads), Poison: true, Guard: c.DebugMemory}, c.limit(a.Manifest.Precision), c.Seed)
	if err != nil {
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	return c.judge(e, a, rows)
}

// dataParallel is the number of rows of a mesh that are to be compared.
func (c *verifyCmd) dataParallel(m *artifact.Mesh) (int, error) {
	switch n := c.Ranks; {
	case n == nil && m.DP > 0:
		return m.DP, nil
	case n == nil:
		return max(1, 2/m.CP), nil
	case m.DP > 0 && *n != m.DP*m.CP:
		return 0, fmt.Errorf("can't run on %d ranks: it was compiled for dp = %d, cp = %d", *n, m.DP, m.CP)
	case *n%m.CP != 0:
		return 0, fmt.Errorf("can't run on %d ranks: it was compiled for rows of cp = %d", *n, m.CP)
	default:
		return *n / m.CP, nil
	}
}

// judge prints comparisons, and is an error if one is off.
func (c *verifyCmd) judge(e *env, a *artifact.Artifact, rows []verify.Row) error {
	limit := c.limit(a.Manifest.Precision)
	if err := c.printFunctions(e, rows); err != nil {
		return err
	}
	wrong, cancelled, loose := 0, 0, 0
	for _, r := range rows {
		loose += r.Loose
		if r.Bound > limit*r.Norm {
			cancelled++
		}
		if r.Off() {
			wrong++
			is, bound := tell(r.Error)
			fmt.Fprintf(e.stderr, "%s: %s is off by %s, more than %s\n", r.Function, r.Name, is, bound)
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%d of %d outputs and states differ from the reference", wrong, len(rows))
	}
	note := ""
	if cancelled > 0 {
		note = fmt.Sprintf(", or, for %d of them, within what roundings amount to", cancelled)
	}
	return c.verdict(e, "all %d outputs and states are within %.0e%s%s\n", len(rows), limit, note, butFor(loose))
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
				Off      bool        `json:"off"`
			}{r.Function, r.Name, r.Elements, logs.Number(r.Relative()), logs.Number(r.Largest), r.Off()})
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
		fmt.Fprintf(table, "%s\t%s\t%d\t%.2e\t%.2e\n", r.Function, name, r.Elements, r.Relative(), r.Largest)
	}
	return table.Flush()
}
