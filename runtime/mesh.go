package runtime

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"blutrain/artifact"
	"blutrain/dtms"
)

// CheckMesh holds the ranks that a program is opened on to those it was compiled for. For devices, before they load it.
func (o Options) CheckMesh(m *artifact.Manifest) error {
	has := artifact.Mesh{DP: 1, CP: 1}
	if o.Mesh != nil {
		has = artifact.Mesh{DP: o.Mesh.DP.Size(), CP: o.Mesh.CP.Size()}
	}
	if m.Mesh == nil {
		if n := has.DP * has.CP; n > 1 {
			return fmt.Errorf("the program was compiled for one rank and is opened on %d: compile it with bluc compile --mesh dp", n)
		}
		return nil
	}
	want, dp, multiple := *m.Mesh, strconv.Itoa(m.Mesh.DP), ""
	if want.DP == 0 {
		want.DP, dp, multiple = has.DP, "any", " or a multiple of that"
	}
	if want.DP == has.DP && want.CP == has.CP || o.Mesh == nil && o.Apart {
		return nil
	}
	if o.Mesh == nil {
		n := want.DP * want.CP
		return fmt.Errorf("the program was compiled for a mesh of dp = %s, cp = %d: start %d ranks of it%s, with --nproc-per-node %d or with a launcher such as mpiexec or torchrun", dp, want.CP, n, multiple, n)
	}
	return fmt.Errorf("the program was compiled for a mesh of dp = %s, cp = %d, and is opened on one of dp = %d, cp = %d", dp, want.CP, has.DP, has.CP)
}

// checkRanks refuses what several ranks compute together where the program is opened without them.
func (o Options) checkRanks(m *artifact.Manifest, f *artifact.Function) error {
	if m.Mesh == nil || o.Mesh != nil || m.Mesh.DP <= 1 && m.Mesh.CP <= 1 {
		return nil
	}
	together := len(f.Collectives) > 0 || slices.ContainsFunc(f.Scalars, func(v artifact.Value) bool { return m.IsMeshScalar(v.Name) })
	if !together {
		return nil
	}
	all, dp := "the ranks", "any"
	if m.Mesh.DP > 0 {
		all, dp = fmt.Sprintf("the %d ranks", m.Mesh.DP*m.Mesh.CP), strconv.Itoa(m.Mesh.DP)
	}
	return fmt.Errorf("%s: %s of a mesh of dp = %s, cp = %d compute it together, and there is one here: compile the model without --mesh for it", f.Name, all, dp, m.Mesh.CP)
}

// Scalar is the value of a scalar of a checked call: what the caller gives, or this rank's place in the mesh.
func (o Options) Scalar(m *artifact.Manifest, s Scalars, name string) float64 {
	if !m.IsMeshScalar(name) {
		return s[name]
	}
	if o.Mesh == nil {
		return 0
	}
	return float64(map[string]int{artifact.DPRank: o.Mesh.DPRank(), artifact.CPRank: o.Mesh.CPRank(), artifact.WorldRank: o.Mesh.Rank()}[name])
}

// Communicator is that of a group; nil where the program runs on one rank.
func (o Options) Communicator(group string) *dtms.Communicator {
	if o.Mesh == nil {
		return nil
	}
	return o.Mesh.Group(group)
}

// Failed tells the other ranks of the mesh that a call of a function in which they take part has failed on this one, and returns
// the error with this rank's number.
func (o Options) Failed(fn string, err error) error {
	if o.Mesh == nil {
		return fmt.Errorf("%s: %w", fn, err)
	}
	err = fmt.Errorf("rank %d: %s: %w", o.Mesh.Rank(), fn, err)
	o.Mesh.World.Abort(err)
	return err
}

// CallContext is what ends collectives before their time.
func (o Options) CallContext() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}
