package builtin

import (
	"fmt"
	"strings"
	"testing"

	"blutrain/frontend/shape"
	"blutrain/internal/section"
)

// TestReferenceIsCurrent compares the table in the reference with that of the code.
func TestReferenceIsCurrent(t *testing.T) {
	section.Require(t, "../../docs/language.md", "built-ins", reference())
}

// reference is the table as Markdown.
func reference() string {
	var b strings.Builder
	for _, s := range Table {
		fmt.Fprintf(&b, "### %s\n\n| call | result | meaning |\n|---|---|---|\n", s.Title)
		for _, r := range s.Rows {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", signature(r), escape(r.Result), escape(r.Doc))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func escape(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// signature is a row's call with kinds and defaults: "softmax(x: float tensor, axis: axis = -1)".
func signature(r *Row) string {
	parts := make([]string, len(r.Params))
	for i, p := range r.Params {
		kind := p.Kind.String()
		if p.Choices != nil {
			kind = `"` + strings.Join(p.Choices, `", "`) + `"`
		}
		if p.Kind == Tensors {
			kind += "..."
		}
		switch {
		case p.Default.Kind != shape.NoConst:
			parts[i] = p.Name + ": " + kind + " = " + p.Default.String()
		case p.Optional:
			parts[i] = "[" + p.Name + ": " + kind + "]"
		default:
			parts[i] = p.Name + ": " + kind
		}
	}
	return r.Name + "(" + strings.Join(parts, ", ") + ")"
}
