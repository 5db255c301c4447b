package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

//go:embed torch_peer.py
var peerSource string

// peer is a Python process with PyTorch.
type peer struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startPeer() (*peer, error) {
	cmd := exec.Command("python3", "-c", peerSource)
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
	return &peer{cmd, in, bufio.NewReader(out)}, nil
}

func (p *peer) stop() {
	p.in.Close()
	p.cmd.Wait() // its failure, if any, was told by the last answer
}

// answer is what the peer says.
type answer struct {
	Millis  []float64             `json:"millis"`
	Rows    []int                 `json:"rows"`
	Errors  map[string][2]float64 `json:"errors"` // Frobenius, worst row
	Failure string                `json:"failure"`
}

func (p *peer) ask(question map[string]any) (*answer, error) {
	line, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return nil, fmt.Errorf("asking PyTorch: %w", err)
	}
	reply, err := p.out.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("PyTorch gave no answer: %w", err)
	}
	var a answer
	if err := json.Unmarshal(reply, &a); err != nil {
		return nil, fmt.Errorf("PyTorch's answer: %w", err)
	}
	if a.Failure != "" {
		return nil, errors.New("PyTorch: " + a.Failure)
	}
	return &a, nil
}
