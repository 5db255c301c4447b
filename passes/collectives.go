package passes

import (
	"blutrain/dialects/dtms"
	"blutrain/ir"
	"blutrain/passes/bucket"
	"blutrain/passes/overlap"
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
	return shard.Run(s.Ctx, op, dtms.Mesh{DP: o.DP, CP: o.CP, Zero: o.Zero, Context: o.Context}, shard.Watch{Visit: s.Visit, Remark: s.Remark})
}

// DeferOptions are the options of the pass defer.
type DeferOptions struct {
	Bucket    Bytes   `help:"bytes of tensors that one call communicates at most; to begin one takes as long as to send half of them"`
	Intensity float64 `help:"floating-point operations of products that take as long as to send a byte; 0: nothing is put off"`
}

// deferProducts puts off what the last sum over ranks doesn't depend on.
func deferProducts(s *State, op *ir.Op, o DeferOptions) error {
	if op.Name() != "builtin.module" {
		return op.Errorf("defer works on a module, whose mesh it needs to know")
	}
	if o.Intensity < 0 {
		return op.Errorf("defer: an intensity of %g: expected floating-point operations for a byte, or 0", o.Intensity)
	}
	mesh, sharded, err := dtms.MeshOf(op)
	if err != nil || !sharded || o.Intensity == 0 {
		return err
	}
	overlap.Defer(op, mesh, overlap.Costs{Bucket: int64(o.Bucket), Intensity: o.Intensity}, s.Visit)
	return nil
}

// BucketOptions are the options of the pass bucket.
type BucketOptions struct {
	Size Bytes `help:"bytes of tensors that one call communicates at most, unless it is a single tensor"`
}

// bucketCollectives puts collectives together.
func bucketCollectives(s *State, op *ir.Op, o BucketOptions) error {
	if op.Name() != "builtin.module" {
		return op.Errorf("bucket works on a module")
	}
	bucket.Run(s.Ctx, op, int64(o.Size), s.Visit)
	return nil
}

// overlapCollectives splits collectives into starts and waits.
func overlapCollectives(s *State, op *ir.Op) error {
	if op.Name() != "builtin.module" {
		return op.Errorf("overlap works on a module")
	}
	overlap.Run(s.Ctx, op, s.Visit)
	return nil
}
