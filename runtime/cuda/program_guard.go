package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"blutrain/runtime"
)

// guard is bytes behind a piece of memory that nothing may write to.
type guard struct {
	at   Pointer
	name string // of the piece
}

const (
	guardBytes = 1024
	guardWord  = 0x5afe5afe
)

// guarded takes memory with a guard behind it.
func (p *program) guarded(n int64, holder, name string) (Pointer, error) {
	n = (n + 3) / 4 * 4
	at, err := p.take(n+guardBytes, holder)
	if err != nil {
		return at, err
	}
	g := guard{at + Pointer(n), name}
	p.guards = append(p.guards, g)
	return at, p.fill(g.at, guardWord, guardBytes/4)
}

// intact looks whether every guard is as it was.
func (p *program) intact() error {
	want := guardPattern()
	got := make([]byte, guardBytes)
	for _, g := range p.guards {
		if err := p.stream.Download(got, g.at); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("memory behind the end of %s was written to", g.name)
		}
	}
	return nil
}

// aside runs a function launch by launch, each waited for and followed by a look at the guards, so that what goes wrong is known by the
// kernel's name.
func (p *program) aside(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	return p.Trace(fn, in, s, func(_ *runtime.Step, run func() error) error { return run() })
}

// unnamed says how to learn which kernel of a graph did something wrong.
func unnamed(err error) error {
	if !byKernel(err) {
		return err
	}
	return fmt.Errorf("%w; --debug-memory runs kernel by kernel and names the one", err)
}

func guardPattern() []byte {
	b := make([]byte, 0, guardBytes)
	for range guardBytes / 4 {
		b = binary.LittleEndian.AppendUint32(b, guardWord)
	}
	return b
}
