package cuda

import (
	"errors"
	"fmt"
	"slices"

	"blutrain/dtms"
)

// Peers is a GPU as one among those that reach each other's memory: the device of dtms/peer.
type Peers struct {
	c     *Context
	point *Event // where another stream is
	sums  map[sumShape]*sumCode
}

// NewPeers makes a GPU one of them.
func NewPeers(c *Context) (*Peers, error) {
	p := &Peers{c: c, sums: map[sumShape]*sumCode{}}
	var err error
	if p.point, err = c.NewEvent(); err != nil {
		return nil, err
	}
	return p, nil
}

// Close gives back what the GPU took for it.
func (p *Peers) Close() error {
	var faults []error
	for _, s := range p.sums {
		faults = append(faults, s.module.Close())
	}
	return errors.Join(append(faults, p.point.Close())...)
}

func (p *Peers) stream(s dtms.Stream) *Stream { return &Stream{c: p.c, handle: uintptr(s)} }

// ID is the GPU's place in the machine.
func (p *Peers) ID() (string, error) { return p.c.Device.BusID() }

// Reaches says why this GPU can't use another's memory, nil if it can.
func (p *Peers) Reaches(id string) error { return p.c.Device.Reaches(id) }

// Share allocates memory of zeros that other processes can map.
func (p *Peers) Share(bytes int64) (uintptr, []byte, error) {
	at, handle, err := p.c.Share(bytes)
	return uintptr(at), handle, err
}

// Free gives back what Share allocated.
func (p *Peers) Free(at uintptr) error { return p.c.Free(Pointer(at)) }

// Map makes another process's memory usable here.
func (p *Peers) Map(handle []byte) (uintptr, error) {
	at, err := p.c.Map(handle)
	return uintptr(at), err
}

// Unmap ends what Map began.
func (p *Peers) Unmap(at uintptr) error { return p.c.Unmap(Pointer(at)) }

// NewStream makes a stream whose kernels go before others'.
func (p *Peers) NewStream() (dtms.Stream, error) {
	s, err := p.c.NewUrgentStream()
	return dtms.Stream(s.handle), err
}

// CloseStream destroys a stream once its work is done.
func (p *Peers) CloseStream(s dtms.Stream) error { return p.stream(s).Close() }

// After makes a stream wait for what another was given so far. An event may be recorded anew as soon as streams have been told to wait for it.
func (p *Peers) After(s, other dtms.Stream) error {
	if err := p.stream(other).Record(p.point); err != nil {
		return err
	}
	return p.stream(s).After(p.point)
}

// Done reports whether all work on a stream has ended.
func (p *Peers) Done(s dtms.Stream) (bool, error) { return p.c.Done(s) }

// Copy copies between memory of this GPU and of others.
func (p *Peers) Copy(s dtms.Stream, to, from uintptr, bytes int64) error {
	return p.stream(s).Copy(Pointer(to), Pointer(from), bytes)
}

// Write writes a word, once what the stream did before can be seen by all.
func (p *Peers) Write(s dtms.Stream, at uintptr, word uint32) error {
	return p.stream(s).Write(Pointer(at), word)
}

// Await makes a stream wait for a word.
func (p *Peers) Await(s dtms.Stream, at uintptr, word uint32) error {
	return p.stream(s).Await(Pointer(at), word)
}

// Prepare loads the code for sums of so many terms.
func (p *Peers) Prepare(terms int) error {
	for places := 1; places <= 2; places++ {
		if err := p.load(sumShape{terms, places}); err != nil {
			return err
		}
	}
	return nil
}

func (p *Peers) load(shape sumShape) (err error) {
	if p.sums[shape] != nil {
		return nil
	}
	code := &sumCode{}
	if code.module, err = p.c.Load(fmt.Sprintf("sums of %d", shape.terms), []byte(shape.ptx())); err != nil {
		return err
	}
	p.sums[shape] = code
	if code.vectors, err = code.module.Function(sumVectors, 0); err != nil {
		return err
	}
	code.numbers, err = code.module.Function(sumNumbers, 0)
	return err
}

// Sum adds up float32 numbers in the order given, four a thread where all places are aligned to that. It was prepared for.
func (p *Peers) Sum(s dtms.Stream, to, from []uintptr, count int64) error {
	code := p.sums[sumShape{len(from), len(to)}]
	if code == nil {
		return fmt.Errorf("there is no code for sums of %d in %d places", len(from), len(to))
	}
	kernel, threads := code.vectors, count/4
	var params []any
	low := uintptr(4 * count)
	for _, at := range slices.Concat(from, to) {
		params, low = append(params, Pointer(at)), low|at
	}
	if low%16 != 0 {
		kernel, threads = code.numbers, count
	}
	blocks := (threads + sumThreads - 1) / sumThreads
	return p.stream(s).Launch(kernel, Config{Grid: int(blocks), Threads: sumThreads}, append(params, threads)...)
}
