package dialects_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
)

// An operation that is defined stands in its dialect's list: one that was forgotten there would just not exist.
func TestDefinitionsAreListed(t *testing.T) {
	listed := map[string]bool{}
	for _, d := range dialects.All() {
		for _, def := range d.Ops {
			listed[d.Name+"."+def.Name] = true
		}
	}
	files, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	found := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		dialect := filepath.Dir(file)
		if dialect == "fn" { // func is a keyword
			dialect = "func"
		}
		for _, name := range defined(t, file) {
			found++
			require.True(t, listed[dialect+"."+name], "%s defines %s.%s, which the dialect's list of operations lacks", file, dialect, name)
		}
	}
	require.Greater(t, found, 100)
}

// defined is the names of the operations that literals in a file define.
func defined(t *testing.T, file string) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		typ, ok := lit.Type.(*ast.SelectorExpr)
		if !ok || typ.Sel.Name != "OpDef" {
			return true
		}
		for _, e := range lit.Elts {
			kv, ok := e.(*ast.KeyValueExpr)
			if !ok || kv.Key.(*ast.Ident).Name != "Name" {
				continue
			}
			if s, ok := kv.Value.(*ast.BasicLit); ok {
				name, err := strconv.Unquote(s.Value)
				require.NoError(t, err)
				names = append(names, name)
			}
		}
		return true
	})
	return names
}
