// Command bars writes pictures of bars, images and labels, to a safetensors file: data for convnet.blu and vit.blu.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"

	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
	"blutrain/internal/bars"
)

func main() {
	out := flag.String("o", "bars.safetensors", "file to write")
	n := flag.Int64("n", 2000, "pictures")
	seed := flag.Uint64("seed", 1, "of the random numbers")
	flag.Parse()
	if err := write(*out, *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "bars:", err)
		os.Exit(1)
	}
}

func write(out string, n int64, seed uint64) error {
	if n < 1 || n > 1<<20 {
		return fmt.Errorf("-n %d is not from 1 to %d", n, 1<<20)
	}
	var entries []safetensors.Entry
	for name, t := range bars.Pictures(rand.New(rand.NewPCG(seed, 0)), n) {
		entries = append(entries, safetensors.Of(name, t))
	}
	return atomicfile.WriteFile(atomicfile.OS{}, out, func(w io.Writer) error { return safetensors.Write(w, entries, nil) })
}
