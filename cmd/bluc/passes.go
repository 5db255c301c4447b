package main

import (
	"fmt"
	"strings"

	"blutrain/driver"
)

type passesCmd struct{}

// Run implements the command.
func (passesCmd) Run(s *streams) error {
	fmt.Fprintln(s.out, "Passes:")
	for _, p := range driver.Passes() {
		fmt.Fprintf(s.out, "  %-14s %s\n", p.Name, p.Summary)
		for _, h := range p.Help() {
			fmt.Fprintf(s.out, "  %-14s   %s\n", "", h)
		}
		for _, a := range p.After {
			fmt.Fprintf(s.out, "  %-14s   after %s: %s\n", "", a.Pass, a.Reason)
		}
	}
	fmt.Fprintln(s.out, "\nPhases:")
	for _, p := range driver.Phases {
		line := p.Summary
		if p.Targets != nil {
			line += " (" + strings.Join(p.Targets, ", ") + ")"
		}
		if p.Passes != "" {
			line += ": " + p.Passes
		}
		if p.Sharded != "" {
			line += "; with a mesh: " + p.Sharded
		}
		fmt.Fprintf(s.out, "  %-14s %s\n", p.Name, line)
	}
	fmt.Fprintln(s.out, "\n$TARGET and the like stand for what the options of bluc compile say.")
	return nil
}
