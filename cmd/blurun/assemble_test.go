package main

import (
	"bytes"
	"context"
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/runtime"
)

// Half of the cores, shared by the ranks of the machine, help; none where the driver keeps nothing.
func TestHelpers(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(12))
	e := &env{program: "/bin/blurun", environ: []string{"CUDA_CACHE_DISABLE=0"}}
	require.Equal(t, runtime.Helpers{Command: []string{"/bin/blurun", "assemble"}, Most: 6}, e.helpers(1))
	require.Equal(t, 3, e.helpers(2).Most)
	require.Equal(t, 0, e.helpers(8).Most)
	goruntime.GOMAXPROCS(128)
	require.Equal(t, 8, e.helpers(0).Most)
	e.environ = []string{"CUDA_CACHE_DISABLE=1"}
	require.Equal(t, runtime.Helpers{}, e.helpers(1))
	require.Equal(t, runtime.Helpers{}, (&env{}).helpers(1))
}

// The command that assembles is not among those that are shown.
func TestAssembleIsHidden(t *testing.T) {
	var out, errs bytes.Buffer
	e := &env{ctx: context.Background(), stdin: strings.NewReader(""), stdout: &out, stderr: &errs}
	require.Zero(t, run([]string{"--help"}, e))
	require.Contains(t, out.String(), "profile")
	require.NotContains(t, out.String(), "assemble")
	require.Equal(t, 2, run([]string{"assemble"}, e))
}
