package main

import (
	"bytes"
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
	Kind     string    `json:"kind"` // one of kinds
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

// kinds of results.
var kinds = []string{"check", "time", "split", "transpose", "error"}

// load takes over what an earlier run measured; a file that isn't there yet is one without results.
func (b *bench) load() error {
	data, err := os.ReadFile(b.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	lines := json.NewDecoder(bytes.NewReader(data))
	lines.DisallowUnknownFields() // they would be lost
	if err := lines.Decode(&b.results); err != nil {
		return fmt.Errorf("%s: not results of gemm: %w", b.file, err)
	}
	if lines.InputOffset() < int64(len(bytes.TrimRight(data, " \n"))) {
		return fmt.Errorf("%s: not results of gemm: there is more behind the list", b.file)
	}
	for i, r := range b.results {
		if !slices.Contains(kinds, r.Kind) || r.Name == "" {
			return fmt.Errorf("%s: not results of gemm: number %d is of kind %q and has the name %q; kinds are %s", b.file, i+1, r.Kind, r.Name, strings.Join(kinds, ", "))
		}
	}
	return nil
}

// wanted reports whether a case is to be done: it is asked for, and no results are there.
func (b *bench) wanted(kind, name string) bool {
	within := func(text string) bool { return strings.Contains(name, text) }
	b.unmet = slices.DeleteFunc(b.unmet, within)
	return slices.ContainsFunc(b.only, within) && !slices.ContainsFunc(b.results, func(r result) bool { return r.Kind == kind && r.Name == name })
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
