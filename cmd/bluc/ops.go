package main

import (
	"fmt"

	"blutrain/dialects"
	"blutrain/internal/near"
	"blutrain/ir"
)

type opsCmd struct {
	Names []string `arg:"" optional:"" help:"Operations (blu.gelu, or gelu of any dialect) or dialects to describe; all are listed without."`
}

// Run implements the command.
func (c *opsCmd) Run(s *streams) error {
	if len(c.Names) == 0 {
		for _, d := range dialects.All() {
			listDialect(s, d)
		}
		return nil
	}
	ctx := dialects.NewContext()
	for _, n := range c.Names {
		if d := ctx.Dialect(n); d != nil {
			listDialect(s, d)
		} else if def := ctx.LookupOp(n); def != nil {
			describeOp(s, def)
		} else if defs := opsCalled(n); len(defs) > 0 {
			for _, def := range defs {
				describeOp(s, def)
			}
		} else {
			return usageError{fmt.Sprintf("no operation or dialect %s%s", n, near.Suggest(n, opNames()))}
		}
	}
	return nil
}

// opsCalled is the operations of a name in whatever dialect.
func opsCalled(name string) (defs []*ir.OpDef) {
	for _, d := range dialects.All() {
		for _, def := range d.Ops {
			if def.Name == name {
				defs = append(defs, def)
			}
		}
	}
	return defs
}

func opNames() []string {
	var names []string
	for _, d := range dialects.All() {
		names = append(names, d.Name)
		for _, def := range d.Ops {
			names = append(names, def.FullName(), def.Name)
		}
	}
	return names
}

func listDialect(s *streams, d *ir.Dialect) {
	fmt.Fprintf(s.out, "%s: %s\n", d.Name, d.Summary)
	for _, def := range d.Ops {
		fmt.Fprintf(s.out, "  %-24s %s\n", def.FullName(), def.Summary)
	}
}

func describeOp(s *streams, def *ir.OpDef) {
	fmt.Fprintf(s.out, "%s: %s\n\n%s\n", def.FullName(), def.Summary, def.Description)
	for _, d := range def.Operands {
		describePart(s, "operand", d.Name, d.Type.Doc, d.Doc)
	}
	for _, d := range def.Attrs {
		kind := d.Kind.String()
		switch {
		case d.Default != nil:
			kind += fmt.Sprintf(", %v by default", d.Default)
		case d.Optional:
			kind += ", optional"
		}
		describePart(s, "attribute", d.Name, kind, d.Doc)
	}
	for _, d := range def.Results {
		describePart(s, "result", d.Name, d.Type.Doc, d.Doc)
	}
	for _, d := range def.Regions {
		describePart(s, "region", d.Name, "", d.Doc)
	}
}

func describePart(s *streams, part, name, kind, doc string) {
	if doc != "" && kind != "" {
		kind += ": "
	}
	fmt.Fprintf(s.out, "  %-9s %-14s %s%s\n", part, name, kind, doc)
}
