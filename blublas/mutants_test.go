package blublas

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

const mutantTable = "testdata/mutants.txt"

// orders is the operations that order others: a kernel without one of them is wrong, or the operation was not needed.
var orders = []*ir.OpDef{
	ptx.Sync, ptx.Arrive, ptx.WarpSync, ptx.Fence, ptx.ClusterArrive, ptx.ClusterWait, ptx.BarrierInit, ptx.BarrierExpect, ptx.BarrierArrive, ptx.BarrierWait,
	ptx.CopyCommit, ptx.CopyWait, ptx.WGMMAFence, ptx.WGMMACommit, ptx.WGMMAWait, ptx.TMACommit, ptx.TMAWait, ptx.SetMaxRegisters,
}

// mutant is one change to a kernel.
type mutant struct {
	name   string
	change func(op *ir.Op)
}

// without removes an operation; its results are what it would have waited for.
func without(op *ir.Op) {
	for i, r := range op.Results() {
		r.ReplaceAllUsesWith(op.Operand(i))
	}
	op.Erase()
}

// mutants lists, by number in the order of the kernel's text, what can be done to its operations.
func mutants(kernel *ir.Op) map[int]mutant {
	all, seen, n := map[int]mutant{}, map[string]bool{}, -1
	ir.Walk(kernel, func(op *ir.Op) ir.WalkResult {
		n++
		guard := map[*ir.OpDef]int{ptx.Load: 1, ptx.Store: 2, ptx.BarrierArrive: 1}[op.Def()]
		switch {
		case slices.Contains(orders, op.Def()):
			all[n] = mutant{"no " + summary(op), without}
		case guard > 0 && op.NumOperands() > guard:
			// Of accesses with one guard in one region the first stands for all.
			key := fmt.Sprint(op.Name(), ir.ValueName(op.Operand(guard)), op.Attrs().Str("space"))
			if !seen[key] && len(seen) < 40 {
				seen[key] = true
				all[n] = mutant{"always " + summary(op), func(op *ir.Op) { op.SetOperands(op.Operands()[:guard]) }}
			}
		}
		return ir.Advance
	})
	return all
}

// summary is an operation's name and what tells it from others of the name.
func summary(op *ir.Op) string {
	s := op.Name()
	for _, name := range []string{"space", "kind", "count", "inc", "pending", "read", "threads", "cluster"} {
		if a := op.Attr(name); a != nil {
			s += fmt.Sprintf(" %s=%s", name, strings.TrimSuffix(a.String(), " : i64"))
		}
	}
	return s
}

// findings are what the emulator says, in short.
var findings = []struct{ says, short string }{
	{"with nothing that orders", "unordered accesses"}, {"that nobody wrote", "nobody wrote what is read"}, {"nobody can go on", "waits for ever"},
	{"where no memory is", "outside memory"}, {"with no fence {kind = \"async\"}", "no fence before the copy engine"}, {"with no fence {kind = \"mbarrier_init\"}", "no fence after making barriers"},
	{"no wgmma_fence", "no fence before products"}, {"that a matrix product writes", "registers in use by a product"}, {"products are unfinished", "products unfinished at the end"},
	{"where none was made", "no barrier there"}, {"have arrived", "too many arrivals"}, {"having arrived", "waits without having arrived"}, {"twice", "arrives twice"},
	{"orders it before that block ends", "a block ends too early"}, {"expects", "copies miscounted"}, {"the wrong way", "registers changed the wrong way"},
}

// harmless says why changes are not found.
var harmless = map[string]string{
	"no ptx.setmaxnreg count=240 inc=unit": "how many registers a kernel uses is the assembler's",
	"no ptx.setmaxnreg count=160 inc=unit": "how many registers a kernel uses is the assembler's",
	"no ptx.warp_sync":                     "barriers of the warpgroup or others of the warp are around it, and a lane writes over what it read itself",
	"no ptx.mbarrier_wait":                 "turns, which matter where a consumer falls a tile behind: in some orders of warps",
}

