package rendezvous

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"sync"
	"time"

	"blutrain/dtms"
)

// strangers bounds the connections that have not proved themselves yet.
const strangers = 64

// guest is a rank that has come to rank 0.
type guest struct {
	hello
	conn   net.Conn
	remote net.IP // where it comes from
	local  net.IP // what it called this host
}

// server is rank 0 while the ranks come.
type server struct {
	config   Config
	arrived  chan *guest
	departed chan *guest
	refused  chan string
	quit     chan struct{}
	slots    chan struct{}
	handlers sync.WaitGroup
}

// serve is what rank 0 does.
func serve(ctx context.Context, c Config) (*Meeting, error) {
	host, port, _ := net.SplitHostPort(c.Master)
	at := ":" + port
	if Loopback(host) {
		at = c.Master
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("rank 0 can't listen for the other ranks at %s: %w", c.Master, err)
	}
	s := &server{config: c, arrived: make(chan *guest), departed: make(chan *guest), refused: make(chan string),
		quit: make(chan struct{}), slots: make(chan struct{}, strangers)}
	s.handlers.Go(func() { s.accept(listener) })
	guests, v, err := s.gather(ctx)
	for _, g := range guests {
		if g == nil {
			continue
		}
		g.conn.SetWriteDeadline(time.Now().Add(HandshakeTimeout))
		if e := WriteMessage(g.conn, v); e != nil && err == nil && v.Errors == nil {
			v.Errors = dtms.RankErrors{{Rank: g.Rank, Fault: dtms.Dead, What: "went away before all ranks had come: " + e.Error()}}
		}
	}
	if v.Errors != nil && err == nil {
		s.tell(v, guests)
	}
	close(s.quit)
	listener.Close()
	for _, g := range guests {
		if g != nil {
			g.conn.Close()
		}
	}
	s.handlers.Wait()
	if err != nil {
		return nil, err
	}
	if v.Errors != nil {
		return nil, v.Errors
	}
	return &v.Meeting, nil
}

// tell gives ranks that come after a refusal a moment to learn of it, so that all name the same ranks.
func (s *server) tell(v verdict, guests []*guest) {
	waiting := map[int]bool{}
	for r := 1; r < s.config.Size; r++ {
		waiting[r] = guests[r] == nil
	}
	for _, e := range v.Errors {
		delete(waiting, e.Rank)
	}
	maps.DeleteFunc(waiting, func(_ int, waits bool) bool { return !waits })
	enough := time.After(patience)
	for len(waiting) > 0 {
		select {
		case g := <-s.arrived:
			g.conn.SetWriteDeadline(time.Now().Add(HandshakeTimeout))
			WriteMessage(g.conn, v)
			g.conn.Close()
			delete(waiting, g.Rank)
		case <-s.departed:
		case <-s.refused:
		case <-enough:
			return
		}
	}
}

func (s *server) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			time.Sleep(10 * time.Millisecond) // out of file descriptors, say
			continue
		}
		select {
		case s.slots <- struct{}{}:
			s.handlers.Go(func() { s.receive(conn) })
		case <-s.quit:
			conn.Close()
			return
		}
	}
}

// receive lets a rank in and watches whether it stays.
func (s *server) receive(conn net.Conn) {
	g, err := s.admit(conn)
	<-s.slots
	if err != nil {
		conn.Close()
		remote, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
		select {
		case s.refused <- fmt.Sprintf("%s (%v)", remote, err):
		case <-s.quit:
		}
		return
	}
	select {
	case s.arrived <- g:
	case <-s.quit:
		conn.Close()
		return
	}
	var one [1]byte
	conn.Read(one[:]) // a rank says no more until it has its verdict, so this ends when it leaves or at the end
	select {
	case s.departed <- g:
	case <-s.quit:
	}
}

func (s *server) admit(conn net.Conn) (*guest, error) {
	conn.SetDeadline(time.Now().Add(HandshakeTimeout))
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-s.quit:
			conn.SetDeadline(time.Now())
		case <-stop:
		}
	}()
	if err := Accept(conn, s.config.Token); err != nil {
		return nil, err
	}
	g := &guest{conn: conn}
	if err := ReadMessage(conn, helloLimit, &g.hello); err != nil {
		return nil, err
	}
	if g.Port < 1 || g.Port > 65535 {
		return nil, fmt.Errorf("port %d", g.Port)
	}
	conn.SetDeadline(time.Time{})
	g.remote, g.local = ipOf(conn.RemoteAddr()), ipOf(conn.LocalAddr())
	return g, nil
}

func ipOf(a net.Addr) net.IP {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.IP
	}
	return nil
}

