package sema

import (
	"fmt"
	"strings"
)

// InitializerReference, OptimizerReference and ScheduleReference are the tables as Markdown, for docs/language.md.
func InitializerReference() string { return methodReference(initializers) }

// OptimizerReference is the table of optimizers, without what all of them have.
func OptimizerReference() string { return methodReference(optimizers) }

// ScheduleReference is the table of schedules.
func ScheduleReference() string { return methodReference(schedules) }

func methodReference(table []method) string {
	var b strings.Builder
	b.WriteString("| call | meaning |\n|---|---|\n")
	for _, m := range table {
		var parts []string
		for i, p := range m.params {
			switch {
			case p.name == "beta1": // written as one pair with beta2
				parts = append(parts, fmt.Sprintf("betas = (%g, %g)", p.value, m.params[i+1].value))
			case p.name == "beta2":
			case p.required:
				parts = append(parts, p.name)
			case p.name == "nesterov":
				parts = append(parts, "nesterov = false")
			default:
				parts = append(parts, fmt.Sprintf("%s = %g", p.name, p.value))
			}
		}
		call := m.kind
		if len(parts) > 0 {
			call += "(" + strings.Join(parts, ", ") + ")"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", call, m.doc)
	}
	return b.String()
}
