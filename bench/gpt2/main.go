// Command gpt2 writes the batches that blurun's loader gives, for the other side of bench/gpt2:
//
//	gpt2 -data FILE -o FILE [-seed 7] [-batch 16] [-tokens 1024] [-steps 50] [-eval]
//
// They are those of the first steps of training or, with -eval, those of an evaluation with as many --val-batches.
// The output is uint16: for every step the batch's windows, of one token more than a row has, for the targets are the tokens
// moved by one.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"blutrain/formats/atomicfile"
	"blutrain/train/data"
)

func main() {
	file := flag.String("data", "", "token file")
	out := flag.String("o", "", "file to write")
	seed := flag.Uint64("seed", 7, "seed of the run")
	batch := flag.Int64("batch", 16, "rows of a batch")
	tokens := flag.Int64("tokens", 1024, "tokens of a row")
	steps := flag.Int("steps", 50, "batches")
	vocabulary := flag.Int64("vocabulary", 50257, "tokens that there are")
	evaluation := flag.Bool("eval", false, "the batches of an evaluation: spread evenly over the file, in its order")
	flag.Parse()
	if flag.NArg() > 0 || *file == "" || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	c := data.Config{Inputs: data.Tokens(*batch, *tokens), Vocab: *vocabulary, Ranks: 1, Seed: *seed}
	if *evaluation {
		c.Sequential, c.Sample = true, int64(*steps)
	}
	if err := write(*file, *out, c, *steps); err != nil {
		fmt.Fprintln(os.Stderr, "gpt2:", err)
		os.Exit(1)
	}
}

func write(file, out string, c data.Config, steps int) error {
	shards, err := data.OpenShards([]string{file})
	if err != nil {
		return err
	}
	defer shards.Close()
	loader, err := data.NewLoader(shards, c, nil)
	if err != nil {
		return err
	}
	defer loader.Close()
	if c.Sequential && loader.Blocks() < int64(steps) {
		return fmt.Errorf("%s has %d batches, not %d", file, loader.Blocks(), steps)
	}
	var raw []byte
	for range steps {
		b, err := loader.Next()
		if err != nil {
			return err
		}
		size := c.Inputs[0].Shape[1]
		tokens, targets := b.Inputs["tokens"].Data, b.Inputs["targets"].Data
		for row := range c.Inputs[0].Shape[0] {
			at := 4 * row * size // of int32, whose first two bytes are the token
			raw = append(raw, tokens[at], tokens[at+1])
			for i := range size {
				raw = append(raw, targets[at+4*i], targets[at+4*i+1])
			}
		}
	}
	return atomicfile.WriteFile(atomicfile.OS{}, out, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}
