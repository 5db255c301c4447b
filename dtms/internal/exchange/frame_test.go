package exchange

import (
	"bytes"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/formats"
	"blutrain/ir"
)

func encoded(h Header, payload ...byte) []byte {
	b := make([]byte, HeaderSize)
	h.Encode(b)
	return append(b, payload...)
}

func TestHeader(t *testing.T) {
	h := Header{Kind: Data, Comm: 1 << 63, Call: 2, Count: 3 << 40, Part: 1<<32 - 1, Peer: 5, Length: MaxPayload}
	got, err := Decode(encoded(h))
	require.NoError(t, err)
	require.Equal(t, h, got)

	good := encoded(Header{Kind: Beat})
	for bit := range 8 * HeaderSize {
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		_, err := Decode(bad)
		require.Error(t, err, "bit %d", bit)
	}
	for name, h := range map[string]Header{
		"kind":                {Kind: 77},
		"payload too long":    {Kind: Data, Length: MaxPayload + 1},
		"payload on a beat":   {Kind: Beat, Length: 1},
		"operation":           {Kind: Join, Op: 99, DType: formats.F32},
		"send is no call":     {Kind: Join, Op: dtms.Send, DType: formats.F32},
		"element type":        {Kind: Ready, DType: 99},
		"count":               {Kind: Ready, DType: formats.F32, Count: 1<<62 + 1},
		"call without a type": {Kind: Join, Op: dtms.AllReduce},
	} {
		_, err := Decode(encoded(h))
		require.Error(t, err, name)
	}
}

func TestTruncated(t *testing.T) {
	var buffer [HeaderSize]byte
	for n := range HeaderSize {
		_, err := ReadHeader(bytes.NewReader(encoded(Header{Kind: Beat})[:n]), &buffer)
		require.Error(t, err)
		require.Equal(t, n == 0, errors.Is(err, io.EOF), "%d bytes: %v", n, err)
	}
}

// quiet is a link that nobody listens to.
type quiet struct{}

func (quiet) Post(Header, []byte)        {}
func (quiet) Write(Header, []byte) error { return nil }

// feed hands a node bytes as rank 1, as a transport does.
func feed(n *Node, stream []byte) error {
	r := bytes.NewReader(stream)
	var buffer [HeaderSize]byte
	for {
		h, err := ReadHeader(r, &buffer)
		if err != nil {
			return err
		}
		left := int(h.Length)
		err = n.Handle(1, h, func(dst []byte) error {
			k, err := io.ReadFull(r, dst)
			left -= k
			return err
		})
		if err != nil {
			return err
		}
		r.Seek(int64(left), io.SeekCurrent)
	}
}

func node() *Node {
	n := NewNode(0, 2, Options{})
	n.Begin([]Link{nil, quiet{}})
	return n
}

// TestWrongFrames holds that frames which no rank sends are refused and write nowhere.
func TestWrongFrames(t *testing.T) {
	join := Header{Kind: Join, Op: dtms.AllReduce, DType: formats.F32, Count: 4}
	ready := Header{Kind: Ready, DType: formats.F32, Count: 4}
	data := Header{Kind: Data, Part: results, Length: 4}
	for name, stream := range map[string][]byte{
		"data for nothing":     encoded(data, 1, 2, 3, 4),
		"joined twice":         append(encoded(join), encoded(join)...),
		"ready twice":          append(encoded(ready), encoded(ready)...),
		"unreadable reason":    encoded(Header{Kind: Abort, Length: 3}, 'a', 'b', 'c'),
		"no reason":            encoded(Header{Kind: Abort, Length: 2}, '[', ']'),
		"rank that can't be":   encoded(Header{Kind: Abort, Length: 10}, []byte(`[{"Rank":2}]`)[:10]...),
		"payload that ends":    encoded(Header{Kind: Abort, Length: 100}, '['),
		"garbage":              []byte("GET / HTTP/1.1\r\nHost: rank0\r\nUser-Agent: someone\r\n\r\n"),
		"garbage behind beats": append(encoded(Header{Kind: Beat}), bytes.Repeat([]byte{0}, HeaderSize)...),
	} {
		err := feed(node(), stream)
		require.Error(t, err, name)
		require.NotErrorIs(t, err, io.EOF, name)
	}

	n := node()
	dst := make([]byte, 8)
	n.receive(transferKey{0, 0, results, 1}, formats.F32, dst[:4], "test")
	far := data
	far.Count = 2
	require.Error(t, feed(n, encoded(far, 1, 2, 3, 4)), "beyond the end")
	long := data
	long.Length = 5
	require.Error(t, feed(n, encoded(long, 1, 2, 3, 4, 5)), "too long")
	require.Equal(t, make([]byte, 8), dst)
	require.ErrorIs(t, feed(n, encoded(data, 1, 2, 3, 4)), io.EOF)
	require.Equal(t, []byte{1, 2, 3, 4, 0, 0, 0, 0}, dst)
	require.Error(t, feed(n, encoded(data, 1, 2, 3, 4)), "again")
}

