package ptx

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/blublas"
	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/ir"
	"blutrain/lower/arena"
)

const edge = 256 // of all matrices

// squares is products of square matrices, as launches say: "nt x w y" is y = x w^T and "two x w y z" z = -y beside it, and of the kernel neg, which works in no scratch memory. Numbers are places in the arena.
func squares(launches ...string) string {
	rows, columns := fmt.Sprintf("memref<%[1]dx%[1]dxf32>", edge), fmt.Sprintf("memref<%[1]dx%[1]dxf32, strided<[1, %[1]d]>>", edge)
	sides := map[string][2]string{"nt": {rows, rows}, "nn": {rows, columns}, "tn": {columns, columns}}
	block := fmt.Sprintf("!tile.block<%[1]dx%[1]dxf32>", edge)
	var text strings.Builder
	for _, layout := range []string{"nt", "nn", "tn"} {
		a, b := sides[layout][0], sides[layout][1]
		fmt.Fprintf(&text, `
tile.kernel @%[1]s attributes {grid = array<i64: %[5]d, %[5]d>, outs = 1 : i64, steps = array<i64: %[5]d, %[5]d>} (%%a: %[2]s, %%b: %[3]s, %%y: %[4]s, %%i: index, %%j: index) {
  %%x = tile.contract %%a, %%b, %%i, %%j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>, precision = "fp32"} : (%[2]s, %[3]s, index, index) -> %[6]s {}
  tile.store %%x, %%y, %%i, %%j : (%[6]s, %[4]s, index, index) -> ()
  tile.end
}`, layout, a, b, rows, edge, block)
	}
	fmt.Fprintf(&text, `
tile.kernel @two attributes {grid = array<i64: %[2]d, %[2]d>, outs = 2 : i64, steps = array<i64: %[2]d, %[2]d>} (%%a: %[1]s, %%b: %[1]s, %%y: %[1]s, %%z: %[1]s, %%i: index, %%j: index) {
  %%x = tile.contract %%a, %%b, %%i, %%j attributes {operandSegmentSizes = array<i32: 1, 1, 1, 1>, precision = "fp32"} : (%[1]s, %[1]s, index, index) -> %[3]s {}
  tile.store %%x, %%y, %%i, %%j : (%[3]s, %[1]s, index, index) -> ()
  %%n = tile.neg %%x : (%[3]s) -> %[3]s
  tile.store %%n, %%z, %%i, %%j : (%[3]s, %[1]s, index, index) -> ()
  tile.end
}`, rows, edge, block)
	fmt.Fprintf(&text, `
tile.kernel @neg attributes {grid = array<i64: %[2]d>, outs = 1 : i64, steps = array<i64: 1>} (%%x: %[1]s, %%y: %[1]s, %%i: index) {
  %%j = arith.constant {value = 0 : index} : () -> index
  %%a = tile.load %%x, %%i, %%j : (%[1]s, index, index) -> !tile.block<1x%[2]dxf32>
  %%b = tile.neg %%a : (!tile.block<1x%[2]dxf32>) -> !tile.block<1x%[2]dxf32>
  tile.store %%b, %%y, %%i, %%j : (!tile.block<1x%[2]dxf32>, %[1]s, index, index) -> ()
  tile.end
}
exec.func @f attributes {arena = 65536 : i64, mem.interface = []} {
`, rows, edge)
	for i, l := range launches {
		words := strings.Fields(l)
		types := []string{rows, rows}
		if s, ok := sides[words[0]]; ok {
			types = []string{s[0], s[1], rows}
		}
		if words[0] == "two" {
			types = []string{rows, rows, rows, rows}
		}
		var refs []string
		for k, name := range words[1:] {
			refs = append(refs, fmt.Sprintf("%%r%d_%d", i, k))
			at := fmt.Sprintf("{name = %q, offset = 0 : i64, space = \"state\"}", name)
			if n, err := strconv.Atoi(name); err == nil {
				at = fmt.Sprintf("{offset = %d : i64, space = \"arena\"}", 4*edge*edge*n)
			}
			fmt.Fprintf(&text, "  %s = exec.ref %s : () -> %s\n", refs[k], at, types[k])
		}
		fmt.Fprintf(&text, "  exec.launch %s {kernel = @%s} : (%s) -> ()\n", strings.Join(refs, ", "), words[0], strings.Join(types, ", "))
	}
	return text.String() + "  exec.end\n}\n"
}

