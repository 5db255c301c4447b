package passes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// seeds adds the modules of the golden tests.
func seeds(f *testing.F) {
	files, err := filepath.Glob("../test/lit/*/*.mlir")
	require.NoError(f, err)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(string(src))
	}
}

// Whatever can be read is verified without a crash, and what is valid stays valid under every pass.
func FuzzPasses(f *testing.F) {
	f.Add(source)
	f.Add("func.func @f(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {\n  %c = blu.constant {value = dense<1.0> : tensor<2x3xf32>} : () -> tensor<2x3xf32>\n  %s = blu.add %c, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>\n  %t = blu.transpose %s {perm = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>\n  func.return %t : (tensor<3x2xf32>) -> ()\n}")
	seeds(f)
	pl, err := NewPipeline(Table, "inline", "canonicalize", "cse", "dce")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, src string) {
		c := dialects.NewContext()
		m, err := ir.Parse(c, "fuzz.mlir", []byte(src))
		if err != nil || ir.Verify(c, m) != nil {
			return
		}
		cfg := Config{Shuffle: true}
		if err := cfg.Run(c, m, pl); err != nil {
			_, fault := err.(*Failure)
			require.False(t, fault, "%v", err)
		}
	})
}

// Whatever is valid is made into the program of one rank of many, or refused.
func FuzzShard(f *testing.F) {
	seeds(f)
	var pipelines []*Pipeline
	for _, mesh := range []string{"", "dp=2 zero=1", "cp=2 dp=1"} {
		pl, err := ParsePipeline(Table, "builtin.module(shard{"+mesh+"},canonicalize,bucket{size=64},overlap)")
		require.NoError(f, err)
		pipelines = append(pipelines, pl)
	}
	f.Fuzz(func(t *testing.T, src string) {
		for _, pl := range pipelines {
			c := dialects.NewContext()
			m, err := ir.Parse(c, "fuzz.mlir", []byte(src))
			if err != nil || ir.Verify(c, m) != nil {
				return
			}
			if err := (&Config{}).Run(c, m, pl); err != nil {
				_, fault := err.(*Failure)
				require.False(t, fault, "%v", err)
			}
		}
	})
}

func FuzzParsePipeline(f *testing.F) {
	f.Add("builtin.module(canonicalize,cse,func.func(dce,inline))")
	f.Add("builtin.module( options{ deep mode=auto } )")
	table := testTable()
	f.Fuzz(func(t *testing.T, text string) {
		pl, err := ParsePipeline(table, text)
		if err != nil {
			return
		}
		again, err := ParsePipeline(table, pl.String())
		require.NoError(t, err)
		require.Equal(t, pl.String(), again.String())
	})
}
