package dtms

import (
	"context"
	"fmt"
	"sync"
	"unsafe"
)

// bundler is an engine that makes several collectives of one operation and type as one.
type bundler interface {
	StartAll(ctx context.Context, calls []Call) Pending
}

// small is up to how many bytes a buffer is copied, to go with others, rather than that a call is made for it alone: the time that
// sending it takes is about what a call takes before anything is sent.
const small = 64 << 10

// StartAll begins collectives of one operation and element type, all ranks the same ones in one order: as one call where the engine has
// a way, else the small ones together and the others one after the other. Its Wait is that for all of them.
func (c *Communicator) StartAll(ctx context.Context, calls []Call) Pending {
	until := c.until(ctx)
	for i := range calls {
		if err := calls[i].check(c.Rank(), c.Size()); err != nil {
			return failed{err}
		}
		if !calls[i].Op.Collective() || calls[i].Op != calls[0].Op || calls[i].DType() != calls[0].DType() || calls[i].Peer != calls[0].Peer {
			return failed{fmt.Errorf("%s among calls of %s: no collectives of one kind", calls[i].Describe(), calls[0].Describe())}
		}
		calls[i].Deadline = until
	}
	if b, ok := c.engine.(bundler); ok && len(calls) > 1 {
		return b.StartAll(ctx, calls)
	}
	var together []Call
	var all bundle
	for _, call := range calls {
		if max(call.In.Bytes(), call.Out.Bytes()) <= small && !call.In.OnDevice() && !call.Out.OnDevice() {
			together = append(together, call)
		} else {
			all = append(all, c.engine.Start(ctx, call))
		}
	}
	switch len(together) {
	case 0:
	case 1:
		all = append(all, c.engine.Start(ctx, together[0]))
	default:
		s := pack(together, c.Size())
		s.pending = c.engine.Start(ctx, s.call)
		all = append(all, s)
	}
	return all
}

// bundle is several calls under way.
type bundle []Pending

// Wait returns when all are done, with the first error.
func (b bundle) Wait() error {
	var first error
	for _, p := range b {
		if err := p.Wait(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// staged is several calls made as one on memory of its own.
type staged struct {
	call    Call // the one
	calls   []Call
	blocks  int // of each output
	pending Pending
	once    sync.Once
	err     error
}

// pack makes one call of several: each of the blocks, one a rank, that an operation's input or output has holds the blocks of all.
func pack(calls []Call, size int) *staged {
	s := &staged{call: calls[0], calls: calls, blocks: 1}
	from := 1
	switch s.call.Op {
	case ReduceScatter:
		from = size
	case AllGather:
		s.blocks = size
	case AllToAll:
		from, s.blocks = size, size
	}
	var in, out int64
	for _, c := range calls {
		in, out = in+c.In.Bytes(), out+c.Out.Bytes()
	}
	s.call.In, s.call.Out = Host(s.call.In.dtype, words(in)), Host(s.call.Out.dtype, words(out))
	rest := s.call.In.host
	for i := range from {
		for _, c := range calls {
			rest = rest[copy(rest, block(c.In.host, i, from)):]
		}
	}
	return s
}

// words is n bytes that begin where elements of any type may.
func words(n int64) []byte {
	w := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), n)
}

// block is the i-th of n equal parts.
func block(b []byte, i, n int) []byte {
	size := len(b) / n
	return b[i*size : (i+1)*size]
}

// Wait returns when the call is done and its results are where they were wanted.
func (s *staged) Wait() error {
	s.once.Do(func() {
		if s.err = s.pending.Wait(); s.err != nil {
			return
		}
		rest := s.call.Out.host
		for i := range s.blocks {
			for _, c := range s.calls {
				rest = rest[copy(block(c.Out.host, i, s.blocks), rest):]
			}
		}
	})
	return s.err
}
