package irhtml

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/internal/upstream"
	"blutrain/ir"
	"blutrain/passes"
)

// sample has two functions with things to simplify, and strings that try to get out of where they are put.
const sample = `builtin.module @m attributes {test.note = "</script><img src=x onerror=window.broken=1> {{data}} <!-- \22"} {
  func.func private @twice(%x: i32) -> i32 {
    %0 = arith.addi %x, %x : (i32, i32) -> i32
    func.return %0 : (i32) -> ()
  }
  func.func @f(%x: i32, %n: index) -> i32 {
    %a = func.call %x {callee = @twice} : (i32) -> i32
    %b = arith.addi %x, %x : (i32, i32) -> i32
    %c = arith.muli %a, %b : (i32, i32) -> i32
    %d = arith.muli %a, %b : (i32, i32) -> i32
    %e = arith.addi %c, %d : (i32, i32) -> i32
    func.return %e : (i32) -> ()
  }
  func.func @"odd \22name\22"(%x: i32) -> i32 {
    %zero = arith.constant {value = 0 : i32} : () -> i32
    %a = arith.addi %x, %zero : (i32, i32) -> i32
    %b = arith.muli %a, %a : (i32, i32) -> i32
    %c = arith.muli %a, %a : (i32, i32) -> i32
    %d = arith.subi %b, %c : (i32, i32) -> i32
    func.return %d : (i32) -> ()
  }
}
`

const samplePasses = "builtin.module(inline,func.func(canonicalize,cse),cse,dce)"

// record runs a pipeline on a module and records it.
func record(t *testing.T, file, src, pipeline string) *Recorder {
	t.Helper()
	c := dialects.NewContext()
	m, err := ir.Parse(c, file, []byte(src))
	require.NoError(t, err)
	pl, err := passes.ParsePipeline(passes.Table, pipeline)
	require.NoError(t, err)
	r := New(file, ir.PrintOptions{})
	r.Source(file, []byte(src))
	r.Phase("input", "the module as read", m, true)
	cfg := passes.Config{Observe: func(p *passes.Pass, op *ir.Op) { r.Pass("test", p.Name, p.Summary, op, m) }}
	require.NoError(t, cfg.Run(c, m, pl))
	return r
}

// decode reads what a page carries.
func decode(t *testing.T, page []byte) data {
	t.Helper()
	m := regexp.MustCompile(`<script id="data" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>`).FindSubmatch(page)
	require.NotNil(t, m)
	zipped, err := base64.StdEncoding.DecodeString(string(m[1]))
	require.NoError(t, err)
	r, err := gzip.NewReader(bytes.NewReader(zipped))
	require.NoError(t, err)
	var d data
	require.NoError(t, json.NewDecoder(r).Decode(&d))
	return d
}

func chunkOf(t *testing.T, d data, i int) chunk {
	t.Helper()
	var c chunk
	require.NoError(t, json.Unmarshal(d.Chunks[i], &c))
	return c
}

// text is a column's text, long lines put together again.
func text(t *testing.T, d data, column int) string {
	t.Helper()
	var b strings.Builder
	for _, i := range d.Columns[column].Chunks {
		b.WriteString(strings.ReplaceAll(chunkOf(t, d, i).Text, "\n\t", " "))
		b.WriteByte('\n')
	}
	return b.String()
}

func printed(t *testing.T, src, pipeline string) string {
	t.Helper()
	c := dialects.NewContext()
	m, err := ir.Parse(c, "sample.mlir", []byte(src))
	require.NoError(t, err)
	if pipeline != "" {
		pl, err := passes.ParsePipeline(passes.Table, pipeline)
		require.NoError(t, err)
		require.NoError(t, (&passes.Config{}).Run(c, m, pl))
	}
	return string(ir.Print(m, ir.PrintOptions{}))
}

