package gpu

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

// summing writes a random kernel whose loop adds up columns of blocks of rows: one to three matrices, of which what comes next is asked for
// ahead, loaded anywhere in the loop; what threads exchange between that; one to three sums; a result for each row, or none, which may take the
// place of what is read.
type summing struct {
	*rand.Rand
	lines, values []string // of the loop's body; blocks of rows
	n             int
}

const rowsType, numbersType, sumsType = "!tile.block<BLOCKxCOLSxf32>", "!tile.block<BLOCKx1xf32>", "!tile.block<1xCOLSxf32>"

func (g *summing) add(format string, args ...any) string {
	g.n++
	name := fmt.Sprintf("%%v%d", g.n)
	g.lines = append(g.lines, "    "+name+" = "+fmt.Sprintf(format, args...))
	return name
}

func (g *summing) value() string { return g.values[g.IntN(len(g.values))] }

// load takes rows of matrix i.
func (g *summing) load(i int, elem string) {
	v := g.add("tile.load %%x%d, %%j, %%zero : (memref<ROWSxCOLSx%s>, index, index) -> !tile.block<BLOCKxCOLSx%s>", i, elem, elem)
	if elem != "f32" {
		v = g.add("tile.cast %s : (!tile.block<BLOCKxCOLSx%s>) -> %s", v, elem, rowsType)
	}
	g.values = append(g.values, v)
}

// compute makes a value of others, of an element for itself or of the whole row.
func (g *summing) compute() {
	v := g.value()
	switch g.IntN(4) {
	case 0:
		kind := []string{"max", "min"}[g.IntN(2)]
		v = g.add("tile.reduce %s {axis = 1 : i64, kind = \"%s\"} : (%s) -> %s", v, kind, rowsType, numbersType)
		v = g.add("tile.mul %s, %s : (%s, %s) -> %s", g.value(), v, rowsType, numbersType, rowsType)
	case 1:
		v = g.add("tile.mul %s, %s : (%s, %s) -> %s", v, g.add("tile.load %%m, %%j {col = -1 : i64, row = 0 : i64} : (memref<ROWSxf32>, index) -> %s", numbersType), rowsType, numbersType, rowsType)
	default:
		v = g.add("tile.%s %s, %s : (%s, %s) -> %s", []string{"add", "sub", "mul"}[g.IntN(3)], v, g.value(), rowsType, rowsType, rowsType)
	}
	g.values = append(g.values, g.add("tile.tanh %s : (%s) -> %s", v, rowsType, rowsType))
}

func times(n int, format string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return strings.Join(all, ", ")
}

