// Package local connects ranks that are goroutines of one process: for tests, and for meshes on one machine without
// starting processes. Bytes are copied once, from one rank's memory to the other's.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"golang.org/x/sync/errgroup"

	"blutrain/dtms"
	"blutrain/dtms/internal/exchange"
)

// New makes the communicators of a job of size ranks, by rank.
func New(size int) []*dtms.Communicator {
	nodes := make([]*exchange.Node, size)
	for r := range nodes {
		nodes[r] = exchange.NewNode(r, size, exchange.Options{})
	}
	comms := make([]*dtms.Communicator, size)
	for r, n := range nodes {
		links := make([]exchange.Link, size)
		for p := range links {
			if p != r {
				links[p] = &link{from: r, to: nodes[p]}
			}
		}
		n.Begin(links)
		comms[r] = dtms.New(exchange.World(n, func() error { return nil }))
	}
	return comms
}

// Run runs f as each of size ranks and returns when all have ended. A rank that returns an error or panics is named to the
// others. The error is that of the rank that failed first.
func Run(ctx context.Context, size int, f func(context.Context, *dtms.Communicator) error) error {
	var group errgroup.Group
	for _, c := range New(size) {
		group.Go(func() (err error) {
			defer func() {
				if p := recover(); p != nil {
					err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
				}
				if err != nil {
					c.Abort(err)
				}
				err = errors.Join(err, c.Close())
			}()
			return f(ctx, c)
		})
	}
	return group.Wait()
}

// link hands frames straight to the other rank's node.
type link struct {
	from int
	to   *exchange.Node
}

func (l *link) Post(h exchange.Header, payload []byte) { l.deliver(h, payload) }

func (l *link) Write(h exchange.Header, payload []byte) error {
	l.deliver(h, payload)
	return nil
}

func (l *link) deliver(h exchange.Header, payload []byte) {
	err := l.to.Handle(l.from, h, func(dst []byte) error {
		if copy(dst, payload) < len(dst) {
			return io.ErrUnexpectedEOF
		}
		payload = payload[len(dst):]
		return nil
	})
	if err != nil {
		l.to.Garbled(l.from, err)
	}
}