// Planes are made by the first launch that needs them, kept until something is written to the matrix, and made along both its rows
// and its columns where it is read once for both: as much of that as fits. What is in use at one time lies apart.
func TestPlanes(t *testing.T) {
	for name, c := range map[string]struct {
		launches []string
		most     int64    // bytes of scratch memory, in sets; 0: enough
		made     []string // by each launch
	}{
		"alone":                      {[]string{"nt x w y"}, 0, []string{"x- w-"}},
		"the same input":             {[]string{"nt x w y", "nt x v z"}, 0, []string{"x- w-", "v-"}},
		"nothing to make":            {[]string{"nt x w y", "nt x w z"}, 0, []string{"x- w-", ""}},
		"with itself":                {[]string{"nt x x y", "tn x x y"}, 0, []string{"x-|", ""}},
		"a gradient":                 {[]string{"nn dy w dx", "tn dy x dw"}, 0, []string{"dy-| w|", "x|"}},
		"a gradient, no room":        {[]string{"nn dy w dx", "tn dy x dw"}, 2, []string{"dy- w|", "dy| x|"}},
		"written between":            {[]string{"nt x w y", "neg u x", "nt x w y"}, 0, []string{"x- w-", "", "x-"}},
		"written by the product":     {[]string{"nt x w x", "nt x w y"}, 0, []string{"x- w-", "x-"}},
		"something else between":     {[]string{"nt x w y", "neg u v", "nt x w y"}, 0, []string{"x- w-", "", ""}},
		"the nearer is kept":         {[]string{"nt x w y", "nt u v y", "nt u t y", "nt x s y"}, 2, []string{"x- w-", "u- v-", "t-", "x- s-"}},
		"the nearer and the farther": {[]string{"nt x w y", "nt u v y", "nt u t y", "nt x s y"}, 3, []string{"x- w-", "u- v-", "t-", "s-"}},
		"made again, then ahead":     {[]string{"nt x w y", "neg u x", "nt x w y", "tn x z y"}, 0, []string{"x- w-", "", "x-|", "z|"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sharingOf(t, c.launches...)
			line := s.timeline(ir.LookupSymbol(s.module, "f"))
			most := cmp.Or(c.most, 100) * setOf(s)
			line.keep(most)
			line.ahead(most)
			line.place()
			apart(t, line, most)
			made := make([]string, len(c.launches))
			for _, l := range line.launches {
				made[l.step] = madeBy(l)
			}
			require.Equal(t, c.made, made)
		})
	}
}

// sharingOf is the decision for those launches, yet to be taken.
func sharingOf(t *testing.T, launches ...string) *sharing {
	ctx := dialects.NewContext()
	module, err := ir.Parse(ctx, "planes.mlir", []byte(squares(launches...)))
	require.NoError(t, err)
	s := &sharing{module: module, d: blublas.DeviceFor(ptx.SM90A), room: math.MaxInt64}
	for op := range module.Body().Ops() {
		if op.Is(exec.Func) {
			break
		}
		p, err := lowerOne(ctx, op, Options{Target: ptx.SM90A, Products: "templates"}, nil)
		require.NoError(t, err)
		if p != nil {
			s.products = append(s.products, p)
		}
	}
	require.Len(t, s.products, 4)
	return s
}

// setOf is the bytes of a set of planes.
func setOf(s *sharing) int64 {
	_, bytes := s.products[0].places(s.products[0].split.Of[0], s.products[0].split.Of[0].Sets[0], s.d, 0)
	return bytes
}

// Room for a third set saves reading a gradient a second time, in every pair of products: with enough of them it is taken, if it may be.
func TestWorthMoreMemory(t *testing.T) {
	for name, c := range map[string]struct {
		pairs, room, sets int64 // room in sets; 0: no limit
		saved             int64 // matrices that are read less often
	}{
		"few":               {pairs: 12, sets: 2},
		"many":              {pairs: 24, sets: 3, saved: 24},
		"many, enough room": {pairs: 24, room: 3, sets: 3, saved: 24},
		"many, no room":     {pairs: 24, room: 2, sets: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var launches []string
			for i := range c.pairs {
				launches = append(launches, fmt.Sprintf("nn dy%[1]d w%[1]d dx", i), fmt.Sprintf("tn dy%[1]d x%[1]d dw", i))
			}
			s := sharingOf(t, launches...)
			least := s.within(0)
			s.room = cmp.Or(c.room*setOf(s), s.room)
			best := s.best()
			require.Equal(t, c.sets*setOf(s), best.scratch)
			require.Equal(t, c.saved*4*edge*edge, least.moved-best.moved)
			apart(t, best.lines[0], best.scratch)
		})
	}
}

// madeBy names the matrices that a launch makes planes of, - along rows and | along columns.
func madeBy(l *planned) string {
	var made []string
	for _, m := range l.makes(func(set *planeSet, name string) blublas.Set { return blublas.Set{Name: name, MNMajor: set.mnMajor} }) {
		side := map[string]int{"a": 0, "b": 1}[m.Name]
		text := l.op.Operand(l.product.refs[side]).Op().Attrs().Str("name")
		for _, set := range m.Sets {
			text += map[bool]string{false: "-", true: "|"}[set.MNMajor]
		}
		made = append(made, text)
	}
	return strings.Join(made, " ")
}

// apart checks that what is in use at the same step lies apart, within so many bytes.
func apart(t *testing.T, line *timeline, most int64) {
	var pieces []*arena.Piece
	for _, c := range line.all {
		for _, s := range c.sets {
			pieces = append(pieces, &s.Piece)
		}
	}
	for i, p := range pieces {
		require.LessOrEqual(t, p.Offset+p.Bytes, most)
		for _, q := range pieces[:i] {
			require.True(t, p.Last < q.First || q.Last < p.First || p.Offset+p.Bytes <= q.Offset || q.Offset+q.Bytes <= p.Offset, "%v %v", p, q)
		}
	}
	for _, l := range line.launches {
		for side, s := range l.sets {
			require.True(t, s.read().First <= l.step && l.step <= s.read().Last, "operand %d of step %d", side, l.step)
		}
	}
}
