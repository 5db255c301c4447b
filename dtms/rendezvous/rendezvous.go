package rendezvous

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"blutrain/dtms"
)

// Config says who comes and where to.
type Config struct {
	Rank, Size int
	Master     string        // host:port where rank 0 listens
	Token      string        // shared by all ranks of the job
	Port       int           // where the other ranks can reach this one, on its own host
	Timeout    time.Duration // for all ranks to come
}

// Meeting is what all ranks know after they have met.
type Meeting struct {
	Session string   // drawn anew for each meeting, so that processes of two jobs can't mix
	Peers   []string // host:port of each rank
}

// hello is what a rank says to rank 0.
type hello struct {
	Rank, Size, Port int
	Process          string // for people
}

// verdict is rank 0's answer to all.
type verdict struct {
	Errors  dtms.RankErrors `json:",omitempty"`
	Meeting Meeting
}

const (
	helloLimit   = 4 << 10
	verdictLimit = 4 << 20
	// patience is how much longer than rank 0 a rank waits for its verdict.
	patience = 5 * time.Second
)

// Join meets the other ranks. Its error names the ranks that did not come in time, or that don't belong.
func Join(ctx context.Context, c Config) (*Meeting, error) {
	if c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size {
		return nil, fmt.Errorf("rank %d of %d does not exist", c.Rank, c.Size)
	}
	if _, _, err := net.SplitHostPort(c.Master); err != nil {
		return nil, fmt.Errorf("address of rank 0: %w", err)
	}
	if c.Rank == 0 {
		return serve(ctx, c)
	}
	return visit(ctx, c)
}

// Loopback reports whether an address is this machine only, so that nobody else need be listened to.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// visit is what every rank but 0 does.
func visit(ctx context.Context, c Config) (*Meeting, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	conn, err := reach(ctx, c)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() {
		if ctx.Err() == context.Canceled {
			conn.SetDeadline(time.Now())
		}
	})
	defer stop()
	conn.SetDeadline(time.Now().Add(c.Timeout + patience))
	var v verdict
	if err := ReadMessage(conn, verdictLimit, &v); err != nil {
		if ctx.Err() == context.Canceled {
			return nil, context.Cause(ctx)
		}
		return nil, &dtms.RankError{Rank: 0, Fault: dtms.Dead, What: fmt.Sprintf("went away from %s before all ranks had come: %v", c.Master, err)}
	}
	if len(v.Errors) > 0 {
		return nil, v.Errors
	}
	if len(v.Meeting.Peers) != c.Size {
		return nil, &dtms.RankError{Rank: 0, Fault: dtms.Garbled, What: fmt.Sprintf("gave %d addresses for %d ranks", len(v.Meeting.Peers), c.Size)}
	}
	return &v.Meeting, nil
}

// reach connects to rank 0, which may not have begun to listen.
func reach(ctx context.Context, c Config) (net.Conn, error) {
	pause := 50 * time.Millisecond
	var last error // of an attempt that was not cut short
	for {
		conn, err := try(ctx, c)
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, ErrToken):
			return nil, &dtms.RankError{Rank: c.Rank, Fault: dtms.Mismatched, What: fmt.Sprintf("is refused by rank 0 at %s: %v", c.Master, err), Err: err}
		case errors.Is(err, ErrStranger):
			return nil, &dtms.RankError{Rank: 0, Fault: dtms.Missing, What: fmt.Sprintf("is not at %s: %v", c.Master, err), Err: err}
		case last == nil || ctx.Err() == nil && !timedOut(err):
			last = err
		}
		select {
		case <-ctx.Done():
			if ctx.Err() == context.Canceled {
				return nil, fmt.Errorf("%w; rank 0 could not be reached at %s: %v", context.Cause(ctx), c.Master, last)
			}
			return nil, &dtms.RankError{Rank: 0, Fault: dtms.Missing, What: fmt.Sprintf("can't be reached at %s within %s: %v", c.Master, c.Timeout, last)}
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// timedOut reports an attempt without an answer. The last one, as the time of all is over, is one before the context says so.
func timedOut(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func try(ctx context.Context, c Config) (net.Conn, error) {
	dialer := net.Dialer{Timeout: HandshakeTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", c.Master)
	if err != nil {
		return nil, err
	}
	conn.SetDeadline(time.Now().Add(HandshakeTimeout))
	err = Dial(conn, c.Token)
	if err == nil {
		err = WriteMessage(conn, hello{Rank: c.Rank, Size: c.Size, Port: c.Port, Process: process()})
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// process names this process for people.
func process() string {
	host, err := os.Hostname()
	if err != nil {
		host = "?"
	}
	return host + ", process " + strconv.Itoa(os.Getpid())
}

func newSession() (string, error) {
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(b[:]), nil
}
