// Package dialects lists every dialect of the project. What an operation means is in its own dialect's package.
package dialects

import (
	"blutrain/dialects/arith"
	"blutrain/dialects/blu"
	"blutrain/dialects/builtin"
	"blutrain/dialects/dtms"
	"blutrain/dialects/exec"
	"blutrain/dialects/fn"
	"blutrain/dialects/host"
	"blutrain/dialects/mem"
	"blutrain/dialects/ptx"
	"blutrain/dialects/scf"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// All lists the dialects, from the model's to the targets', after those of MLIR that they use.
func All() []*ir.Dialect {
	return []*ir.Dialect{
		builtin.Dialect, fn.Dialect, arith.Dialect, scf.Dialect,
		blu.Dialect, dtms.Dialect, tile.Dialect, mem.Dialect, host.Dialect, exec.Dialect, ptx.Dialect,
	}
}

// NewContext makes a context with every dialect.
func NewContext() *ir.Context { return ir.NewContext(All()...) }
