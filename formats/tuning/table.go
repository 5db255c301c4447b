// Package tuning is the two files by which kernels are chosen by measurement: the candidates that an artifact holds beside its
// program, and the table of choices that measuring them gives. The compiler writes the one and reads the other, the runtime the
// other way round. What keys and choices say is the compiler's own: here they are lines of text that are equal or not.
package tuning

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"blutrain/formats/atomicfile"
)

// Format and Version identify tables that this package reads and writes.
const (
	Format  = "blutrain-tuning"
	Version = 1
)

// Table is choices that were measured on one kind of device.
type Table struct {
	Arch     string // that the kernels were compiled for: sm_90a
	Device   string // NVIDIA H200
	Compiler string // version of the compiler that made the kernels
	Entries  []Entry
}

// Entry is the best choice for one key. Times are medians, in microseconds.
type Entry struct {
	Key           string  `json:"key"`
	Choice        string  `json:"choice"`
	Micros        float64 `json:"us"`
	Default       string  `json:"default"` // what would have run without the table
	DefaultMicros float64 `json:"default_us"`
}

// maxFile bounds a table on disk.
const maxFile = 64 << 20

// Open reads the table in a file. hash is the SHA-256 of the file's bytes, in hex.
func Open(path string) (t *Table, hash string, err error) {
	text, err := atomicfile.ReadAll(atomicfile.OS{}, path, maxFile)
	if err != nil {
		return nil, "", err
	}
	t, err = Parse(path, text)
	return t, Hash(text), err
}

// Hash is what tells tables apart: the SHA-256 of a file's bytes, in hex.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Parse reads a table. name stands before line and column in errors.
func Parse(name string, text []byte) (*Table, error) {
	p := &parser{name: name, text: text, d: json.NewDecoder(bytes.NewReader(text))}
	var s *json.SyntaxError
	if err := json.Unmarshal(text, new(json.RawMessage)); errors.As(err, &s) {
		return nil, p.errorf(s.Offset-1, "%v", err)
	}
	t := &Table{}
	if err := p.table(t); err != nil {
		return nil, err
	}
	return t, nil
}

// parser reads JSON, whose syntax has been checked, value by value, so that errors can say where they are.
type parser struct {
	name string
	text []byte
	d    *json.Decoder
}

// errorf is an error at a byte of the text.
func (p *parser) errorf(at int64, format string, args ...any) error {
	before := p.text[:min(max(at, 0), int64(len(p.text)))]
	line, column := 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("%s:%d:%d: not a tuning table: %s", p.name, line, column, fmt.Sprintf(format, args...))
}

// failed puts an error of the decoder in its place.
func (p *parser) failed(err error, at int64) error {
	return p.errorf(at, "%s", strings.TrimPrefix(err.Error(), "json: "))
}

// next is where the next value begins.
func (p *parser) next() int64 {
	at := p.d.InputOffset()
	for at < int64(len(p.text)) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	return at
}

// open reads a delimiter.
func (p *parser) open(want json.Delim, what string) error {
	at := p.next()
	t, err := p.d.Token()
	if err != nil {
		return p.failed(err, at)
	}
	if t != want {
		return p.errorf(at, "expected %s", what)
	}
	return nil
}

// reader reads a field's value.
type reader func() error

// into reads a value of Go's type.
func (p *parser) into(value any) reader {
	return func() error {
		at := p.next()
		if err := p.d.Decode(value); err != nil {
			return p.failed(err, at)
		}
		return nil
	}
}

// field reads one field of an object, which has those and each of them once; what has been read is taken out.
func (p *parser) field(known map[string]reader, seen map[string]bool) (name string, err error) {
	at := p.next()
	t, err := p.d.Token()
	if err != nil {
		return "", p.failed(err, at)
	}
	name = fmt.Sprint(t)
	read, ok := known[name]
	switch {
	case seen[name]:
		return name, p.errorf(at, "field %q comes twice", name)
	case !ok:
		return name, p.errorf(at, "unknown field %q", name)
	}
	seen[name] = true
	return name, read()
}

