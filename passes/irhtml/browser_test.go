package irhtml

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// The columns of the sample's page: the source, the input, and the passes of samplePasses.
const (
	sourceColumn = iota
	inputColumn
	inlineColumn
	canonicalizeColumn
	cseColumn
	secondCSEColumn
	dceColumn
)

func in(column int, selector string) string {
	return fmt.Sprintf(".column[data-index='%d'] %s", column, selector)
}

// rows lists the texts of the rows of a column that a selector picks.
func (b *browser) rows(column int, class string) []string {
	b.t.Helper()
	var texts []string
	for _, x := range b.eval("[...document.querySelectorAll(arguments[0])].map((e) => e.textContent.trim())", in(column, ".row"+class+" code")).([]any) {
		texts = append(texts, x.(string))
	}
	return texts
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	s, _ := b.eval("document.querySelector(arguments[0])?.textContent", selector).(string)
	return s
}

// found waits for what a search says, which begins a while after the last letter.
func (b *browser) found(count string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return b.text("#count") == count }, 10*time.Second, 20*time.Millisecond, "%s, not %s", b.text("#count"), count)
}

// TestBrowser uses a page as a person would.
func TestBrowser(t *testing.T) {
	b := openBrowser(t)
	page, err := record(t, "sample.mlir", sample, samplePasses).Page()
	require.NoError(t, err)
	for _, tt := range []struct {
		name string
		test func(*testing.T, *browser)
	}{
		{"columns", testColumns}, {"values", testValues}, {"symbols", testSymbols}, {"source", testSource}, {"search", testSearch},
		{"folding", testFolding}, {"keys", testKeys}, {"schemes", testSchemes},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.t = t
			b.open(page)
			tt.test(t, b)
			require.Empty(t, b.complaints())
		})
		b.t = t
	}
}

func testColumns(t *testing.T, b *browser) {
	require.Equal(t, strings.Split(strings.TrimRight(sample, "\n"), "\n")[1:3], []string{"  " + b.rows(sourceColumn, "")[1], "    " + b.rows(sourceColumn, "")[2]})
	require.Equal(t, "func.func private @twice(%arg0: i32) -> i32 {", b.rows(inputColumn, "")[1])
	require.Equal(t, "test inline", b.text(in(inlineColumn, "h2")))
	require.Equal(t, "18 rows +1 \u22125", b.text(in(inlineColumn, ".counts")))
	// Strings are shown as they are written, and none of them ran.
	require.Contains(t, b.rows(inputColumn, "")[0], `"</script><img src=x onerror=window.broken=1> {{data}} <!-- \""`)
	require.Equal(t, "sample.mlir: IR by pass", b.eval("document.title"))
	require.Nil(t, b.eval("window.broken"))
	require.Zero(t, b.eval("document.images.length"))
	require.Equal(t, []any{float64(secondCSEColumn), float64(dceColumn)}, b.eval("[...document.querySelectorAll('.column.folded')].map((c) => Number(c.dataset.index))"))
	require.Equal(t, "test: cse \u2014 nothing changed", b.text(in(secondCSEColumn, ".strip")))
	// What inlining took away and added.
	require.Contains(t, b.rows(inputColumn, ":has(.gone)"), "%0 = func.call %arg0 {callee = @twice} : (i32) -> i32")
	require.Equal(t, []string{"%4 = arith.addi %2, %3 : (i32, i32) -> i32"}, b.rows(inlineColumn, ":has(.new)"), "a third sum, as texts go")
	b.screenshot("columns")
}

func testValues(t *testing.T, b *browser) {
	marked := func() any {
		return b.eval("[...document.querySelectorAll('.marked')].map((e) => [e.textContent, e.classList.contains('definition'), Number(e.closest('.column').dataset.index)])")
	}
	b.click(in(inputColumn, ".row:nth-child(9) .value"), "%0") // an operand of the first product in @f
	require.Equal(t, []any{[]any{"%0", true, 1.0}, []any{"%0", false, 1.0}, []any{"%0", false, 1.0}}, marked(), "not the one in @twice")
	require.Contains(t, b.text("#status"), "%0: defined here, used in 2 rows")
	require.Equal(t, []string{"%2 = arith.muli %0, %1 : (i32, i32) -> i32"}, b.rows(inputColumn, ".selected"))
	// The same operation elsewhere: known by its place among those like it.
	require.Equal(t, []string{"%2 = arith.muli %0, %1 : (i32, i32) -> i32"}, b.rows(inlineColumn, ".twin"))
	b.screenshot("values")
	b.press("d")
	require.Equal(t, []string{"%0 = func.call %arg0 {callee = @twice} : (i32) -> i32"}, b.rows(inputColumn, ".cursor"))
	b.press("u", "u")
	require.Equal(t, []string{"%3 = arith.muli %0, %1 : (i32, i32) -> i32"}, b.rows(inputColumn, ".cursor"))
	b.press(keyEscape)
	require.Empty(t, marked())
	b.click(in(inputColumn, ".row:nth-child(6) .value"), "%arg0")
	require.Contains(t, b.text("#status"), "%arg0: defined here, used in 2 rows")
	require.Equal(t, "sample.mlir:6:16", b.eval("app.views[1].where(app.marks.selected.entry, 0, app.views[1].tokensAt(5).find((t) => t.kind === 'value'))"))
}

