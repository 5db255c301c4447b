package exchange

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"blutrain/dtms"
)

// Link carries frames to one other rank, in order.
type Link interface {
	// Post queues a frame without payload limits of its own and returns at once. The payload is the link's from then on.
	Post(h Header, payload []byte)
	// Write sends a frame of data and returns when the payload may change. An error means that the link is broken; the
	// transport has told the node why, by Lost.
	Write(h Header, payload []byte) error
}

// Options of a node. The zero value sends no signs of life.
type Options struct {
	// Silence is how long a rank may give no sign of life before it counts as lost; 0 means forever. Ranks send one at
	// least every eighth of it.
	Silence time.Duration
}

// settle is how long a node waits, after the first lost rank or the first contradiction, for more of the same, so that
// one error names them all.
const settle = 100 * time.Millisecond

// outstanding bounds what another rank may announce that this one has not begun.
const outstanding = 1 << 16

// Node is one rank's end of all its links.
type Node struct {
	rank, size int
	options    Options
	links      []Link         // by rank; nil for this rank
	heard      []atomic.Int64 // when each rank last sent something, in ns since start
	start      time.Time

	mu       sync.Mutex
	rolls    map[callKey]*roll
	incoming map[transferKey]*incoming
	grants   map[transferKey]*grant
	early    []int    // by rank: rolls and grants it opened that this rank has not begun
	left     []bool   // by rank: has said bye
	last     []Header // by rank: its latest Join
	lost     dtms.RankErrors
	err      error // why the job failed
	closed   bool

	failed chan struct{} // closed when err is set and all ranks have been told
	done   chan struct{} // closed by Close
}

// NewNode makes the node of a rank. Transports call Begin with the links before anything else.
func NewNode(rank, size int, o Options) *Node {
	return &Node{
		rank: rank, size: size, options: o, heard: make([]atomic.Int64, size), start: time.Now(),
		rolls: map[callKey]*roll{}, incoming: map[transferKey]*incoming{}, grants: map[transferKey]*grant{},
		early: make([]int, size), left: make([]bool, size), last: make([]Header, size),
		failed: make(chan struct{}), done: make(chan struct{}),
	}
}

// Begin gives the node its links, by rank (none for itself), and starts signs of life.
func (n *Node) Begin(links []Link) {
	n.links = links
	if n.options.Silence > 0 && n.size > 1 {
		go n.pulse()
	}
}

// Failed is closed when the job has failed.
func (n *Node) Failed() <-chan struct{} { return n.failed }

// errClosed is the error of calls on a communicator that this rank has closed.
var errClosed = errors.New("the communicator is closed")

// Err is why no more calls are possible, nil if they are.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil && n.closed {
		return errClosed
	}
	return n.err
}

// await returns nil when done is closed, or why it never will be.
func (n *Node) await(done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-n.failed:
	case <-n.done:
	}
	return n.Err()
}

// HasLeft reports whether a rank has said that it leaves, so that the end of its link is no failure.
func (n *Node) HasLeft(rank int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.left[rank]
}

// Heard notes that a rank has sent something.
func (n *Node) Heard(rank int) { n.heard[rank].Store(int64(time.Since(n.start))) }

// Handle takes a frame that came from a rank, in the order of arrival. read fills its argument with the next bytes of the
// payload; what Handle leaves unread the transport skips.
func (n *Node) Handle(from int, h Header, read func([]byte) error) error {
	n.Heard(from)
	var err error
	switch h.Kind {
	case Join:
		err = n.onJoin(from, h)
	case Ready:
		err = n.onReady(from, h)
	case Data:
		return n.onData(from, h, read)
	case Abort:
		return n.onAbort(from, h, read)
	case Bye:
		n.onBye(from)
	}
	return err
}

// Garbled says that a rank sent what no rank sends.
func (n *Node) Garbled(rank int, err error) {
	n.fail(dtms.RankErrors{{Rank: rank, Fault: dtms.Garbled, What: "sent something else than this protocol: " + err.Error()}}, nil)
}

// Lost says that the link to a rank ended. It is no failure after the rank has left, or this one.
func (n *Node) Lost(rank int, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.left[rank] || n.closed || n.err != nil {
		return
	}
	n.lost = append(n.lost, &dtms.RankError{Rank: rank, Fault: dtms.Dead, What: what})
	if len(n.lost) == 1 {
		time.AfterFunc(settle, func() { n.fail(nil, nil) })
	}
}

