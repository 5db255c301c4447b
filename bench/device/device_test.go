// Package device_test tests the scripts that a machine with a GPU runs, as far as they go without one.
package device_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is no part, no limit or no folder is refused by its name, before anything is looked for or run.
func TestWrongArguments(t *testing.T) {
	out := "OUT=" + t.TempDir()
	for _, tc := range []struct {
		argument, environment, said string
	}{
		{"gem", out, "no part gem; there are: check "},
		{"", out, "no part ''; there are: check "},
		{"=5", out, "no part ''; there are: check "},
		{"DEVICE_LIMIT=5", out, "no part DEVICE_LIMIT; there are: check "},
		{"check=", out, "device.sh: check=: expected check=SECONDS"},
		{"check=1e3", out, "device.sh: check=1e3: expected check=SECONDS"},
		{"check=99999999999999999999", out, "device.sh: check=99999999999999999999: expected check=SECONDS"},
		{"check", "DEVICE_LIMIT=soon", "device.sh: DEVICE_LIMIT=soon: expected DEVICE_LIMIT=SECONDS"},
		{"check", "OUT=/dev/null/there", "/dev/null"},
	} {
		c := exec.Command("bash", "device.sh", tc.argument)
		c.Env = append(os.Environ(), out, tc.environment)
		var said bytes.Buffer
		c.Stderr = &said
		require.Error(t, c.Run(), "%+v", tc)
		require.Contains(t, said.String(), tc.said, "%+v", tc)
		require.NotContains(t, said.String(), "bundle.tar.gz", "%+v", tc)
	}
}
