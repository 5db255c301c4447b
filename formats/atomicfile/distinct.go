package atomicfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// Distinct refuses outputs that would take the place of an input, under whatever name, or of each other. An empty name and "-" are no
// files; a device or a pipe may be named more than once.
func Distinct(inputs, outputs []string) error {
	for i, out := range outputs {
		for _, in := range inputs {
			if same(out, in) {
				return fmt.Errorf("%s is both input and output", out)
			}
		}
		for _, other := range outputs[:i] {
			if same(out, other) {
				return fmt.Errorf("%s is the place of two outputs", out)
			}
		}
	}
	return nil
}

func same(a, b string) bool {
	if a == "" || a == "-" || b == "" || b == "-" {
		return false
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return infoA.Mode().IsRegular() && os.SameFile(infoA, infoB)
	}
	if errA == nil || errB == nil { // only one of them is there
		return false
	}
	a, errA = filepath.Abs(a)
	b, errB = filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}
