package artifact

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"blutrain/formats/atomicfile"
)

// File is one file of an artifact. Its name is a relative slash path without "." and "..".
type File struct {
	Name string
	Data []byte
}

// Kernels for GPUs are text, and may be machine code beside it, in files of these names' ends.
const (
	TextSuffix = ".ptx"
	CodeSuffix = ".cubin"
)

// Artifact is a compiled model in memory.
type Artifact struct {
	Manifest Manifest
	Files    []File // without the manifest
	Hash     string // SHA-256 of the encoded artifact, in hex; empty until encoded or opened
}

// Bounds on what Decode unpacks; the manifest's list bounds each file.
const (
	maxFile     = 1 << 30 // of the archive on disk: programs are text, and no weights are in it
	maxManifest = 64 << 20
	maxUnpacked = 2 << 30
)

// The archive's comment carries a checksum of every byte before it, so that damage anywhere is found, also where zip has
// no checksum of its own, and a file cut short is known at once.
const (
	commentPrefix = "blx sha256 "
	commentSize   = len(commentPrefix) + 2*sha256.Size
)

// File finds a file by name.
func (a *Artifact) File(name string) ([]byte, bool) {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data, true
		}
	}
	return nil, false
}

// Write encodes the artifact into the file path, which changes only when all of it is durable.
func (a *Artifact) Write(path string) error {
	b, err := a.Encode()
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.WriteFile(atomicfile.OS{}, path, func(w io.Writer) error {
		_, err := w.Write(b)
		return err
	})
}

// Encode fills in the manifest's format, version and files, and gives the archive's bytes: always the same for the same content.
func (a *Artifact) Encode() ([]byte, error) {
	files := slices.Clone(a.Files)
	slices.SortFunc(files, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	m := &a.Manifest
	m.Format, m.Version, m.Files = Format, Version, []FileInfo{}
	for i, f := range files {
		if err := checkName(f.Name); err != nil {
			return nil, err
		}
		if f.Name == ManifestName || i > 0 && f.Name == files[i-1].Name {
			return nil, fmt.Errorf("file %q comes twice", f.Name)
		}
		m.Files = append(m.Files, FileInfo{f.Name, int64(len(f.Data)), hash(f.Data)})
	}
	if err := m.Check(); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	b, err := pack(append([]File{{ManifestName, append(text, '\n')}}, files...))
	if err != nil {
		return nil, err
	}
	a.Hash = hash(b)
	return b, nil
}

// pack writes the archive without times or any other trace of the machine.
func pack(files []File) ([]byte, error) {
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	for _, f := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: time.Time{}})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Data); err != nil {
			return nil, err
		}
	}
	if err := z.SetComment(strings.Repeat(" ", commentSize)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	b := out.Bytes()
	covered := b[:len(b)-commentSize]
	copy(b[len(covered):], commentPrefix+hash(covered))
	return b, nil
}

// Open reads and checks the artifact in the file path.
func Open(path string) (*Artifact, error) {
	b, err := atomicfile.ReadAll(atomicfile.OS{}, path, maxFile)
	if err != nil {
		return nil, err
	}
	a, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// Decode checks an encoded artifact in this order: the checksum over all of it, the names of its entries, the manifest's version,
// the manifest, each file's size and checksum.
func Decode(b []byte) (*Artifact, error) {
	if err := checkWhole(b); err != nil {
		return nil, err
	}
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil, fmt.Errorf("not an artifact: %w", err)
	}
	if err := checkEntries(z.File); err != nil {
		return nil, err
	}
	text, err := unpack(z.File[0], maxManifest)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	a := &Artifact{Hash: hash(b)}
	if a.Manifest, err = parseManifest(text); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if a.Files, err = unpackAll(z.File[1:], a.Manifest.Files); err != nil {
		return nil, err
	}
	return a, nil
}

// checkWhole compares the checksum at the end with all bytes before it.
func checkWhole(b []byte) error {
	if !bytes.HasPrefix(b, []byte("PK\x03\x04")) {
		return errors.New("not an artifact, as bluc compile makes them: it does not begin as a zip archive")
	}
	covered := len(b) - commentSize
	if covered < 0 || !bytes.HasPrefix(b[covered:], []byte(commentPrefix)) {
		return errors.New("not an artifact, or one cut short: it does not end with the checksum that bluc writes")
	}
	if string(b[covered+len(commentPrefix):]) != hash(b[:covered]) {
		return errors.New("damaged: its bytes do not have the checksum at its end")
	}
	return nil
}

// checkEntries refuses an archive whose list of files is not one that Encode writes.
func checkEntries(entries []*zip.File) error {
	seen := map[string]bool{}
	for _, e := range entries {
		if err := checkName(e.Name); err != nil {
			return err
		}
		if seen[e.Name] {
			return fmt.Errorf("entry %q comes twice", clip(e.Name))
		}
		seen[e.Name] = true
	}
	if len(entries) == 0 || entries[0].Name != ManifestName {
		return fmt.Errorf("the first entry is not %s", ManifestName)
	}
	return nil
}

func checkName(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:\x00") {
		return fmt.Errorf("entry %q is not a plain relative path", clip(name))
	}
	return nil
}

// unpackAll reads the entries that the manifest lists, which must be all, in the same order.
func unpackAll(entries []*zip.File, list []FileInfo) ([]File, error) {
	if len(entries) != len(list) {
		return nil, fmt.Errorf("the archive has %d files, the manifest lists %d", len(entries), len(list))
	}
	var files []File
	var total int64
	for i, info := range list {
		if entries[i].Name != info.Name {
			return nil, fmt.Errorf("entry %q stands where the manifest lists %q", clip(entries[i].Name), clip(info.Name))
		}
		if info.Bytes < 0 || info.Bytes > maxUnpacked-total {
			return nil, fmt.Errorf("file %q of %d bytes is too large", clip(info.Name), info.Bytes)
		}
		total += info.Bytes
		data, err := unpack(entries[i], info.Bytes)
		if err == nil && (int64(len(data)) != info.Bytes || hash(data) != info.SHA256) {
			err = errors.New("its bytes are not the ones the manifest lists")
		}
		if err != nil {
			return nil, fmt.Errorf("file %q: %w", clip(info.Name), err)
		}
		files = append(files, File{info.Name, data})
	}
	return files, nil
}

// unpack reads an entry of at most limit bytes; memory grows with what is really there.
func unpack(entry *zip.File, limit int64) ([]byte, error) {
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var data bytes.Buffer
	n, err := io.Copy(&data, io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if n > limit {
		return nil, fmt.Errorf("unpacks to more than %d bytes", limit)
	}
	return data.Bytes(), nil
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
