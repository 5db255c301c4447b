package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"text/tabwriter"

	"blutrain/runtime/verify"
	"blutrain/train/logs"
)

type verifyCmd struct {
	Model     string  `arg:"" help:"Compiled model, NAME.blx."`
	Tolerance float64 `placeholder:"X" help:"Largest relative error of an output or state. Default: 1e-4; 1e-2 for tf32, 5e-2 for bf16."`
	Seed      uint64  `placeholder:"N" help:"Seed of the random inputs (0)."`
	JSON      bool    `help:"Print one JSON object for each output and state."`
	deviceFlags
}

// Run implements the command.
func (c *verifyCmd) Run(e *env) (err error) {
	a, p, err := e.open(c.Model, c.deviceFlags)
	if err != nil {
		return err
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
	if err := c.print(e, rows); err != nil {
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
	return nil
}

func (c *verifyCmd) limit(precision string) float64 {
	switch {
	case c.Tolerance > 0:
		return c.Tolerance
	case precision == "tf32":
		return 1e-2
	case precision == "bf16":
		return 5e-2
	}
	return 1e-4
}

func (c *verifyCmd) print(e *env, rows []verify.Row) error {
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
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%s\t%d\t%.2e\t%.2e\n", r.Function, r.Name, r.Elements, r.Relative, r.Largest)
	}
	return table.Flush()
}
