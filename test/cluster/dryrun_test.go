package cluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDryRun runs the whole job on CPUs and holds what it measures to what must be.
func TestDryRun(t *testing.T) {
	out := t.TempDir()
	args := []string{"test/cluster/dryrun.sh", "--out", out, "--steps", "4"}
	if testing.Short() {
		args = append(args, "--ranks", "1,2", "--lengths", "64", "--sizes", "1")
	}
	c := exec.Command("sh", args...)
	c.Dir = root
	text, err := c.CombinedOutput()
	require.NoError(t, err, "%s", text)
	raw, err := os.ReadFile(filepath.Join(out, "results.jsonl"))
	require.NoError(t, err)
	stages := map[string]int{}
	memory := 0.0 // of the row before, which has the same without shards
	for line := range strings.Lines(string(raw)) {
		var r struct {
			Stage, What, Note string
			Values            map[string]float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		stages[r.Stage]++
		require.Empty(t, r.Note, line)
		for name, limit := range map[string]float64{"loss error, first step": 1e-6, "loss error, last step": 1e-5} {
			require.LessOrEqual(t, r.Values[name], limit, line)
		}
		switch r.Stage {
		case "collectives":
			require.Positive(t, r.Values["bus GB/s"], line)
		case "data", "context":
			require.Positive(t, r.Values["tokens/s"], line)
			if strings.HasSuffix(r.What, "ZeRO-1") {
				require.Less(t, r.Values["memory MiB"], memory, line)
			}
			memory = r.Values["memory MiB"]
		case "checkpoints":
			require.Positive(t, r.Values["written in ms"], line)
		case "death":
			require.Less(t, r.Values["s"], 10.0, line)
		}
	}
	if testing.Short() {
		require.Equal(t, map[string]int{"collectives": 4, "data": 3, "context": 4, "checkpoints": 2, "resume": 2, "death": 1}, stages)
	} else {
		require.Equal(t, map[string]int{"collectives": 16, "data": 5, "context": 8, "checkpoints": 2, "resume": 2, "death": 1}, stages)
	}
	require.Contains(t, string(text), "stage        ranks  what", "a table is printed last")
}
