package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

//go:embed baseline.py
var baselineScript string

// A process answers a line with a line.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startProcess starts cmd without what would hold a library back.
func startProcess(cmd *exec.Cmd, env ...string) (*process, error) {
	p := &process{cmd: cmd}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OPENBLAS_") && !strings.HasPrefix(v, "MKL_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, cmd.Start()
}

func (p *process) line() (string, error) {
	if !p.out.Scan() {
		return "", fmt.Errorf("%s ended: %v", p.cmd.Path, p.out.Err())
	}
	return p.out.Text(), nil
}

func (p *process) ask(format string, args ...any) (string, error) {
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		return "", err
	}
	return p.line()
}

func (p *process) close() error {
	p.in.Close()
	return p.cmd.Wait()
}

// A baseline is the Python process that multiplies with OpenBLAS on request.
type baseline struct {
	*process
	name string
}

// startBaseline starts OpenBLAS with its best kernels for the processor; beside ours for AVX2, with those for Haswell.
func startBaseline(python, isa string) (*baseline, error) {
	// Its idle threads would spin for some 25 ms on the cores that the other side needs
	// next; 2^14 cycles bridge the calls of one turn as well.
	env := []string{"OPENBLAS_THREAD_TIMEOUT=14"}
	if isa == "avx2" {
		env = append(env, "OPENBLAS_CORETYPE=Haswell")
	}
	p, err := startProcess(exec.Command(python, "-c", baselineScript), env...)
	if err != nil {
		return nil, err
	}
	b := &baseline{process: p}
	b.name, err = b.line()
	return b, err
}

func (b *baseline) prepare(s shape, threads, copies int) error {
	_, err := b.ask("%d %d %d %s %d %d", s.M, s.N, s.K, s.Layout, threads, copies)
	return err
}

func (b *baseline) run() (s sample, err error) {
	answer, err := b.ask("run")
	if err != nil {
		return s, err
	}
	_, err = fmt.Sscan(answer, &s.Wall, &s.CPU)
	return s, err
}
