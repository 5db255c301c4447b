package rendezvous

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/internal/freeport"
)

func freeAddress(t *testing.T) string {
	address, err := freeport.Address("127.0.0.1")
	require.NoError(t, err)
	return address
}

func config(rank, size int, master string) Config {
	return Config{Rank: rank, Size: size, Master: master, Token: "secret", Port: 4000 + rank, Timeout: 20 * time.Second}
}

// meet runs all ranks but those edited away and returns what each got.
func meet(ctx context.Context, configs ...Config) ([]*Meeting, []error) {
	meetings, errs := make([]*Meeting, len(configs)), make([]error, len(configs))
	var all sync.WaitGroup
	for i, c := range configs {
		all.Go(func() { meetings[i], errs[i] = Join(ctx, c) })
	}
	all.Wait()
	return meetings, errs
}

func TestMeeting(t *testing.T) {
	at := freeAddress(t)
	meetings, errs := meet(context.Background(), config(0, 3, at), config(1, 3, at), config(2, 3, at))
	require.NoError(t, errors.Join(errs...))
	require.Len(t, meetings[0].Session, 64)
	for _, m := range meetings {
		require.Equal(t, []string{"127.0.0.1:4000", "127.0.0.1:4001", "127.0.0.1:4002"}, m.Peers)
		require.Equal(t, meetings[0].Session, m.Session)
	}
	again, errs := meet(context.Background(), config(0, 2, at), config(1, 2, at))
	require.NoError(t, errors.Join(errs...))
	require.NotEqual(t, meetings[0].Session, again[0].Session)
}

// TestStrangers holds that others who come to rank 0 are neither believed nor waited for.
func TestStrangers(t *testing.T) {
	at := freeAddress(t)
	var meetings []*Meeting
	var errs []error
	done := make(chan struct{})
	first := config(0, 2, at)
	go func() {
		meetings, errs = meet(context.Background(), first)
		close(done)
	}()
	dial := func() (conn net.Conn) {
		require.Eventually(t, func() (ok bool) {
			var err error
			conn, err = net.Dial("tcp", at)
			return err == nil
		}, 10*time.Second, 5*time.Millisecond)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	http := dial()
	_, err := io.WriteString(http, "GET / HTTP/1.1\r\nHost: rank0\r\nUser-Agent: a stranger with a long name, longer than a greeting\r\n\r\n")
	require.NoError(t, err)
	http.SetDeadline(time.Now().Add(5 * time.Second))
	_, err = io.Copy(io.Discard, http)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "rank 0 keeps a stranger")
	dial() // which says nothing

	big := dial() // knows the token, but says too much
	require.NoError(t, Dial(big, "secret"))
	_, err = big.Write(binary.LittleEndian.AppendUint32(nil, 1<<31))
	require.NoError(t, err)
	big.SetDeadline(time.Now().Add(5 * time.Second))
	_, err = io.Copy(io.Discard, big)
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "rank 0 waits for 2 GiB")

	_, other := meet(context.Background(), config(1, 2, at))
	require.NoError(t, other[0])
	<-done
	require.NoError(t, errs[0])
	require.Len(t, meetings[0].Peers, 2)
}

func TestWhatAnswersThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\nand more than a greeting is long\r\n")
			go io.Copy(io.Discard, conn)
		}
	}()
	_, err = Join(context.Background(), config(1, 2, l.Addr().String()))
	require.ErrorIs(t, err, ErrStranger)
	require.ErrorContains(t, err, "rank 0 is not at "+l.Addr().String()+": what answers there is not a rank of this program")
}

func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = Join(context.Background(), config(0, 2, l.Addr().String()))
	require.ErrorContains(t, err, "rank 0 can't listen for the other ranks at "+l.Addr().String())
	require.ErrorContains(t, err, "address already in use")
}

func TestComingBack(t *testing.T) {
	at := freeAddress(t)
	done := make(chan error, 1)
	go func() {
		_, err := Join(context.Background(), config(0, 3, at))
		done <- err
	}()
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error, 1)
	go func() {
		_, err := Join(ctx, config(1, 3, at))
		gone <- err
	}()
	time.Sleep(300 * time.Millisecond)
	cancel() // rank 1 is restarted before rank 2 has come
	require.ErrorIs(t, <-gone, context.Canceled)
	_, errs := meet(context.Background(), config(1, 3, at), config(2, 3, at))
	require.NoError(t, errors.Join(errs...))
	require.NoError(t, <-done)
}

// A rank that has gone is not met, even if its end is seen after the last of the others has come.
func TestGoneUnseen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	come := func(rank int) (g *guest, leave func()) {
		there, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		here, err := l.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { there.Close(); here.Close() })
		return &guest{hello: hello{Rank: rank, Size: 3, Port: 1}, conn: here}, func() {
			require.NoError(t, there.Close())
			require.Eventually(t, func() bool { return ended(here) }, 5*time.Second, time.Millisecond)
		}
	}
	s := &server{config: config(0, 3, l.Addr().String()), arrived: make(chan *guest), departed: make(chan *guest), refused: make(chan string)}
	met := make(chan []*guest, 1)
	go func() {
		guests, _, err := s.gather(t.Context())
		assert.NoError(t, err)
		met <- guests
	}()
	first, leave := come(1)
	other, _ := come(2)
	again, _ := come(1)
	require.False(t, ended(first.conn))
	leave()
	s.arrived <- first
	s.arrived <- other
	select {
	case s.departed <- first:
	case <-met:
		require.Fail(t, "rank 1 was met though it had gone")
	}
	s.arrived <- again
	require.Equal(t, []*guest{nil, again, other}, <-met)
}