func randomSums(seed uint64) string {
	g := &summing{Rand: rand.New(rand.NewPCG(seed, 19))}
	rows, cols := 1+g.IntN(40), []int{1 + g.IntN(9), 32 * (1 + g.IntN(4)), 60 + g.IntN(200), 768, 1028}[g.IntN(5)]
	block := 1 << g.IntN(4)
	panel := block * (1 + g.IntN(5))
	matrices, sums := 1+g.IntN(3), 1+g.IntN(3)
	var elems []string
	for range matrices {
		elems = append(elems, []string{"f32", "bf16"}[g.IntN(2)])
	}
	g.load(0, elems[0])
	for i := 1; i < matrices || g.IntN(3) > 0; {
		if i < matrices && g.IntN(2) == 0 {
			g.load(i, elems[i])
			i++
			continue
		}
		g.compute()
	}
	outs, shared, store := sums, "", ""
	if g.IntN(2) == 0 {
		if outs++; elems[0] == "f32" && g.IntN(2) == 0 {
			shared = fmt.Sprintf(", tile.shared = array<i64: 0, %d>", matrices+1)
		}
		store = "%o: memref<ROWSxCOLSxf32>, "
		g.lines = append(g.lines, fmt.Sprintf("    tile.store %s, %%o, %%j, %%zero : (%s, memref<ROWSxCOLSxf32>, index, index) -> ()", g.value(), rowsType))
	}
	var yields []string
	for i := range sums {
		v := g.add("tile.reduce %s {axis = 0 : i64, kind = \"sum\"} : (%s) -> %s", g.value(), rowsType, sumsType)
		yields = append(yields, g.add("tile.add %%c%d, %s : (%s, %s) -> %s", i, v, sumsType, sumsType, sumsType))
	}
	var stores []string
	for i := range sums {
		of := "%s"
		if sums > 1 {
			of = fmt.Sprintf("%%s#%d", i)
		}
		stores = append(stores, fmt.Sprintf("  tile.store %s, %%y%d, %%p, %%zero {row = -1 : i64} : (%s, memref<PANELSxCOLSxf32>, index, index) -> ()", of, i, sumsType))
	}
	var ins []string
	for i, e := range elems {
		ins = append(ins, fmt.Sprintf("%%x%d: memref<ROWSxCOLSx%s>, ", i, e))
	}
	result, list := "%s", sumsType
	if sums > 1 {
		result, list = fmt.Sprintf("%%s:%d", sums), "("+times(sums, sumsType)+")"
	}
	text := "tile.kernel @k attributes {grid = array<i64: ROWS>, outs = OUTS : i64, steps = array<i64: PANEL>" + shared + "} (" + strings.Join(ins, "") + "%m: memref<ROWSxf32>, " + store + times(sums, "%y#: memref<PANELSxCOLSxf32>") + `, %i: index) {
  %zero = arith.constant {value = 0 : index} : () -> index
  %one = arith.constant {value = 1 : index} : () -> index
  %step = arith.constant {value = BLOCK : index} : () -> index
  %panel = arith.constant {value = PANEL : index} : () -> index
  %rows = arith.constant {value = ROWS : index} : () -> index
  %cols = arith.constant {value = COLS : index} : () -> index
  %nothing = tile.constant {value = 0.0 : f64} : () -> !tile.block<1x1xf32>
  %start = tile.broadcast %nothing, %one, %cols : (!tile.block<1x1xf32>, index, index) -> ` + sumsType + `
  %behind = arith.addi %i, %panel : (index, index) -> index
  %end = arith.minsi %rows, %behind : (index, index) -> index
  ` + result + " = scf.for %i, %end, %step, " + times(sums, "%start") + " : (index, index, index, " + times(sums, sumsType) + ") -> " + list + " (%j: index, " + times(sums, "%c#: "+sumsType) + ") {\n" +
		strings.Join(g.lines, "\n") + "\n    scf.yield " + strings.Join(yields, ", ") + " : (" + times(sums, sumsType) + ") -> ()\n  }\n  %p = arith.divsi %i, %panel : (index, index) -> index\n" + strings.Join(stores, "\n") + "\n  tile.end\n}"
	return strings.NewReplacer("ROWS", fmt.Sprint(rows), "COLS", fmt.Sprint(cols), "PANELS", fmt.Sprint((rows+panel-1)/panel), "PANEL", fmt.Sprint(panel), "BLOCK", fmt.Sprint(block), "OUTS", fmt.Sprint(outs)).Replace(text)
}

// Random loops that ask ahead compute what they say, and a copy in the background meets no read or write of what it fills.
func TestRandomSumsInLoops(t *testing.T) {
	first, last := uint64(0), uint64(39)
	if testing.Short() {
		last = 9
	}
	if hunt := os.Getenv("CASES_SEEDS"); hunt != "" {
		_, err := fmt.Sscanf(hunt, "%d-%d", &first, &last)
		require.NoError(t, err)
	}
	ahead := 0
	for seed := first; seed <= last; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			text := randomSums(seed)
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(text)
				}
			})
			c := dialects.NewContext()
			module, err := ir.Parse(c, "k.mlir", []byte(text))
			require.NoError(t, err)
			require.NoError(t, ir.Verify(c, module))
			kernel := ir.LookupSymbol(module, "k")
			if strings.Contains(lowerCopy(t, c, module, kernel, ".look", general).String(), "ptx.cp_async") {
				ahead++
			}
			emulateWithin(t, c, module, kernel, general, allowance{tolerance, true})
		})
	}
	require.Greater(t, 4*ahead, int(last-first), "few loops ask ahead")
}