func TestColumns(t *testing.T) {
	page, err := record(t, "sample.mlir", sample, samplePasses).Page()
	require.NoError(t, err)
	d := decode(t, page)
	want := []struct {
		phase, pass, pipeline string
		same                  bool
	}{
		{"input", "", "", false},
		{"test", "inline", "builtin.module(inline)", false},
		{"test", "canonicalize", "builtin.module(inline,func.func(canonicalize))", false},
		{"test", "cse", "builtin.module(inline,func.func(canonicalize,cse))", false},
		{"test", "cse", "builtin.module(inline,func.func(canonicalize,cse),cse)", true},
		{"test", "dce", "builtin.module(inline,func.func(canonicalize,cse),cse,dce)", true},
	}
	require.Len(t, d.Columns, len(want))
	for i, w := range want {
		c := d.Columns[i]
		require.Equal(t, []any{w.phase, w.pass, w.same}, []any{c.Phase, c.Pass, c.Same}, "column %d", i)
		require.Equal(t, printed(t, sample, w.pipeline), text(t, d, i), "column %d", i)
	}
	// What doesn't change is stored once: the module's first and last line.
	for _, c := range d.Columns[1:] {
		require.Equal(t, d.Columns[0].Chunks[0], c.Chunks[0])
		require.Equal(t, d.Columns[0].Chunks[len(d.Columns[0].Chunks)-1], c.Chunks[len(c.Chunks)-1])
	}
	require.Equal(t, []dataSource{{"sample.mlir", sample}}, d.Sources)
}

// The end of a phase that only ran passes is no column, and what marks it doesn't count as a change by its last pass.
func TestPhases(t *testing.T) {
	c := dialects.NewContext()
	m, err := ir.Parse(c, "sample.mlir", []byte(sample))
	require.NoError(t, err)
	r := New("t", ir.PrintOptions{})
	r.Phase("input", "", m, true)
	r.Pass("graph", "cse", "", m, m)
	m.SetAttr("test.phase", c.String("graph"))
	r.Phase("graph", "", m, false)
	r.Pass("next", "cse", "", m, m)
	page, err := r.Page()
	require.NoError(t, err)
	d := decode(t, page)
	require.Len(t, d.Columns, 3)
	require.True(t, d.Columns[1].Same)
	require.Contains(t, text(t, d, 1), `test.phase = "graph"`)
	require.True(t, d.Columns[2].Same)
	require.Empty(t, d.Sources)
}

func TestPageIsReproducible(t *testing.T) {
	one, err := record(t, "sample.mlir", sample, samplePasses).Page()
	require.NoError(t, err)
	two, err := record(t, "sample.mlir", sample, samplePasses).Page()
	require.NoError(t, err)
	require.True(t, bytes.Equal(one, two))
}

// No text that is shown gets into the page as markup or program, and only the page's own program may run.
func TestHostileText(t *testing.T) {
	hostile := "</title><script>broken=1</script> {{program}} \"'<!-- \u202e.blu"
	r := record(t, "sample.mlir", sample, samplePasses)
	r.title = hostile
	r.Stop("stopped: " + hostile)
	page, err := r.Page()
	require.NoError(t, err)
	require.Contains(t, string(page), "<title>&lt;/title&gt;&lt;script&gt;broken=1&lt;/script&gt; {{program}} &#34;&#39;&lt;!-- \u202e.blu: IR by pass</title>")
	require.Equal(t, 2, strings.Count(string(page), "<script"))
	require.Equal(t, 2, strings.Count(string(page), "</script>"))
	require.NotContains(t, string(page), "onerror")
	require.NotRegexp(t, `(?i)(src|href)\s*=|url\(|https?:|@import`, string(page))
	d := decode(t, page)
	require.Equal(t, "stopped: "+hostile, d.Stopped)
	require.Equal(t, hostile, d.Title)
	require.Contains(t, text(t, d, 0), `"</script><img src=x onerror=window.broken=1> {{data}} <!-- \""`)

	policy := regexp.MustCompile(`content="default-src 'none'; base-uri 'none'; form-action 'none'; script-src ('sha256-[^']+'); style-src ('sha256-[^']+')"`).FindStringSubmatch(string(page))
	require.NotNil(t, policy)
	for i, tag := range []string{"script", "style"} {
		m := regexp.MustCompile(`(?s)<` + tag + `>(.*?)</` + tag + `>`).FindStringSubmatch(string(page))
		sum := sha256.Sum256([]byte(m[1]))
		require.Equal(t, policy[i+1], fmt.Sprintf("'sha256-%s'", base64.StdEncoding.EncodeToString(sum[:])))
	}
}

