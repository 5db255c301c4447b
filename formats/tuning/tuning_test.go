package tuning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sample() *Table {
	return &Table{Arch: "sm_90a", Device: "NVIDIA H200", Compiler: "0.1.0", Entries: []Entry{
		{Key: "product b", Choice: "wgmma 128x192x64", Micros: 101.26, Default: "wgmma 128x128x64", DefaultMicros: 110},
		{Key: "product a, <k>", Choice: "wgmma 128x128x64", Micros: 20, Default: "wgmma 128x128x64", DefaultMicros: 20},
	}}
}

const sampleText = `{
  "format": "blutrain-tuning",
  "version": 1,
  "arch": "sm_90a",
  "device": "NVIDIA H200",
  "compiler": "0.1.0",
  "entries": [
    {"key":"product a, <k>","choice":"wgmma 128x128x64","us":20,"default":"wgmma 128x128x64","default_us":20},
    {"key":"product b","choice":"wgmma 128x192x64","us":101.3,"default":"wgmma 128x128x64","default_us":110}
  ]
}
`

// A table is the same text for the same content, in whatever order it was measured, and is read back.
func TestTable(t *testing.T) {
	text, err := sample().Encode()
	require.NoError(t, err)
	require.Equal(t, sampleText, string(text))
	got, err := Parse("t.json", text)
	require.NoError(t, err)
	require.Equal(t, "NVIDIA H200", got.Device)
	require.Equal(t, "wgmma 128x192x64", got.Find("product b").Choice)
	require.Nil(t, got.Find("product c"))
	again, err := got.Encode()
	require.NoError(t, err)
	require.Equal(t, text, again)

	path := filepath.Join(t.TempDir(), "t.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	_, hash, err := Open(path)
	require.NoError(t, err)
	require.Equal(t, Hash(text), hash)
	_, _, err = Open(path + ".missing")
	require.ErrorIs(t, err, os.ErrNotExist)

	empty, err := (&Table{Arch: "sm_80"}).Encode()
	require.NoError(t, err)
	_, err = Parse("empty", empty)
	require.NoError(t, err)
}

func TestEncodeRefuses(t *testing.T) {
	for want, spoil := range map[string]func(*Table){
		"comes twice":           func(x *Table) { x.Entries[1].Key = "product b" },
		"a line of text":        func(x *Table) { x.Entries[0].Choice = "a\nb" },
		"a time is 0 microseco": func(x *Table) { x.Entries[0].Micros = 0 },
	} {
		x := sample()
		spoil(x)
		_, err := x.Encode()
		require.ErrorContains(t, err, want)
	}
}

// What is wrong with a table is said with its place.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{sampleText, "", "t.json:1:1: not a tuning table: unexpected end of JSON input"},
		{sampleText, "[]", "t.json:1:1: not a tuning table: expected an object"},
		{sampleText, "{\"a\": 1}", `t.json:1:2: not a tuning table: the first field is "a", expected "format"`},
		{`"version": 1`, `"version": 2`, "t.json:3:14: not a tuning table: version is 2, this program reads 1: measure again with the matching blurun tune"},
		{"blutrain-tuning", "other", `t.json:2:13: not a tuning table: format is "other", expected "blutrain-tuning"`},
		{`"compiler": "0.1.0",`, ``, `t.json:1:1: not a tuning table: it has no "compiler"`},
		{`"compiler"`, `"arch"`, `t.json:6:3: not a tuning table: field "arch" comes twice`},
		{`"compiler"`, `"Compiler"`, `t.json:6:3: not a tuning table: unknown field "Compiler"`},
		{`"us":20,`, `"us":20,"us":30,`, `t.json:8:65: not a tuning table: field "us" comes twice`},
		{`"us":101.3`, `"key":"product a, <k>"`, `t.json:9:52: not a tuning table: field "key" comes twice`},
		{`"us":20,`, `"US":20,`, `t.json:8:57: not a tuning table: unknown field "US"`},
		{`"us":20,`, `"us":"20",`, `t.json:8:62: not a tuning table: cannot unmarshal string into Go value of type float64`},
		{`"us":20,`, ``, "t.json:8:5: not a tuning table: a time is 0 microseconds, expected a positive number"},
		{`    {"key":"product b","choice":"wgmma 128x192x64","us":101.3,"default":"wgmma 128x128x64","default_us":110}`, `    7`, "t.json:9:5: not a tuning table: expected an object"},
		{`"device": "NVIDIA H200"`, `"device": 5`, "t.json:5:13: not a tuning table: cannot unmarshal number into Go value of type string"},
		{`"us":20,`, `"us":-20,`, "t.json:8:5: not a tuning table: a time is -20 microseconds, expected a positive number"},
		{`"us":20,`, `"us":1e308,`, "t.json:8:5: not a tuning table: a time is 1e+308 microseconds, expected a positive number"},
		{`"us":20,`, `"us":20,,`, "t.json:8:65: not a tuning table: invalid character ',' looking for beginning of object key string"},
		{`"us":20,`, `"extra":20,`, `t.json:8:57: not a tuning table: unknown field "extra"`},
		{`"key":"product b"`, `"key":"product a, <k>"`, `t.json:9:5: not a tuning table: key "product a, <k>" comes twice`},
		{`"key":"product b"`, `"key":""`, `t.json:9:5: not a tuning table: key is "", expected a line of text`},
		{"  ]\n}\n", "  ]\n", "t.json:10:4: not a tuning table: unexpected end of JSON input"},
		{"  ]\n}\n", "  ]\n} x", "t.json:11:3: not a tuning table: invalid character 'x' after top-level value"},
	} {
		text := strings.Replace(sampleText, c.old, c.new, 1)
		require.True(t, text != sampleText, c.old)
		_, err := Parse("t.json", []byte(text))
		require.EqualError(t, err, c.want)
	}
}

