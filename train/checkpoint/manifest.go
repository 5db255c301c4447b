// Package checkpoint saves and restores the state of a training run: a folder for each saved step, with a safetensors file from
// each rank that owns tensors and a manifest with their checksums. A folder appears under its name when it is complete
// and durable; whatever happens before that, the checkpoint before stays valid and is the one found. The package knows
// tensors by name; what they are to a model is for others.
package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"blutrain/formats"
	"blutrain/train/data"
)

const (
	formatName   = "blutrain checkpoint"
	version      = 1
	manifestName = "manifest.json"
	maxManifest  = 256 << 20
)

// Manifest says what a checkpoint holds.
type Manifest struct {
	Format   string     `json:"format"`
	Version  int        `json:"version"`
	Step     int64      `json:"step"`     // optimizer steps taken
	World    int        `json:"world"`    // ranks of the run that saved
	Model    string     `json:"model"`    // name of the model
	Artifact string     `json:"artifact"` // SHA-256 of the compiled file
	Seed     uint64     `json:"seed"`     // random numbers are counted from it by step, so it and the step are their whole state
	Loader   data.State `json:"loader"`   // where the next batch begins
	Tensors  []Info     `json:"tensors"`  // by name
	Files    []FileInfo `json:"files"`    // by name
	Checksum string     `json:"checksum"` // SHA-256 of this manifest with an empty checksum
}

// Info describes a tensor and says which rank's file holds it.
type Info struct {
	Name  string        `json:"name"`
	DType formats.DType `json:"dtype"`
	Shape []int64       `json:"shape"`
	Role  string        `json:"role"` // param, optimizer, ...
	Owner int           `json:"owner"`
}

// FileInfo describes the file of one rank.
type FileInfo struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

func rankFile(rank int) string { return fmt.Sprintf("rank-%05d.safetensors", rank) }

func stepFolder(step int64) string { return fmt.Sprintf("step-%08d", step) }

// parseStep reads what stepFolder prints.
func parseStep(name string) (step int64, ok bool) {
	digits, ok := strings.CutPrefix(name, "step-")
	step, err := strconv.ParseInt(digits, 10, 64)
	return step, ok && err == nil && step >= 0 && stepFolder(step) == name
}

// encode fills in what is derived from the rest and gives the file's text.
func (m *Manifest) encode() ([]byte, error) {
	m.Format, m.Version, m.Checksum = formatName, version, ""
	slices.SortFunc(m.Tensors, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(m.Files, func(a, b FileInfo) int { return strings.Compare(a.Name, b.Name) })
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	m.Checksum = hex.EncodeToString(sum[:])
	return json.MarshalIndent(m, "", " ")
}

// parseManifest refuses a text that is not, byte for byte, what encode made.
func parseManifest(text []byte) (*Manifest, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	if head.Format != formatName {
		return nil, fmt.Errorf("format is %q, expected %q", head.Format, formatName)
	}
	if head.Version > version {
		return nil, &newerError{head.Version}
	}
	if head.Version != version {
		return nil, fmt.Errorf("the manifest is damaged: format version %d never was", head.Version)
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	said := m.Checksum
	again, err := m.encode()
	if err != nil || m.Checksum != said || !bytes.Equal(text, again) {
		return nil, errors.New("the manifest is damaged: its text does not have the checksum in it")
	}
	return m, m.check()
}

// newerError is what is wrong with a manifest that a newer program wrote.
type newerError struct{ version int }

func (e *newerError) Error() string {
	return fmt.Sprintf("format version is %d, this program reads %d", e.version, version)
}

// check says what in the manifest contradicts itself, or would lead outside the folder.
func (m *Manifest) check() error {
	if m.Step < 0 || m.World < 1 {
		return fmt.Errorf("step %d of %d ranks", m.Step, m.World)
	}
	owners := map[string]bool{}
	for i, t := range m.Tensors {
		if _, err := formats.ByteSize(t.DType, t.Shape); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if t.Owner < 0 || t.Owner >= m.World {
			return fmt.Errorf("tensor %q: owner %d of %d ranks", t.Name, t.Owner, m.World)
		}
		if i > 0 && t.Name == m.Tensors[i-1].Name {
			return fmt.Errorf("tensor %q comes twice", t.Name)
		}
		owners[rankFile(t.Owner)] = true
	}
	for i, f := range m.Files {
		if f.Name != filepath.Base(f.Name) || !owners[f.Name] || i > 0 && f.Name == m.Files[i-1].Name {
			return fmt.Errorf("file %q is not that of a rank that owns tensors, or comes twice", f.Name)
		}
	}
	if len(m.Files) != len(owners) {
		return fmt.Errorf("%d ranks own tensors, there are %d files", len(owners), len(m.Files))
	}
	return nil
}
