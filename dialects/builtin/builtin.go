// Package builtin is the part of MLIR's dialect of that name that every program needs: the module.
package builtin

import "blutrain/ir"

// Dialect is the table.
var Dialect = &ir.Dialect{Name: "builtin", Summary: "modules", Ops: []*ir.OpDef{Module}}

// Module holds functions and other symbols.
var Module = ir.Define("builtin", ir.OpDef{
	Name:        "module",
	Summary:     "a module: a table of functions and other symbols",
	Description: "A symbol table with one block, which ends without a terminator. Modules may be nested; a symbol is then referred to as `@module::@symbol`.",
	Attrs: []ir.AttrDef{
		{Name: "sym_name", Kind: ir.StringKind, Optional: true, Doc: "the module's name"},
		{Name: "sym_visibility", Kind: ir.StringKind, Optional: true, Doc: "private, nested or, when absent, public"},
	},
	Regions: []ir.RegionDef{{Name: "body"}},
	Traits:  ir.Symbol | ir.SymbolTable | ir.Isolated | ir.NoTerminator | ir.Properties,
})

// NewModule makes an empty module; name may be "".
func NewModule(c *ir.Context, name string, loc *ir.Location) *ir.Op {
	m := c.NewOp(Module, ir.OpState{Regions: 1, Loc: loc})
	m.Region(0).AddBlock()
	if name != "" {
		m.SetAttr("sym_name", c.String(name))
	}
	return m
}
