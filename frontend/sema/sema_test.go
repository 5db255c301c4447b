package sema

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/frontend/syntax"
	"blutrain/ir/diag"
)

func check(t testing.TB, name, src string, set map[string]int64) (*Program, diag.List) {
	t.Helper()
	file, diags := syntax.Parse(name, src)
	require.NoError(t, diags.Err())
	return Check(file, Options{Set: set})
}

func rendered(name, src string, l diag.List) string {
	var b strings.Builder
	_ = diag.Render(&b, l, diag.Sources{name: []byte(src)})
	return b.String()
}

func TestExamples(t *testing.T) {
	for _, name := range []string{"gpt2.blu", "llama.blu", "mlp.blu"} {
		src, err := os.ReadFile("../../examples/" + name)
		require.NoError(t, err)
		p, diags := check(t, name, string(src), nil)
		require.Empty(t, diags, rendered(name, string(src), diags))
		require.NotNil(t, p.Train)
	}
}
