package main

import (
	"os"
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

// A run doesn't go on with what is no results of gemm, or not all of them: it would write them anew.
func TestResumeRefuses(t *testing.T) {
	for text, reason := range map[string]string{
		"":                "EOF",
		"null x":          "there is more behind the list",
		`[{"kind":"ti`:    "unexpected EOF",
		`{"kind":"time"}`: "json: cannot unmarshal object",
		`[{"kind":"time","name":"qkv","pass":"forward"}]`: `json: unknown field "pass"`,
		`[{"kind":"time","name":"qkv"},{"kind":"time"}]`:  `number 2 is of kind "time" and has the name ""`,
		`[{"kind":"forward","name":"qkv"}]`:               `number 1 is of kind "forward" and has the name "qkv"; kinds are check, time`,
		`[{"kind":"time","name":"qkv"}][{"kind":"time"}]`: "there is more behind the list",
	} {
		file := filepath.Join(t.TempDir(), "gemm.json")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		require.ErrorContains(t, (&bench{file: file}).load(), file+": not results of gemm: "+reason, text)
	}
}

// What runs of the day have written is read.
func TestResumeReadsResults(t *testing.T) {
	files, err := filepath.Glob("../results/gemm-*-2026-11-30f.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		b := &bench{file: file}
		require.NoError(t, b.load())
		require.NotEmpty(t, b.results)
	}
}

// What no case is called is known in the end.
func TestOnlyThatMeetsNothing(t *testing.T) {
	b := &bench{only: []string{"qkv", "forwards"}, unmet: []string{"qkv", "forwards"}}
	require.True(t, b.wanted("time", "qkv forward bf16 "))
	require.False(t, b.wanted("time", "proj forward bf16 "))
	require.Equal(t, []string{"forwards"}, b.unmet)
}