func testSymbols(t *testing.T, b *browser) {
	b.click(in(inputColumn, ".symbol"), "@twice")
	require.Contains(t, b.text("#status"), "@twice: references in this column are marked")
	require.Equal(t, 2.0, b.eval("document.querySelectorAll('.symbol.marked').length"))
	b.click(in(inputColumn, ".row:nth-child(7) .symbol"), "@twice")
	require.Equal(t, []string{"func.func private @twice(%arg0: i32) -> i32 {"}, b.rows(inputColumn, ".selected"))
	b.press("b")
	require.Equal(t, []string{"%0 = func.call %arg0 {callee = @twice} : (i32) -> i32"}, b.rows(inputColumn, ".cursor"))
	// A table is a scope of its own, and its head may name what is inside.
	require.Equal(t, "builtin.module @m", b.eval("app.views[1].layout.resolve(['m'], app.views[1].layout.entries[1]).entry.chunk.text.slice(0, 17)"))
	require.Equal(t, "f", b.eval("app.views[1].layout.resolve(['f'], app.views[1].layout.entries[0]).name"))
	require.Equal(t, "f", b.eval("app.views[1].layout.resolve(['m', 'f'], app.views[1].layout.entries[1]).name"))
	require.Nil(t, b.eval("app.views[1].layout.resolve(['nothing'], app.views[1].layout.entries[1])"))
	require.Equal(t, `["odd \"name\"","ü"]`, b.eval(`JSON.stringify(symbolPath('@"odd \\22name\\""::@"\\C3\\BC"'))`))
}

func testSource(t *testing.T, b *browser) {
	b.click(in(sourceColumn, ".row:nth-child(3) code"), "")
	require.Equal(t, []string{"%0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32"}, b.rows(inputColumn, ".strong"))
	require.Equal(t, []string{"%0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32"}, b.rows(inlineColumn, ".strong"), "also where it was inlined")
	b.click(in(sourceColumn, ".row:nth-child(7) code"), "")
	require.Equal(t, []string{"%0 = func.call %arg0 {callee = @twice} : (i32) -> i32"}, b.rows(inputColumn, ".strong"))
	require.Equal(t, []string{"%0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32"}, b.rows(inlineColumn, ".weak"))
	// And back.
	b.click(in(inlineColumn, ".row:nth-child(3) .op"), "arith.addi")
	require.Equal(t, []string{"%0 = arith.addi %x, %x : (i32, i32) -> i32"}, b.rows(sourceColumn, ".strong"))
	require.Equal(t, []string{"%a = func.call %x {callee = @twice} : (i32) -> i32"}, b.rows(sourceColumn, ".weak"))
	require.Equal(t, []string{"%0 = func.call %arg0 {callee = @twice} : (i32) -> i32"}, b.rows(inputColumn, ".weak"), "the call that it came through")
	require.Equal(t, "sample.mlir:3:10, called at sample.mlir:7:10", b.text("#status"))
}

func testSearch(t *testing.T, b *browser) {
	b.press("/")
	b.write("MULI %0")
	b.found("1 of 7")
	matches := func() float64 { return b.eval("document.querySelectorAll('mark').length").(float64) }
	require.Equal(t, []string{"%2 = arith.muli %0, %1 : (i32, i32) -> i32"}, b.rows(inputColumn, ":has(mark.current)"))
	b.press(keyEnter)
	require.Equal(t, "2 of 7", b.text("#count"))
	require.Equal(t, []string{"%3 = arith.muli %0, %1 : (i32, i32) -> i32"}, b.rows(inputColumn, ":has(mark.current)"))
	b.press(keyShift, keyEnter)
	b.press(keyShift, keyEnter)
	require.Equal(t, "7 of 7", b.text("#count"))
	b.click(".toggle:has(#case)", "")
	require.Equal(t, "no match", b.text("#count"))
	require.Zero(t, matches())
	b.click("#regex + span", "")
	b.eval("(document.getElementById('query').value = '^ +%\\\\d+ = arith\\\\.(muli|subi)', app.find())")
	require.Regexp(t, "^[0-9]+ of 1[0-9]$", b.text("#count"))
	b.eval("(document.getElementById('query').value = '(', app.find())")
	require.Contains(t, b.text("#count"), "Unterminated group")
	require.Equal(t, "true", b.eval("document.getElementById('query').getAttribute('aria-invalid')"))
	b.click("#query", "")
	b.press(keyEscape)
	require.Empty(t, b.text("#count"))
	require.Equal(t, true, b.eval("document.activeElement.matches('.body')"))
}

