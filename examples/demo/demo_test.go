package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree is a folder like GOROOT, with src as a link, and what of it belongs in the corpus.
func tree(t *testing.T) (root string, wanted []string) {
	root = t.TempDir()
	store := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(store, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for i := range 300 {
		name := fmt.Sprintf("p%d/f%d.go", i%7, i)
		write(name, fmt.Sprintf("package p%d\n\nfunc f%d() int { return %d }\n", i%7, i, i*i))
		wanted = append(wanted, name)
	}
	write("p/testdata/x.go", "package x\n")
	write("p/notes.txt", "notes\n")
	write("p/large.go", strings.Repeat("/", maxFile+1))
	write("p/full.go", strings.Repeat("/", maxFile))
	require.NoError(t, os.Symlink(store, filepath.Join(root, "src")))
	return root, append(wanted, "p/full.go")
}

func TestCorpus(t *testing.T) {
	root, wanted := tree(t)
	c, err := readCorpus(root)
	require.NoError(t, err)
	var train, held []string
	for _, name := range wanted {
		path, err := filepath.EvalSymlinks(filepath.Join(root, "src", name))
		require.NoError(t, err)
		// The rule again, in another way: the first four bytes as a number, its rest by 100.
		sum, number := sha256.Sum256([]byte("src/"+name)), 0
		for _, b := range sum[:4] {
			number = number*256 + int(b)
		}
		if number%100 == 0 {
			held = append(held, path)
		} else {
			train = append(train, path)
		}
	}
	require.ElementsMatch(t, train, c.train)
	require.ElementsMatch(t, held, c.held)
	require.NotEmpty(t, held)

	_, err = readCorpus(t.TempDir())
	require.ErrorContains(t, err, "has 0 .go files to train on and 0 to hold out")
	_, err = readCorpus(filepath.Join(root, "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The same bytes are seen by the tables and by the model.
func TestText(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("one"), 0o644))
	require.NoError(t, os.WriteFile(b, []byte("two"), 0o644))
	for limit, want := range map[int64]string{0: "\x00one\x00two", 3: "\x00on", 5: "\x00one\x00", 100: "\x00one\x00two"} {
		got, err := text([]string{a, b}, limit)
		require.NoError(t, err)
		require.Equal(t, want, string(got), "limit %d", limit)
	}
}

func TestVerdict(t *testing.T) {
	require.NoError(t, comparison{[]float64{2.8, 1.8, 1.9}, 1.5}.verdict())
	require.ErrorContains(t, comparison{[]float64{2.8, 1.8, 1.9}, 1.75}.verdict(), "1.7500 is not below 1.70")
	require.ErrorContains(t, comparison{[]float64{2.8, 1.6, 1.9}, 1.65}.verdict(), "1.6500 is not below the best table's, 1.6000")
}

// The whole demo, with a few steps on a small corpus.
func TestDemo(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-o", bin+"/", "./cmd/...")
	build.Dir = filepath.Join("..", "..")
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)

	root, _ := tree(t)
	var out bytes.Buffer
	d := &demo{bin: bin, dir: t.TempDir(), out: &out, size: size{layers: 1, heads: 2, channels: 16, rows: 2, length: 16, steps: 60}}
	d.corpus, err = readCorpus(root)
	require.NoError(t, err)
	t.Chdir(filepath.Join("..", ".."))
	for range 2 { // a second demo replaces the first
		out.Reset()
		result, err := d.run()
		require.NoError(t, err)
		require.Len(t, result.tables, maxOrder)
		require.Less(t, result.tables[1], result.tables[0])
		require.Less(t, result.model, 5.0, "ln 256 = 5.5 is a guess")
	}
	require.Contains(t, out.String(), "$ "+filepath.Join(bin, "bluc")+" compile examples/gpt2.blu")
	require.Contains(t, out.String(), "after 1920 bytes:")
	require.FileExists(t, d.path("log", "loss.png"))
}
