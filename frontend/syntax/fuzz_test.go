package syntax

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// seeds are the examples and the wrong programs of the golden tests.
func seeds(f *testing.F) {
	for _, pattern := range []string{"../../examples/*.blu", "../../test/lit/errors/*/*.blu", "../../test/lit/frontend/*.blu"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(f, err)
		for _, p := range paths {
			src, err := os.ReadFile(p)
			require.NoError(f, err)
			f.Add(string(src))
		}
	}
	f.Add(sample)
}

// FuzzParse: any text is parsed without a panic; every error and every node lies within the text; a text without
// errors keeps the formatter's promises.
func FuzzParse(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, src string) {
		file, diags := Parse("t.blu", src)
		for _, d := range diags {
			// A file with a zero byte is no text, so the one error it has is about the file as a whole.
			require.Equal(t, !strings.ContainsRune(src, 0), d.Range.Start.IsValid(), d.Message)
			require.LessOrEqual(t, d.Range.Start.Offset, len(src))
		}
		spansWithin(t, reflect.ValueOf(file), len(src))
		if !diags.HasErrors() && len(src) < 10000 {
			checkFormat(t, src)
		}
	})
}

// spansWithin checks every Span below a value.
func spansWithin(t *testing.T, v reflect.Value, end int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			spansWithin(t, v.Elem(), end)
		}
	case reflect.Slice:
		for i := range v.Len() {
			spansWithin(t, v.Index(i), end)
		}
	case reflect.Struct:
		if s, ok := v.Interface().(Span); ok {
			if s.Start.Offset < 0 || s.Start.Offset > s.End.Offset || s.End.Offset > end {
				t.Fatalf("span %v is not within %d bytes", s, end)
			}
			return
		}
		for i := range v.NumField() {
			spansWithin(t, v.Field(i), end)
		}
	}
}
