package local

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
)

// Every rank of a mesh is where its number says, and its groups are those of its row and of its place in the rows.
func TestMesh(t *testing.T) {
	for _, c := range []struct{ size, dp, cp int }{{1, 1, 1}, {1, 0, 1}, {3, 0, 1}, {4, 4, 1}, {4, 1, 4}, {4, 2, 2}, {6, 3, 2}, {6, 0, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			require.NoError(t, Run(context.Background(), c.size, func(ctx context.Context, world *dtms.Communicator) error {
				m, err := dtms.NewMesh(ctx, world, c.dp, c.cp)
				if err != nil {
					return err
				}
				r := world.Rank()
				if m.DPRank() != r/c.cp || m.CPRank() != r%c.cp || m.DP.Size() != c.size/c.cp || m.CP.Size() != c.cp || m.Rank() != r || m.Size() != c.size {
					return fmt.Errorf("rank %d is number %d of %d, %d of %d", r, m.DPRank(), m.DP.Size(), m.CPRank(), m.CP.Size())
				}
				for _, g := range []struct {
					name string
					want int64
				}{{"world", sumOf(0, 1, c.size)}, {"dp", sumOf(r%c.cp, c.cp, c.size/c.cp)}, {"cp", sumOf(r/c.cp*c.cp, 1, c.cp)}} {
					x := []int64{int64(r)}
					if err := m.Group(g.name).AllReduce(ctx, dtms.Of(x), dtms.Of(x)); err != nil {
						return err
					}
					if x[0] != g.want {
						return fmt.Errorf("group %s of rank %d sums to %d, %d expected", g.name, r, x[0], g.want)
					}
				}
				if m.Group("tp") != nil {
					return errors.New("there is a group of another name")
				}
				return errors.Join(m.Close(), world.Barrier(ctx))
			}))
		})
	}
}

func sumOf(first, step, n int) int64 { return int64(n*first + step*n*(n-1)/2) }

func TestMeshesThatDoNotFit(t *testing.T) {
	for want, c := range map[string]struct{ size, dp, cp int }{
		"a mesh of dp = 2, cp = 2 needs 4 ranks, there are 3":         {3, 2, 2},
		"a mesh with cp = 2 needs a multiple of 2 ranks, there are 3": {3, 0, 2},
		"dp = 1, cp = 0: dp must not be negative, cp at least 1":      {1, 1, 0},
		"dp = -1, cp = 1: dp must not be negative, cp at least 1":     {1, -1, 1},
		"a mesh of dp = 1, cp = 1 needs 1 ranks, there are 2":         {2, 1, 1},
	} {
		_, err := dtms.NewMesh(context.Background(), New(c.size)[0], c.dp, c.cp)
		require.ErrorContains(t, err, want)
	}
}
