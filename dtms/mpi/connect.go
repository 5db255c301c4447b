package mpi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/internal/exchange"
)

// Defaults of Config.
const (
	DefaultJoinTimeout = 5 * time.Minute
	DefaultSilence     = 10 * time.Second
)

// Config of a rank; which rank it is, MPI says.
type Config struct {
	Library string        // file to load; "" means the usual names of MPICH
	Join    time.Duration // for all ranks to start MPI; 0 means DefaultJoinTimeout
	Silence time.Duration // without a sign of life a rank is lost; 0 means DefaultSilence
	Facts   []dtms.Fact   // what must be the same on all ranks: see dtms.Agree
}

// notStarted is the end of the wait for MPI: its time is over, or this process was told to end.
func (c Config) notStarted(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		return fmt.Errorf("MPI did not start within %s", c.Join)
	}
	return fmt.Errorf("before MPI had started: %w", cause)
}

// Connect starts MPI, once in a process, and makes sure that all ranks run the same.
func Connect(ctx context.Context, c Config) (*dtms.Communicator, error) {
	if c.Join == 0 {
		c.Join = DefaultJoinTimeout
	}
	if c.Silence == 0 {
		c.Silence = DefaultSilence
	}
	lib, err := load(c.Library)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Join)
	defer cancel()
	p := newPump(lib)
	go p.run(c.Silence)
	select {
	case err := <-p.ready:
		if err != nil {
			return nil, err
		}
	case <-ctx.Done():
		return nil, c.notStarted(context.Cause(ctx))
	}
	comm := dtms.New(exchange.World(p.node, sync.OnceValue(p.close)))
	if err := dtms.Agree(ctx, comm.WithDeadline(c.Join), c.Facts); err != nil {
		comm.Abort(err)
		comm.Close()
		return nil, err
	}
	return comm, nil
}
