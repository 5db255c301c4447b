// Package connect picks the engine that suits how a process was started, and connects it to the other ranks of its job.
package connect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/launch"
	"blutrain/dtms/local"
	"blutrain/dtms/mpi"
	"blutrain/dtms/tcp"
)

// engines are the names that Options.Engine takes; "" is the one that suits the launcher.
var engines = [...]string{"tcp", "mpi"}

// Options of a connection. Zero values are the engines' defaults.
type Options struct {
	Engine     string        // tcp or mpi; "" picks
	MPILibrary string        // file to load instead of MPICH's usual names
	Join       time.Duration // for all ranks to come
	Silence    time.Duration // without a sign of life a rank is lost
	Deadline   time.Duration // of a call
	Facts      []dtms.Fact   // what must be the same on all ranks
}

// pick is the engine for a place: mpi where an mpiexec whose MPI can be used has started the ranks, else tcp.
func pick(p launch.Place) string {
	if p.Launcher == launch.PMI {
		return "mpi"
	}
	return "tcp"
}

// Connect connects this process to its job. A job of one rank needs no network.
func Connect(ctx context.Context, p launch.Place, o Options) (*dtms.Communicator, error) {
	engine := o.Engine
	if engine == "" {
		engine = pick(p)
	}
	if !slices.Contains(engines[:], engine) {
		return nil, fmt.Errorf("there is no engine %q between processes, but %s", engine, strings.Join(engines[:], " and "))
	}
	c, err := dial(ctx, engine, p, o)
	if err != nil {
		return nil, fmt.Errorf("connecting rank %d of %d (%s): %w", p.Rank, p.Size, engine, err)
	}
	if c.Rank() != p.Rank || c.Size() != p.Size {
		c.Close()
		return nil, fmt.Errorf("%s says rank %d of %d, MPI says rank %d of %d: mpiexec is not of the MPI that was loaded", p.Launcher, p.Rank, p.Size, c.Rank(), c.Size())
	}
	if o.Deadline > 0 {
		c = c.WithDeadline(o.Deadline)
	}
	return c, nil
}

func dial(ctx context.Context, engine string, p launch.Place, o Options) (*dtms.Communicator, error) {
	switch {
	case engine == "mpi":
		return mpi.Connect(ctx, mpi.Config{Library: o.MPILibrary, Join: o.Join, Silence: o.Silence, Facts: o.Facts})
	case p.Size == 1:
		return local.New(1)[0], nil
	}
	master, err := p.Master()
	if err != nil {
		return nil, err
	}
	return tcp.Connect(ctx, tcp.Config{Rank: p.Rank, Size: p.Size, Master: master, Token: p.Token, Join: o.Join, Silence: o.Silence, Facts: o.Facts})
}
