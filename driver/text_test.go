package driver_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/driver"
	"blutrain/passes"
)

// word is what a slip of an editor takes, doubles or misplaces.
var word = regexp.MustCompile(`[A-Za-z_][A-Za-z_0-9.]*|[0-9]+|%[a-z0-9_:#]+|@[^ ,(){}]+|"[^"]*"|[^\s]`)

// editText changes a module's text in one to three places.
func editText(text string, r *rand.Rand) string {
	for range 1 + r.IntN(3) {
		words := word.FindAllStringIndex(text, -1)
		lines := strings.SplitAfter(text, "\n")
		if len(words) == 0 {
			return text
		}
		pick := func(first string) []int { // a word that begins with one of these, if one is found soon
			w := words[r.IntN(len(words))]
			for range 50 {
				if first == "" || strings.ContainsRune(first, rune(text[w[0]])) {
					break
				}
				w = words[r.IntN(len(words))]
			}
			return w
		}
		replace := func(w []int, by string) { text = text[:w[0]] + by + text[w[1]:] }
		i, j := r.IntN(len(lines)), r.IntN(len(lines))
		switch r.IntN(7) {
		case 0:
			replace(pick(""), "")
		case 1:
			other := pick("")
			replace(pick(""), text[other[0]:other[1]])
		case 2:
			numbers := []string{"0", "-1", "1", "3", "9223372036854775807", "-9223372036854775808", "1000000000000", "1e308", "nan"}
			replace(pick("0123456789"), numbers[r.IntN(len(numbers))])
		case 3:
			other := pick("%")
			replace(pick("%"), text[other[0]:other[1]])
		case 4:
			lines[i], lines[j] = lines[j], lines[i]
			text = strings.Join(lines, "")
		case 5:
			lines[i] = lines[j]
			text = strings.Join(lines, "")
		case 6:
			types := []string{"f64", "i32", "i64", "i1", "bf16", "index"}
			w := pick("0123456789x")
			replace(w, strings.Replace(text[w[0]:w[1]], "f32", types[r.IntN(len(types))], 1))
		}
	}
	return text
}

// Whatever is wrong with the text of a module, compiling it on from there is an error that says so, or works: no crash, and nothing that
// a pass would have to be blamed for.
func TestEditedTexts(t *testing.T) {
	rounds := uint64(20)
	if testing.Short() {
		rounds = 3
	}
	dir := t.TempDir()
	for _, target := range driver.TargetNames() {
		_, err := driver.Compile("mlp.blu", source(t), driver.Options{Target: target, Set: map[string]float64{"M": 8, "E": 4, "V": 16, "W": 2, "S": 4, "B": 2}, DumpDir: filepath.Join(dir, target)})
		require.NoError(t, err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.mlir"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for seed := range rounds {
			compileEdited(t, file, editText(string(text), rand.New(rand.NewPCG(seed, uint64(len(text))))), fmt.Sprintf("%s, seed %d", filepath.Base(file), seed))
		}
	}
}

func compileEdited(t *testing.T, file, text, what string) {
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %v", what, p)
		}
	}()
	_, err := driver.Compile(filepath.Base(file), []byte(text), driver.Options{Target: filepath.Base(filepath.Dir(file))})
	var failure *passes.Failure
	if errors.As(err, &failure) {
		t.Errorf("%s: pass %s: %v", what, failure.Pass, err)
	}
}
