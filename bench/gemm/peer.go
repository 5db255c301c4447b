package main

import (
	_ "embed"

	"blutrain/bench/internal/gpu"
)

//go:embed torch_peer.py
var peerSource string

// peer is a Python process with PyTorch.
type peer struct{ *gpu.Peer }

func startPeer() (*peer, error) {
	p, err := gpu.StartPeer(peerSource)
	return &peer{p}, err
}

// answer is what the peer says.
type answer struct {
	Millis []float64             `json:"millis"`
	Rows   []int                 `json:"rows"`
	Errors map[string][2]float64 `json:"errors"` // Frobenius, worst row
}

func (p *peer) ask(question map[string]any) (*answer, error) {
	var a answer
	return &a, p.Ask(question, &a)
}
