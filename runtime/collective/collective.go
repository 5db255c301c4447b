// Package collective runs the collectives of a program on the communicators of its mesh. It knows what a program's text says of a
// collective and what communicators offer, and nothing of devices: where the memory is, they say.
package collective

import (
	"context"
	"fmt"
	"time"

	names "blutrain/dialects/dtms"
	"blutrain/dialects/exec"
	"blutrain/dtms"
	"blutrain/ir"
	"blutrain/runtime"
)

// Spec is what a collective does.
type Spec struct {
	ID    int64
	Op    string
	Group string
	Shift int64
	Ranks int64 // of the group, 0 where the program doesn't say
	Bytes int64 // that this rank gives
}

// Decode reads an exec.collective, or a collective of the dtms dialect, and holds it to the mesh that it will run on.
func Decode(op *ir.Op, opts runtime.Options) (Spec, error) {
	a := op.Attrs()
	s := Spec{ID: a.IntOr("id", 0), Op: a.Str("op"), Group: a.Str("group"), Shift: a.IntOr("shift", 0), Ranks: a.IntOr("ranks", 0)}
	sources := op.Operands()
	if op.Is(exec.Collective) {
		sources = sources[:len(sources)/2]
	}
	for _, v := range sources {
		s.Bytes += ir.NumElements(v.Shape()) * ir.ByteSize(v.Elem())
	}
	if s.Op == "" {
		s.Op = op.Def().Name
	}
	size := int64(1)
	if c := opts.Communicator(s.Group); c != nil {
		size = int64(c.Size())
	}
	if s.Ranks != 0 && s.Ranks != size && !(opts.Apart && opts.Mesh == nil) { // apart, it isn't called
		return s, op.Errorf("%s over %d ranks of group %s, which has %d", s.Op, s.Ranks, s.Group, size)
	}
	return s, nil
}

// String names it in messages.
func (s Spec) String() string { return fmt.Sprintf("collective %d (%s over %s)", s.ID, s.Op, s.Group) }

// Alone says why a collective can't be a copy, which it is on the only rank there is.
func (s Spec) Alone() error {
	if s.Ranks > 1 {
		return fmt.Errorf("%s: it is one of %d ranks, and the program was opened on one", s, s.Ranks)
	}
	return nil
}

// Calls is what a communicator is asked for, one call for each pair of in and out.
func (s Spec) Calls(c *dtms.Communicator, in, out []dtms.Memory, stream dtms.Stream) []dtms.Call {
	calls := make([]dtms.Call, len(in))
	for i := range in {
		calls[i] = s.call(c, in[i], out[i])
		calls[i].Stream = stream
	}
	return calls
}

func (s Spec) call(c *dtms.Communicator, in, out dtms.Memory) dtms.Call {
	call := dtms.Call{Op: s.Operation(), In: in, Out: out}
	if call.Op == dtms.Permute {
		n := int64(c.Size())
		call.Peer = int(((s.Shift % n) + n) % n)
	}
	return call
}

// Operation is what communicators call it.
func (s Spec) Operation() dtms.Op {
	switch s.Op {
	case names.NameAllReduce:
		return dtms.AllReduce
	case names.NameReduceScatter:
		return dtms.ReduceScatter
	case names.NameAllGather:
		return dtms.AllGather
	case names.NameAllToAll:
		return dtms.AllToAll
	case names.NamePermute:
		return dtms.Permute
	}
	return 0
}

// Flight is a collective under way, of one or more tensors.
type Flight struct {
	spec         Spec
	began, ended time.Time
	done         chan struct{}
	err          error
}

// Start begins a collective on memory of the process, one call for each pair of in and out. On the only rank there is it is a copy.
func Start(ctx context.Context, c *dtms.Communicator, s Spec, in, out []dtms.Memory) *Flight {
	f := &Flight{spec: s, began: time.Now(), done: make(chan struct{})}
	if c == nil {
		if f.err = s.Alone(); f.err == nil {
			for i := range in {
				copy(out[i].Data(), in[i].Data())
			}
		}
		f.ended = time.Now()
		close(f.done)
		return f
	}
	under := c.StartAll(ctx, s.Calls(c, in, out, 0))
	go func() {
		defer close(f.done)
		f.err, f.ended = under.Wait(), time.Now()
	}()
	return f
}

// Wait returns when all is done, with what went wrong; every time the same.
func (f *Flight) Wait() error {
	<-f.done
	if f.err != nil {
		return fmt.Errorf("%s: %w", f.spec, f.err)
	}
	return nil
}

// Times is when it was under way, once it is no longer.
func (f *Flight) Times() (began, ended time.Time) { return f.began, f.ended }

// Flights are the collectives of one call of a function that are under way.
type Flights map[int64]*Flight

// Land waits for one and forgets it.
func (f Flights) Land(id int64) (*Flight, error) {
	flight := f[id]
	if flight == nil {
		return nil, fmt.Errorf("collective %d is not under way", id)
	}
	delete(f, id)
	return flight, flight.Wait()
}

// End waits for all that are left, after a failure: their memory is theirs until then.
func (f Flights) End() {
	for _, flight := range f {
		_ = flight.Wait() // it failed because the call did
	}
}
