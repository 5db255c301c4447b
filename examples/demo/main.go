// Command demo shows the whole path on a machine that has only Go: it makes a corpus of the Go sources every Go machine
// has, compiles examples/gpt2.blu at a small size for the CPU, trains it, compares its loss on held-out files with tables
// of byte counts, and lets it write. It runs bluc and blurun as a user would and prints each command.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"blutrain/examples/demo/ngram"
	"blutrain/train/data"
)

// The size of the model, its training, and what follows from them.
const (
	rows, length = 16, 256 // of a batch
	steps        = 1500
	seen         = rows * length * steps // bytes the model is trained on
	maxOrder     = 5
)

var settings = strings.Join([]string{
	"V=256", fmt.Sprint("T=", length), "L=4", "H=4", "C=128", fmt.Sprint("B=", rows), fmt.Sprint("S=", length),
	"LR=0.003", "WARMUP=100", fmt.Sprint("STEPS=", steps),
}, ",")

func main() {
	bin := flag.String("bin", "bin", "folder of bluc and blurun")
	dir := flag.String("dir", "build/demo", "folder for everything the demo makes")
	flag.Parse()
	if err := run(*bin, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(bin, dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	d := &demo{bin: bin, dir: dir}
	files, err := sources()
	if err != nil {
		return err
	}
	d.train, d.held = split(files)
	for _, step := range []func() error{d.prepare, d.compile, d.learn, d.compare, d.sample} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

type demo struct {
	bin, dir    string
	train, held []string
}

func (d *demo) path(name string) string { return filepath.Join(d.dir, name) }

// prepare writes the files' bytes as token shards.
func (d *demo) prepare() error {
	t, err := data.NewTokenizer("byte")
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name  string
		files []string
	}{{"train.bin", d.train}, {"val.bin", d.held}} {
		n, err := data.Prepare(d.path(part.name), t, part.files)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d bytes of %d Go files\n", d.path(part.name), n, len(part.files))
	}
	return nil
}

func (d *demo) compile() error {
	return d.show("bluc", "compile", "examples/gpt2.blu", "-o", d.path("gpt2.blx"), "--set", settings)
}

func (d *demo) learn() error {
	_ = os.RemoveAll(d.path("log"))
	_ = os.RemoveAll(d.path("checkpoints"))
	return d.show("blurun", "train", d.path("gpt2.blx"), "--data", d.path("train.bin"), "--val-data", d.path("val.bin"),
		"--steps", fmt.Sprint(steps), "--log-dir", d.path("log"), "--checkpoint-dir", d.path("checkpoints"), "--checkpoint-every", fmt.Sprint(steps))
}

// compare prints the model's loss on the held-out files beside that of the tables.
func (d *demo) compare() error {
	out, err := d.command("blurun", "eval", d.path("gpt2.blx"), "--data", d.path("val.bin"), "--params", d.path("checkpoints"), "--json").Output()
	if err != nil {
		return fmt.Errorf("blurun eval: %w", err)
	}
	var result struct{ Loss float64 }
	if err := json.Unmarshal(out, &result); err != nil {
		return fmt.Errorf("blurun eval printed %q: %w", out, err)
	}
	known, err := text(d.train, seen)
	if err != nil {
		return err
	}
	held, err := text(d.held, 0)
	if err != nil {
		return err
	}
	table := ngram.Count(maxOrder, known)
	fmt.Printf("\nheld-out loss in nats per byte, %d bytes of %d files; each learned from %d bytes\n", len(held), len(d.held), seen)
	best := 0.0
	for order := 1; order <= maxOrder; order++ {
		loss := table.Loss(order, held)
		fmt.Printf("  table of order %d  %.4f\n", order, loss)
		if order == 1 || loss < best {
			best = loss
		}
	}
	fmt.Printf("  gpt2.blu          %.4f\n", result.Loss)
	if result.Loss >= best {
		return fmt.Errorf("the model's loss %.4f is not below the best table's, %.4f", result.Loss, best)
	}
	return nil
}

func (d *demo) sample() error {
	return d.show("blurun", "sample", d.path("gpt2.blx"), "--params", d.path("checkpoints"), "--prompt", "func (c *Context) ", "--tokens", "400", "--seed", "1")
}

func (d *demo) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(d.bin, name), args...)
	c.Stderr = os.Stderr
	return c
}

// show prints a command and runs it.
func (d *demo) show(name string, args ...string) error {
	c := d.command(name, args...)
	c.Stdout = os.Stdout
	fmt.Printf("\n$ %s\n", strings.Join(c.Args, " "))
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}
