package gpu

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A kernel of more references than parameters can hold finds their addresses in memory.
func TestManyReferences(t *testing.T) {
	const n = 700
	var args, adds strings.Builder
	for i := range n {
		fmt.Fprintf(&args, "%%x%d: memref<f32>, ", i)
		fmt.Fprintf(&adds, "  %%a%d = tile.load %%x%d : (memref<f32>) -> !tile.block<1x1xf32>\n", i, i)
		if i > 0 {
			before := "%s" + strconv.Itoa(i-1)
			if i == 1 {
				before = "%a0"
			}
			fmt.Fprintf(&adds, "  %%s%d = tile.add %s, %%a%d : (!tile.block<1x1xf32>, !tile.block<1x1xf32>) -> !tile.block<1x1xf32>\n", i, before, i)
		}
	}
	run(t, "sum", fmt.Sprintf("tile.kernel @k attributes {grid = array<i64>, outs = 1 : i64, steps = array<i64>} (%s%%y: memref<f32>) {\n%s"+
		"  tile.store %%s%d, %%y : (!tile.block<1x1xf32>, memref<f32>) -> ()\n  tile.end\n}", args.String(), adds.String(), n-1))
}
