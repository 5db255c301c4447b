package filecheck

import (
	"bytes"
	"errors"
	"math/rand"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/upstream"
)

// upstreamStatus runs LLVM's FileCheck on the case. It is -1 where that crashed.
func (c *testCase) upstreamStatus(t *testing.T, tool string) (int, string) {
	cmd := exec.Command(tool, append(c.write(t), "--dump-input=never")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	status := cmd.ProcessState.ExitCode()
	if strings.Contains(stderr.String(), `missing closing "]"`) {
		status = 2 // upstream leaves with 1 here, unlike for every other mistake in the check file
	}
	return status, stderr.String()
}

func TestUpstreamCases(t *testing.T) {
	tool := upstream.FileCheck(t)
	cases := readCases(t)
	t.Chdir(t.TempDir())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, report := c.upstreamStatus(t, tool)
			require.Equal(t, status, c.status, "upstream's report:\n%s", report)
		})
	}
}

// TestUpstreamMutations compares the exit status on random variations of the cases.
func TestUpstreamMutations(t *testing.T) {
	tool := upstream.FileCheck(t)
	rounds := 400
	if os.Getenv(upstream.RequireVariable) == "1" {
		rounds = 6000
	}
	cases := readCases(t)
	t.Chdir(t.TempDir())
	r := rand.New(rand.NewSource(1))
	passed := 0
	for range rounds {
		c := mutate(r, cases)
		theirs, theirReport := c.upstreamStatus(t, tool)
		if theirs < 0 {
			continue
		}
		ours, ourReport := c.run(t)
		if ours == 0 {
			passed++
		}
		if ours != theirs {
			t.Errorf("%s %q: status %d, upstream's %d\ncheck:\n%s\ninput:\n%s\nour report:\n%s\nupstream's report:\n%s",
				c.name, c.args, ours, theirs, c.check, c.input, ourReport, theirReport)
		}
	}
	require.Greater(t, passed, rounds/20, "mutations that still match")
}

// mutate makes a variation of one of the cases.
func mutate(r *rand.Rand, cases []*testCase) *testCase {
	c := *cases[r.Intn(len(cases))]
	other := cases[r.Intn(len(cases))]
	for range 1 + r.Intn(3) {
		if r.Intn(3) > 0 {
			c.check = mutateText(r, c.check, other.check)
		} else {
			c.input = mutateText(r, c.input, other.input)
		}
	}
	if r.Intn(8) == 0 {
		c.args = other.args
	}
	c.check += "\n" // upstream takes the colon of a directive at the very end of a file for its text
	return &c
}

// mutateText changes a line or a character.
func mutateText(r *rand.Rand, text, other string) string {
	lines, others := strings.SplitAfter(text, "\n"), strings.SplitAfter(other, "\n")
	i, j := r.Intn(len(lines)), r.Intn(len(lines))
	switch r.Intn(7) {
	case 0:
		lines[i] = ""
	case 1:
		lines[i] += lines[j]
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
	case 3:
		lines[i] += others[r.Intn(len(others))]
	case 4:
		suffixes := []string{"CHECK:", "CHECK-NEXT:", "CHECK-SAME:", "CHECK-NOT:", "CHECK-DAG:", "CHECK-LABEL:", "CHECK-EMPTY:", "CHECK-COUNT-2:"}
		lines[i] = strings.Replace(lines[i], suffixes[r.Intn(len(suffixes))], suffixes[r.Intn(len(suffixes))], 1)
	default:
		return mutateCharacter(r, text)
	}
	return strings.Join(lines, "")
}

func mutateCharacter(r *rand.Rand, text string) string {
	const alphabet = "[]{}()#:|*+?.^$\\ -%@,=xXab19\n\t"
	at := r.Intn(len(text) + 1)
	before, after := text[:at], text[at:]
	if after != "" && r.Intn(2) == 0 {
		after = after[1:]
	}
	if r.Intn(3) > 0 {
		before += string(alphabet[r.Intn(len(alphabet))])
	}
	return before + after
}
