package sema

import (
	"fmt"
	"strings"
	"testing"

	"blutrain/internal/section"
)

// TestReferenceIsCurrent compares the tables in the reference with those of the code.
func TestReferenceIsCurrent(t *testing.T) {
	for name, table := range map[string][]method{"initializers": initializers, "optimizers": optimizers, "schedules": schedules} {
		section.Require(t, "../../docs/language.md", name, methodReference(table))
	}
}

// methodReference is a table as Markdown.
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
