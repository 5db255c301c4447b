package gpu

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Peer is a Python process with PyTorch. It reads one JSON object a line and answers each with one; a field "failure" says
// what went wrong.
type Peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// StartPeer runs a program in Python.
func StartPeer(source string) (*Peer, error) {
	cmd := exec.Command("python3", "-c", source)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting python3, which runs cuBLAS through PyTorch: %w", err)
	}
	return &Peer{cmd, in, bufio.NewReader(out)}, nil
}

// Stop ends it.
func (p *Peer) Stop() {
	p.in.Close()
	p.cmd.Wait() // its failure, if any, was told by the last answer
}

// Ask sends a question and reads the answer into what a points to.
func (p *Peer) Ask(question map[string]any, a any) error {
	line, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("asking PyTorch: %w", err)
	}
	reply, err := p.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("PyTorch gave no answer: %w", err)
	}
	var failed struct {
		Failure string `json:"failure"`
	}
	if err := errors.Join(json.Unmarshal(reply, &failed), json.Unmarshal(reply, a)); err != nil {
		return fmt.Errorf("PyTorch's answer: %w", err)
	}
	if failed.Failure != "" {
		return errors.New("PyTorch: " + failed.Failure)
	}
	return nil
}
