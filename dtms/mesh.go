package dtms

import (
	"context"
	"errors"
	"fmt"
)

// Mesh is one rank's view of a job whose ranks are arranged in rows: rank dp*CP + cp of the job is number dp of its data-parallel
// group, whose ranks work on different sequences, and number cp of its context-parallel group, whose ranks share theirs.
type Mesh struct {
	World *Communicator
	DP    *Communicator // the ranks with this rank's place in the row
	CP    *Communicator // the ranks of this rank's row

	own []*Communicator // what Close closes
}

// NewMesh arranges the ranks of a job, dp rows of cp ranks; with dp = 0 as many rows as there are. All ranks call it.
func NewMesh(ctx context.Context, world *Communicator, dp, cp int) (*Mesh, error) {
	size, rank := world.Size(), world.Rank()
	if cp < 1 || dp < 0 || size%cp != 0 || dp != 0 && dp != size/cp {
		return nil, fmt.Errorf("%s", misfit(dp, cp, size))
	}
	m := &Mesh{World: world}
	var err error
	if m.DP, err = m.group(ctx, size/cp, rank%cp, rank/cp); err != nil {
		return nil, fmt.Errorf("the data-parallel groups: %w", err)
	}
	if m.CP, err = m.group(ctx, cp, rank/cp, rank%cp); err != nil {
		return nil, errors.Join(fmt.Errorf("the context-parallel groups: %w", err), m.Close())
	}
	return m, nil
}

// misfit says which numbers of ranks would do.
func misfit(dp, cp, size int) string {
	switch {
	case dp < 0 || cp < 1:
		return fmt.Sprintf("a mesh of dp = %d, cp = %d: dp must not be negative, cp at least 1", dp, cp)
	case dp == 0:
		return fmt.Sprintf("a mesh with cp = %d needs a multiple of %d ranks, there are %d", cp, cp, size)
	}
	return fmt.Sprintf("a mesh of dp = %d, cp = %d needs %d ranks, there are %d", dp, cp, dp*cp, size)
}

// group is the group of this rank among groups of so many ranks: that of all ranks where these are all.
func (m *Mesh) group(ctx context.Context, ranks, color, key int) (*Communicator, error) {
	if ranks == m.World.Size() {
		return m.World, nil
	}
	c, err := m.World.Split(ctx, color, key)
	if err == nil {
		m.own = append(m.own, c)
	}
	return c, err
}

// Group is the group of that name: world, dp or cp; nil where there is no such name.
func (m *Mesh) Group(name string) *Communicator {
	switch name {
	case "world":
		return m.World
	case "dp":
		return m.DP
	case "cp":
		return m.CP
	}
	return nil
}

// Rank is this rank's number in the job.
func (m *Mesh) Rank() int { return m.World.Rank() }

// DPRank is this rank's row.
func (m *Mesh) DPRank() int { return m.DP.Rank() }

// CPRank is this rank's place in its row.
func (m *Mesh) CPRank() int { return m.CP.Rank() }

// Size is the number of ranks of the job.
func (m *Mesh) Size() int { return m.World.Size() }

// Close leaves the groups of rows and places, and not the job.
func (m *Mesh) Close() error {
	var faults []error
	for _, c := range m.own {
		faults = append(faults, c.Close())
	}
	m.own = nil
	return errors.Join(faults...)
}
