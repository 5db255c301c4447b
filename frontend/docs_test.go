package frontend

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/frontend/builtin"
	"blutrain/frontend/sema"
)

const reference = "../docs/language.md"

// TestReferenceIsCurrent compares the tables in the reference with those of the code. BLUTRAIN_UPDATE=1 writes them.
func TestReferenceIsCurrent(t *testing.T) {
	old, err := os.ReadFile(reference)
	require.NoError(t, err)
	text := string(old)
	for name, table := range map[string]string{
		"built-ins": builtin.Reference(), "initializers": sema.InitializerReference(),
		"optimizers": sema.OptimizerReference(), "schedules": sema.ScheduleReference(),
	} {
		begin, end := "<!-- table: "+name+" -->\n", "<!-- end of table -->"
		before, rest, ok := strings.Cut(text, begin)
		require.True(t, ok, "%s has no table %s", reference, name)
		_, after, ok := strings.Cut(rest, end)
		require.True(t, ok, "table %s has no end", name)
		text = before + begin + "\n" + strings.TrimRight(table, "\n") + "\n\n" + end + after
	}
	if os.Getenv("BLUTRAIN_UPDATE") != "" {
		require.NoError(t, os.WriteFile(reference, []byte(text), 0o644))
		return
	}
	require.Equal(t, text, string(old), "docs/language.md is stale: run BLUTRAIN_UPDATE=1 go test ./frontend")
}

// TestProgramsInTheReference checks every program in the reference, and that each of its errors is produced.
func TestProgramsInTheReference(t *testing.T) {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```blu\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, programs)
	for _, p := range programs {
		_, diags := Check("doc.blu", []byte(p[1]), Options{})
		require.NoError(t, diags.Err(), p[1])
		out, _ := Format("doc.blu", []byte(p[1]))
		require.Equal(t, p[1], string(out))
	}
}