func TestMissingSources(t *testing.T) {
	src := "builtin.module {\n  func.func @f() {\n    func.return loc(callsite(\"a.blu\":3:4 at \"b.blu\":1:1))\n  } loc(\"a.blu\":2:2)\n} loc(unknown)\n"
	r := record(t, "m.mlir", src, "builtin.module(cse)")
	require.Equal(t, []string{"a.blu", "b.blu"}, r.Missing())
	r.Source("a.blu", []byte("x\n"))
	require.Equal(t, []string{"b.blu"}, r.Missing())
	page, err := r.Page()
	require.NoError(t, err)
	require.Equal(t, []dataSource{{"a.blu", "x\n"}}, decode(t, page).Sources, "nothing points into m.mlir")
}

func TestNilRecorder(t *testing.T) {
	var r *Recorder
	r.Source("f", nil)
	r.Phase("", "", nil, true)
	r.Pass("", "", "", nil, nil)
	r.Stop("")
	require.True(t, r.Empty())
	require.Nil(t, r.Missing())
}

func TestLocations(t *testing.T) {
	c := dialects.NewContext()
	ls := newLocations()
	a, b := c.FileLoc("f", 1, 2), c.FileLoc("g", 3, 4)
	require.Zero(t, ls.index(nil))
	tests := []struct {
		loc         *ir.Location
		text        string
		places, via []int
	}{
		{a, "f:1:2", []int{0}, nil},
		{c.CallSite(a, b), "f:1:2, called at g:3:4", []int{0}, []int{1}},
		{c.Fused(a, b), "[f:1:2] and [g:3:4]", []int{0, 1}, nil},
		{c.CallSite(b, c.CallSite(a, a)), "g:3:4, called at f:1:2, called at f:1:2", []int{1}, []int{0}},
		{c.Fused(c.CallSite(a, b), b), "[f:1:2, called at g:3:4] and [g:3:4]", []int{0, 1}, []int{1}},
	}
	for i, tt := range tests {
		require.Equal(t, i+1, ls.index(tt.loc))
		require.Equal(t, location{tt.text, tt.places, tt.via}, ls.list[i+1])
		require.Equal(t, i+1, ls.index(tt.loc))
	}
}

