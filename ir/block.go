package ir

import (
	"iter"
	"slices"
)

// Region is a list of blocks that belongs to an operation.
type Region struct {
	parent *Op
	blocks []*Block
}

// Parent is the operation the region belongs to.
func (r *Region) Parent() *Op { return r.parent }

// Blocks is the region's blocks; not to be changed by the caller.
func (r *Region) Blocks() []*Block { return r.blocks }

// First is the entry block, or nil.
func (r *Region) First() *Block {
	if len(r.blocks) == 0 {
		return nil
	}
	return r.blocks[0]
}

// AddBlock appends a block with arguments of the given types.
func (r *Region) AddBlock(args ...Type) *Block {
	b := &Block{region: r}
	for _, t := range args {
		b.AddArg(t, nil)
	}
	r.blocks = append(r.blocks, b)
	return b
}

// TakeBlocks moves all blocks of another region to the end of r.
func (r *Region) TakeBlocks(from *Region) {
	for _, b := range from.blocks {
		b.region = r
	}
	r.blocks = append(r.blocks, from.blocks...)
	from.blocks = nil
}

func (r *Region) cloneInto(c *Context, to *Region, mapping map[*Value]*Value) {
	blocks := map[*Block]*Block{}
	for _, b := range r.blocks {
		nb := to.AddBlock()
		blocks[b] = nb
		for i, a := range b.args {
			mapping[a] = nb.AddArg(a.typ, b.argLocs[i])
		}
	}
	for _, b := range r.blocks {
		for op := range b.Ops() {
			n := op.Clone(c, mapping)
			if n.nested != nil {
				for i, s := range n.nested.successors {
					n.nested.successors[i] = blocks[s]
				}
			}
			blocks[b].Append(n)
		}
	}
}

// Block is a list of operations with arguments.
type Block struct {
	region      *Region
	args        []*Value
	argLocs     []*Location
	first, last *Op
	ordered     bool
	num         int32 // what it prints as, see numbering
}

// Region is the region the block is in.
func (b *Block) Region() *Region { return b.region }

// ParentOp is the operation whose region holds the block, or nil.
func (b *Block) ParentOp() *Op {
	if b.region == nil {
		return nil
	}
	return b.region.parent
}

// Args is the block's arguments; not to be changed by the caller.
func (b *Block) Args() []*Value { return b.args }

// Arg is the i-th argument.
func (b *Block) Arg(i int) *Value { return b.args[i] }

// AddArg appends an argument; loc may be nil.
func (b *Block) AddArg(t Type, loc *Location) *Value {
	return b.InsertArg(len(b.args), t, loc)
}

// InsertArg inserts an argument at place i; loc may be nil.
func (b *Block) InsertArg(i int, t Type, loc *Location) *Value {
	if loc == nil {
		loc = unknownLoc
	}
	v := &Value{typ: t, block: b}
	b.args = slices.Insert(b.args, i, v)
	b.argLocs = slices.Insert(b.argLocs, i, loc)
	b.renumberArgs()
	return v
}

// EraseArg removes the i-th argument, which must be unused.
func (b *Block) EraseArg(i int) {
	if !b.args[i].Unused() {
		panic("ir: erasing a block argument that is still used")
	}
	b.args = slices.Delete(b.args, i, i+1)
	b.argLocs = slices.Delete(b.argLocs, i, i+1)
	b.renumberArgs()
}

func (b *Block) renumberArgs() {
	for i, v := range b.args {
		v.index = int32(i)
	}
}

// First is the first operation, or nil.
func (b *Block) First() *Op { return b.first }

// Last is the last operation, or nil.
func (b *Block) Last() *Op { return b.last }

// Terminator is the last operation when it is a terminator, or nil.
func (b *Block) Terminator() *Op {
	if b.last != nil && b.last.Has(Terminator) {
		return b.last
	}
	return nil
}

// Ops iterates over the operations in order. The current operation may be erased or moved while iterating.
func (b *Block) Ops() iter.Seq[*Op] {
	return func(yield func(*Op) bool) {
		for op := b.first; op != nil; {
			next := op.next
			if !yield(op) {
				return
			}
			op = next
		}
	}
}

// OpsReversed iterates from last to first, with the same freedom as Ops.
func (b *Block) OpsReversed() iter.Seq[*Op] {
	return func(yield func(*Op) bool) {
		for op := b.last; op != nil; {
			prev := op.prev
			if !yield(op) {
				return
			}
			op = prev
		}
	}
}

// Append links a detached operation at the end.
func (b *Block) Append(op *Op) { b.insert(op, nil) }

// insert links op before the given operation of b, or at the end when it is nil.
func (b *Block) insert(op, before *Op) {
	if op.block != nil {
		panic("ir: inserting an operation that is already in a block")
	}
	op.block = b
	op.next = before
	if before == nil {
		op.prev = b.last
		b.last = op
	} else {
		op.prev = before.prev
		before.prev = op
	}
	if op.prev == nil {
		b.first = op
	} else {
		op.prev.next = op
	}
	// An operation appended at the end keeps a valid numbering valid.
	if before != nil {
		b.ordered = false
	} else if b.ordered && op.prev != nil {
		op.order = op.prev.order + 1
	} else {
		b.ordered = op.prev == nil
		op.order = 0
	}
}

// number gives the operations ascending order numbers unless they have them.
func (b *Block) number() {
	if b.ordered {
		return
	}
	n := int32(0)
	for op := b.first; op != nil; op = op.next {
		op.order = n
		n++
	}
	b.ordered = true
}
