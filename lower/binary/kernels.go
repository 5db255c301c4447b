package binary

import (
	"blutrain/artifact"
	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// takeKernels writes each kernel for GPUs to a file of its own, and leaves its declaration in the program.
func takeKernels(c *ir.Context, module *ir.Op) (files []artifact.File, err error) {
	for op := range module.Body().Ops() {
		if !op.Is(ptx.Kernel) {
			continue
		}
		text, err := codegen.Print(op)
		if err != nil {
			return nil, err
		}
		name := ir.SymName(op)
		file := artifact.File{Name: "kernels/" + name + ".ptx", Data: text}
		files = append(files, file)
		n := ir.NewBuilder(c, nil).Before(op).CreateState(exec.Kernel, ir.OpState{Loc: op.Loc(), Attrs: []ir.NamedAttr{
			{Name: "sym_name", Value: op.Attr("sym_name")}, {Name: "file", Value: c.String(file.Name)}, {Name: "entry", Value: c.String(ptx.EntryName(op))},
			{Name: "threads", Value: op.Attr("threads")},
		}})
		for _, a := range []string{"refs", "outs", "blocks", "table", "workspace", "errors", "reference", "params", "scratch", "then"} {
			if v := op.Attr("launch." + a); v != nil {
				n.SetAttr(a, v)
			}
		}
		for _, a := range []string{"shared", "cluster"} {
			if v := op.Attr(a); v != nil {
				n.SetAttr(a, v)
			}
		}
		op.Erase()
	}
	return files, nil
}
