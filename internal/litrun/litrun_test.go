package litrun

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestVerdicts: the folder that a test of the suite is in says its verdict.
func TestVerdicts(t *testing.T) {
	r := newRunner(t, writeSuite(t, suite))
	names, err := r.Discover()
	require.NoError(t, err)
	require.Len(t, names, strings.Count(suite, "\n-- ")-2, "all files but the two that are no tests")
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result := r.Run(t.Context(), name)
			require.Equal(t, Verdict(strings.ToUpper(path.Dir(name))), result.Verdict, result.Report)
		})
	}
}

func TestRefused(t *testing.T) {
	r := newRunner(t, writeSuite(t, refused))
	names, err := r.Discover()
	require.NoError(t, err)
	require.Len(t, names, 5)
	for _, name := range names {
		result := r.Run(t.Context(), name)
		require.Equal(t, Unresolved, result.Verdict, "%s: %s", name, result.Report)
		require.Contains(t, result.Report, name+":1: ")
	}
}

func TestReports(t *testing.T) {
	const tests = `
-- second.test --
// RUN: echo fine
// RUN: echo "it's bad" && \
// RUN:   false
// RUN: echo never
-- printed.test --
// RUN: cat %s.missing
-- slow.test --
// RUN: sleep 60 | cat
-- unterminated.test --
// RUN: true
// RUN: true \
-- expression.test --
// RUN: true
// XFAIL: a b
-- requires.test --
// REQUIRES: gpu
// RUN: true
`
	r := newRunner(t, writeSuite(t, tests))
	r.Timeout = time.Second
	for name, want := range map[string]Result{
		"second.test":       {Fail, "fine\nit's bad\nsecond.test:2: command failed: echo \"it's bad\" &&    false\n"},
		"printed.test":      {Fail, "No such file"},
		"slow.test":         {Timeout, "slow.test: not done after 1s"},
		"unterminated.test": {Unresolved, `unterminated.test:2: the RUN line ends in '\', but no RUN line follows`},
		"expression.test":   {Unresolved, `expression.test:2: expression "a b": unexpected "b"`},
		"requires.test":     {Unsupported, "requires gpu"},
		"absent.test":       {Unresolved, "no such file"},
	} {
		result := r.Run(t.Context(), name)
		require.Equal(t, want.Verdict, result.Verdict, "%s: %s", name, result.Report)
		require.Contains(t, result.Report, want.Report, name)
	}
}

// A test sees nothing of the environment that it wasn't given.
func TestEnvironment(t *testing.T) {
	t.Setenv("BLUTRAIN_SECRET", "x")
	const tests = `
-- env.test --
// RUN: env > %t
// RUN: grep "^PATH=/first:/second:" %t
// RUN: grep -v BLUTRAIN_SECRET %t > %t.without
// RUN: cmp %t %t.without
`
	r := newRunner(t, writeSuite(t, tests))
	r.Path = []string{"/first", "/second"}
	result := r.Run(t.Context(), "env.test")
	require.Equal(t, Pass, result.Verdict, result.Report)
}

func TestNewWantsAbsolute(t *testing.T) {
	_, err := New("relative", t.TempDir())
	require.ErrorContains(t, err, "not absolute")
}

func TestEvaluate(t *testing.T) {
	tests := []struct {
		text string
		want bool
		err  string
	}{
		{"a", true, ""},
		{"c", false, ""},
		{"true", true, ""},
		{"!a", false, ""},
		{"!!a", true, ""},
		{"a && c || b", true, ""},
		{"c && a || c", false, ""},
		{"c || a && c", false, ""},
		{"a && (c || b)", true, ""},
		{"{{[a-b]}}", true, ""},
		{"lib{{(x|y)}}-1.0", true, ""},
		{"lib", false, ""},
		{"", false, "a name is missing at the end"},
		{"a ||", false, "a name is missing at the end"},
		{"&& a", false, `a name is missing before "&&"`},
		{"(a", false, "a parenthesis is not closed"},
		{"a)", false, `unexpected ")"`},
		{"a $", false, `can't read "$"`},
		{"{{(}}", false, "missing closing )"},
	}
	for _, tt := range tests {
		got, err := evaluate(tt.text, []string{"a", "b", "libx-1.0"})
		if tt.err != "" {
			require.ErrorContains(t, err, tt.err, tt.text)
			continue
		}
		require.NoError(t, err, tt.text)
		require.Equal(t, tt.want, got, tt.text)
	}
}
