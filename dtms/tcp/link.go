package tcp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"blutrain/dtms/internal/exchange"
)

const (
	// farewell is how long the end of a failed job may take to be told to the others.
	farewell = time.Second
	// linger is how long Close waits for the other side to close too.
	linger = 2 * time.Second
)

// link is the connection to one rank: a goroutine reads from it, another writes to it.
type link struct {
	node    *exchange.Node
	peer    int
	conn    net.Conn
	written chan struct{} // closed when the writer has ended
	read    chan struct{} // closed when the reader has ended

	mu      sync.Mutex
	control []byte   // encoded frames that go before any data
	data    []*piece // frames of data, in order
	closing bool     // the writer ends when all is written
	broken  error    // the writer has ended because of this
	wake    chan struct{}
}

// piece is a frame of data on its way.
type piece struct {
	header  exchange.Header
	payload []byte
	done    chan error
}

func newLink(node *exchange.Node, peer int, conn net.Conn) *link {
	return &link{node: node, peer: peer, conn: conn, written: make(chan struct{}), read: make(chan struct{}), wake: make(chan struct{}, 1)}
}

func (l *link) begin() {
	go func() {
		defer close(l.written)
		l.writeAll()
	}()
	go func() {
		defer close(l.read)
		l.readAll()
	}()
	go func() {
		select {
		case <-l.node.Failed():
			// The reader stops writing into memory of calls, which have ended; the writer may finish its frame and say why.
			l.conn.SetReadDeadline(time.Now())
			l.conn.SetWriteDeadline(time.Now().Add(farewell))
			l.nudge()
		case <-l.written:
		}
	}()
}

func (l *link) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Post implements exchange.Link.
func (l *link) Post(h exchange.Header, payload []byte) {
	var header [exchange.HeaderSize]byte
	h.Encode(header[:])
	l.mu.Lock()
	if l.broken == nil {
		l.control = append(append(l.control, header[:]...), payload...)
	}
	l.mu.Unlock()
	l.nudge()
}

// Write implements exchange.Link.
func (l *link) Write(h exchange.Header, payload []byte) error {
	p := &piece{h, payload, make(chan error, 1)}
	l.mu.Lock()
	if l.broken != nil {
		defer l.mu.Unlock()
		return l.broken
	}
	l.data = append(l.data, p)
	l.mu.Unlock()
	l.nudge()
	return <-p.done
}

var errFailed = errors.New("the job has failed")

// writeAll writes what is queued until the link breaks or closes.
func (l *link) writeAll() {
	var header [exchange.HeaderSize]byte
	for {
		control, p, closing := l.next()
		if control == nil && p == nil {
			if closing {
				if c, ok := l.conn.(*net.TCPConn); ok {
					c.CloseWrite()
				}
				l.end(io.ErrClosedPipe)
				return
			}
			<-l.wake
			continue
		}
		buffers := net.Buffers{control}
		if p != nil {
			p.header.Encode(header[:])
			buffers = append(buffers, header[:], p.payload)
		}
		_, err := buffers.WriteTo(l.conn)
		if p != nil {
			p.done <- err
		}
		if err != nil {
			l.node.Lost(l.peer, "died: writing to it failed: "+cause(err))
			l.end(err)
			return
		}
	}
}

// next is what to write now: all control frames and one frame of data. Once the job has failed, data is not sent any more.
func (l *link) next() (control []byte, p *piece, closing bool) {
	failed := false
	select {
	case <-l.node.Failed():
		failed = true
	default:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	control, l.control = l.control, nil
	if failed {
		l.drop(errFailed)
	}
	if len(l.data) > 0 {
		p, l.data = l.data[0], l.data[1:]
	}
	return control, p, l.closing
}

// drop fails all queued data. The caller holds l.mu.
func (l *link) drop(err error) {
	for _, p := range l.data {
		p.done <- err
	}
	l.data = nil
}

// end refuses data from now on.
func (l *link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = err
	l.drop(err)
}

// readAll hands the node what arrives until the link ends.
func (l *link) readAll() {
	err := l.frames(bufio.NewReaderSize(l.conn, 64<<10))
	select {
	case <-l.node.Failed():
		// What still comes is of no use, but a connection closed with bytes unread is reset, and the other side could lose
		// this side's last words.
		l.conn.SetReadDeadline(time.Now().Add(farewell))
		io.Copy(io.Discard, l.conn)
		return
	default:
	}
	var format *exchange.FormatError
	switch {
	case errors.As(err, &format):
		l.node.Garbled(l.peer, err)
	default:
		l.node.Lost(l.peer, "died: "+cause(err))
	}
}

func (l *link) frames(r *bufio.Reader) error {
	var buffer [exchange.HeaderSize]byte
	for {
		h, err := exchange.ReadHeader(r, &buffer)
		if err != nil {
			return err
		}
		left := int(h.Length)
		var broken error
		err = l.node.Handle(l.peer, h, func(dst []byte) error {
			n, err := io.ReadFull(r, dst)
			left -= n
			broken = err
			return err
		})
		switch {
		case broken != nil:
			return broken
		case err != nil:
			return exchange.WrongFrame(err)
		}
		if _, err := r.Discard(left); err != nil {
			return err
		}
	}
}

// cause says in words how a connection ended.
func cause(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "its connection ended"
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// closeAll ends the links: all that is queued goes out, then the other sides are given a moment to close as well.
func closeAll(links []*link) error {
	for _, l := range links {
		l.mu.Lock()
		l.closing = true
		l.mu.Unlock()
		l.nudge()
	}
	late := time.After(linger)
	for _, l := range links {
		for _, ended := range []chan struct{}{l.written, l.read} {
			select {
			case <-ended:
			case <-late:
				late = closedTimer()
			}
		}
	}
	var errs []error
	for _, l := range links {
		errs = append(errs, l.conn.Close())
	}
	return errors.Join(errs...)
}

// closedTimer is a timer that has fired.
func closedTimer() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}