// A kernel without one of its barriers, fences, waits or guards is reported, or computes something wrong. The table has
// those that are not, with the reason.
func TestMutants(t *testing.T) {
	wgmma := func(p Precision, bm, bn, stages, cluster int, pingpong bool) Gemm {
		return Gemm{Precision: p, Unit: WGMMA, Target: ptx.SM90A, BM: bm, BN: bn, BK: 64, Stages: stages, Consumers: 2, Cluster: cluster, SplitK: 1, Pingpong: pingpong}
	}
	products := []product{
		{g: with(Gemm{Precision: FP32Strict, Unit: SIMT, Target: ptx.SM80, BM: 128, BN: 128, BK: 8, Consumers: 2, SplitK: 1}, "nt", 67, 140, 36), o: plainOptions},
		{g: with(Gemm{Precision: BF16, Unit: MMA, Target: ptx.SM80, BM: 128, BN: 128, BK: 64, Stages: 3, SplitK: 1}, "nn", 67, 140, 328), o: plainOptions},
		{g: with(wgmma(BF16, 128, 64, 2, 1, false), "nt", 300, 130, 328), o: Options{Out: ir.F32, Residual: true, SumColumns: true}},
		{g: with(wgmma(BF16, 128, 64, 2, 1, true), "nt", 600, 130, 328), o: plainOptions},
		{g: with(wgmma(BF16, 128, 128, 2, 2, false), "nt", 600, 130, 328), o: plainOptions},
		{g: with(wgmma(BF16, 128, 64, 2, 1, true), "nt", 540, 128, 72), o: Options{Out: ir.F32, Bias: true, Residual: true}},
		{g: with(wgmma(BF16, 64, 128, 2, 1, true), "nt", 300, 136, 72), o: Options{Out: ir.BF16, GeluGrad: true, SumColumns: true}},
		{g: with(wgmma(BF16, 128, 64, 2, 1, false), "nt", 300, 132, 72), o: Options{Out: ir.F32, Bias: true, Residual: true}},
		{g: with(wgmma(BF16, 128, 64, 2, 1, false), "nt", 300, 136, 72), o: Options{Out: ir.BF16, Bias: true, Gelu: true, Keep: true}},
		{g: with(wgmma(FP16x3, 128, 64, 2, 1, false), "nt", 300, 66, 200), o: plainOptions},
		{g: with(wgmma(BF16, 192, 64, 2, 1, false).by(3), "nt", 600, 128, 200), o: Options{Out: ir.F32}},
	}
	tables := make([]string, len(products))
	t.Run("kernels", func(t *testing.T) {
		for i, p := range products {
			p.tolerance = 4e-6
			p.g.Epilogue = ofLong(p.o)
			if testing.Short() && p.g.Unit != MMA {
				continue
			}
			t.Run(p.g.Name(), func(t *testing.T) {
				t.Parallel()
				tables[i] = p.mutants(t)
			})
		}
	})
	if !testing.Short() {
		sameTable(t, mutantTable, strings.Join(tables, ""))
	}
}

// sameTable holds a table of mutants to its file.
func sameTable(t *testing.T, file, got string) {
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "go test ./blublas -run Mutants -update writes the table anew")
}

// mutants is the table of one kernel.
func (p *product) mutants(t *testing.T) string {
	k := prepare(t, p.g, p.o).kernels(t, small(p.g.Target))[0]
	return p.g.Name() + "\n" + tabulate(t, mutants(k.Op), harmless, func(n int, m mutant) string { return p.outcome(t, n, m) })
}

// tabulate counts what becomes of a kernel's mutants, in the order of its text; what is not found has a reason.
func tabulate(t *testing.T, all map[int]mutant, reasons map[string]string, outcome func(n int, m mutant) string) (table string) {
	counts, order := map[string]int{}, []string{}
	for _, n := range slices.Sorted(maps.Keys(all)) {
		m := all[n]
		what := outcome(n, m)
		if what == "not found" {
			require.NotEmpty(t, reasons[m.name], "%s, number %d of the kernel's operations", m.name, n)
			what += ": " + reasons[m.name]
		}
		line := m.name + ": " + what
		if counts[line]++; counts[line] == 1 {
			order = append(order, line)
		}
	}
	for _, line := range order {
		table += fmt.Sprintf("  %dx %s\n", counts[line], line)
	}
	return table
}

// outcome is what becomes of a kernel that is changed.
func (p *product) outcome(t *testing.T, at int, m mutant) string {
	e := prepare(t, p.g, p.o)
	kernels := e.kernels(t, small(p.g.Target))
	m.change(nth(kernels[0].Op, at))
	if err := e.run(kernels, 0); err != nil {
		return finding(err)
	}
	if e.wrong(p.tolerance) != "" {
		return "wrong results"
	}
	return "not found"
}

// finding is an error in short.
func finding(err error) string {
	for _, f := range findings {
		if strings.Contains(err.Error(), f.says) {
			return f.short
		}
	}
	return regexp.MustCompile(`\d+`).ReplaceAllString(err.Error(), "#")
}
