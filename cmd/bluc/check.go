package main

import (
	"bytes"
	"fmt"

	"blutrain/driver"
	"blutrain/frontend"
	"blutrain/ir/diag"
)

type checkCmd struct {
	Files             []string `arg:"" help:"Models, or - for the standard input."`
	Set               settings `placeholder:"NAME=VALUE,..." help:"Arguments of the model and sizes of the batch."`
	VerifyDiagnostics bool     `help:"Compare the diagnostics with the files' expected-error comments."`
}

// Run implements the command: every file is checked, whatever is wrong with the others.
func (c *checkCmd) Run(s *streams) error {
	var result error
	for _, file := range c.Files {
		src, err := readInput(file, maxModel, s)
		if err != nil {
			fmt.Fprintln(s.err, "bluc: error:", err)
			result = reported
			continue
		}
		name := inputName(file)
		_, diags := frontend.Check(name, src, frontend.Options{Set: c.Set.numbers, Truths: c.Set.truths})
		if c.VerifyDiagnostics {
			if err := verifyDiagnostics(s.err, name, src, diags); err != nil {
				result = err
			}
			continue
		}
		render(s.err, diags, diag.Sources{name: src})
		if diags.HasErrors() {
			result = reported
		}
	}
	return result
}

type fmtCmd struct {
	Files []string `arg:"" help:"Models, or - for the standard input, which is formatted to the standard output."`
	Check bool     `help:"Change nothing: list the files that are not formatted and fail if there are any."`
}

// Run implements the command.
func (c *fmtCmd) Run(s *streams) error {
	var result error
	for _, file := range c.Files {
		if err := c.file(file, s); err != nil {
			if code := report(s.err, err); code != ok {
				result = reported
			}
		}
	}
	return result
}

func (c *fmtCmd) file(file string, s *streams) error {
	src, err := readInput(file, maxModel, s)
	if err != nil {
		return err
	}
	out, diags := frontend.Format(inputName(file), src)
	if diags.HasErrors() {
		render(s.err, diags, diag.Sources{inputName(file): src})
		return reported
	}
	switch same := bytes.Equal(src, out); {
	case c.Check && !same:
		fmt.Fprintln(s.out, inputName(file))
		return reported
	case c.Check || same && file != "-":
		return nil
	case file == "-":
		_, err := s.out.Write(out)
		return err
	}
	return driver.WriteFile(file, out)
}