// A later measurement replaces what has its keys, and nothing else; another device's is refused.
func TestMerge(t *testing.T) {
	x := sample()
	later := sample()
	later.Entries = []Entry{{Key: "product b", Choice: "new", Micros: 1, Default: "d", DefaultMicros: 2}, {Key: "product c", Choice: "more", Micros: 1, Default: "d", DefaultMicros: 2}}
	require.NoError(t, x.Merge(later))
	require.Len(t, x.Entries, 3)
	require.Equal(t, "new", x.Find("product b").Choice)
	require.Equal(t, 20.0, x.Find("product a, <k>").Micros)
	for _, spoil := range []func(*Table){func(x *Table) { x.Arch = "sm_80" }, func(x *Table) { x.Device = "A100" }, func(x *Table) { x.Compiler = "0.2" }} {
		other := sample()
		spoil(other)
		require.ErrorContains(t, x.Merge(other), "write to another file")
	}
}

func TestCandidates(t *testing.T) {
	c := &Candidates{Sites: []Site{{Key: "k", Kernels: []string{"a", "b"}, Options: []Candidate{{"x", "a"}, {"y", "a.c1"}}}}}
	text, err := c.Encode()
	require.NoError(t, err)
	got, err := ParseCandidates(text)
	require.NoError(t, err)
	require.Equal(t, c, got)
	for want, spoil := range map[string]func(string) string{
		"unknown field":               func(s string) string { return strings.Replace(s, `"sites"`, `"sites2"`, 1) },
		"version 2":                   func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) },
		"is not the program's kernel": func(s string) string { return strings.Replace(s, `"kernel": "a"`, `"kernel": "b"`, 1) },
		"comes twice":                 func(s string) string { return strings.Replace(s, `"y"`, `"x"`, 1) },
		"unexpected EOF":              func(s string) string { return s[:20] },
		`format "other"`:              func(s string) string { return strings.Replace(s, candidatesFormat, "other", 1) },
		`key "" is empty`:             func(s string) string { return strings.Replace(s, `"key": "k"`, `"key": ""`, 1) },
		"there are no candidates":     func(s string) string { return `{"format":"blutrain-candidates","version":1,"sites":[]}` },
	} {
		_, err := ParseCandidates([]byte(spoil(string(text))))
		require.ErrorContains(t, err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(sampleText))
	f.Fuzz(func(t *testing.T, text []byte) {
		x, err := Parse("t", text)
		if err != nil {
			return
		}
		again, err := x.Encode()
		require.NoError(t, err)
		_, err = Parse("t", again)
		require.NoError(t, err)
	})
}