// gather waits until all ranks have come, one doesn't belong, or the time is over.
func (s *server) gather(ctx context.Context) (guests []*guest, v verdict, err error) {
	c := s.config
	guests = make([]*guest, c.Size)
	left := make([]string, c.Size)
	var refused []string
	timer := time.NewTimer(c.Timeout)
	defer timer.Stop()
	missing := c.Size - 1
	depart := func(g *guest) {
		guests[g.Rank], left[g.Rank] = nil, g.Process
		missing++
	}
	for missing > 0 {
		select {
		case g := <-s.arrived:
			s.settle(g.Rank, guests, depart)
			if v.Errors = s.belongs(g, guests); v.Errors != nil {
				return append(guests, g), v, nil
			}
			guests[g.Rank] = g
			if missing--; missing == 0 {
				s.seeOff(guests, depart)
			}
		case g := <-s.departed:
			depart(g)
		case r := <-s.refused:
			if len(refused) < 3 {
				refused = append(refused, r)
			}
		case <-ctx.Done():
			v.Errors = dtms.RankErrors{{Rank: 0, Fault: dtms.Failed, What: "gave up: " + context.Cause(ctx).Error()}}
			return guests, v, fmt.Errorf("%w; %v", context.Cause(ctx), absent(c, guests, left, refused, "had not come to "+c.Master))
		case <-timer.C:
			v.Errors = absent(c, guests, left, refused, fmt.Sprintf("did not come to %s within %s", c.Master, c.Timeout))
			return guests, v, nil
		}
	}
	v.Meeting.Session, err = newSession()
	v.Meeting.Peers = addresses(c, guests)
	return guests, v, err
}

// handover is how long a rank that comes a second time is given for its first connection to be seen to end: a restarted
// rank can be here before the end of the one it replaces.
const handover = 2 * time.Second

// settle takes note of ranks that have gone until rank r has, or the handover is over.
func (s *server) settle(r int, guests []*guest, depart func(*guest)) {
	timer := time.NewTimer(handover)
	defer timer.Stop()
	for r > 0 && r < len(guests) && guests[r] != nil {
		select {
		case g := <-s.departed:
			depart(g)
		case <-timer.C:
			return
		}
	}
}

// seeOff takes note of ranks whose connections have ended, of which the goroutines that watch them have not told yet: a meeting with one of
// those would leave out the rank that comes in its place.
func (s *server) seeOff(guests []*guest, depart func(*guest)) {
	for r, g := range guests {
		for g != nil && guests[r] == g && ended(g.conn) {
			depart(<-s.departed)
		}
	}
}

// belongs says what is wrong with a rank that has come.
func (s *server) belongs(g *guest, guests []*guest) dtms.RankErrors {
	size := s.config.Size
	wrong := func(format string, args ...any) dtms.RankErrors {
		return dtms.RankErrors{{Rank: g.Rank, Fault: dtms.Mismatched, What: fmt.Sprintf(format, args...)}}
	}
	switch {
	case g.Size != size:
		return wrong("(%s) was started as one of %d ranks, rank 0 as one of %d", g.Process, g.Size, size)
	case g.Rank == 0:
		return wrong("was started twice: here (%s) and as %s", process(), g.Process)
	case g.Rank < 0 || g.Rank >= size:
		return wrong("(%s) does not exist among %d", g.Process, size)
	case guests[g.Rank] != nil:
		return wrong("was started twice: as %s and as %s", guests[g.Rank].Process, g.Process)
	}
	return nil
}

// absent names the ranks that have not come, and says what of those that were never there.
func absent(c Config, guests []*guest, left, refused []string, never string) dtms.RankErrors {
	var errs dtms.RankErrors
	for r := 1; r < c.Size; r++ {
		if guests[r] != nil {
			continue
		}
		what := never
		if left[r] != "" {
			what = fmt.Sprintf("(%s) came to %s and left before all were there", left[r], c.Master)
		}
		for _, r := range refused {
			what += "; refused: " + r
		}
		errs = append(errs, &dtms.RankError{Rank: r, Fault: dtms.Missing, What: what})
	}
	return errs
}

// addresses says where each rank can be reached. A rank on rank 0's own host may have come over the loopback interface,
// which the others can't use; there this host is what ranks of other hosts call it.
func addresses(c Config, guests []*guest) []string {
	host, _, _ := net.SplitHostPort(c.Master)
	for _, g := range guests[1:] {
		if !g.remote.IsLoopback() && !g.remote.Equal(g.local) {
			host = g.local.String()
			break
		}
	}
	peers := make([]string, c.Size)
	peers[0] = net.JoinHostPort(host, strconv.Itoa(c.Port))
	for _, g := range guests[1:] {
		at := g.remote.String()
		if g.remote.IsLoopback() {
			at = host
		}
		peers[g.Rank] = net.JoinHostPort(at, strconv.Itoa(g.Port))
	}
	return peers
}