func testFolding(t *testing.T, b *browser) {
	b.click(in(inputColumn, ".twist"), "")
	require.Equal(t, "func.func private @twice(%arg0: i32) -> i32 { \u22ef 3 rows", b.rows(inputColumn, "")[1])
	require.Equal(t, "func.func @f(%arg0: i32, %arg1: index) -> i32 {", b.rows(inputColumn, "")[2])
	// A search finds what is folded and unfolds it.
	b.click("#query", "")
	b.write("%arg0, %arg0")
	require.Eventually(t, func() bool { return b.text("#count") != "" }, 10*time.Second, 20*time.Millisecond)
	require.Equal(t, []string{"%0 = arith.addi %arg0, %arg0 : (i32, i32) -> i32"}, b.rows(inputColumn, ":has(mark.current)"))
	before := b.text("#count")
	b.click("#unfold", "")
	require.Zero(t, b.eval("document.querySelectorAll('.column.folded').length"))
	require.NotEqual(t, before, b.text("#count"), "there is more to search")
	b.click(in(sourceColumn, "button.fold"), "")
	require.Equal(t, true, b.eval("document.querySelector('.column').classList.contains('folded')"))
	b.click(in(sourceColumn, ".strip"), "")
	require.Equal(t, false, b.eval("document.querySelector('.column').classList.contains('folded')"))
}

func testKeys(t *testing.T, b *browser) {
	b.press("]", keyDown, keyDown, keyRight, keyRight)
	require.Equal(t, "%arg0", b.text(in(inputColumn, ".chosen")))
	b.press(keyEnter)
	require.Equal(t, 3.0, b.eval("document.querySelectorAll('.marked').length"))
	b.press(keyHome, keyDown, keySpace)
	require.Contains(t, b.rows(inputColumn, ".cursor")[0], "3 rows")
	b.press("?")
	require.Equal(t, true, b.eval("document.getElementById('help').open"))
	b.screenshot("help")
	b.press(keyEscape)
	require.Equal(t, false, b.eval("document.getElementById('help').open"))
	b.press("f")
	require.Equal(t, "test: inline", b.eval("document.activeElement.ariaLabel"))
}

func testSchemes(t *testing.T, b *browser) {
	color := func() any { return b.eval("getComputedStyle(document.querySelector('.column')).backgroundColor") }
	b.dark(false)
	light := color()
	b.dark(true)
	require.NotEqual(t, light, color())
	b.screenshot("dark")
	b.dark(false)
}

// TestLargePage: of a large module only what is in sight is in the document, wherever one scrolls.
func TestLargePage(t *testing.T) {
	b := openBrowser(t)
	var src strings.Builder
	src.WriteString("builtin.module @large {\n")
	for f := range 40 {
		fmt.Fprintf(&src, "func.func @f%d(%%x: i32) -> i32 {\n%%0 = arith.addi %%x, %%x : (i32, i32) -> i32\n", f)
		for i := range 500 {
			fmt.Fprintf(&src, "%%%d = arith.muli %%%d, %%x : (i32, i32) -> i32\n", i+1, i)
		}
		src.WriteString("func.return %500 : (i32) -> ()\n}\n")
	}
	src.WriteString("}\n")
	c := dialects.NewContext()
	m, err := ir.Parse(c, "large.mlir", []byte(src.String()))
	require.NoError(t, err)
	r := New("large.mlir", ir.PrintOptions{})
	r.Phase("input", "", m, true)
	page, err := r.Page()
	require.NoError(t, err)
	b.open(page)
	b.click("#query", "")
	b.write("%444, %arg0")
	b.found("1 of 40")
	b.press(keyShift, keyEnter)
	require.Equal(t, "40 of 40", b.text("#count"))
	require.Equal(t, []string{"%445 = arith.muli %444, %arg0 : (i32, i32) -> i32"}, b.rows(0, ":has(mark.current)"))
	require.Less(t, b.eval("document.querySelectorAll('.row').length"), 200.0)
	require.Equal(t, "@large@f39", b.eval("document.querySelector('.outline').selectedOptions[0].textContent"))
	b.eval("(document.querySelector('.body').scrollTop = 0)")
	b.eventually("document.querySelector('.row').textContent.trim()", "builtin.module @large {")
	require.Empty(t, b.complaints())
}
