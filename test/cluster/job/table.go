package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// table prints the results, a line each.
func (j *job) table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "stage\tranks\twhat\tresult")
	for _, r := range j.rows {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(r.Value)) {
			parts = append(parts, fmt.Sprintf("%s %s", name, number(r.Value[name])))
		}
		if r.Note != "" {
			parts = append(parts, r.Note)
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", r.Stage, r.Ranks, r.What, strings.Join(parts, "; "))
	}
	return t.Flush()
}

// number has three digits that count.
func number(x float64) string {
	switch {
	case x != 0 && (x < 1e-3 && x > -1e-3):
		return fmt.Sprintf("%.1e", x)
	case x >= 1000 || x <= -1000:
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
