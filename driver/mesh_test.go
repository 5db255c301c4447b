package driver_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
)

// Meshes as they are written, and what is said of those that mean nothing.
func TestMeshes(t *testing.T) {
	for _, tt := range []struct {
		o    driver.Sharding
		want string // the options of the pass, or the error
	}{
		{driver.Sharding{Mesh: "dp"}, "dp=0 cp=1 zero=0 context=ring"},
		{driver.Sharding{Mesh: "dp=4", Zero: 1}, "dp=4 cp=1 zero=1 context=ring"},
		{driver.Sharding{Mesh: "dp,cp=2", Context: "ulysses"}, "dp=0 cp=2 zero=0 context=ulysses"},
		{driver.Sharding{Mesh: "cp=2,dp=3", Zero: 1}, "dp=3 cp=2 zero=1 context=ring"},
		{driver.Sharding{Mesh: "cp=4"}, "dp=1 cp=4 zero=0 context=ring"},
		{driver.Sharding{Zero: 1}, "--zero, --context and --bucket-size are about many ranks: they need --mesh, as in --mesh dp=4"},
		{driver.Sharding{Bucket: 1}, "they need --mesh"},
		{driver.Sharding{Mesh: "dp", Zero: 1}, "--zero 1 cuts states into one shard a rank: the number of ranks must be known, as in --mesh dp=4"},
		{driver.Sharding{Mesh: "dp=4", Context: "ring"}, "--context ring is about ranks that share a sequence: it needs cp in --mesh, as in --mesh dp,cp=2"},
		{driver.Sharding{Mesh: "cp=4", Context: "rings"}, "--context rings: there is no such way; did you mean ring?; there are ring, ulysses, gather"},
		{driver.Sharding{Mesh: "dp=0"}, `--mesh dp=0: dp has a number of ranks from 1 to 65536, not "0"`},
		{driver.Sharding{Mesh: "dp="}, `not ""`},
		{driver.Sharding{Mesh: "dp=1e3"}, `not "1e3"`},
		{driver.Sharding{Mesh: "cp"}, "--mesh cp: the number of ranks that share a sequence must be known: say cp=2"},
		{driver.Sharding{Mesh: "dp,dp=2"}, "--mesh dp,dp=2: the axis dp is there twice"},
		{driver.Sharding{Mesh: "dp,tp=2"}, `there is no axis "tp"`},
		{driver.Sharding{Mesh: "dp,"}, `there is no axis ""`},
		{driver.Sharding{Mesh: "dp=60000,cp=2"}, "expected 1 to 65536 in all"},
		{driver.Sharding{Mesh: "dp", Bucket: -1}, "--bucket-size -1"},
	} {
		o := driver.Options{Sharding: tt.o, CompileTo: "input"}
		_, err := driver.Compile("mlp.blu", source(t), o)
		if err == nil {
			require.Equal(t, tt.want, o.Pipeline(driver.Phase{Passes: "x", Sharded: "$MESH"}), "%+v", tt.o)
			continue
		}
		require.ErrorContains(t, err, tt.want, "%+v", tt.o)
		require.ErrorAs(t, err, new(*driver.OptionError))
	}
}

// The dumps of a sharded program are compiled on to the same artifact, and can't be sharded again.
func TestShardedDumps(t *testing.T) {
	for _, target := range driver.TargetNames() {
		dir := t.TempDir()
		sharding := driver.Sharding{Mesh: "dp=2", Zero: 1, Bucket: 4 << 10}
		whole, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: target, DumpDir: dir, Sharding: sharding})
		require.NoError(t, err)
		want, ok := whole.Artifact.File("program.mlir")
		require.True(t, ok)
		require.Contains(t, string(want), "reduce_scatter")
		dumps, err := filepath.Glob(filepath.Join(dir, "mlp.*.mlir"))
		require.NoError(t, err)
		for _, dump := range dumps {
			src, err := os.ReadFile(dump)
			require.NoError(t, err)
			number := filepath.Base(dump)[len("mlp."):][0]
			o := driver.Options{Target: target}
			if number < '3' { // before the phase graph
				o.Sharding = sharding
			}
			r, err := driver.Compile(dump, src, o)
			require.NoError(t, err, dump)
			got, _ := r.Artifact.File("program.mlir")
			require.Equal(t, string(want), string(got), dump)
			if number >= '3' {
				o.Sharding = sharding
				_, err = driver.Compile(dump, src, o)
				require.ErrorContains(t, err, "is past the phase graph, in which programs are sharded")
			}
		}
	}
}
