package train

import (
	"context"
	"fmt"

	"blutrain/dtms"
	"blutrain/train/data"
)

// ranks is what the loop knows of the other ranks of its job. Everything it does with them, all ranks do in the same order.
type ranks struct {
	mesh *dtms.Mesh // nil: there are no others
}

// world is the number of all ranks, dp that of those which read data of their own.
func (r ranks) world() int {
	if r.mesh == nil {
		return 1
	}
	return r.mesh.World.Size()
}

func (r ranks) rank() int {
	if r.mesh == nil {
		return 0
	}
	return r.mesh.World.Rank()
}

func (r ranks) dp() int {
	if r.mesh == nil {
		return 1
	}
	return r.mesh.DP.Size()
}

func (r ranks) dpRank() int {
	if r.mesh == nil {
		return 0
	}
	return r.mesh.DPRank()
}

// agree is an error that names the ranks whose facts differ.
func (r ranks) agree(ctx context.Context, facts []dtms.Fact) error {
	if r.world() == 1 {
		return nil
	}
	return dtms.Agree(ctx, r.mesh.World, facts)
}

// ask begins to tell every rank whether one of them says yes. All ask; what they do until they need the answer doesn't wait for it. It doesn't
// end with the context: an end is what is being asked about.
func (r ranks) ask(ctx context.Context, yes bool) *vote {
	v := &vote{yes: []int32{0}}
	if yes {
		v.yes[0] = 1
	}
	if r.world() > 1 {
		v.pending = r.mesh.World.Start(context.WithoutCancel(ctx), dtms.Call{Op: dtms.AllReduce, In: dtms.Of(v.yes), Out: dtms.Of(v.yes)})
	}
	return v
}

// vote is a question under way.
type vote struct {
	yes     []int32      // how many say so
	pending dtms.Pending // nil: one rank
}

// answer waits for all ranks to have asked.
func (v *vote) answer() (bool, error) {
	if v.pending != nil {
		if err := v.pending.Wait(); err != nil {
			return false, err
		}
	}
	return v.yes[0] > 0, nil
}

// abort tells the other ranks that this one can't go on.
func (r ranks) abort(reason error) {
	if r.world() > 1 {
		r.mesh.World.Abort(reason)
	}
}

// group is the ranks that save together.
type group struct {
	ranks
	c *dtms.Communicator // of its own, since checkpoints are written beside the steps; nil: one rank
}

// newGroup makes a group of all ranks.
func (r ranks) newGroup(ctx context.Context) (group, error) {
	if r.world() == 1 {
		return group{ranks: r}, nil
	}
	c, err := r.mesh.World.Split(ctx, 0, r.rank())
	return group{r, c}, err
}

// Rank implements checkpoint.Group.
func (g group) Rank() int { return g.rank() }

// World implements checkpoint.Group.
func (g group) World() int { return g.world() }

// Gather implements checkpoint.Group.
func (g group) Gather(mine []byte) ([][]byte, error) {
	if g.c == nil {
		return [][]byte{mine}, nil
	}
	return dtms.Gather(context.Background(), g.c, mine, mostGathered)
}

// mostGathered bounds what a rank says of the files it saved.
const mostGathered = 64 << 20

// settings are what must be the same on all ranks before the first of them does anything.
func (l *loop) settings() ([]dtms.Fact, error) {
	facts := []dtms.Fact{{Name: "artifact", Value: l.Artifact}}
	add := func(name string, value any) { facts = append(facts, dtms.Fact{Name: name, Value: fmt.Sprint(value)}) }
	add("steps", l.Steps)
	if l.Seed != nil {
		add("seed", *l.Seed)
	} else {
		add("seed", "not given")
	}
	add("accumulate", l.micros)
	for _, set := range []struct {
		name   string
		source data.Source
	}{{"training data", l.Data}, {"validation data", l.Val}} {
		if set.source == nil {
			add(set.name, "none")
			continue
		}
		print, err := set.source.Fingerprint()
		if err != nil {
			return nil, err
		}
		add(set.name, fmt.Sprintf("of %s, fingerprint %.16s", set.source, print))
	}
	add("--val-every", l.ValEvery)
	add("--val-batches", l.ValBatches)
	add("--checkpoint-every", l.CheckpointEvery)
	add("--keep", l.Keep)
	add("checkpoints", l.CheckpointDir != "")
	add("--resume", l.Resume)
	return facts, nil
}

// beginning is where the ranks go on from, which must be the same on all of them, too.
func (l *loop) beginning() []dtms.Fact {
	return []dtms.Fact{
		{Name: "a checkpoint of step", Value: fmt.Sprint(l.step)}, {Name: "a checkpoint with seed", Value: fmt.Sprint(l.seed)},
		{Name: "a checkpoint at row", Value: fmt.Sprint(l.loader.State().Row)},
	}
}
