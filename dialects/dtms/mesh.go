package dtms

import (
	"fmt"
	"slices"

	"blutrain/ir"
)

// MaxRanks is how many ranks a mesh may have.
const MaxRanks = 1 << 16

// MeshAttr is the attribute of a module that has been made for a mesh.
const MeshAttr = "blu.mesh"

// RankAttrs are the names of run-time scalars, i32 of rank 0, that a program fills in itself: the place of its rank in
// each group.
const (
	DPRank    = "dp_rank"
	CPRank    = "cp_rank"
	WorldRank = "world_rank"
)

// IsRankScalar reports whether a run-time scalar is the place of a rank, which callers don't give.
func IsRankScalar(name string) bool { return name == DPRank || name == CPRank || name == WorldRank }

// Contexts lists the ways to share attention between the ranks of a sequence; the first is the default.
var Contexts = []string{"ring", "ulysses", "gather"}

// Mesh is how a program is shared between ranks. The rank with place d among dp and place c among cp is number d*CP + c.
type Mesh struct {
	DP      int    // ranks that share the batch; 0: any number, known at run time
	CP      int    // ranks that share a sequence, at least 1
	Zero    int    // 1: gradients and optimizer state are sharded over all ranks
	Context string // how attention is shared by the ranks of a sequence, one of Contexts; "" without them
}

// Check says what is wrong with a mesh.
func (m Mesh) Check() error {
	switch {
	case m.DP < 0 || m.DP > MaxRanks || m.CP < 1 || m.CP > MaxRanks || max(m.DP, 1)*m.CP > MaxRanks:
		return fmt.Errorf("mesh of dp=%d, cp=%d ranks: expected 1 to %d in all", m.DP, m.CP, MaxRanks)
	case m.Zero != 0 && m.Zero != 1:
		return fmt.Errorf("zero=%d: expected 0 (states on every rank) or 1 (gradients and optimizer state sharded)", m.Zero)
	case m.Zero == 1 && m.DP == 0:
		return fmt.Errorf("zero=1 cuts states into one shard a rank, so the number of ranks must be known: say dp=N in the mesh")
	case m.CP > 1 && !slices.Contains(Contexts, m.Context):
		return fmt.Errorf("context %q: expected ring, ulysses or gather", m.Context)
	}
	return nil
}

// Ranks is the number of ranks of a group, 0 where that is known at run time only.
func (m Mesh) Ranks(group string) int {
	switch group {
	case DP:
		return m.DP
	case CP:
		return m.CP
	}
	return m.DP * m.CP
}

// Attr is the mesh as MeshAttr holds it.
func (m Mesh) Attr(c *ir.Context) *ir.DictAttr {
	return c.Dict(
		ir.NamedAttr{Name: "context", Value: c.String(m.Context)},
		ir.NamedAttr{Name: "cp", Value: c.Int64(int64(m.CP))},
		ir.NamedAttr{Name: "dp", Value: c.Int64(int64(m.DP))},
		ir.NamedAttr{Name: "zero", Value: c.Int64(int64(m.Zero))},
	)
}

// MeshOf is the mesh that a module has been made for; ok is false for a module of one rank.
func MeshOf(module *ir.Op) (m Mesh, ok bool, err error) {
	a := module.Attr(MeshAttr)
	if a == nil {
		return Mesh{DP: 1, CP: 1}, false, nil
	}
	d, isDict := a.(*ir.DictAttr)
	if !isDict {
		return m, false, module.Errorf("%s is %s: expected a dictionary", MeshAttr, a)
	}
	at := ir.Attrs(d.Entries)
	for _, n := range []struct {
		name string
		to   *int
	}{{"dp", &m.DP}, {"cp", &m.CP}, {"zero", &m.Zero}} {
		v, given := at.Int(n.name)
		if !given || v < 0 || v > MaxRanks {
			return m, false, module.Errorf("%s: expected an integer %s", MeshAttr, n.name)
		}
		*n.to = int(v)
	}
	m.Context = at.Str("context")
	if err := m.Check(); err != nil {
		return m, false, module.Errorf("%s: %v", MeshAttr, err)
	}
	return m, true, nil
}
