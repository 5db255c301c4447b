package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// rankOf is the process of a rank among the children of one that has started ranks.
func rankOf(t *testing.T, parent, rank int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	require.NoError(t, err)
	for _, f := range files {
		list, err := os.ReadFile(f)
		require.NoError(t, err)
		for text := range strings.FieldsSeq(string(list)) {
			pid, err := strconv.Atoi(text)
			require.NoError(t, err)
			environ, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) // gone meanwhile: not a rank
			if strings.Contains("\x00"+string(environ), fmt.Sprintf("\x00RANK=%d\x00", rank)) {
				return pid
			}
		}
	}
	require.Fail(t, "no such process", "rank %d", rank)
	return 0
}

// signal sends a signal to one process.
func signal(t *testing.T, pid int, name string) {
	t.Helper()
	require.NoError(t, exec.Command("kill", "-"+name, strconv.Itoa(pid)).Run())
}
