// Command count reads its input and succeeds if it has the given number of lines, as LLVM's tool of that name does.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
)

func main() {
	if len(os.Args) != 2 {
		fail(2, "usage: count EXPECTED-LINES")
	}
	want, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fail(2, "count: invalid number %q", os.Args[1])
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(3, "count: reading the input: %v", err)
	}
	if got := bytes.Count(input, []byte("\n")); got != want {
		fail(1, "Expected %d lines, got %d.", want, got)
	}
}

func fail(status int, format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(status)
}
