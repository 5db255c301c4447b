package gpu

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"blutrain/dialects/exec"
	"blutrain/driver"
	"blutrain/ir"
	lowerptx "blutrain/lower/ptx"
)

// Planes that a launch finds in scratch memory are of what its operand holds by then: nothing was written to the operand since they were made,
// nor to their place. The programs are followed launch by launch, by their kernels' parameters alone. Fewer matrices are read for planes than
// products have operands, in the scratch memory that the launch which needs most needs anyway.
func TestPlanesAreOfTheirOperands(t *testing.T) {
	for _, c := range []struct {
		file            string
		set             map[string]float64
		operands, split int // of products in planes in accumulate; matrices that are read for planes
		scratch         int64
	}{
		{"gpt2.blu", map[string]float64{"L": 2, "B": 16}, 96, 80, 656781312},
		{"llama.blu", map[string]float64{"L": 2, "B": 4}, 96, 68, 656781312},
	} {
		t.Run(fmt.Sprint(c.file, c.set), func(t *testing.T) {
			src, err := os.ReadFile(filepath.Join("..", "..", "examples", c.file))
			require.NoError(t, err)
			r, err := driver.Compile(c.file, src, driver.Options{Target: "cuda", Precision: "fp32", Set: c.set, CompileTo: "target"})
			require.NoError(t, err)
			w := &follower{t: t, module: r.Module}
			for f := range r.Module.Body().Ops() {
				if !f.Is(exec.Func) {
					continue
				}
				w.sets = nil
				before := *w
				for op := range f.Body().Ops() {
					if op.Is(exec.Launch) {
						w.launch(op)
					}
				}
				if ir.SymName(f) == "accumulate" {
					assert.Equal(t, c.operands, w.operands-before.operands, "operands")
					assert.Equal(t, c.split, w.split-before.split, "matrices read")
				}
			}
			assert.Equal(t, c.scratch, w.scratch, "scratch memory")
		})
	}
}

// follower knows what is where in scratch memory.
type follower struct {
	t        *testing.T
	module   *ir.Op
	sets     []madeSet
	operands int // of products in planes
	split    int // matrices that were read for planes
	scratch  int64
}

// madeSet is planes that were made: where they are, and of what.
type madeSet struct {
	places [4]int64 // two planes, scales, flags
	of     region
}

// region is a piece of memory.
type region struct {
	space, name string
	from, to    int64
}

func regionOf(v *ir.Value) region {
	a, mt := v.Op().Attrs(), v.Type().(*ir.MemRefType)
	return region{a.Str("space"), a.Str("name"), a.IntOr("offset", 0), a.IntOr("offset", 0) + bytesOf(mt)}
}

func (r region) meets(q region) bool {
	return r.space == q.space && r.name == q.name && r.from < q.to && q.from < r.to
}

// forget drops sets that a place in scratch memory, or an array, was written over of.
func (w *follower) forget(written func(s madeSet) bool) { w.sets = slices.DeleteFunc(w.sets, written) }

func (w *follower) overwrite(from, to int64) {
	w.forget(func(s madeSet) bool { return s.places[0] < to && from < s.places[3]+1024 })
}

// launch follows the kernels of a launch.
func (w *follower) launch(op *ir.Op) {
	a := op.Attrs()
	var kernels []*ir.Op
	for name := a.Sym("kernel"); name != ""; {
		k := ir.LookupSymbol(w.module, name)
		require.NotNil(w.t, k, name)
		kernels, name = append(kernels, k), k.Attrs().Sym(lowerptx.ThenAttr)
	}
	params := make([][]exec.Param, len(kernels))
	product := -1
	for i, k := range kernels {
		var err error
		params[i], err = exec.Params(k, lowerptx.ParamsAttr)
		require.NoError(w.t, err)
		if p := params[i]; len(p) > 3 && p[3].Map != nil && p[3].Map.Elem == "f16" {
			product = i
		}
	}
	scratch := int64(0)
	for _, k := range kernels {
		scratch = max(scratch, k.Attrs().IntOr(lowerptx.ScratchAttr, 0), k.Attrs().IntOr(lowerptx.WorkspaceAttr, 0)*k.Attrs().IntOr(lowerptx.BlocksAttr, 1))
	}
	w.scratch = max(w.scratch, scratch)
	switch {
	case product == 1:
		w.makes(op, params[0])
		fallthrough
	case product == 0:
		w.product(op, params[product])
	default:
		w.overwrite(0, scratch)
	}
	for _, v := range op.Operands()[op.NumOperands()-int(kernels[0].Attrs().IntOr(lowerptx.OutsAttr, 0)):] {
		w.forget(func(s madeSet) bool { return s.of.meets(regionOf(v)) })
	}
}

// makes notes the sets that the kernel with these parameters makes: of each matrix itself, then four for each set.
func (w *follower) makes(op *ir.Op, params []exec.Param) {
	var of region
	for len(params) > 0 {
		if params[0].Ref >= 0 {
			of, params = regionOf(op.Operand(params[0].Ref)), params[1:]
			w.split++
			continue
		}
		s := madeSet{of: of}
		for i := range s.places {
			require.Equal(w.t, -1, params[i].Ref)
			s.places[i] = params[i].Offset
		}
		params = params[4:]
		w.overwrite(s.places[0], s.places[3]+1024)
		w.sets = append(w.sets, s)
	}
}

// product looks for the sets that a product's parameters name: planes of A and B, both's scales, what the epilogue has fetched, both
// themselves, and last their flags.
func (w *follower) product(op *ir.Op, params []exec.Param) {
	flags, rest := params[len(params)-2:], params[6:len(params)-2]
	for rest[0].Map != nil { // what the epilogue has fetched
		rest = rest[1:]
	}
	for side := range 2 {
		p := [4]exec.Param{params[2*side], params[2*side+1], params[4+side], flags[side]}
		s := madeSet{of: regionOf(op.Operand(rest[side].Ref))}
		for i := range p {
			require.Equal(w.t, -1, p[i].Ref)
			s.places[i] = p[i].Offset
		}
		require.Contains(w.t, w.sets, s, "%s: operand %d", op.Attrs().Sym("kernel"), side)
		w.operands++
	}
	for _, p := range rest[2:] { // parts of K; how long they are is not told
		if p.Ref < 0 {
			w.overwrite(p.Offset, p.Offset+1)
		}
	}
}
