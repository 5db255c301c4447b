package ir

// Dominance answers which values are there wherever an operation runs. It looks at the blocks of a region when first
// asked about it, and is valid until blocks or jumps change; operations may come and go.
type Dominance struct {
	regions map[*Region]map[*Block]*domNode
}

// domNode is a block's place in the dominator tree; blocks that can't be reached have none.
type domNode struct {
	block *Block
	idom  *domNode // nil for the entry
	order int      // in reverse postorder
}

// NewDominance makes an empty Dominance.
func NewDominance() *Dominance { return &Dominance{map[*Region]map[*Block]*domNode{}} }

// Block reports whether every way to block b leads through a, both in one region. A block dominates itself, and
// everything dominates a block that can't be reached.
func (d *Dominance) Block(a, b *Block) bool {
	if a == b {
		return true
	}
	nodes := d.of(a.region)
	na, nb := nodes[a], nodes[b]
	if nb == nil {
		return true
	}
	for na != nil && nb != nil && nb.order > na.order {
		nb = nb.idom
	}
	return na != nil && na == nb
}

// Value reports whether v has a value wherever op runs: its definition comes before op, or before an operation that
// encloses op.
func (d *Dominance) Value(v *Value, op *Op) bool {
	def := v.Block()
	if def == nil {
		return false
	}
	user := op
	for user != nil && (user.block == nil || user.block.region != def.region) {
		user = user.Parent()
	}
	switch {
	case user == nil:
		return false
	case user.block != def:
		return d.Block(def, user.block)
	case v.op == nil:
		return true
	}
	return v.op.IsBefore(user)
}

// of is the dominator tree of a region, by the algorithm of Cooper, Harvey and Kennedy, "A simple, fast dominance
// algorithm" (2001).
func (d *Dominance) of(r *Region) map[*Block]*domNode {
	if nodes, ok := d.regions[r]; ok {
		return nodes
	}
	nodes := map[*Block]*domNode{}
	d.regions[r] = nodes
	if len(r.blocks) == 0 {
		return nodes
	}
	order := reversePostorder(r.blocks[0])
	preds := map[*Block][]*domNode{}
	for i, b := range order {
		nodes[b] = &domNode{block: b, order: i}
	}
	for _, b := range order {
		for _, s := range successors(b) {
			preds[s] = append(preds[s], nodes[b])
		}
	}
	for changed := true; changed; {
		changed = false
		for _, b := range order[1:] {
			var idom *domNode
			for _, p := range preds[b] {
				if p.idom != nil || p.order == 0 {
					idom = commonDominator(p, idom)
				}
			}
			if nodes[b].idom != idom {
				nodes[b].idom, changed = idom, true
			}
		}
	}
	return nodes
}

func commonDominator(a, b *domNode) *domNode {
	if b == nil {
		return a
	}
	for a != b {
		for a.order > b.order {
			a = a.idom
		}
		for b.order > a.order {
			b = b.idom
		}
	}
	return a
}

// successors is the blocks that may run after b.
func successors(b *Block) []*Block {
	if b.last == nil {
		return nil
	}
	return b.last.Successors()
}

// reversePostorder lists the blocks that can be reached from entry, a block before those only it leads to.
func reversePostorder(entry *Block) []*Block {
	type frame struct {
		block *Block
		next  int
	}
	seen := map[*Block]bool{entry: true}
	var post []*Block
	stack := []frame{{entry, 0}}
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if s := successors(f.block); f.next < len(s) {
			b := s[f.next]
			f.next++
			if !seen[b] {
				seen[b] = true
				stack = append(stack, frame{b, 0})
			}
			continue
		}
		post = append(post, f.block)
		stack = stack[:len(stack)-1]
	}
	for i, j := 0, len(post)-1; i < j; i, j = i+1, j-1 {
		post[i], post[j] = post[j], post[i]
	}
	return post
}
