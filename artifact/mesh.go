package artifact

import (
	"errors"
	"fmt"
	"slices"

	"blutrain/formats"
)

// Mesh is how the ranks of a job are arranged: DP rows of CP ranks each. The rank in the job is dp index * CP + cp index.
type Mesh struct {
	DP      int    `json:"dp"`                // data-parallel ranks; 0: any number, which is known when the program starts
	CP      int    `json:"cp"`                // ranks that share a sequence, at least 1
	Zero    int    `json:"zero,omitempty"`    // 1: gradients and optimizer state are sharded over all ranks
	Context string `json:"context,omitempty"` // how a sequence is shared: ring, ulysses, gather
}

// The groups of ranks that a collective runs over and a state is sharded over.
const (
	World = "world" // all ranks
	DP    = "dp"    // those with this rank's cp index
	CP    = "cp"    // those with this rank's dp index
)

// Groups lists them.
func Groups() []string { return []string{World, DP, CP} }

// The scalars that tell a program its place in the mesh. The program sets them itself, and no caller does.
const (
	DPRank    = "dp_rank"
	CPRank    = "cp_rank"
	WorldRank = "world_rank"
)

// IsMeshScalar reports whether a scalar is one of those.
func (m *Manifest) IsMeshScalar(name string) bool {
	return m.Mesh != nil && (name == DPRank || name == CPRank || name == WorldRank)
}

// Ranks is the number of ranks of a group, 0 where it is known only when the program starts. Without a mesh every group is one rank.
func (m *Mesh) Ranks(group string) int {
	switch {
	case m == nil:
		return 1
	case group == CP:
		return m.CP
	case group == DP:
		return m.DP
	}
	return m.DP * m.CP
}

// Shard says that a state is one rank's piece of a larger tensor: of its elements in row-major order, padded with zeros to a multiple
// of the ranks, the ranks of the group have a piece of equal length each, in their order.
type Shard struct {
	Group string  `json:"group"` // world, dp, cp
	Ranks int     `json:"ranks"`
	Shape []int64 `json:"shape"` // of the whole tensor
}

// Piece is the number of elements of a rank's piece.
func (s *Shard) Piece() int64 {
	n := s.Elements()
	return (n + int64(s.Ranks) - 1) / int64(s.Ranks)
}

// Elements is the number of elements of the whole tensor.
func (s *Shard) Elements() int64 {
	n := int64(1)
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// Collective is one communication call of a function, of one or more tensors.
type Collective struct {
	Op       string        `json:"op"`    // all_reduce, reduce_scatter, all_gather, all_to_all, permute
	Group    string        `json:"group"` // world, dp, cp
	DType    formats.DType `json:"dtype"`
	Elements int64         `json:"elements"`             // that a rank gives, of all its tensors
	Sent     int64         `json:"sent_bytes,omitempty"` // by a rank to others; 0 where the group's size is known only when the program starts
}

// CollectiveOps lists what a collective can be.
func CollectiveOps() []string {
	return []string{"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "permute"}
}

// mostRanks bounds the ranks of a mesh, so that products of sizes stay small.
const mostRanks = 1 << 20

func (m *Manifest) checkMesh() error {
	mesh := m.Mesh
	switch {
	case mesh == nil:
		return nil
	case mesh.DP < 0 || mesh.DP > mostRanks || mesh.CP < 1 || mesh.CP > mostRanks || mesh.DP*mesh.CP > mostRanks:
		return fmt.Errorf("dp = %d, cp = %d: dp must not be negative, cp at least 1, and %d ranks are the most", mesh.DP, mesh.CP, mostRanks)
	case mesh.Zero != 0 && mesh.Zero != 1:
		return fmt.Errorf("zero is %d, 0 or 1 expected", mesh.Zero)
	case mesh.Zero == 1 && mesh.DP == 0:
		return errors.New("zero is 1, which needs the number of data-parallel ranks")
	case !slices.Contains([]string{"", "ring", "ulysses", "gather"}, mesh.Context):
		return fmt.Errorf("context is %q", clip(mesh.Context))
	}
	return nil
}

// checkShard holds a state that is a piece to the tensor it is a piece of.
func (m *Manifest) checkShard(s State) error {
	if s.Shard == nil {
		return nil
	}
	if err := m.checkGroup(s.Shard.Group); err != nil {
		return err
	}
	if want := m.Mesh.Ranks(s.Shard.Group); s.Shard.Ranks < 1 || s.Shard.Ranks != want {
		return fmt.Errorf("it is sharded over %d ranks, group %s has %d", s.Shard.Ranks, s.Shard.Group, want)
	}
	if _, err := formats.ByteSize(s.DType, s.Shard.Shape); err != nil {
		return fmt.Errorf("the whole tensor: %w", err)
	}
	if want := []int64{s.Shard.Piece()}; !slices.Equal(s.Shape, want) {
		return fmt.Errorf("its shape is %v, a piece of %v on %d ranks is %v", s.Shape, s.Shard.Shape, s.Shard.Ranks, want)
	}
	return nil
}

func (m *Manifest) checkCollective(c Collective) error {
	if err := m.checkGroup(c.Group); err != nil {
		return err
	}
	if !slices.Contains(CollectiveOps(), c.Op) {
		return fmt.Errorf("there is no %q", clip(c.Op))
	}
	if _, err := formats.ByteSize(c.DType, []int64{c.Elements}); err != nil {
		return err
	}
	if c.Sent < 0 {
		return fmt.Errorf("it sends %d bytes", c.Sent)
	}
	return nil
}

func (m *Manifest) checkGroup(group string) error {
	if m.Mesh == nil {
		return errors.New("the manifest has no mesh")
	}
	if !slices.Contains(Groups(), group) {
		return fmt.Errorf("there is no group %q", clip(group))
	}
	return nil
}
