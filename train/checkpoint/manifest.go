// Package checkpoint saves and restores the state of a training run: a folder for each saved step, with a safetensors file from
// each rank that owns tensors or pieces of them and a manifest with their checksums. A folder appears under its name when it is
// complete and durable; whatever happens before that, the checkpoint before stays valid and is the one found. What was saved by some
// number of ranks is read by any other. The package knows tensors by name; what they are to a model is for others.
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
	version      = 2
	manifestName = "manifest.json"
	maxManifest  = 256 << 20
	chunkBytes   = 1 << 20 // of a file, for each of which there is a checksum
	maxChunk     = 1 << 28
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
	Files    []FileInfo `json:"files"`    // by rank
	Checksum string     `json:"checksum"` // SHA-256 of this manifest with an empty checksum
}

// Info describes a tensor and says which files hold it. Shape is that of the whole tensor.
type Info struct {
	Name   string        `json:"name"`
	DType  formats.DType `json:"dtype"`
	Shape  []int64       `json:"shape"`
	Role   string        `json:"role"`   // param, optimizer, ...
	Pieces []Piece       `json:"pieces"` // in order, without gaps
}

// Piece is the elements [Begin, End) of a tensor in row-major order, which are in a rank's file under the tensor's name: with the
// tensor's shape when they are all of it, else with one dimension.
type Piece struct {
	Rank  int   `json:"rank"`
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
}

// FileInfo describes the file of one rank.
type FileInfo struct {
	Rank   int      `json:"rank"`
	Bytes  int64    `json:"bytes"`
	Chunk  int64    `json:"chunk_bytes"`
	Chunks []string `json:"crc32c"` // of each chunk; the last may be shorter
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
	slices.SortFunc(m.Files, func(a, b FileInfo) int { return a.Rank - b.Rank })
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
	if !checksummed(text) { // before the version is believed: one changed bit does not make a file that of another program
		return nil, errors.New("the manifest is damaged: its text does not have the checksum in it")
	}
	if head.Version != version {
		return nil, &versionError{head.Version}
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("the manifest is damaged: %w", err)
	}
	again, err := m.encode()
	if err != nil || !bytes.Equal(text, again) {
		return nil, errors.New("the manifest is damaged: it is not as a program writes it")
	}
	return m, m.check()
}

// checksummed reports whether the SHA-256 of a text, without the digits of the last checksum in it, is that checksum: so it is in every
// version of the format.
func checksummed(text []byte) bool {
	const key = `"checksum": "`
	i := bytes.LastIndex(text, []byte(key)) + len(key)
	if i < len(key) || len(text) < i+2*sha256.Size {
		return false
	}
	sum := sha256.New()
	sum.Write(text[:i])
	sum.Write(text[i+2*sha256.Size:])
	return hex.EncodeToString(sum.Sum(nil)) == string(text[i:i+2*sha256.Size])
}

// versionError is what is wrong with a manifest that another version of the program wrote.
type versionError struct{ version int }

func (e *versionError) Error() string {
	return fmt.Sprintf("format version is %d, this program reads %d", e.version, version)
}

// check says what in the manifest contradicts itself, or would lead outside the folder.
func (m *Manifest) check() error {
	if m.Step < 0 || m.World < 1 {
		return fmt.Errorf("step %d of %d ranks", m.Step, m.World)
	}
	holders := map[int]bool{}
	for i, t := range m.Tensors {
		if i > 0 && t.Name == m.Tensors[i-1].Name {
			return fmt.Errorf("tensor %q comes twice", t.Name)
		}
		if err := t.check(m.World); err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		for _, p := range t.Pieces {
			holders[p.Rank] = true
		}
	}
	for i, f := range m.Files {
		if !holders[f.Rank] || i > 0 && f.Rank == m.Files[i-1].Rank {
			return fmt.Errorf("file %s is not that of a rank that holds tensors, or comes twice", rankFile(f.Rank))
		}
		if f.Bytes < 0 || f.Chunk < 1 || f.Chunk > maxChunk || int64(len(f.Chunks)) != chunkCount(f.Bytes, f.Chunk) {
			return fmt.Errorf("file %s: %d checksums for %d bytes, one for every %d expected", rankFile(f.Rank), len(f.Chunks), f.Bytes, f.Chunk)
		}
	}
	if len(m.Files) != len(holders) {
		return fmt.Errorf("%d ranks hold tensors, there are %d files", len(holders), len(m.Files))
	}
	return nil
}

// chunkCount is how many chunks a file of some length has.
func chunkCount(bytes, chunk int64) int64 {
	n := bytes / chunk
	if bytes%chunk != 0 {
		n++
	}
	return n
}

// check: the pieces are all of the tensor, in order, each once, and no rank holds two.
func (t *Info) check(world int) error {
	size, err := formats.ByteSize(t.DType, t.Shape)
	if err != nil {
		return err
	}
	at, ranks := int64(0), map[int]bool{}
	for _, p := range t.Pieces {
		switch {
		case p.Rank < 0 || p.Rank >= world:
			return fmt.Errorf("a piece of it is with rank %d of %d", p.Rank, world)
		case ranks[p.Rank]:
			return fmt.Errorf("rank %d has two pieces of it", p.Rank)
		case p.Begin != at || p.End < p.Begin || p.End == p.Begin && size > 0:
			return fmt.Errorf("a piece of it is [%d, %d), the one before ends at %d", p.Begin, p.End, at)
		}
		at, ranks[p.Rank] = p.End, true
	}
	if n := t.elements(); at != n || len(t.Pieces) == 0 {
		return fmt.Errorf("its pieces have %d of %d elements", at, n)
	}
	return nil
}

// elements is the number of elements of the whole tensor, whose shape is a valid one.
func (t *Info) elements() int64 {
	size, _ := formats.ByteSize(t.DType, t.Shape)
	return size / int64(t.DType.Size())
}

// stored is the shape that a piece has in its file.
func (t *Info) stored(p Piece) []int64 {
	if p.Begin == 0 && p.End == t.elements() {
		return t.Shape
	}
	return []int64{p.End - p.Begin}
}

// file is what the manifest says of a rank's file.
func (m *Manifest) file(rank int) FileInfo {
	i, _ := slices.BinarySearchFunc(m.Files, rank, func(f FileInfo, rank int) int { return f.Rank - rank })
	return m.Files[i]
}

// Tensor finds a tensor by name.
func (m *Manifest) Tensor(name string) (Info, bool) {
	i, ok := slices.BinarySearchFunc(m.Tensors, name, func(t Info, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		return Info{}, false
	}
	return m.Tensors[i], true
}

func filePath(folder string, rank int) string { return filepath.Join(folder, rankFile(rank)) }