// TestFlood holds that a rank can't make another remember without limit.
func TestFlood(t *testing.T) {
	for _, h := range []Header{{Kind: Join, Op: dtms.Barrier, DType: formats.U8}, {Kind: Ready, DType: formats.U8, Count: 1}} {
		n := node()
		var err error
		for i := 0; i < 2*outstanding && err == nil; i++ {
			h.Call = uint64(i)
			err = n.Handle(1, h, nil)
		}
		require.ErrorContains(t, err, "too many")
		require.LessOrEqual(t, len(n.rolls)+len(n.grants), outstanding+1)
	}
}

// TestLastWords holds that errors of many ranks with long texts fit a frame.
func TestLastWords(t *testing.T) {
	var errs dtms.RankErrors
	for r := range 5000 {
		errs = append(errs, &dtms.RankError{Rank: r, Fault: dtms.Dead, What: string(bytes.Repeat([]byte("é"), 2000))})
	}
	frame := AbortFrame(errs)
	require.LessOrEqual(t, len(frame), HeaderSize+MaxPayload)
	n := NewNode(0, 5000, Options{})
	n.Begin(make([]Link, 5000))
	require.ErrorIs(t, feed(n, frame), io.EOF)
	require.Greater(t, len(dtms.Faults(n.Err())), 10)
}

// TestSilent holds that a rank which was last heard long ago is named.
func TestSilent(t *testing.T) {
	n := NewNode(0, 2, Options{Silence: 80 * time.Millisecond})
	n.heard[1].Store(int64(-time.Hour))
	n.listen(10 * time.Millisecond)
	require.ErrorContains(t, n.Err(), "rank 1 gives no sign of life for 3600.0 s")
}

// FuzzFrames feeds a node any bytes while it waits for data: it must not panic, hang, hold much, or write outside of what it offered.
func FuzzFrames(f *testing.F) {
	f.Add(encoded(Header{Kind: Data, Part: results, Length: 4}, 1, 2, 3, 4))
	f.Add(append(encoded(Header{Kind: Join, Op: dtms.AllReduce, DType: formats.F32, Count: 2}), encoded(Header{Kind: Ready, DType: formats.F32, Count: 4})...))
	f.Add(AbortFrame(dtms.RankErrors{{Rank: 1, Fault: dtms.Dead, What: "died"}}))
	f.Add(append(encoded(Header{Kind: Beat}), encoded(Header{Kind: Bye})...))
	f.Fuzz(func(t *testing.T, stream []byte) {
		fixed := bytes.Clone(stream) // with headers whose checksum is right, or hardly any would get further
		for i := 0; i+HeaderSize <= len(fixed); {
			h, err := Decode(resealed(fixed[i : i+HeaderSize]))
			if err != nil {
				break
			}
			i += HeaderSize + int(h.Length)
		}
		for _, s := range [][]byte{stream, fixed} {
			n := node()
			memory := make([]byte, 16)
			n.receive(transferKey{0, 0, results, 1}, formats.U8, memory[4:12], "test")
			require.Error(t, feed(n, s)) // at the latest, that it ends
			require.Zero(t, [4]byte(memory[:4]))
			require.Zero(t, [4]byte(memory[12:]))
			n.Leave()
		}
	})
}

// resealed gives a header the magic number, version and checksum it should have, in place.
func resealed(b []byte) []byte {
	h := Header{Kind: Kind(b[5]), Op: dtms.Op(b[6]), DType: formats.DType(b[7]), Comm: uint64(b[8]), Call: uint64(b[16]),
		Count: uint64(b[24]), Part: results * uint32(b[32]&1), Peer: uint32(b[36]), Length: uint32(b[40])}
	h.Encode(b)
	return b
}

// TestRounding holds the rounding of half types to the reference's for every float32 that lies on, between, or beside halves.
func TestRounding(t *testing.T) {
	for half := range 1 << 16 {
		for _, widen := range []func(uint16) float32{formats.BF16ToF32, formats.F16ToF32} {
			v := widen(uint16(half))
			next := widen(uint16(half + 1))
			middle := float32((float64(v) + float64(next)) / 2)
			for _, x := range []float32{v, middle, nudge(middle, 1), nudge(middle, -1), nudge(v, 1), nudge(v, -1)} {
				if x != x {
					require.True(t, formats.BF16ToF32(toBF16(x)) != formats.BF16ToF32(toBF16(x)) && formats.F16ToF32(toF16(x)) != formats.F16ToF32(toF16(x)))
					continue
				}
				if toBF16(x) != ir.BF16Bits(float64(x)) || toF16(x) != ir.F16Bits(float64(x)) {
					require.Failf(t, "rounding", "%g: bf16 %#x, %#x expected; f16 %#x, %#x expected", x, toBF16(x), ir.BF16Bits(float64(x)), toF16(x), ir.F16Bits(float64(x)))
				}
			}
		}
	}
}

// nudge is the float32 one step from x, away from zero or towards it.
func nudge(x float32, step int32) float32 {
	return math.Float32frombits(uint32(int32(math.Float32bits(x)) + step))
}
