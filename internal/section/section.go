// Package section keeps the generated parts of a hand-written document current. A part stands between two comments:
//
//	<!-- table: built-ins -->
//	<!-- end of table -->
//
// Only tests import the package. It knows nothing of what the parts say.
package section

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// Update is the environment variable that makes Require write the parts instead of comparing them.
const Update = "BLUTRAIN_UPDATE"

// Require fails unless the part called name of the document at path is content; with Update set, it becomes so.
func Require(t testing.TB, path, name, content string) {
	t.Helper()
	old, err := os.ReadFile(path)
	require.NoError(t, err)
	begin, end := "<!-- table: "+name+" -->\n", "<!-- end of table -->"
	before, rest, ok := strings.Cut(string(old), begin)
	require.True(t, ok, "%s has no table %s", path, name)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "%s: table %s has no end", path, name)
	text := before + begin + "\n" + strings.TrimRight(content, "\n") + "\n\n" + end + after
	if os.Getenv(Update) != "" {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	if text != string(old) {
		t.Errorf("%s: table %s is stale, 'make generate' renews it (- what it says, + what it should say):\n%s", path, name, cmp.Diff(strings.Split(string(old), "\n"), strings.Split(text, "\n")))
	}
}
