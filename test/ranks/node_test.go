package ranks

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/driver"
	"blutrain/ir"
)

var update = flag.Bool("update", false, "write runtime/cuda/testdata/node anew")

// What ranks tell each other in programs of GPT-2 is what runtime/cuda tests the start, the use and the end of communicators with, on a
// stand-in for NCCL: it may not compile programs itself.
func TestNodePrograms(t *testing.T) {
	text, err := os.ReadFile("../../examples/gpt2.blu")
	require.NoError(t, err)
	for _, o := range []driver.Sharding{
		{Mesh: "dp=2"}, {Mesh: "dp=2", Zero: 1}, {Mesh: "dp=4"}, {Mesh: "dp=1,cp=2"}, {Mesh: "dp=2,cp=2"}, {Mesh: "dp=2,cp=2", Zero: 1}, {Mesh: "dp=2,cp=2", Context: "ulysses"},
		{Mesh: "dp=2,cp=2", Zero: 1, Context: "ulysses"}, {Mesh: "dp=2,cp=4"}, {Mesh: "dp=2,cp=4", Zero: 1, Context: "ulysses"},
	} {
		o.Bucket = 2 << 10
		r, err := driver.Compile("gpt2.blu", text, driver.Options{Target: "cpu", Set: map[string]float64{"V": 61, "T": 16, "L": 2, "H": 4, "C": 16, "B": 2, "S": 16}, Sharding: o})
		require.NoError(t, err)
		program, _ := r.Artifact.File(artifact.ProgramName)
		module, err := ir.Parse(dialects.NewContext(), artifact.ProgramName, program)
		require.NoError(t, err)
		got := meetings(module)
		path := filepath.Join("../../runtime/cuda/testdata/node", strings.NewReplacer(",", "-", "=", "").Replace(fmt.Sprintf("%s%s-zero%d.mlir", o.Mesh, strings.TrimSuffix("-"+o.Context, "-"), o.Zero)))
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o777))
			require.NoError(t, os.WriteFile(path, []byte(got), 0o666))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), got, "%s is not what programs do now: go test ./test/ranks -run TestNodePrograms -update", path)
	}
}

// meetings is a program's collectives, each with memory of its own.
func meetings(module *ir.Op) string {
	var b strings.Builder
	b.WriteString("builtin.module {\n")
	for fn := range module.Body().Ops() {
		if !fn.Is(exec.Func) {
			continue
		}
		var body strings.Builder
		arena, refs := int64(0), 0
		for op := range fn.Body().Ops() {
			switch {
			case op.Is(exec.Collective):
				var names, types []string
				for _, v := range op.Operands() {
					n := ir.NumElements(v.Shape())
					fmt.Fprintf(&body, "    %%%d = exec.ref {offset = %d : i64, space = \"arena\"} : () -> memref<%dx%s>\n", refs, arena, n, v.Elem())
					names, types = append(names, fmt.Sprintf("%%%d", refs)), append(types, fmt.Sprintf("memref<%dx%s>", n, v.Elem()))
					arena, refs = arena+(n*ir.ByteSize(v.Elem())+255)/256*256, refs+1
				}
				a := op.Attrs()
				fmt.Fprintf(&body, "    exec.collective %s {group = %q, id = %d : i64, op = %q", strings.Join(names, ", "), a.Str("group"), a.IntOr("id", 0), a.Str("op"))
				for _, name := range []string{"ranks", "shift"} {
					if n, ok := a.Int(name); ok {
						fmt.Fprintf(&body, ", %s = %d : i64", name, n)
					}
				}
				fmt.Fprintf(&body, "} : (%s) -> ()\n", strings.Join(types, ", "))
			case op.Is(exec.Wait):
				fmt.Fprintf(&body, "    exec.wait {id = %d : i64}\n", op.Attrs().IntOr("id", 0))
			}
		}
		if refs > 0 {
			fmt.Fprintf(&b, "  exec.func @%s attributes {arena = %d : i64} {\n%s    exec.end\n  }\n", ir.SymName(fn), arena, body.String())
		}
	}
	b.WriteString("}\n")
	return b.String()
}
