package exchange

import (
	"errors"
	"fmt"
	"sync"

	"blutrain/dtms"
	"blutrain/formats"
)

// transferKey names a run of bytes that moves from one rank to another: a part of a call, and the other rank.
type transferKey struct {
	comm, call uint64
	part       uint32
	peer       int
}

// incoming is memory that waits for bytes of another rank.
type incoming struct {
	what string
	done chan struct{} // closed when all bytes are there

	mu        sync.Mutex // held while bytes are written
	dst       []byte
	got       int
	cancelled bool
}

// cancel keeps bytes that may still come out of the memory. It does not wait; detach does.
func (t *incoming) cancel() { go t.detach() }

// detach returns when nothing writes into the memory any more.
func (t *incoming) detach() {
	t.mu.Lock()
	t.cancelled = true
	t.mu.Unlock()
}

// grant is another rank's leave to send it a transfer.
type grant struct {
	what   string
	wanted bool // this rank wants to send
	given  bool
	dtype  formats.DType
	length uint64
	ready  chan struct{} // closed when given
}

// receive announces memory for a transfer. The bytes are there when done is closed.
func (n *Node) receive(key transferKey, d formats.DType, dst []byte, what string) *incoming {
	t := &incoming{what: what, done: make(chan struct{}), dst: dst}
	if len(dst) == 0 && key.part != pointToPoint {
		close(t.done)
		return t
	}
	n.mu.Lock()
	if n.err != nil {
		t.cancelled = true
		n.mu.Unlock()
		return t
	}
	n.incoming[key] = t
	gone := n.left[key.peer]
	n.mu.Unlock()
	n.links[key.peer].Post(Header{Kind: Ready, DType: d, Comm: key.comm, Call: key.call, Part: key.part, Count: uint64(len(dst))}, nil)
	if gone {
		n.failLeft(key.peer, what)
	}
	return t
}

// wait returns when the bytes are there or the job has failed.
func (n *Node) wait(t *incoming) error {
	if err := n.await(t.done); err != nil {
		t.detach()
		return err
	}
	return nil
}

func (n *Node) onData(from int, h Header, read func([]byte) error) error {
	key := transferKey{h.Comm, h.Call, h.Part, from}
	n.mu.Lock()
	t, failed := n.incoming[key], n.err != nil
	n.mu.Unlock()
	if failed {
		return nil
	}
	if t == nil {
		return fmt.Errorf("data for part %d of call %d, which expects none", h.Part, h.Call)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancelled {
		return nil
	}
	if h.Count != uint64(t.got) || int(h.Length) > len(t.dst)-t.got {
		return fmt.Errorf("bytes %d to %d of part %d of call %d, where %d to at most %d are expected", h.Count, h.Count+uint64(h.Length), h.Part, h.Call, t.got, len(t.dst))
	}
	if err := read(t.dst[t.got : t.got+int(h.Length)]); err != nil {
		return err
	}
	t.got += int(h.Length)
	if t.got == len(t.dst) {
		n.mu.Lock()
		delete(n.incoming, key)
		n.mu.Unlock()
		close(t.done)
	}
	return nil
}

func (n *Node) grant(key transferKey) *grant {
	g := n.grants[key]
	if g == nil {
		g = &grant{ready: make(chan struct{})}
		n.grants[key] = g
	}
	return g
}

func (n *Node) onReady(from int, h Header) error {
	key := transferKey{h.Comm, h.Call, h.Part, from}
	n.mu.Lock()
	defer n.mu.Unlock()
	g := n.grant(key)
	if g.given {
		return fmt.Errorf("part %d of call %d was made ready twice", h.Part, h.Call)
	}
	if !g.wanted {
		if n.early[from]++; n.early[from] > outstanding {
			return errors.New("too many transfers were made ready that this rank has not begun")
		}
	}
	g.given, g.dtype, g.length = true, h.DType, h.Count
	close(g.ready)
	return nil
}

// open waits until the receiver's memory is in place.
func (n *Node) open(key transferKey, d formats.DType, length int, what string) error {
	n.mu.Lock()
	g := n.grant(key)
	g.wanted, g.what = true, what
	if g.given {
		n.early[key.peer]--
	}
	gone := n.left[key.peer] && !g.given
	n.mu.Unlock()
	if gone {
		n.failLeft(key.peer, what)
	}
	if err := n.await(g.ready); err != nil {
		return err
	}
	n.mu.Lock()
	delete(n.grants, key)
	r := n.rolls[callKey{key.comm, key.call}]
	conflict := r != nil && r.conflict && key.part != pointToPoint
	n.mu.Unlock()
	if conflict { // judge says who is wrong; lengths that differ are only a consequence
		return n.await(nil)
	}
	if g.length != uint64(length) || g.dtype != d {
		n.fail(dtms.RankErrors{{Rank: key.peer, Fault: dtms.Mismatched, What: fmt.Sprintf("receives %s, where rank %d has a %s",
			elements(g.length, g.dtype), n.rank, what)}}, nil)
		return n.Err()
	}
	return nil
}

func elements(bytes uint64, d formats.DType) string {
	return fmt.Sprintf("%d %s", bytes/uint64(d.Size()), d)
}

// write sends bytes of an open transfer, from byte offset on.
func (n *Node) write(key transferKey, offset int, data []byte) error {
	for len(data) > 0 {
		piece := data[:min(len(data), MaxPayload)]
		h := Header{Kind: Data, Comm: key.comm, Call: key.call, Part: key.part, Count: uint64(offset), Length: uint32(len(piece))}
		if err := n.put(key.peer, h, piece); err != nil {
			return err
		}
		offset += len(piece)
		data = data[len(piece):]
	}
	return nil
}

// put writes one frame of data. Where the link is broken, its error is that of the job.
func (n *Node) put(rank int, h Header, payload []byte) error {
	err := n.links[rank].Write(h, payload)
	if err == nil {
		return nil
	}
	if n.HasLeft(rank) {
		n.failLeft(rank, fmt.Sprintf("call %d", h.Call))
	}
	return n.await(nil) // the link has told the node why
}

// send moves bytes to another rank.
func (n *Node) send(key transferKey, d formats.DType, data []byte, what string) error {
	if len(data) == 0 && key.part != pointToPoint {
		return nil
	}
	if err := n.open(key, d, len(data), what); err != nil {
		return err
	}
	if len(data) == 0 { // the receiver waits for one frame, however empty
		return n.put(key.peer, Header{Kind: Data, Comm: key.comm, Call: key.call, Part: key.part}, nil)
	}
	return n.write(key, 0, data)
}
