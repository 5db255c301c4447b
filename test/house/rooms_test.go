// Package house holds the rules that keep the parts of this repository apart and its files readable.
package house

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/upstream"
)

const module = "blutrain"

// A room is a folder at the top of the repository, with all packages below it.
type room struct {
	tower tower
	name  string
}

type tower string

const (
	ground   tower = "ground"   // what a compiled program is and means: both towers stand on it
	compiler tower = "compiler" // from the language to the compiled program
	runtime  tower = "runtime"  // from the compiled program to a trained model
	tools    tower = "tools"    // small helpers: they may use each other and the ground, and everyone may use them
	top      tower = "top"      // sees everything, and nothing below sees it
)

// rooms lists the house from bottom to top. A room may import the rooms before it in its own tower, and the ground.
var rooms = []room{
	{ground, "ir"},
	{ground, "dialects"},
	{ground, "formats"},
	{ground, "artifact"},

	{compiler, "codegen"},
	{compiler, "blublas"},
	{compiler, "lower"},
	{compiler, "passes"},
	{compiler, "autodiff"},
	{compiler, "frontend"},
	{compiler, "driver"},

	{runtime, "dtms"},
	{runtime, "runtime"},
	{runtime, "train"},

	{tools, "internal"},

	{top, "bench"},
	{top, "examples"},
	{top, "test"},
	{top, "cmd"},
}

// find gives a package's room and its floor: its place in the list.
func find(pkg string) (room, int, error) {
	path := strings.TrimPrefix(pkg, module+"/")
	name, _, _ := strings.Cut(path, "/")
	for floor, r := range rooms {
		if r.name == name {
			return r, floor, nil
		}
	}
	return room{}, 0, fmt.Errorf("%s is in no room of the list", pkg)
}

// mayImport reports whether a package may import another. Tests may also import the rooms above them in their tower, and
// what the folder test has for them.
func mayImport(from, to string, inTest bool) (bool, error) {
	a, floorA, err := find(from)
	if err != nil {
		return false, err
	}
	b, floorB, err := find(to)
	if err != nil {
		return false, err
	}
	switch {
	case a.tower == top, a == b, b.tower == tools:
		return true, nil
	case b.tower == top:
		return inTest && b.name == "test", nil
	case b.tower == ground:
		return a.tower != ground || floorB < floorA || inTest, nil
	}
	return a.tower == b.tower && (floorB < floorA || inTest), nil
}

// A listed package is what `go list` says of it.
type listed struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

func listPackages(t *testing.T) []listed {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = upstream.Root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		err := d.Decode(&p)
		if err == io.EOF {
			return packages
		}
		require.NoError(t, err)
		packages = append(packages, p)
	}
}

func TestImports(t *testing.T) {
	check := func(from string, imports []string, inTest bool) {
		for _, to := range imports {
			if !strings.HasPrefix(to, module+"/") {
				continue
			}
			ok, err := mayImport(from, to, inTest)
			if err != nil {
				t.Error(err)
			} else if !ok {
				t.Errorf("%s must not import %s (in a test: %v)", from, to, inTest)
			}
		}
	}
	for _, p := range listPackages(t) {
		if _, _, err := find(p.ImportPath); err != nil {
			t.Error(err)
		}
		check(p.ImportPath, p.Imports, false)
		check(p.ImportPath, p.TestImports, true)
		check(p.ImportPath, p.XTestImports, true)
	}
}

// TestMayImport tests the rule itself.
func TestMayImport(t *testing.T) {
	tests := []struct {
		from, to     string
		code, inTest bool
	}{
		{"dialects/blu", "ir", true, true},
		{"ir", "dialects/blu", false, true},
		{"artifact", "formats/npy", true, true},
		{"formats/npy", "artifact", false, true},
		{"lower/mem", "lower/tile", true, true},
		{"lower", "blublas", true, true},
		{"blublas", "lower", false, true},
		{"driver", "ir", true, true},
		{"frontend", "autodiff", true, true},
		{"driver", "runtime/host", false, false},
		{"runtime/host", "lower", false, false},
		{"train", "runtime", true, true},
		{"dtms/tcp", "runtime", false, true},
		{"dtms", "artifact", true, true},
		{"ir", "driver", false, false},
		{"ir", "runtime", false, false},
		{"internal/gen", "dialects", true, true},
		{"internal/gen", "driver", false, false},
		{"internal/litrun", "internal/upstream", true, true},
		{"ir", "internal/near", true, true},
		{"cmd/bluc", "driver", true, true},
		{"cmd/blurun", "train", true, true},
		{"driver", "cmd/bluc", false, false},
		{"test/lit", "runtime", true, true},
		{"train", "test/numbers", false, true},
		{"train", "cmd/blurun", false, false},
	}
	for _, tt := range tests {
		for _, inTest := range []bool{false, true} {
			got, err := mayImport(module+"/"+tt.from, module+"/"+tt.to, inTest)
			require.NoError(t, err)
			want := tt.code
			if inTest {
				want = tt.inTest
			}
			require.Equal(t, want, got, "%s imports %s, in a test: %v", tt.from, tt.to, inTest)
		}
	}
	_, err := mayImport(module+"/attic/x", module+"/ir", false)
	require.EqualError(t, err, "blutrain/attic/x is in no room of the list")
}
