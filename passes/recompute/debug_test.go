package recompute

import (
	"fmt"
	"os"
	"testing"

	"blutrain/dialects"
	"blutrain/ir"
)

func TestDebug(t *testing.T) {
	src, err := os.ReadFile("/tmp/mm/g124.mlir")
	if err != nil {
		t.Skip()
	}
	c := dialects.NewContext()
	m, err := ir.Parse(c, "g124.mlir", src)
	if err != nil {
		t.Fatal(err)
	}
	fn := ir.LookupSymbol(m, "accumulate")
	g, _ := newGraph(fn)
	ch := newChooser(g)
	fmt.Println(ch.base, ch.ops[ch.base.at].op)
	for i, it := range ch.items {
		if i < 12 || i > len(ch.items)-10 {
			fmt.Println(i, ch.ops[it.op].op.Name(), it.gain>>20, it.cost/1e9, it.ratio(), it.cheap, it.cut, it.placed, len(it.ops))
		}
	}
	for _, s := range ch.segmentSizes() {
		items := ch.segments(s)
		x := ch.try(items)
		i := ch.seq[x.at]
		op, _ := ch.node(i)
		fmt.Println("size", s>>20, len(items), "peak", x.peak>>20, x.cost/ch.base.cost, "at", x.at, op.op.Name(), ch.isCopy(i), "of", len(ch.seq))
		order := ch.byRatio(items)
		for n := 0; n <= len(order); n += max(1, len(order)/12) {
			x := ch.try(order[:n])
			fmt.Print("  ", n, ":", x.peak>>20)
		}
		fmt.Println()
	}
}
