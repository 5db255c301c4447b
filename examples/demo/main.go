// Command demo shows the whole path on a machine that has only Go: it makes a corpus of the Go sources every Go machine
// has, compiles examples/gpt2.blu at a small size for the CPU, trains it, compares its loss on held-out files with tables
// of byte counts, and lets it write. It runs bluc and blurun as a user would and prints each command.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"blutrain/train/data"
)

// size is the model's and its training's.
type size struct {
	layers, heads, channels int64
	rows, length            int64 // of a batch
	steps                   int64
}

// small trains in about two minutes on two cores. In that time, few layers and many small steps get further
// than a larger model; weights that start four times as large as GPT-2's let so few steps find what attention is for.
var small = size{layers: 2, heads: 2, channels: 128, rows: 8, length: 128, steps: 5000}

func (s size) settings() string {
	return fmt.Sprintf("V=256,T=%d,L=%d,H=%d,C=%d,B=%d,S=%d,STD=0.08,LR=0.003,WARMUP=%d,STEPS=%d",
		s.length, s.layers, s.heads, s.channels, s.rows, s.length, s.steps/25, s.steps)
}

// bytes is how many the model is trained on.
func (s size) bytes() int64 { return s.rows * s.length * s.steps }

// demo is where things are.
type demo struct {
	bin, dir string
	size     size
	corpus   corpus
	out      io.Writer
}

func main() {
	bin := flag.String("bin", "bin", "folder of bluc and blurun")
	dir := flag.String("dir", filepath.Join("build", "demo"), "folder for everything the demo makes")
	flag.Parse()
	if err := run(*bin, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(bin, dir string) error {
	begin := time.Now()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	d := &demo{bin: bin, dir: dir, size: small, out: os.Stdout}
	if d.corpus, err = readCorpus(strings.TrimSpace(string(root))); err != nil {
		return err
	}
	result, err := d.run()
	if err != nil {
		return err
	}
	fmt.Fprintf(d.out, "\nThe loss curve is in %s and %s. All of this took %v.\n", d.path("log", "loss.png"), d.path("log", "loss.svg"), time.Since(begin).Round(time.Second))
	return result.verdict()
}

// run goes the whole path.
func (d *demo) run() (comparison, error) {
	if err := os.MkdirAll(d.dir, 0o777); err != nil {
		return comparison{}, err
	}
	for _, step := range []func() error{d.prepare, d.compile, d.train, d.sample} {
		if err := step(); err != nil {
			return comparison{}, err
		}
	}
	return d.compare()
}

func (d *demo) path(names ...string) string {
	return filepath.Join(append([]string{d.dir}, names...)...)
}

// prepare writes the files' bytes as token files.
func (d *demo) prepare() error {
	t, err := data.NewTokenizer("byte")
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		files []string
	}{{"train.bin", d.corpus.train}, {"val.bin", d.corpus.held}} {
		n, err := data.Prepare(d.path(part.name), t, part.files)
		if err != nil {
			return err
		}
		fmt.Fprintf(d.out, "%s: %d bytes of %d Go files\n", d.path(part.name), n, len(part.files))
	}
	return nil
}

func (d *demo) compile() error {
	return d.show("bluc", "compile", filepath.Join("examples", "gpt2.blu"), "-o", d.path("gpt2.blx"), "--set", d.size.settings())
}

// train replaces what an earlier demo learned.
func (d *demo) train() error {
	for _, old := range []string{"log", "checkpoints"} {
		if err := os.RemoveAll(d.path(old)); err != nil {
			return err
		}
	}
	return d.show("blurun", "train", d.path("gpt2.blx"), "--data", d.path("train.bin"), "--val-data", d.path("val.bin"),
		"--val-every", fmt.Sprint(max(1, d.size.steps/10)), "--log-dir", d.path("log"), "--checkpoint-dir", d.path("checkpoints"))
}

func (d *demo) sample() error {
	return d.show("blurun", "sample", d.path("gpt2.blx"), "--params", d.path("checkpoints"), "--tokens", "600", "--temperature", "0.7", "--seed", "1")
}

func (d *demo) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(d.bin, name), args...)
	c.Stderr = os.Stderr
	return c
}

// show prints a command and runs it.
func (d *demo) show(name string, args ...string) error {
	c := d.command(name, args...)
	c.Stdout = d.out
	fmt.Fprintf(d.out, "\n$ %s\n", strings.Join(c.Args, " "))
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}
