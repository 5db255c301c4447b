package docs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/formats/npy"
)

func TestBlocks(t *testing.T) {
	got, err := Blocks("text\n```sh\nls\n```\n<!-- file: a.blu -->\n```blu\nmodel a {}\n\n```\n<!-- file: b.blu -->\n\n```\nx\n```\n" +
		"<!-- not run: no cluster -->\n```sh\nsrun\n```\n")
	require.NoError(t, err)
	require.Equal(t, []Block{
		{Line: 3, Kind: "sh", Text: "ls\n"},
		{Line: 7, Kind: "blu", File: "a.blu", Text: "model a {}\n\n"},
		{Line: 13, Text: "x\n"},
		{Line: 17, Kind: "sh", Skip: "no cluster", Text: "srun\n"},
	}, got)
	_, err = Blocks("text\n```sh\nls\n")
	require.EqualError(t, err, "the block at line 3 does not end")

	commands, err := Commands(Block{Line: 3, Text: "$ a b\none\ntwo\n$ c\n"})
	require.NoError(t, err)
	require.Equal(t, []Command{{3, "a b", "one\ntwo\n"}, {6, "c", ""}}, commands)
	_, err = Commands(Block{Line: 3, Text: "one\n$ a\n"})
	require.EqualError(t, err, "line 3: output without a command")
}

func TestShows(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		want          bool
	}{
		{"a\nb\n", "a\nb\n", true},
		{"a\n", "a\nb\n", false},
		{"a\nb\n", "a\n", false},
		{"a.c\n", "abc\n", false},
		{"a\n...\nd\n", "a\nb\nc\nd\n", true},
		{"a\n...\nd\n", "a\nd\n", true},
		{"a\n...\n", "a\nb\n", true},
		{"...\nd\n", "b\nc\n", false},
		{"", "", true},
	} {
		require.Equal(t, c.want, Shows(c.shown, c.output), "%q of %q", c.shown, c.output)
	}
}

var root = filepath.Join("..", "..")

// documents is the texts for users.
func documents(t *testing.T) []string {
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	return append(names, filepath.Join(root, "README.md"))
}

func TestDocuments(t *testing.T) {
	bin := programs(t)
	t.Run("commands", func(t *testing.T) { runCommands(t, bin) })
	t.Run("models", func(t *testing.T) { checkLayout(t, bin) })
	t.Run("flags", func(t *testing.T) { checkFlags(t, bin) })
}

// runCommands runs the commands of every document.
func runCommands(t *testing.T, bin string) {
	for _, name := range documents(t) {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			blocks, err := Blocks(string(text))
			require.NoError(t, err)
			dir := checkout(t, bin)
			tokens(t, filepath.Join(dir, "tokens.npy"))
			for _, b := range blocks {
				at := fmt.Sprintf("%s:%d", name, b.Line)
				if b.File != "" {
					require.NoError(t, os.WriteFile(filepath.Join(dir, b.File), []byte(b.Text), 0o644), at)
				}
				switch {
				case b.Skip != "":
				case b.Kind == "sh":
					out, err := shell(dir, b.Text)
					require.NoError(t, err, "%s: %s", at, out)
				case b.Kind == "console":
					commands, err := Commands(b)
					require.NoError(t, err, at)
					for _, c := range commands {
						out, _ := shell(dir, c.Text) // what fails shows its error
						require.True(t, Shows(c.Output, out), "%s:%d: $ %s\n%s", name, c.Line, c.Text, out)
					}
				}
			}
		})
	}
}

// checkLayout: a model that is a file is as bluc fmt lays it out.
func checkLayout(t *testing.T, bin string) {
	for _, name := range documents(t) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		blocks, err := Blocks(string(text))
		require.NoError(t, err)
		for _, b := range blocks {
			if b.Kind != "blu" || b.File == "" {
				continue
			}
			c := exec.Command(filepath.Join(bin, "bluc"), "fmt", "--check", "-")
			c.Stdin = strings.NewReader(b.Text)
			out, err := c.CombinedOutput()
			require.NoError(t, err, "%s:%d: %s", name, b.Line, out)
		}
	}
}

// checkFlags: what documents call a flag is one of some command, and docs/training.md knows all of blurun train.
func checkFlags(t *testing.T, bin string) {
	known := map[string]bool{"--help": true, "--allow-unregistered-dialect": true, "--tool": true} // the last two are of other programs
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	help := func(program string, command ...string) []string {
		out, err := exec.Command(filepath.Join(bin, program), append(command, "--help")...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return flag.FindAllString(string(out), -1)
	}
	for program, commands := range map[string][]string{
		"bluc":   {"compile", "opt", "check", "fmt", "inspect", "passes", "ops"},
		"blurun": {"train", "eval", "sample", "exec", "verify", "bench", "profile", "tune", "data prepare", "devices"},
	} {
		for _, c := range commands {
			for _, f := range help(program, strings.Fields(c)...) {
				known[f] = true
			}
		}
	}
	for _, name := range documents(t) {
		if filepath.Base(name) == "cluster.md" { // speaks of the launchers' own flags
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, f := range flag.FindAllString(string(text), -1) {
			require.True(t, known[f], "%s: %s", name, f)
		}
		if filepath.Base(name) == "training.md" {
			for _, f := range help("blurun", "train") {
				require.True(t, f == "--help" || slices.Contains(flag.FindAllString(string(text), -1), f), "%s lacks %s", name, f)
			}
		}
	}
}

// programs builds bluc and blurun.
func programs(t *testing.T) string {
	bin := t.TempDir()
	c := exec.Command("go", "build", "-trimpath", "-o", bin+"/", "./cmd/...")
	c.Dir = root
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return bin
}

// checkout is a folder with everything of the repository, the programs in bin, and a make that only talks.
func checkout(t *testing.T, bin string) string {
	dir := t.TempDir()
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	ours := tracked()
	for _, e := range entries {
		if name := e.Name(); name != "bin" && name != "build" && !strings.HasPrefix(name, ".") && (ours == nil || ours[name]) {
			target, err := filepath.Abs(filepath.Join(root, name))
			require.NoError(t, err)
			require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
		}
	}
	require.NoError(t, os.Symlink(bin, filepath.Join(dir, "bin")))
	path, err := exec.LookPath("make")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".path"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".path", "make"), []byte("#!/bin/sh\nexec "+path+" -n \"$@\"\n"), 0o755))
	return dir
}

// tracked is the names at the top that git knows, since who follows the documents there leaves others; nil where this is no
// clone.
func tracked() map[string]bool {
	list, err := exec.Command("git", "-C", root, "ls-files").Output()
	if err != nil {
		return nil
	}
	names := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "/")
		names[name] = true
	}
	return names
}

// tokens is an input for the model of docs/training.md.
func tokens(t *testing.T, name string) {
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, formats.FromInt32s(make([]int32, 4*32), 4, 32)))
	require.NoError(t, os.WriteFile(name, b.Bytes(), 0o644))
}

func shell(dir, script string) (string, error) {
	c := exec.Command("sh", "-eu", "-c", script)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+filepath.Join(dir, ".path")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	return string(out), err
}
