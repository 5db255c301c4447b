package ptx

import (
	"fmt"

	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// copyThreads is the threads of a block that copies, an element each.
const copyThreads = 256

// copies makes launches of kernels of copies between places in memory.
func copies(c *ir.Context, module *ir.Op, target string) error {
	made := map[string]string{}
	for f := range module.Body().Ops() {
		if !f.Is(exec.Func) {
			continue
		}
		for op := range f.Body().Ops() {
			if !op.Is(exec.Copy) {
				continue
			}
			src, dst := op.Operand(0).Type().(*ir.MemRefType), op.Operand(1).Type().(*ir.MemRefType)
			key := src.String() + dst.String()
			if made[key] == "" {
				made[key] = freshName(module, len(made))
				if err := copyKernel(ir.NewBuilder(c, nil).Before(f).At(op.Loc()), made[key], target, src, dst); err != nil {
					return op.Errorf("%v", err)
				}
			}
			ir.NewBuilder(c, nil).Before(op).At(op.Loc()).CreateState(exec.Launch, ir.OpState{
				Operands: op.Operands(), Attrs: []ir.NamedAttr{{Name: "kernel", Value: c.Symbol(made[key])}}})
			op.Erase()
		}
	}
	return nil
}

func freshName(module *ir.Op, n int) string {
	for {
		n++
		if name := fmt.Sprintf("copy_%d", n); ir.LookupSymbol(module, name) == nil {
			return name
		}
	}
}

// copyKernel copies element by element.
func copyKernel(at *ir.Builder, name, target string, src, dst *ir.MemRefType) error {
	c := at.Ctx
	n := ir.NumElements(src.Shape)
	from, to := layoutOf(src), layoutOf(dst)
	if n >= 1<<31 {
		return fmt.Errorf("a copy of %d elements is too large for the target's 32-bit indices", n)
	}
	b := ptx.NewKernel(at, ptx.Config{Name: name, Target: target, Threads: copyThreads}, c.I64(), c.I64())
	l := &lowering{c: c, b: b, known: map[*ir.Block]map[any]*ir.Value{}}
	l.trow = b.Special("tid.x")
	at32 := b.Add(b.MulI(b.Special("ctaid.x"), copyThreads), l.trow)
	when := b.Compare("lt", at32, b.I32(int(n)))
	args := b.Kernel.Body().Args()
	read, write := args[0], args[1]
	rest := at32
	for d := len(src.Shape) - 1; d >= 0; d-- {
		extent := int(src.Shape[d])
		i := b.RemI(rest, max(extent, 1))
		rest = b.DivI(rest, max(extent, 1))
		if from[d] >= 1<<31 || to[d] >= 1<<31 {
			return fmt.Errorf("strides of dimension %d are too large for the target's 32-bit indices", d)
		}
		read, write = b.MulWide(i, int(from[d]), read), b.MulWide(i, int(to[d]), write)
	}
	l.write(write, 0, l.read(read, 0, src.Elem, 1, when), when)
	b.CreateState(ptx.Return, ir.OpState{})
	b.Kernel.SetAttr(RefsAttr, c.Array(c.TypeAttr(src), c.TypeAttr(dst)))
	b.Kernel.SetAttr(OutsAttr, c.Int64(1))
	b.Kernel.SetAttr(ReferenceAttr, c.String(""))
	b.Kernel.SetAttr(BlocksAttr, c.Int64((n+copyThreads-1)/copyThreads))
	return nil
}