func TestWrap(t *testing.T) {
	short := strings.Repeat("x", maxLine)
	require.Equal(t, []string{short}, wrap(short))
	arg := `%arg: tensor<4x4xf32, #blu.x<a, b>> {a = "x, (\", ", b = [1, 2]}`
	line := "func.func @f(" + strings.Join([]string{arg, arg, arg, arg, arg, arg}, ", ") + ") -> i32 {"
	rows := wrap(line)
	require.Equal(t, line, strings.Join(rows, " "))
	require.Equal(t, []string{"func.func @f(" + arg + ", " + arg + ",", arg + ", " + arg + ",", arg + ", " + arg + ") -> i32 {"}, rows)
	deep := `"x"() {a = [[` + strings.Repeat("1.0, ", 200) + "1.0]]}"
	require.Equal(t, deep, strings.Join(wrap(deep), " "))
	require.Greater(t, len(wrap(deep)), 2)
	require.Len(t, wrap(`"x"() {a = "`+strings.Repeat(", ", 500)+`"}`), 1)
	require.Equal(t, 2, valuesIn(`%1 = x %2 {a = "%3\"%4", b = "\\"}`))
	require.Equal(t, 0, valuesIn(`"%1 \`))
}

// Whatever the form and shape of IR, the chunks have its text, and the numbers of values are where values are.
func TestEveryModule(t *testing.T) {
	root := filepath.Join(upstream.Root(t), "test", "lit")
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".mlir" {
			files = append(files, path)
		}
		return err
	}))
	modules := 0
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, piece := range strings.Split(string(src), "\n// -----") {
			for _, generic := range []bool{false, true} {
				c := dialects.NewContext()
				c.AllowUnregistered = true
				m, err := ir.Parse(c, file, []byte(piece))
				if err != nil {
					continue // the file is about errors
				}
				modules++
				checkModule(t, file, m, ir.PrintOptions{Generic: generic})
			}
		}
	}
	require.Greater(t, modules, 20)
}

func checkModule(t *testing.T, file string, m *ir.Op, o ir.PrintOptions) {
	r := New(file, o)
	r.Phase("input", "", m, true)
	page, err := r.Page()
	require.NoError(t, err)
	d := decode(t, page)
	require.Equal(t, string(ir.Print(m, o)), text(t, d, 0), file)
	ops, located, symbols := 0, 0, 0
	ir.Walk(m, func(op *ir.Op) ir.WalkResult {
		ops++
		if ir.SymName(op) != "" {
			symbols++
		}
		return ir.Advance
	})
	for _, i := range d.Columns[0].Chunks {
		c := chunkOf(t, d, i)
		rows := strings.Split(c.Text, "\n")
		require.Len(t, c.Locs, len(rows))
		require.Len(t, c.Values, len(rows))
		for j, row := range rows {
			require.Len(t, c.Values[j], valuesIn(row), "%s: %s", file, row)
			if c.Locs[j] > 0 && row[0] != '\t' {
				located++
			}
		}
		for _, s := range c.Symbols {
			symbols--
			require.Less(t, s.Row, len(rows))
		}
	}
	require.LessOrEqual(t, located, ops, file)
	require.Zero(t, symbols, file)
}

// Regions beside each other use the same names for their values; the numbers tell these apart.
func TestNumbers(t *testing.T) {
	src := `func.func @f(%c: i1, %x: i32) -> i32 {
  %r:2 = "test.pick"(%c) ({
    %a = arith.addi %x, %x : (i32, i32) -> i32
    "test.use"(%a) : (i32) -> ()
  }, {
  ^bb0(%y: i32):
    %b = arith.muli %y, %x : (i32, i32) -> i32
    "test.use"(%b) : (i32) -> ()
  ^bb1(%z: i32):
    "test.use"(%z) [^bb1] : (i32) -> ()
  }) : (i1) -> (i32, i32)
  func.return %r#1 : (i32) -> ()
}
`
	c := dialects.NewContext()
	c.AllowUnregistered = true
	m, err := ir.Parse(c, "f.mlir", []byte(src))
	require.NoError(t, err)
	r := New("f", ir.PrintOptions{})
	r.Phase("input", "", m, true)
	page, err := r.Page()
	require.NoError(t, err)
	d := decode(t, page)
	got := chunkOf(t, d, d.Columns[0].Chunks[1]) // in the module around it
	var lines []string
	for i, row := range strings.Split(got.Text, "\n") {
		lines = append(lines, fmt.Sprint(strings.TrimSpace(row), " ", got.Values[i]))
	}
	require.Equal(t, []string{
		"func.func @f(%arg0: i1, %arg1: i32) -> i32 { [0 1]",
		`%0:2 = "test.pick"(%arg0) ({ [2 0]`,
		"%1 = arith.addi %arg1, %arg1 : (i32, i32) -> i32 [4 1 1]",
		`"test.use"(%1) : (i32) -> () [4]`,
		"}, { []",
		"^bb0(%arg2: i32): [5]",
		"%1 = arith.muli %arg2, %arg1 : (i32, i32) -> i32 [6 5 1]",
		`"test.use"(%1) : (i32) -> () [6]`,
		"^bb1(%2: i32): [7]",
		`"test.use"(%2) [^bb1] : (i32) -> () [7]`,
		"}) : (i1) -> (i32, i32) []",
		"func.return %0#1 : (i32) -> () [3]",
		"} []",
	}, lines)
	require.Len(t, got.Args, 4)
}
