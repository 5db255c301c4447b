package litrun

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// suite is one test for each way to a verdict. Upstream's lit gives the same ones, see TestUpstreamVerdicts.
const suite = `
-- pass/simple.test --
// RUN: echo one
-- pass/pipe.test --
# RUN: echo one | grep one && echo two | grep two
-- pass/continuation.test --
// RUN: echo one \
// RUN:   two | \
// RUN:   grep "one two"
-- pass/continuation-past-others.test --
// RUN: echo one | \
// REQUIRES: true
// RUN:   grep one
-- pass/redirect.test --
// RUN: echo one > %t
// RUN: cat < %t | grep one
// RUN: cat %t.missing > %t.err 2>&1 || grep missing %t.err
-- pass/redirect-stderr.test --
// RUN: cat %t.missing 2>&1 | grep "No such file" || true
-- pass/paths.test --
// RUN: grep "marker of paths" %s
// RUN: grep "marker of paths" %S/paths.test
// RUN: grep "marker of paths" %p/paths.test
// RUN: echo %t | grep "Output/paths.test.tmp$"
// RUN: echo %basename_t %{s:basename} %{s:stem} | grep "^paths.test paths.test paths$"
// RUN: echo 100%% %%s | grep "^100[%] [%]s$"
-- pass/line.test --
// RUN: echo %(line) %(line+2) %(line - 1) | grep "^1 3 0$"
-- pass/quotes.test --
// RUN: echo 'a  b' "c  d" | grep "a  b c  d"
-- pass/state.test --
// RUN: mkdir -p %t.dir
// RUN: cd %t.dir
// RUN: echo here > file
// RUN: grep here %t.dir/file
-- pass/end.test --
// RUN: true
// END.
// RUN: false
-- pass/end-with-text.test --
// The END. of a sentence doesn't count.
// RUN: true
-- pass/blank.test --
// RUN:
// RUN: true
-- pass/suffix.mlir --
// RUN: true
-- pass/suffix.blu --
// RUN: true
-- pass/requires.test --
// REQUIRES: cpu && !gpu, (cpu || gpu)
// REQUIRES: c{{[a-z]}}u
// RUN: true
-- pass/unsupported.test --
// UNSUPPORTED: gpu
// RUN: true
-- pass/xfail-elsewhere.test --
// XFAIL: gpu
// RUN: true
-- fail/simple.test --
// RUN: false
-- fail/first.test --
// RUN: false
// RUN: true
-- fail/in-pipe.test --
// RUN: false | cat
-- fail/in-middle-of-pipe.test --
// RUN: echo one | grep two | cat
-- fail/no-such-command.test --
// RUN: no-such-command-anywhere
-- fail/and.test --
// RUN: true && false
-- xfail/star.test --
// XFAIL: *
// RUN: false
-- xfail/feature.test --
// XFAIL: gpu, cpu
// RUN: false
-- xpass/star.test --
// XFAIL: *
// RUN: true
-- unsupported/requires.test --
// REQUIRES: gpu
// RUN: false
-- unsupported/requires-one-of-two.test --
// REQUIRES: cpu
// REQUIRES: gpu
// RUN: false
-- unsupported/unsupported.test --
// UNSUPPORTED: gpu, cpu
// RUN: false
-- unsupported/expected-to-fail.test --
// XFAIL: *
// REQUIRES: gpu
// RUN: true
-- unresolved/no-run.test --
nothing
-- unresolved/unterminated.test --
// RUN: true \
-- unresolved/bad-expression.test --
// REQUIRES: cpu &&
// RUN: true
-- unresolved/bad-character.test --
// REQUIRES: cpu & gpu
// RUN: true
-- unresolved/bad-parenthesis.test --
// XFAIL: (cpu
// RUN: true
-- pass/Inputs/not-a-test.test --
// RUN: false
-- pass/not-a-test.txt --
// RUN: false
`

// refused are tests that lit runs and this runner doesn't.
const refused = `
-- temp-folder.test --
// RUN: echo %T
-- condition.test --
// RUN: %if cpu %{ true %}
-- retries.test --
// ALLOW_RETRIES: 2
// RUN: true
-- define.test --
// DEFINE: %{x} = true
// RUN: %{x}
-- xfail-star-elsewhere.test --
// REQUIRES: *
// RUN: true
`

// writeSuite unpacks a suite into a new folder.
func writeSuite(t *testing.T, text string) string {
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(text)).Files {
		path := filepath.Join(dir, f.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
		require.NoError(t, os.WriteFile(path, f.Data, 0o666))
	}
	return dir
}

func newRunner(t *testing.T, root string) *Runner {
	r, err := New(root, t.TempDir())
	require.NoError(t, err)
	r.Features = []string{"cpu"}
	r.Timeout = 20 * time.Second
	return r
}