// fail ends the job for what this rank has seen itself. Ranks lost meanwhile are named too. cause, if not nil, is what
// calls on this rank return besides.
func (n *Node) fail(errs dtms.RankErrors, cause error) {
	n.mu.Lock()
	errs = append(slices.Clone(errs), n.lost...)
	n.mu.Unlock()
	n.end(errs, cause)
}

// end ends the job here and tells all ranks. Only the first failure counts.
func (n *Node) end(errs dtms.RankErrors, cause error) {
	errs = errs.Sorted()
	n.mu.Lock()
	if n.err != nil || n.closed {
		n.mu.Unlock()
		return
	}
	if n.err = error(errs); cause != nil {
		n.err = fmt.Errorf("%w: %w", cause, errs)
	}
	for _, t := range n.incoming {
		t.cancel()
	}
	n.mu.Unlock()

	// The others are told before this rank's calls return, since the process may end right after.
	text := encodeAbort(errs)
	for _, l := range n.links {
		if l != nil {
			l.Post(Header{Kind: Abort, Length: uint32(len(text))}, text)
		}
	}
	close(n.failed)
}

// AbortFrame is a whole frame that ends the job of the node that reads it, for a rank that has no node yet.
func AbortFrame(errs dtms.RankErrors) []byte {
	text := encodeAbort(errs)
	frame := make([]byte, HeaderSize, HeaderSize+len(text))
	Header{Kind: Abort, Length: uint32(len(text))}.Encode(frame)
	return append(frame, text...)
}

// encodeAbort is the payload of an Abort frame: as many errors as fit.
func encodeAbort(errs dtms.RankErrors) []byte {
	const longest = 1 << 10
	short := make(dtms.RankErrors, 0, len(errs))
	for _, e := range errs {
		short = append(short, &dtms.RankError{Rank: e.Rank, Fault: e.Fault, What: e.What[:min(len(e.What), longest)]})
	}
	for {
		text, err := json.Marshal(short)
		if err == nil && len(text) <= MaxPayload {
			return text
		}
		short = short[:len(short)/2]
	}
}

func (n *Node) onAbort(from int, h Header, read func([]byte) error) error {
	text := make([]byte, h.Length)
	if err := read(text); err != nil {
		return err
	}
	var errs dtms.RankErrors
	if err := json.Unmarshal(text, &errs); err != nil || len(errs) == 0 || slices.ContainsFunc(errs, n.impossible) {
		return errors.New("a reason to end the job that can't be read")
	}
	// Links that this rank has lost are left out: ranks that know of a failure leave, and so does the one that said this.
	n.end(errs, nil)
	return nil
}

func (n *Node) impossible(e *dtms.RankError) bool { return e == nil || e.Rank < 0 || e.Rank >= n.size }

// onBye notes that a rank leaves, which fails whatever still needs it.
func (n *Node) onBye(from int) {
	n.mu.Lock()
	n.left[from] = true
	needed := ""
	for key, r := range n.rolls {
		if r.waitsFor(from) {
			needed = r.describe(key)
		}
	}
	for key, t := range n.incoming {
		if key.peer == from {
			needed = t.what
		}
	}
	for key, g := range n.grants {
		if key.peer == from && g.wanted && !g.given {
			needed = g.what
		}
	}
	n.mu.Unlock()
	if needed != "" {
		n.failLeft(from, needed)
	}
}

func (n *Node) failLeft(rank int, needed string) {
	n.fail(dtms.RankErrors{{Rank: rank, Fault: dtms.Left, What: "left the job before its part of " + needed}}, nil)
}

// Abort tells all ranks that this one gives up, or what is wrong with others where the reason says so.
func (n *Node) Abort(reason error) {
	if errs := dtms.Faults(reason); errs != nil {
		n.fail(errs, nil)
		return
	}
	n.fail(dtms.RankErrors{{Rank: n.rank, Fault: dtms.Failed, What: "gave up: " + reason.Error(), Err: reason}}, nil)
}

// Leave says bye to all ranks, once, unless the job has failed.
func (n *Node) Leave() {
	n.mu.Lock()
	again, failed := n.closed, n.err != nil
	n.closed = true
	n.mu.Unlock()
	if again {
		return
	}
	close(n.done)
	if failed {
		<-n.failed // all have been told
		return
	}
	for _, l := range n.links {
		if l != nil {
			l.Post(Header{Kind: Bye}, nil)
		}
	}
}
