package lit

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// internal is what no message to the author of a model may contain: operations and types of the IR, types and addresses of Go, and
// what is left of a wrong format.
var internal = regexp.MustCompile(`\b(blu|tile|mem|host|exec|ptx|dtms|func|arith|scf|builtin)\.[a-z]\w+|tensor<|memref<|!host|!tile|%!|0x[0-9a-f]{5,}|\*?\b(ir|sema|syntax|shape|emit|builtin)\.[A-Z]\w*|goroutine|panic`)

// TestErrorsSpeakOfTheModel: what bluc says of every wrong model in errors/ speaks of what its author wrote.
func TestErrorsSpeakOfTheModel(t *testing.T) {
	bin := build(t, "blutrain/cmd/bluc")
	files, err := filepath.Glob(filepath.Join("errors", "*", "*.blu"))
	require.NoError(t, err)
	require.Greater(t, len(files), 60)
	messages := 0
	for _, file := range files {
		out, _ := exec.Command(filepath.Join(bin, "bluc"), "check", file).CombinedOutput() // it fails, or warns
		for line := range strings.Lines(string(out)) {
			if _, message, ok := strings.Cut(line, ": error: "); ok {
				messages++
				require.NotRegexp(t, internal, message, file)
			} else if _, message, ok := strings.Cut(line, ": note: "); ok {
				require.NotRegexp(t, internal, message, file)
			}
		}
	}
	require.Greater(t, messages, 200)
}
