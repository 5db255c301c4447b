package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a run has measured is in its file after each case, and one that goes on with it leaves those cases out.
func TestResume(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gemm.json")
	short := &bench{file: file, only: []string{"qkv", "proj"}}
	require.NoError(t, short.load(), "no file yet")
	require.NoError(t, short.keep("time", "qkv forward tf32 ", result{Kernel: "slow", TFLOPS: 1, Ratio: 0.5}, result{Kernel: "fast", TFLOPS: 2, Ratio: 0.9}, result{Kernel: "none", Failure: "spills"}))
	require.NoError(t, short.keep("check", "qkv NT", result{Kernel: "k", Failure: "error 1, at most 0.1 allowed"}))

	again := &bench{file: file, only: short.only}
	require.NoError(t, again.load())
	require.Equal(t, short.results, again.results)
	require.Equal(t, "fast", again.best("qkv forward tf32 ").Kernel)
	require.Equal(t, 1, again.failed(), "what failed then has failed")
	require.False(t, again.wanted("time", "qkv forward tf32 "))
	require.True(t, again.wanted("error", "qkv forward tf32 "), "another kind")
	require.True(t, again.wanted("time", "proj forward tf32 "))
	require.False(t, again.wanted("time", "fc forward tf32 "), "nobody asked for it")
	require.NoError(t, again.keep("time", "proj forward tf32 ", result{TFLOPS: 3}))

	last := &bench{file: file}
	require.NoError(t, last.load())
	require.Len(t, last.results, 5)
	require.ErrorContains(t, (&bench{file: t.TempDir()}).load(), "is a directory")
}
