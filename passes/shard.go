package passes

import (
	"blutrain/dialects/dtms"
	"blutrain/ir"
	"blutrain/passes/shard"
)

// ShardOptions are the options of the pass shard: the mesh, as dtms.Mesh describes it.
type ShardOptions struct {
	DP      int    `help:"ranks that share the batch; 0: any number, known at run time"`
	CP      int    `help:"ranks that share a sequence"`
	Zero    int    `help:"1: gradients and optimizer state are sharded over all ranks"`
	Context string `help:"how attention is shared by the ranks of a sequence" enum:"ring,ulysses,gather"`
}

// shardProgram makes the functions of training into those of one rank of many.
func shardProgram(s *State, op *ir.Op, o ShardOptions) error {
	if op.Name() != "builtin.module" {
		return op.Errorf("shard works on a module, since storage and functions change together")
	}
	return shard.Run(s.Ctx, op, dtms.Mesh{DP: o.DP, CP: o.CP, Zero: o.Zero, Context: o.Context}, s.Visit)
}
