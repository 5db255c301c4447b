package tcp

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"blutrain/dtms"
	"blutrain/dtms/internal/exchange"
	"blutrain/dtms/rendezvous"
)

// Defaults of Config.
const (
	DefaultJoinTimeout = 5 * time.Minute
	DefaultSilence     = 10 * time.Second
)

// Config says which rank this is and where the others are.
type Config struct {
	Rank, Size int
	Master     string        // host:port where rank 0 listens for the others
	Token      string        // shared by the job's ranks
	Join       time.Duration // for all ranks to come; 0 means DefaultJoinTimeout
	Silence    time.Duration // without a sign of life a rank is lost; 0 means DefaultSilence
	Facts      []dtms.Fact   // what must be the same on all ranks: see dtms.Agree
}

// Connect meets the other ranks, connects to each, and makes sure that all run the same.
func Connect(ctx context.Context, c Config) (*dtms.Communicator, error) {
	if c.Join == 0 {
		c.Join = DefaultJoinTimeout
	}
	if c.Silence == 0 {
		c.Silence = DefaultSilence
	}
	conns := make([]net.Conn, c.Size)
	if c.Size > 1 {
		var err error
		if conns, err = connectAll(ctx, c); err != nil {
			return nil, err
		}
	}
	comm := begin(c, conns)
	if err := dtms.Agree(ctx, comm.WithDeadline(c.Join), c.Facts); err != nil {
		comm.Abort(err)
		comm.Close()
		return nil, err
	}
	return comm, nil
}

// begin makes a communicator of connections, by rank.
func begin(c Config, conns []net.Conn) *dtms.Communicator {
	node := exchange.NewNode(c.Rank, c.Size, exchange.Options{Silence: c.Silence})
	links := make([]exchange.Link, c.Size)
	var all []*link
	for r, conn := range conns {
		if conn != nil {
			l := newLink(node, r, conn)
			links[r], all = l, append(all, l)
		}
	}
	node.Begin(links)
	for _, l := range all {
		l.begin()
	}
	closing := sync.OnceValue(func() error { return closeAll(all) })
	return dtms.New(exchange.World(node, closing))
}

// greeting is what the connecting rank of a pair says first.
type greeting struct {
	Session  string
	From, To int
}

const greetingLimit = 1 << 10

// connectAll meets the other ranks and makes a connection to each: every rank connects to those below it.
func connectAll(ctx context.Context, c Config) ([]net.Conn, error) {
	host, _, err := net.SplitHostPort(c.Master)
	if err != nil {
		return nil, fmt.Errorf("address of rank 0: %w", err)
	}
	if c.Token == "" && !rendezvous.Loopback(host) {
		return nil, fmt.Errorf("ranks on several hosts (rank 0 at %s) need a shared token, which only they know: set BLUTRAIN_TOKEN to the same on all", c.Master)
	}
	at := ":0"
	if rendezvous.Loopback(host) {
		at = "127.0.0.1:0"
		if ip := net.ParseIP(host); ip != nil {
			at = net.JoinHostPort(host, "0")
		}
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("rank %d can't listen for other ranks: %w", c.Rank, err)
	}
	defer listener.Close()
	meeting, err := rendezvous.Join(ctx, rendezvous.Config{Rank: c.Rank, Size: c.Size, Master: c.Master, Token: c.Token,
		Port: listener.Addr().(*net.TCPAddr).Port, Timeout: c.Join})
	if err != nil {
		return nil, err
	}
	m := &mesh{config: c, meeting: meeting, conns: make([]net.Conn, c.Size), full: make(chan struct{})}
	if err := m.connect(ctx, listener); err != nil {
		m.giveUp(err)
		return nil, err
	}
	return m.conns, nil
}

// mesh is the connections of a rank while they are being made.
type mesh struct {
	config  Config
	meeting *rendezvous.Meeting

	mu    sync.Mutex
	conns []net.Conn
	open  int
	full  chan struct{} // closed when there is a connection to every other rank
}

func (m *mesh) connect(ctx context.Context, listener net.Listener) error {
	// All ranks have been at the meeting just now, so connecting takes moments, or something is in the way.
	limit := min(m.config.Join, 30*time.Second)
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var dialing errgroup.Group
	for r := range m.config.Rank {
		dialing.Go(func() error { return m.dial(ctx, r) })
	}
	go m.accept(ctx, listener)
	err := dialing.Wait()
	if err != nil {
		return err
	}
	select {
	case <-m.full:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.full: // after all
		return nil
	default:
	}
	if ctx.Err() == context.Canceled {
		return context.Cause(ctx)
	}
	var errs dtms.RankErrors
	for r, conn := range m.conns {
		if r != m.config.Rank && conn == nil {
			errs = append(errs, &dtms.RankError{Rank: r, Fault: dtms.Missing,
				What: fmt.Sprintf("came to the meeting but did not connect to rank %d at %s within %s", m.config.Rank, m.meeting.Peers[m.config.Rank], limit)})
		}
	}
	return errs
}

// giveUp closes the connections made so far. Ranks that are connected to all learn why from them.
func (m *mesh) giveUp(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, conn := range m.conns {
		if conn == nil {
			continue
		}
		if errs := dtms.Faults(err); errs != nil {
			conn.SetWriteDeadline(time.Now().Add(farewell))
			conn.Write(exchange.AbortFrame(errs)) // if it can't be told, the connection's end tells that this rank is gone
		}
		conn.Close()
	}
}

// add puts a connection in its place.
func (m *mesh) add(rank int, conn net.Conn) bool {
	conn.SetDeadline(time.Time{})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conns[rank] != nil {
		return false
	}
	m.conns[rank] = conn
	if m.open++; m.open == m.config.Size-1 {
		close(m.full)
	}
	return true
}

func (m *mesh) dial(ctx context.Context, rank int) error {
	fail := func(err error) error {
		return &dtms.RankError{Rank: rank, Fault: dtms.Missing, Err: err,
			What: fmt.Sprintf("came to the meeting but can't be reached from rank %d at %s: %v", m.config.Rank, m.meeting.Peers[rank], err)}
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", m.meeting.Peers[rank])
	if err != nil {
		return fail(err)
	}
	if end, ok := ctx.Deadline(); ok {
		conn.SetDeadline(end)
	}
	err = rendezvous.Dial(conn, m.config.Token)
	if err == nil {
		err = rendezvous.WriteMessage(conn, greeting{m.meeting.Session, m.config.Rank, rank})
	}
	if err != nil {
		conn.Close()
		return fail(err)
	}
	m.add(rank, conn)
	return nil
}

// accept lets in the ranks above this one. Strangers are dropped.
func (m *mesh) accept(ctx context.Context, listener net.Listener) {
	stop := context.AfterFunc(ctx, func() { listener.Close() })
	defer stop()
	slots := make(chan struct{}, m.config.Size+16)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			conn.SetDeadline(time.Now().Add(rendezvous.HandshakeTimeout))
			var g greeting
			err := rendezvous.Accept(conn, m.config.Token)
			if err == nil {
				err = rendezvous.ReadMessage(conn, greetingLimit, &g)
			}
			right := err == nil && g.Session == m.meeting.Session && g.To == m.config.Rank && g.From > g.To && g.From < m.config.Size
			if !right || ctx.Err() != nil || !m.add(g.From, conn) {
				conn.Close()
			}
		}()
	}
}
