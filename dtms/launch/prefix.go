package launch

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// longestLine is how much of a line without end is held back.
const longestLine = 64 << 10

// prefixer puts a rank's number in front of its lines and keeps lines of several ranks from mixing.
type prefixer struct {
	mu     *sync.Mutex // of the writer, which ranks share
	to     io.Writer
	prefix string
	line   []byte
}

func (p *prefixer) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			p.line = append(p.line, b...)
			if len(p.line) >= longestLine {
				return n, p.emit()
			}
			break
		}
		p.line = append(p.line, b[:end]...)
		b = b[end:]
		if err := p.emit(); err != nil {
			return n, err
		}
	}
	return n, nil
}

// emit writes the line that has been collected. The caller holds the lock.
func (p *prefixer) emit() error {
	if len(p.line) == 0 {
		return nil
	}
	text := append([]byte(p.prefix), p.line...)
	if text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	p.line = p.line[:0]
	_, err := p.to.Write(text)
	return err
}

// plain writes as it comes, between lines of others.
type plain struct {
	mu *sync.Mutex
	to io.Writer
}

func (p *plain) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.to.Write(b)
}

type streams struct{ stdout, stderr io.Writer }

// outputs makes the ranks' standard streams. flush writes what has no end of line yet.
func (s Spec) outputs() (out []streams, flush func()) {
	var mu sync.Mutex
	var all []*prefixer
	for r := range s.Ranks {
		prefix := fmt.Sprintf("[%d] ", r)
		stdout, stderr := &prefixer{mu: &mu, to: s.Stdout, prefix: prefix}, &prefixer{mu: &mu, to: s.Stderr, prefix: prefix}
		all = append(all, stdout, stderr)
		out = append(out, streams{stdout, stderr})
		if s.Plain && r == 0 {
			out[r].stdout = &plain{&mu, s.Stdout}
		}
	}
	return out, func() {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range all {
			p.emit()
		}
	}
}