func TestCancelled(t *testing.T) {
	at := freeAddress(t)
	reason := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(300*time.Millisecond, func() { cancel(reason) })
	other := make(chan error, 1)
	go func() {
		_, err := Join(context.Background(), config(1, 3, at))
		other <- err
	}()
	_, err := Join(ctx, config(0, 3, at))
	require.ErrorIs(t, err, reason)
	require.ErrorContains(t, err, "interrupted; rank ")
	require.ErrorContains(t, err, "rank 2 had not come to "+at)
	require.ErrorContains(t, <-other, "rank 0 gave up: interrupted")
}

// TestWhyRankZeroWasNotReached: however the wait for rank 0 ends, what came of the attempts is told.
func TestWhyRankZeroWasNotReached(t *testing.T) {
	at := freeAddress(t) // nobody listens
	reason := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(200*time.Millisecond, func() { cancel(reason) })
	_, err := Join(ctx, config(1, 2, at))
	require.ErrorIs(t, err, reason)
	require.ErrorContains(t, err, "interrupted; rank 0 could not be reached at "+at+": dial tcp "+at)
	require.ErrorContains(t, err, "connection refused")

	c := config(1, 2, at)
	c.Timeout = 200 * time.Millisecond
	_, err = Join(context.Background(), c)
	require.ErrorContains(t, err, "rank 0 can't be reached at "+at+" within 200ms: dial tcp "+at)
	require.ErrorContains(t, err, "connection refused")
}

func TestRefusals(t *testing.T) {
	for _, c := range []Config{config(2, 2, "127.0.0.1:1"), config(-1, 2, "127.0.0.1:1"), config(0, 0, "127.0.0.1:1"), config(0, 1, "no port")} {
		_, err := Join(context.Background(), c)
		require.Error(t, err)
	}
}

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "127.0.0.1": true, "127.8.8.8": true, "::1": true, "10.0.0.1": false, "node1": false} {
		require.Equal(t, want, Loopback(host), host)
	}
}

// TestAddresses holds that ranks on rank 0's host get an address that other hosts can use.
func TestAddresses(t *testing.T) {
	from := func(rank int, remote, local string) *guest {
		return &guest{hello: hello{Rank: rank, Port: 100 + rank}, remote: net.ParseIP(remote), local: net.ParseIP(local)}
	}
	c := Config{Master: "node1:7", Port: 100, Size: 3}
	two := c
	two.Size = 2
	require.Equal(t, []string{"10.0.0.1:100", "10.0.0.1:101", "10.0.0.2:102"},
		addresses(c, []*guest{nil, from(1, "127.0.0.1", "127.0.1.1"), from(2, "10.0.0.2", "10.0.0.1")}))
	require.Equal(t, []string{"node1:100", "10.0.0.1:101"}, addresses(two, []*guest{nil, from(1, "10.0.0.1", "10.0.0.1")}))
	require.Equal(t, []string{"127.0.0.1:100", "127.0.0.1:101"}, addresses(Config{Master: "127.0.0.1:7", Port: 100, Size: 2}, []*guest{nil, from(1, "127.0.0.1", "127.0.0.1")}))
	require.Equal(t, []string{"[fd00::1]:100", "[fd00::2]:101"}, addresses(two, []*guest{nil, from(1, "fd00::2", "fd00::1")}))
}

func TestFaultsOfVerdict(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, WriteMessage(&b, verdict{Errors: dtms.RankErrors{{Rank: 2, Fault: dtms.Missing, What: "did not come"}}}))
	var v verdict
	require.NoError(t, ReadMessage(&b, verdictLimit, &v))
	require.EqualError(t, v.Errors, "rank 2 did not come")
}

// FuzzAccept lets anything come to rank 0. Without the token nothing gets in.
func FuzzAccept(f *testing.F) {
	f.Add([]byte(magic + "\x01\x00" + "0123456789abcdef0123456789abcdef" + "0123456789abcdef0123456789abcdef"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		mine, theirs := net.Pipe()
		go func() {
			go io.Copy(io.Discard, theirs)
			theirs.Write(said)
			theirs.Close()
		}()
		require.Error(t, Accept(mine, "secret"))
		mine.Close()
	})
}

// FuzzMessage reads any message.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x0c\x00\x00\x00{\"Rank\":1}  and more"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		var h hello
		if err := ReadMessage(bytes.NewReader(text), helloLimit, &h); err == nil {
			require.LessOrEqual(t, binary.LittleEndian.Uint32(text), uint32(helloLimit))
		}
	})
}
