package ir

import "fmt"

// Builder makes operations at an insertion point. The zero insertion point makes detached ones.
type Builder struct {
	Ctx      *Context
	Loc      *Location // given to operations made without one
	OnInsert func(*Op) // told of every operation put into a block, unless nil
	block    *Block
	before   *Op // nil: at the end of block
}

// NewBuilder makes a builder that appends to block, which may be nil.
func NewBuilder(c *Context, block *Block) *Builder {
	return &Builder{Ctx: c, Loc: c.unknown, block: block}
}

// AtEnd moves the insertion point to the end of block.
func (b *Builder) AtEnd(block *Block) *Builder { b.block, b.before = block, nil; return b }

// AtStart moves the insertion point to the start of block.
func (b *Builder) AtStart(block *Block) *Builder { b.block, b.before = block, block.first; return b }

// Before moves the insertion point to just before op.
func (b *Builder) Before(op *Op) *Builder { b.block, b.before = op.block, op; return b }

// After moves the insertion point to just after op.
func (b *Builder) After(op *Op) *Builder { b.block, b.before = op.block, op.next; return b }

// At sets the location of what is made from here on.
func (b *Builder) At(loc *Location) *Builder { b.Loc = loc; return b }

// Block is the block of the insertion point.
func (b *Builder) Block() *Block { return b.block }

// Insert links a detached operation at the insertion point.
func (b *Builder) Insert(op *Op) *Op {
	if b.block != nil {
		b.block.insert(op, b.before)
		if b.OnInsert != nil {
			b.OnInsert(op)
		}
	}
	return op
}

// CreateState makes an operation and inserts it.
func (b *Builder) CreateState(def *OpDef, s OpState) *Op {
	if s.Loc == nil {
		s.Loc = b.Loc
	}
	return b.Insert(b.Ctx.NewOp(def, s))
}

// TryCreate makes an operation whose result types its definition infers, or says why that can't be.
func (b *Builder) TryCreate(def *OpDef, operands []*Value, attrs ...NamedAttr) (*Op, error) {
	if def.Infer == nil {
		panic(fmt.Sprintf("ir: result types of %s can't be inferred", def.full))
	}
	results, err := def.Infer(b.Ctx, InferInput{operands, attrs})
	if err != nil {
		return nil, err
	}
	return b.CreateState(def, OpState{Operands: operands, Attrs: attrs, Results: results}), nil
}

// Create is TryCreate for callers that have checked the operands: a failure is a programming error and panics.
func (b *Builder) Create(def *OpDef, operands []*Value, attrs ...NamedAttr) *Op {
	op, err := b.TryCreate(def, operands, attrs...)
	if err != nil {
		panic(fmt.Sprintf("ir: building %s: %v", def.full, err))
	}
	return op
}
