package filecheck

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
)

// A testCase is one comparison from testdata/*.txtar, whose first lines say what its files are.
type testCase struct {
	name   string
	status int
	args   []string
	check  string
	input  string
	report []string // lines that the report contains
}

func readCases(t testing.TB) []*testCase {
	archives, err := filepath.Glob("testdata/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	var cases []*testCase
	byName := map[string]*testCase{}
	seen := map[string]bool{}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		require.NoError(t, err)
		for _, f := range archive.Files {
			name, part, ok := strings.Cut(f.Name, ".")
			require.True(t, ok && !seen[f.Name], "%s: bad or repeated name %s", path, f.Name)
			seen[f.Name] = true
			c := byName[name]
			if c == nil {
				c = &testCase{name: name, status: -1}
				byName[name] = c
				cases = append(cases, c)
			}
			c.setPart(t, part, string(f.Data))
		}
	}
	for _, c := range cases {
		require.True(t, c.status >= 0 && c.check != "", "case %s lacks its .run or .check", c.name)
	}
	return cases
}

func (c *testCase) setPart(t testing.TB, part, data string) {
	switch part {
	case "run":
		fields := strings.Fields(data)
		status, err := strconv.Atoi(fields[0])
		require.NoError(t, err, c.name)
		c.status, c.args = status, fields[1:]
	case "check":
		c.check = data
	case "input":
		c.input = data
	case "err":
		c.report = strings.Split(strings.TrimSpace(data), "\n")
	default:
		t.Fatalf("case %s: unknown part %s", c.name, part)
	}
}

// write puts the case's files into the current folder and gives the arguments that name them.
func (c *testCase) write(t *testing.T) []string {
	check, input := c.name+".check", c.name+".input"
	require.NoError(t, os.WriteFile(check, []byte(c.check), 0o666))
	require.NoError(t, os.WriteFile(input, []byte(c.input), 0o666))
	return append([]string{check, "--input-file", input}, c.args...)
}

func (c *testCase) run(t *testing.T) (status int, report string) {
	var stderr strings.Builder
	status = Main(c.write(t), strings.NewReader(""), &stderr, func(string) string { return "" })
	return status, stderr.String()
}

func TestCases(t *testing.T) {
	cases := readCases(t)
	t.Chdir(t.TempDir())
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			status, report := c.run(t)
			require.Equal(t, c.status, status, "report:\n%s", report)
			require.Equal(t, status == 0, report == "", "a report goes with a failure: %q", report)
			for _, want := range c.report {
				require.Contains(t, report, want)
			}
		})
	}
}
