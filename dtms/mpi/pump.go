package mpi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"blutrain/dtms"
	"blutrain/dtms/internal/exchange"
)

const (
	tag = 0x42
	// capacity of a message: some control frames and one frame of data.
	capacity = exchange.MaxPayload + 64<<10
	// inFlight bounds the messages that MPI has not taken yet, to one rank.
	inFlight = 4
	// farewell is how long the end of a failed job may take to be told to the others.
	farewell = time.Second
	// parting is how long Close waits for ranks that still work.
	parting = dtms.DefaultDeadline
	// busy is how often the pump looks again at once before it begins to sleep between looks, longest at most.
	busy    = 200
	longest = time.Millisecond
)

// pump is the thread that makes all MPI calls: it sends what links queue and hands the node what arrives.
type pump struct {
	lib   *library
	node  *exchange.Node
	links []*link // by rank; nil for this rank
	free  [][]byte
	pin   runtime.Pinner // of all messages: MPI reads and writes them between calls
	in    []byte

	ready  chan error // whether MPI started
	wake   chan struct{}
	ending chan struct{} // closed by close
	ended  chan error
}

func newPump(lib *library) *pump {
	return &pump{lib: lib, ready: make(chan error, 1), wake: make(chan struct{}, 1), ending: make(chan struct{}), ended: make(chan error, 1)}
}

// link queues frames to one rank.
type link struct {
	pump *pump
	rank int32

	mu     sync.Mutex
	queue  []*frame
	broken bool

	flying []*message // of the pump's thread only
}

// frame is an encoded header, a payload, and who waits for it to be taken.
type frame struct {
	header  [exchange.HeaderSize]byte
	payload []byte
	taken   chan error
}

// message is bytes that MPI is sending.
type message struct {
	buffer  []byte
	request int32
}

// Post implements exchange.Link.
func (l *link) Post(h exchange.Header, payload []byte) { l.push(h, payload, nil) }

// Write implements exchange.Link.
func (l *link) Write(h exchange.Header, payload []byte) error {
	taken := make(chan error, 1)
	l.push(h, payload, taken)
	return <-taken
}

func (l *link) push(h exchange.Header, payload []byte, taken chan error) {
	f := &frame{payload: payload, taken: taken}
	h.Encode(f.header[:])
	l.mu.Lock()
	if broken := l.broken; broken {
		l.mu.Unlock()
		f.done(errEnded)
		return
	}
	l.queue = append(l.queue, f)
	l.mu.Unlock()
	select {
	case l.pump.wake <- struct{}{}:
	default:
	}
}

func (f *frame) done(err error) {
	if f.taken != nil {
		f.taken <- err
	}
}

var errEnded = errors.New("MPI has ended")

// run is the pump's life, on a thread of its own.
func (p *pump) run(silence time.Duration) {
	runtime.LockOSThread() // for ever: the thread ends with the goroutine, and MPI with it
	rank, size, err := p.lib.begin()
	if err != nil {
		p.ready <- err
		return
	}
	p.node = exchange.NewNode(int(rank), int(size), exchange.Options{Silence: silence})
	p.in = p.buffer()
	links := make([]exchange.Link, size)
	p.links = make([]*link, size)
	for r := range links {
		if int32(r) != rank {
			p.links[r] = &link{pump: p, rank: int32(r)}
			links[r] = p.links[r]
		}
	}
	p.node.Begin(links)
	p.ready <- nil
	p.ended <- p.loop()
}

// buffer is memory for a message, which does not move while MPI has it.
func (p *pump) buffer() []byte {
	if n := len(p.free); n > 0 {
		b := p.free[n-1]
		p.free = p.free[:n-1]
		return b
	}
	b := make([]byte, capacity)
	p.pin.Pin(&b[0])
	return b
}

// loop sends and receives until the job has ended. MPI is finalized only when all ranks have left in order: it would wait
// for the others.
func (p *pump) loop() error {
	defer p.refuse()
	idle := 0
	var leaving, failing time.Time
	for {
		moved, err := p.step()
		if err != nil {
			p.node.Abort(err)
			return err
		}
		select {
		case <-p.node.Failed():
			if failing.IsZero() {
				failing = time.Now()
			}
			select {
			case <-p.ending:
				if p.quiet() || time.Since(failing) > farewell {
					return nil
				}
			default:
			}
		case <-p.ending:
			if leaving.IsZero() {
				leaving = time.Now()
			}
			if stay := p.staying(); len(stay) == 0 && p.quiet() {
				return p.lib.check("MPI_Finalize", p.lib.finalize())
			} else if time.Since(leaving) > parting {
				return fmt.Errorf("%s did not end within %s after this rank", dtms.Ranks(stay), parting)
			}
		default:
		}
		idle = p.rest(moved, idle)
	}
}

