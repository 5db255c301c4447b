package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"blutrain/bench/internal/gpu"
)

// result is one measured fact, for the JSON file.
type result struct {
	Kind     string    `json:"kind"` // check, time, split, transpose or error
	Name     string    `json:"name"` // of the case, which may have several results: what -only looks at
	Case     string    `json:"case"`
	Kernel   string    `json:"kernel"`
	Millis   []float64 `json:"millis,omitempty"`
	Peer     []float64 `json:"peer_millis,omitempty"`
	TFLOPS   float64   `json:"tflops,omitempty"`
	Ratio    float64   `json:"ratio,omitempty"` // cuBLAS's time over ours
	Error    float64   `json:"error,omitempty"`
	RowError float64   `json:"row_error,omitempty"`
	PeerErr  float64   `json:"peer_error,omitempty"`
	PeerRow  float64   `json:"peer_row_error,omitempty"`
	Failure  string    `json:"failure,omitempty"`
}

// load takes over what an earlier run measured; a file that isn't there yet is one without results.
func (b *bench) load() error {
	data, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &b.results); err != nil {
		return fmt.Errorf("%s: %w", b.file, err)
	}
	return nil
}

// wanted reports whether a case is to be done: it is asked for, and no results are there.
func (b *bench) wanted(kind, name string) bool {
	asked := slices.ContainsFunc(b.only, func(text string) bool { return strings.Contains(name, text) })
	return asked && !slices.ContainsFunc(b.results, func(r result) bool { return r.Kind == kind && r.Name == name })
}

// keep adds all results of a case, and writes the file.
func (b *bench) keep(kind, name string, results ...result) error {
	for _, r := range results {
		r.Kind, r.Name = kind, name
		b.results = append(b.results, r)
	}
	return gpu.Save(b.file, b.results, nil)
}

// failed is the number of checks that found something.
func (b *bench) failed() (n int) {
	for _, r := range b.results {
		if r.Kind == "check" && r.Failure != "" {
			n++
		}
	}
	return n
}