func (p *parser) table(t *Table) error {
	if err := p.open('{', "an object"); err != nil {
		return err
	}
	known := map[string]reader{"format": p.format, "version": p.version, "arch": p.into(&t.Arch), "device": p.into(&t.Device),
		"compiler": p.into(&t.Compiler), "entries": func() error { return p.entries(t) }}
	seen := map[string]bool{}
	for p.d.More() {
		at := p.next()
		name, err := p.field(known, seen)
		if !seen["format"] {
			return p.errorf(at, "the first field is %q, expected \"format\"", name)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range []string{"version", "arch", "device", "compiler", "entries"} {
		if !seen[name] {
			return p.errorf(0, "it has no %q", name)
		}
	}
	return nil
}

func (p *parser) format() error {
	at, format := p.next(), ""
	if err := p.into(&format)(); err != nil {
		return err
	}
	if format != Format {
		return p.errorf(at, "format is %q, expected %q", format, Format)
	}
	return nil
}

func (p *parser) version() error {
	at, version := p.next(), 0
	if err := p.into(&version)(); err != nil {
		return err
	}
	if version != Version {
		return p.errorf(at, "version is %d, this program reads %d: measure again with the matching blurun tune", version, Version)
	}
	return nil
}

func (p *parser) entries(t *Table) error {
	if err := p.open('[', "a list of entries"); err != nil {
		return err
	}
	keys := map[string]bool{}
	for p.d.More() {
		at := p.next()
		e, err := p.entry()
		if err != nil {
			return err
		}
		if err := e.check(); err != nil {
			return p.errorf(at, "%v", err)
		}
		if keys[e.Key] {
			return p.errorf(at, "key %q comes twice", e.Key)
		}
		keys[e.Key] = true
		t.Entries = append(t.Entries, e)
	}
	return p.open(']', "the end of the list")
}

func (p *parser) entry() (e Entry, err error) {
	if err := p.open('{', "an object"); err != nil {
		return e, err
	}
	known := map[string]reader{"key": p.into(&e.Key), "choice": p.into(&e.Choice), "us": p.into(&e.Micros), "default": p.into(&e.Default),
		"default_us": p.into(&e.DefaultMicros)}
	seen := map[string]bool{}
	for p.d.More() {
		if _, err := p.field(known, seen); err != nil {
			return e, err
		}
	}
	return e, p.open('}', "the end of the object")
}

// longest is more than any kernel takes.
const longest = 1e12

func (e Entry) check() error {
	for _, f := range []struct{ name, text string }{{"key", e.Key}, {"choice", e.Choice}, {"default", e.Default}} {
		if f.text == "" || strings.ContainsAny(f.text, "\n\r") {
			return fmt.Errorf("%s is %q, expected a line of text", f.name, f.text)
		}
	}
	for _, us := range []float64{e.Micros, e.DefaultMicros} {
		if !(us > 0 && us < longest) {
			return fmt.Errorf("a time is %v microseconds, expected a positive number", us)
		}
	}
	return nil
}

// Encode is the table as text: entries by key, one a line, the same for the same content.
func (t *Table) Encode() ([]byte, error) {
	entries := slices.Clone(t.Entries)
	slices.SortFunc(entries, func(x, y Entry) int { return cmp.Compare(x.Key, y.Key) })
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"format\": %q,\n  \"version\": %d,\n", Format, Version)
	for _, f := range []struct{ name, text string }{{"arch", t.Arch}, {"device", t.Device}, {"compiler", t.Compiler}} {
		fmt.Fprintf(&b, "  %q: %s,\n", f.name, line(f.text))
	}
	b.WriteString("  \"entries\": [")
	for i, e := range entries {
		if err := e.check(); err != nil {
			return nil, fmt.Errorf("key %q: %w", e.Key, err)
		}
		if i > 0 && entries[i-1].Key == e.Key {
			return nil, fmt.Errorf("key %q comes twice", e.Key)
		}
		e.Micros, e.DefaultMicros = tenths(e.Micros), tenths(e.DefaultMicros)
		fmt.Fprintf(&b, "%s\n    %s", map[bool]string{true: ","}[i > 0], line(e))
	}
	b.WriteString("\n  ]\n}\n")
	return b.Bytes(), nil
}

// tenths rounds a time to what is worth writing down.
func tenths(us float64) float64 { return max(0.1, math.Round(10*us)/10) }

// line is JSON in one line, without escapes that only HTML needs.
func line(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("tuning: " + err.Error()) // of strings and finite numbers
	}
	return bytes.TrimSpace(b.Bytes())
}

// Find is the entry for a key, or nil.
func (t *Table) Find(key string) *Entry {
	i := slices.IndexFunc(t.Entries, func(e Entry) bool { return e.Key == key })
	if i < 0 {
		return nil
	}
	return &t.Entries[i]
}

// Merge puts the entries of a table measured later in the place of those of the same keys, and beside the others. Both must be
// of the same device and of kernels for the same arch by the same compiler.
func (t *Table) Merge(later *Table) error {
	for _, f := range []struct{ name, old, now string }{{"on device", t.Device, later.Device}, {"for arch", t.Arch, later.Arch}, {"with kernels of compiler", t.Compiler, later.Compiler}} {
		if f.old != f.now {
			return fmt.Errorf("it was measured %s %q, this is %q: write to another file", f.name, f.old, f.now)
		}
	}
	for _, e := range later.Entries {
		if old := t.Find(e.Key); old != nil {
			*old = e
		} else {
			t.Entries = append(t.Entries, e)
		}
	}
	return nil
}
