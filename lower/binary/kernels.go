package binary

import (
	"strings"

	"blutrain/artifact"
	codegen "blutrain/codegen/ptx"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// takeKernels writes the code of kernels for GPUs to files, those of the same code to one, and leaves their declarations in
// the program.
func takeKernels(c *ir.Context, module *ir.Op) (files []artifact.File, err error) {
	type code struct{ file, entry string }
	known := map[string]code{}
	for op := range module.Body().Ops() {
		if !op.Is(ptx.Kernel) {
			continue
		}
		text, err := codegen.Print(op)
		if err != nil {
			return nil, err
		}
		entry := ptx.EntryName(op)
		key := nameless(text, entry)
		in, ok := known[key]
		if !ok {
			in = code{"kernels/" + ir.SymName(op) + ".ptx", entry}
			known[key] = in
			files = append(files, artifact.File{Name: in.file, Data: text})
		}
		n := ir.NewBuilder(c, nil).Before(op).CreateState(exec.Kernel, ir.OpState{Loc: op.Loc(), Attrs: []ir.NamedAttr{
			{Name: "sym_name", Value: op.Attr("sym_name")}, {Name: "file", Value: c.String(in.file)}, {Name: "entry", Value: c.String(in.entry)},
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

// nameless is a kernel's text without its name and without lines that say where it comes from.
func nameless(text []byte, entry string) string {
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "//") {
			b.WriteString(strings.ReplaceAll(line, entry, "$"))
		}
	}
	return b.String()
}