// rest lets other threads run when there is nothing to do: MPI has no way to wait for a message and for work at once.
func (p *pump) rest(moved bool, idle int) int {
	if moved {
		return 0
	}
	if idle++; idle < busy {
		runtime.Gosched()
		return idle
	}
	select {
	case <-p.wake:
		return 0
	case <-time.After(min(time.Duration(idle-busy+1)*20*time.Microsecond, longest)):
	}
	return idle
}

// staying lists the ranks that have not said that they leave.
func (p *pump) staying() []int {
	var ranks []int
	for r, l := range p.links {
		if l != nil && !p.node.HasLeft(r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// quiet reports whether all that was queued has been sent.
func (p *pump) quiet() bool {
	for _, l := range p.links {
		if l == nil {
			continue
		}
		l.mu.Lock()
		queued := len(l.queue)
		l.mu.Unlock()
		if queued > 0 || len(l.flying) > 0 {
			return false
		}
	}
	return true
}

// refuse fails whatever is queued and will be.
func (p *pump) refuse() {
	for _, l := range p.links {
		if l == nil {
			continue
		}
		l.mu.Lock()
		l.broken = true
		for _, f := range l.queue {
			f.done(errEnded)
		}
		l.queue = nil
		l.mu.Unlock()
	}
}

// step does what can be done now and reports whether that was anything.
func (p *pump) step() (moved bool, err error) {
	for _, l := range p.links {
		if l == nil {
			continue
		}
		landed, err := p.land(l)
		if err != nil {
			return false, err
		}
		sent, err := p.send(l)
		if err != nil {
			return false, err
		}
		moved = moved || landed || sent
	}
	got, err := p.receive()
	return moved || got, err
}

// land takes back the buffers of messages that MPI has sent.
func (p *pump) land(l *link) (bool, error) {
	kept := l.flying[:0]
	for _, m := range l.flying {
		var flag int32
		var s status
		if err := p.lib.check("MPI_Test", p.lib.test(&m.request, &flag, &s)); err != nil {
			return false, err
		}
		if flag != 0 {
			p.free = append(p.free, m.buffer)
		} else {
			kept = append(kept, m)
		}
	}
	landed := len(kept) < len(l.flying)
	l.flying = kept
	return landed, nil
}

// send puts as many queued frames as fit into a message.
func (p *pump) send(l *link) (bool, error) {
	if len(l.flying) >= inFlight {
		return false, nil
	}
	l.mu.Lock()
	if len(l.queue) == 0 {
		l.mu.Unlock()
		return false, nil
	}
	m := &message{buffer: p.buffer()}
	at := 0
	for len(l.queue) > 0 {
		f := l.queue[0]
		if at+len(f.header)+len(f.payload) > capacity {
			break
		}
		at += copy(m.buffer[at:], f.header[:])
		at += copy(m.buffer[at:], f.payload)
		l.queue = l.queue[1:]
		f.done(nil)
	}
	l.mu.Unlock()
	l.flying = append(l.flying, m)
	return true, p.lib.check("MPI_Isend", p.lib.isend(&m.buffer[0], int32(at), typeByte, l.rank, tag, commWorld, &m.request))
}

// receive hands the node the frames of one message, if one has come.
func (p *pump) receive() (bool, error) {
	var flag, count int32
	var s status
	if err := p.lib.check("MPI_Iprobe", p.lib.iprobe(anySource, tag, commWorld, &flag, &s)); err != nil || flag == 0 {
		return false, err
	}
	if err := p.lib.check("MPI_Get_count", p.lib.getCount(&s, typeByte, &count)); err != nil {
		return false, err
	}
	if count < 0 || count > capacity {
		return false, fmt.Errorf("a message of %d bytes from rank %d, at most %d are expected", count, s.source, capacity)
	}
	from := s.source
	if err := p.lib.check("MPI_Recv", p.lib.recv(&p.in[0], count, typeByte, from, tag, commWorld, &s)); err != nil {
		return false, err
	}
	if err := p.handle(int(from), p.in[:count]); err != nil {
		p.node.Garbled(int(from), err)
	}
	return true, nil
}

func (p *pump) handle(from int, text []byte) error {
	r := bytes.NewReader(text)
	var buffer [exchange.HeaderSize]byte
	for r.Len() > 0 {
		h, err := exchange.ReadHeader(r, &buffer)
		if err != nil {
			return err
		}
		if int(h.Length) > r.Len() {
			return io.ErrUnexpectedEOF
		}
		end := r.Len() - int(h.Length)
		err = p.node.Handle(from, h, func(dst []byte) error {
			_, err := io.ReadFull(r, dst)
			return err
		})
		if err != nil {
			return err
		}
		if _, err := r.Seek(int64(r.Len()-end), io.SeekCurrent); err != nil {
			return err
		}
	}
	return nil
}

// close ends the pump, after all that is queued has gone out.
func (p *pump) close() error {
	close(p.ending)
	return <-p.ended
}
