package litrun

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/upstream"
)

// TestUpstreamVerdicts: LLVM's lit agrees with what TestVerdicts expects.
func TestUpstreamVerdicts(t *testing.T) {
	lit := upstream.Lit(t)
	root := writeSuite(t, suite)
	config, err := os.ReadFile(filepath.Join(upstream.Root(t), "test", "lit", "lit.cfg.py"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "lit.cfg.py"), config, 0o666))
	r := newRunner(t, root)
	names, err := r.Discover()
	require.NoError(t, err)

	want := map[string]Verdict{}
	for _, name := range names {
		want[name] = Verdict(strings.ToUpper(path.Dir(name)))
	}
	got, err := r.UpstreamVerdicts(lit)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
