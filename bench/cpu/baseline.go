package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

//go:embed baseline.py
var baselineScript string

// A baseline is the Python process that multiplies with OpenBLAS on request.
type baseline struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Scanner
	name string
}

func startBaseline(python string) (*baseline, error) {
	b := &baseline{cmd: exec.Command(python, "-c", baselineScript)}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OPENBLAS_") {
			b.cmd.Env = append(b.cmd.Env, v)
		}
	}
	// Its idle threads would spin for some 25 ms on the cores that the other side needs
	// next; 2^14 cycles bridge the calls of one turn as well.
	b.cmd.Env = append(b.cmd.Env, "OPENBLAS_THREAD_TIMEOUT=14")
	b.cmd.Stderr = os.Stderr
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if b.in, err = b.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := b.cmd.Start(); err != nil {
		return nil, err
	}
	b.out = bufio.NewScanner(out)
	b.name, err = b.line()
	return b, err
}

func (b *baseline) line() (string, error) {
	if !b.out.Scan() {
		return "", fmt.Errorf("baseline.py ended: %v", b.out.Err())
	}
	return b.out.Text(), nil
}

func (b *baseline) ask(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(b.in, format+"\n", args...); err != nil {
		return "", err
	}
	return b.line()
}

func (b *baseline) prepare(s shape, threads int) error {
	_, err := b.ask("%d %d %d %s %d", s.M, s.N, s.K, s.Layout, threads)
	return err
}

func (b *baseline) run() (float64, error) {
	answer, err := b.ask("run")
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(answer, 64)
}

func (b *baseline) close() error {
	b.in.Close()
	return b.cmd.Wait()
}
