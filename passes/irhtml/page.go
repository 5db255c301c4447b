package irhtml

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html"
	"strings"
)

//go:embed page
var page embed.FS

// scripts are the parts of the page's program, in order.
var scripts = []string{"model.js", "tokens.js", "layout.js", "diff.js", "view.js", "links.js", "search.js", "keys.js", "main.js"}

// data is what the program reads.
type data struct {
	Title     string            `json:"title"`
	Stopped   string            `json:"stopped,omitempty"`
	Sources   []dataSource      `json:"sources"`
	Files     []string          `json:"files"`
	Places    [][3]int          `json:"places"`
	Locations []location        `json:"locations"`
	Chunks    []json.RawMessage `json:"chunks"`
	Columns   []dataColumn      `json:"columns"`
}

type dataSource struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type dataColumn struct {
	Phase   string `json:"phase"`
	Pass    string `json:"pass,omitempty"`
	Summary string `json:"summary,omitempty"`
	Same    bool   `json:"same,omitempty"` // nothing changed
	Chunks  []int  `json:"chunks"`
}

// Page is the page, the same bytes for the same recording. Texts get into it as compressed data and, where the title is
// concerned, escaped; the program puts them on the page as text. A content security policy allows the page's own script
// and style alone, and no connection.
func (r *Recorder) Page() ([]byte, error) {
	recorded, err := r.encode()
	if err != nil {
		return nil, err
	}
	var program bytes.Buffer
	for _, name := range scripts {
		text, err := page.ReadFile("page/" + name)
		if err != nil {
			return nil, err
		}
		program.Write(text)
	}
	style, err := page.ReadFile("page/style.css")
	if err != nil {
		return nil, err
	}
	frame, err := page.ReadFile("page/page.html")
	if err != nil {
		return nil, err
	}
	return []byte(strings.NewReplacer(
		"{{title}}", html.EscapeString(r.title),
		"{{policy}}", "default-src 'none'; base-uri 'none'; form-action 'none'; script-src "+hash(program.Bytes())+"; style-src "+hash(style),
		"{{style}}", string(style),
		"{{data}}", recorded,
		"{{program}}", program.String(),
	).Replace(string(frame))), nil
}

// hash is a source of a content security policy: the script or style with this text.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// encode is the data as JSON, compressed, in base64.
func (r *Recorder) encode() (string, error) {
	d := data{
		Title: r.title, Stopped: r.stopped, Sources: []dataSource{}, Files: append([]string{}, r.locs.files...),
		Places: append([][3]int{}, r.locs.places...), Locations: r.locs.list, Chunks: append([]json.RawMessage{}, r.chunks...),
		Columns: []dataColumn{},
	}
	for _, s := range r.sources {
		if r.locs.names(s.name) {
			d.Sources = append(d.Sources, dataSource{s.name, s.text})
		}
	}
	for _, c := range r.columns {
		col := dataColumn{Phase: c.phase, Pass: c.pass, Summary: c.summary, Same: c.same, Chunks: []int{}}
		for _, e := range c.entries {
			col.Chunks = append(col.Chunks, e.chunk)
		}
		d.Columns = append(d.Columns, col)
	}
	var b strings.Builder
	to := base64.NewEncoder(base64.StdEncoding, &b)
	zip, err := gzip.NewWriterLevel(to, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	for _, step := range []func() error{func() error { return json.NewEncoder(zip).Encode(d) }, zip.Close, to.Close} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}
