package ptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// program is kernels of one and two inputs, of 5000 and of 40 numbers, and launches of them.
func program(launches ...string) string {
	kernel := func(name string, n int) string {
		return fmt.Sprintf(`
tile.kernel @%[1]s_%[2]d attributes {grid = array<i64: %[2]d>, outs = 1 : i64, steps = array<i64: 4096>} (%%x: memref<%[2]dxf32>, %%y: memref<%[2]dxf32>, %%i: index) {
  %%a = tile.load %%x, %%i : (memref<%[2]dxf32>, index) -> !tile.block<1x4096xf32>
  %%b = tile.%[1]s %%a : (!tile.block<1x4096xf32>) -> !tile.block<1x4096xf32>
  tile.store %%b, %%y, %%i : (!tile.block<1x4096xf32>, memref<%[2]dxf32>, index) -> ()
  tile.end
}`, name, n)
	}
	reference := func(name string, n int) string {
		return fmt.Sprintf(`
  func.func @%[1]s_%[2]d(%%x: tensor<%[2]dxf32>) -> tensor<%[2]dxf32> {
    %%y = blu.%[1]s %%x : (tensor<%[2]dxf32>) -> tensor<%[2]dxf32>
    func.return %%y : (tensor<%[2]dxf32>) -> ()
  }`, name, n)
	}
	var body strings.Builder
	for i, l := range launches {
		var name, from, to string
		var n int
		fmt.Sscanf(l, "%s %d %s %s", &name, &n, &from, &to)
		for k, at := range []string{from, to} {
			place := fmt.Sprintf(`{name = %q, offset = 0 : i64, space = "state"}`, at)
			if at[0] >= '0' && at[0] <= '9' {
				place = fmt.Sprintf(`{offset = %s : i64, space = "arena"}`, at)
			}
			fmt.Fprintf(&body, "  %%r%d_%d = exec.ref %s : () -> memref<%dxf32>\n", i, k, place, n)
		}
		fmt.Fprintf(&body, "  exec.launch %%r%[1]d_0, %%r%[1]d_1 {kernel = @%[2]s_%[3]d} : (memref<%[3]dxf32>, memref<%[3]dxf32>) -> ()\n", i, name, n)
	}
	return kernel("neg", 5000) + kernel("abs", 40) + "\nexec.func @f attributes {arena = 65536 : i64, mem.interface = []} {\n" + body.String() +
		"  exec.end\n}\nbuiltin.module @reference {" + reference("neg", 5000) + reference("abs", 40) + "\n}\n"
}

// Launches are made together as long as none of them reads or writes what another one writes.
func TestLists(t *testing.T) {
	for name, c := range map[string]struct{ launches, want []string }{
		"independent":              {[]string{"neg 5000 a b", "abs 40 c d", "neg 5000 e f"}, []string{"neg_list_3: a e c b f d"}},
		"the same input":           {[]string{"neg 5000 a b", "neg 5000 a c"}, []string{"neg_list_2: a a b c"}},
		"in place":                 {[]string{"abs 40 a a", "abs 40 b b"}, []string{"abs_list_2: a b a b"}},
		"read after it is written": {[]string{"neg 5000 a b", "neg 5000 b c", "abs 40 d e"}, []string{"neg_5000: a b", "neg_list_2: b d c e"}},
		"written after it is read": {[]string{"neg 5000 a b", "neg 5000 c a"}, []string{"neg_5000: a b", "neg_5000: c a"}},
		"written twice":            {[]string{"neg 5000 a c", "neg 5000 b c"}, []string{"neg_5000: a c", "neg_5000: b c"}},
		"neighbours in the arena":  {[]string{"abs 40 a 0", "abs 40 b 160"}, []string{"abs_list_2: a b 0 160"}},
		"overlap in the arena":     {[]string{"abs 40 a 0", "abs 40 b 156"}, []string{"abs_40: a 0", "abs_40: b 156"}},
		"one alone":                {[]string{"neg 5000 a b"}, []string{"neg_5000: a b"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := dialects.NewContext()
			module, err := ir.Parse(ctx, "list.mlir", []byte(program(c.launches...)))
			require.NoError(t, err)
			require.NoError(t, Run(ctx, module, Options{Target: ptx.SM90A, Products: "auto"}))
			require.NoError(t, ir.Verify(ctx, module))
			var got []string
			for op := range ir.LookupSymbol(module, "f").Body().Ops() {
				if !op.Is(exec.Launch) {
					continue
				}
				line := op.Attrs().Sym("kernel") + ":"
				for _, v := range op.Operands() {
					at := v.Op().Attrs()
					if line += " " + at.Str("name"); at.Str("name") == "" {
						line += fmt.Sprint(at.IntOr("offset", 0))
					}
				}
				got = append(got, line)
				launchable(t, module, op)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// launchable checks that a launch's kernel is there, in PTX, and says what it implements.
func launchable(t *testing.T, module, launch *ir.Op) {
	k := ir.LookupSymbol(module, launch.Attrs().Sym("kernel"))
	require.True(t, k.Is(ptx.Kernel))
	f := ir.LookupSymbol(ir.LookupSymbol(module, referenceModule), launch.Attrs().Sym("kernel"))
	require.NotNil(t, f)
	outs := k.Attrs().IntOr(OutsAttr, 0)
	require.Len(t, f.Body().Args(), launch.NumOperands()-int(outs))
	require.Equal(t, int(outs), f.Body().Terminator().NumOperands())
}
