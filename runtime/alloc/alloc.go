// Package alloc hands out pieces of one reserved range of addresses. Memory is mapped behind the range as it is needed,
// from the start, and kept until the pool is closed: what is freed is used again. Free neighbours become one piece, and the
// smallest piece that fits is taken, so that what is given out depends on the order of requests alone. It knows what a
// Backing says, not what kind of memory that is.
package alloc

import (
	"fmt"
	"slices"
	"strings"
)

// Alignment is that of every piece, in bytes.
const Alignment = 256

// Backing is memory that can be mapped behind a range of addresses.
type Backing interface {
	// Reserve gives the start of a range of at least so many bytes that nothing else will use.
	Reserve(bytes int64) (start uint64, err error)
	// Granularity is the bytes that Map works in multiples of.
	Granularity() int64
	// Map puts memory behind the next bytes of the range, from offset on.
	Map(offset, bytes int64) error
	// Release unmaps everything and gives up the range.
	Release() error
}

// Pool is the range.
type Pool struct {
	backing          Backing
	start            uint64
	reserved, mapped int64
	pieces           []piece // all that is mapped, in order
}

// piece is a run of bytes; holder is empty where it is free.
type piece struct {
	offset, bytes int64
	holder        string
}

// New reserves a range; nothing is mapped yet.
func New(b Backing, reserve int64) (*Pool, error) {
	reserve = roundUp(reserve, b.Granularity())
	start, err := b.Reserve(reserve)
	if err != nil {
		return nil, err
	}
	return &Pool{backing: b, start: start, reserved: reserve}, nil
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }

// Error is memory that could not be had.
type Error struct {
	Wanted int64
	For    string
	Held   []Holding // who holds the rest, most first
	Cause  error
}

// Holding is what is held under one name.
type Holding struct {
	Holder string
	Bytes  int64
}

func (e *Error) Error() string {
	var held []string
	for _, h := range e.Held {
		held = append(held, fmt.Sprintf("%s %s", h.Holder, size(h.Bytes)))
	}
	s := fmt.Sprintf("out of memory: %s needs %s", e.For, size(e.Wanted))
	if len(held) > 0 {
		s += "; held are: " + strings.Join(held, ", ")
	}
	return s + fmt.Sprintf(" (%v)", e.Cause)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// size is bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}

// Alloc gives the address of so many bytes, held under a name. Pieces of no bytes have an address too.
func (p *Pool) Alloc(bytes int64, holder string) (uint64, error) {
	n := max(roundUp(bytes, Alignment), Alignment)
	i := p.fit(n)
	if i < 0 {
		if err := p.grow(n); err != nil {
			return 0, &Error{Wanted: bytes, For: holder, Held: p.Holdings(), Cause: err}
		}
		i = len(p.pieces) - 1
	}
	free := p.pieces[i]
	p.pieces[i] = piece{free.offset, n, holder}
	if free.bytes > n {
		p.pieces = slices.Insert(p.pieces, i+1, piece{offset: free.offset + n, bytes: free.bytes - n})
	}
	return p.start + uint64(free.offset), nil
}

// fit is the smallest free piece of n bytes or more, the first of equals; -1 where there is none.
func (p *Pool) fit(n int64) int {
	best := -1
	for i, f := range p.pieces {
		if f.holder == "" && f.bytes >= n && (best < 0 || f.bytes < p.pieces[best].bytes) {
			best = i
		}
	}
	return best
}

// grow maps memory so that the last piece is free and has n bytes or more.
func (p *Pool) grow(n int64) error {
	last := len(p.pieces) - 1
	have := int64(0)
	if last >= 0 && p.pieces[last].holder == "" {
		have = p.pieces[last].bytes
	}
	more := roundUp(n-have, p.backing.Granularity())
	if p.mapped+more > p.reserved {
		return fmt.Errorf("the range of %s is full", size(p.reserved))
	}
	if err := p.backing.Map(p.mapped, more); err != nil {
		return err
	}
	if have > 0 {
		p.pieces[last].bytes += more
	} else {
		p.pieces = append(p.pieces, piece{offset: p.mapped, bytes: more})
	}
	p.mapped += more
	return nil
}

// Free takes a piece back.
func (p *Pool) Free(address uint64) error {
	i := slices.IndexFunc(p.pieces, func(x piece) bool { return x.holder != "" && p.start+uint64(x.offset) == address })
	if i < 0 {
		return fmt.Errorf("no piece of the pool starts at %#x", address)
	}
	p.pieces[i].holder = ""
	if i+1 < len(p.pieces) && p.pieces[i+1].holder == "" {
		p.pieces[i].bytes += p.pieces[i+1].bytes
		p.pieces = slices.Delete(p.pieces, i+1, i+2)
	}
	if i > 0 && p.pieces[i-1].holder == "" {
		p.pieces[i-1].bytes += p.pieces[i].bytes
		p.pieces = slices.Delete(p.pieces, i, i+1)
	}
	return nil
}

// Mapped is the bytes of memory behind the range.
func (p *Pool) Mapped() int64 { return p.mapped }

// Holdings is what is held under each name, most first.
func (p *Pool) Holdings() (all []Holding) {
	for _, x := range p.pieces {
		if x.holder == "" {
			continue
		}
		i := slices.IndexFunc(all, func(h Holding) bool { return h.Holder == x.holder })
		if i < 0 {
			i, all = len(all), append(all, Holding{Holder: x.holder})
		}
		all[i].Bytes += x.bytes
	}
	slices.SortStableFunc(all, func(a, b Holding) int {
		switch {
		case a.Bytes > b.Bytes:
			return -1
		case a.Bytes < b.Bytes:
			return 1
		}
		return strings.Compare(a.Holder, b.Holder)
	})
	return all
}

// Close gives all memory back.
func (p *Pool) Close() error {
	p.pieces, p.mapped = nil, 0
	return p.backing.Release()
}
