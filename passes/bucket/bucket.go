// Package bucket puts collectives together, so that the time to begin a call and the latency of the network are paid once
// for many tensors. The order is that in which the tensors are ready, which for gradients is from the last layer to the
// first, and buckets are bounded, so that the first can be under way while the rest is computed (Li et al., PyTorch
// Distributed: Experiences on Accelerating Data Parallel Training, 2020).
package bucket

import (
	"slices"

	"blutrain/dialects/dtms"
	"blutrain/dialects/fn"
	"blutrain/ir"
	"blutrain/passes/internal/place"
)

// Run puts together the sums and gathers of every function, in buckets of no more than size bytes; what is larger by itself is
// alone. Nothing is put off that is needed before the last of its bucket is ready.
func Run(c *ir.Context, module *ir.Op, size int64, visit func(*ir.Op)) {
	for op := range module.Body().Ops() {
		if op.Is(fn.Func) {
			for _, b := range op.Region(0).Blocks() {
				block(c, b, size, visit)
			}
		}
	}
}

// kind is what members of a bucket have in common.
type kind struct {
	def   *ir.OpDef
	group string
	ranks int64
	elem  ir.Type
}

func kindOf(op *ir.Op) kind {
	c := dtms.CallOf(op)
	return kind{op.Def(), c.Group, c.Ranks, c.Elem}
}

// merges reports whether an operation may become part of a bucket. The others are steps of a chain, and wait for each other.
func merges(op *ir.Op) bool {
	return op.Is(dtms.AllReduce) || op.Is(dtms.ReduceScatter) || op.Is(dtms.AllGather)
}

// bytes is the size of what an operation sums up or puts together.
func bytes(op *ir.Op) int64 {
	c := dtms.CallOf(op)
	if op.Is(dtms.AllGather) {
		return c.Bytes() * c.Ranks
	}
	return c.Bytes()
}

// block does one block.
func block(c *ir.Context, b *ir.Block, size int64, visit func(*ir.Op)) {
	var ops []*ir.Op
	for op := range b.Ops() {
		if merges(op) {
			ops = append(ops, op)
		}
	}
	for _, op := range ops {
		visit(op)
		place.Prepare(op)
		place.After(op, place.Ready(op))
	}
	slices.SortStableFunc(ops, func(a, b *ir.Op) int {
		if a.IsBefore(b) {
			return -1
		}
		return 1
	})
	open, left := map[kind]*ir.Op{}, later(ops, size)
	for _, op := range ops {
		visit(op)
		if alone(op, size) {
			continue // before the bucket that is open, if more comes into it
		}
		k := kindOf(op)
		into := open[k]
		if into == nil || bytes(into)+bytes(op) > limit(op, size, left[op]) || !joins(into, op) {
			open[k] = op
			continue
		}
		open[k] = join(c, into, op)
	}
}

// alone reports whether an operation is larger than any bucket.
func alone(op *ir.Op, size int64) bool { return bytes(op) > most*size }

// later is, for each operation, the bytes of its kind that come after it, up to the next that goes alone, which is not to wait for a large
// bucket. The last of a kind doesn't count: nothing is left to be done behind it, however small the bucket before it is.
func later(ops []*ir.Op, size int64) map[*ir.Op]int64 {
	left, sum := map[*ir.Op]int64{}, map[kind]int64{}
	for _, op := range slices.Backward(ops) {
		k := kindOf(op)
		after, more := sum[k]
		left[op] = after
		switch {
		case !more || alone(op, size):
			sum[k] = 0
		default:
			sum[k] = after + bytes(op)
		}
	}
	return left
}

// most is how many times the size early buckets may be.
const most = 4

// limit is how large the bucket that an operation joins may become when left bytes come after it. Sums that have much to come after them
// are put together in larger buckets, for each call takes multiprocessors from the kernels beside it; towards the end buckets
// shrink to the size that was asked for, as what is under way then is waited for. What is gathered into storage, as parameters are, takes
// longer than all that goes on beside it, and larger calls are faster. Shards and other gathered values take memory of their own until
// they are used, so theirs don't grow.
func limit(op *ir.Op, size, left int64) int64 {
	switch {
	case op.Is(dtms.AllReduce):
		return min(max(left, size), most*size)
	case op.Is(dtms.AllGather) && stored(op):
		return most * size
	}
	return size
}

// stored reports whether the results of an operation are only brought into storage.
func stored(op *ir.Op) bool {
	need, _ := place.FirstNeed(op)
	return need == op.Block().Last()
}

// joins reports whether a bucket is needed only after op, which comes after it and may depend on it.
func joins(bucket, op *ir.Op) bool {
	need, settle := place.FirstNeed(bucket)
	if need == op || need.IsBefore(op) {
		return false
	}
	for _, v := range op.Operands() {
		if slices.Contains(settle, v.Op()) {
			return false
		}
	}
	return true
}

// join adds op to a bucket, at op's place.
func join(c *ir.Context, bucket, op *ir.Op) *ir.Op {
	_, settle := place.FirstNeed(bucket)
	b := ir.NewBuilder(c, nil).Before(op).At(c.Fused(bucket.Loc(), op.Loc()))
	all := b.Create(op.Def(), append(bucket.Operands(), op.Operands()...), op.Attrs()...)
	place.Settle(settle, op)
	n := bucket.NumResults()
	bucket.ReplaceWith(all.Results()[:n]...)
	op.ReplaceWith(all.Results()[n:]...)
	return all
}
