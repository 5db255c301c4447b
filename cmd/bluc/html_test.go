package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDumpHTML(t *testing.T) {
	dir := t.TempDir()
	dump := func(name string, args ...string) string {
		path := filepath.Join(dir, name)
		_, errs, code := bluc(t, module, append(args, "--dump-html", path)...)
		require.Zero(t, code, errs)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	one := dump("one.html", "compile", "../../examples/gpt2.blu", "-o", filepath.Join(dir, "gpt2.blx"))
	two := dump("two.html", "compile", "../../examples/gpt2.blu", "-o", filepath.Join(dir, "gpt2.blx"))
	require.True(t, one == two, "not the same page for the same model")
	require.Contains(t, one, "<title>../../examples/gpt2.blu: IR by pass</title>")
	require.Less(t, len(one), 2<<20, "GPT-2 124M")
	opt := dump("opt.html", "opt", "--pass-pipeline=builtin.module(func.func(cse))")
	require.Contains(t, opt, "<title>&lt;stdin&gt;: IR by pass</title>")
	dump("alone.html", "opt")
}

func TestDumpHTMLErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "page.html")
	// Nothing to show: nothing is written.
	_, _, code := bluc(t, "", "compile", file(t, "bad.blu", "model ("), "--dump-html", path)
	require.Equal(t, failed, code)
	require.NoFileExists(t, path)
	_, errs, code := bluc(t, module, "opt", "--split-input-file", "--dump-html", path)
	require.Equal(t, usage, code)
	require.Contains(t, errs, "not with --split-input-file")
	// What there was before the error is shown, and the error is reported as without the page.
	in := file(t, "half.mlir", "builtin.module attributes {blu.phase = \"input\"} {\n  func.func private @g(%x: i32) -> i32 {\n    %0 = func.call %x {callee = @g} : (i32) -> i32\n    func.return %0 : (i32) -> ()\n  }\n}\n")
	_, plain, code := bluc(t, "", "compile", in, "-o", filepath.Join(dir, "x.blx"))
	require.Equal(t, failed, code)
	_, errs, code = bluc(t, "", "compile", in, "-o", filepath.Join(dir, "x.blx"), "--dump-html", path)
	require.Equal(t, failed, code)
	require.Equal(t, plain, errs)
	require.FileExists(t, path)
	_, errs, code = bluc(t, module, "opt", "--dump-html", filepath.Join(dir, "none", "page.html"))
	require.Equal(t, failed, code)
	require.Contains(t, errs, "page.html")
}
