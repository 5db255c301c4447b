package cuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// guard is bytes behind a piece of memory that nothing may write to.
type guard struct {
	at     Pointer
	holder string
}

const (
	guardBytes = 1024
	guardWord  = 0x5afe5afe
)

// guarded takes memory with a guard behind it.
func (p *program) guarded(n int64, holder string) (Pointer, error) {
	n = (n + 3) / 4 * 4
	at, err := p.take(n+guardBytes, holder)
	if err != nil {
		return at, err
	}
	g := guard{at + Pointer(n), holder}
	p.guards = append(p.guards, g)
	return at, p.fill(g.at, guardWord, guardBytes/4)
}

// intact looks whether every guard is as it was.
func (p *program) intact() error {
	want := guardPattern()
	got := make([]byte, guardBytes)
	for _, g := range p.guards {
		if err := p.ctx.Download(got, g.at); err != nil {
			return err
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("memory behind the end of what %s has was written to", g.holder)
		}
	}
	return nil
}

func guardPattern() []byte {
	b := make([]byte, 0, guardBytes)
	for range guardBytes / 4 {
		b = binary.LittleEndian.AppendUint32(b, guardWord)
	}
	return b
}
