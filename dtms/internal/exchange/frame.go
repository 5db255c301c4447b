package exchange

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"blutrain/dtms"
	"blutrain/formats"
)

// Kind is the kind of a frame.
type Kind uint8

// The frames. In each, Comm and Call name the group and its call.
const (
	Join  Kind = iota + 1 // the sender has begun a collective: Op, DType, Count elements, Peer (the root)
	Ready                 // the sender can receive transfer Part: Count bytes of DType
	Data                  // bytes of transfer Part, from byte Count on
	Beat                  // the sender lives
	Abort                 // the job has failed; the payload says why
	Bye                   // the sender leaves in order and sends no more
	kindEnd
)

// Header is what every frame begins with. Payload bytes follow in Data and Abort.
type Header struct {
	Kind   Kind
	Op     dtms.Op
	DType  formats.DType
	Comm   uint64
	Call   uint64
	Count  uint64
	Part   uint32
	Peer   uint32
	Length uint32 // of the payload, in bytes
}

const (
	// HeaderSize is the length of an encoded header.
	HeaderSize = 48
	// MaxPayload bounds the payload of any frame, and so what a reader must hold.
	MaxPayload = 256 << 10

	magic   = 0x534d5444 // "DTMS"
	version = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Encode writes the header into b, which has HeaderSize bytes.
func (h Header) Encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b[0:], magic)
	b[4], b[5], b[6], b[7] = version, byte(h.Kind), byte(h.Op), byte(h.DType)
	le.PutUint64(b[8:], h.Comm)
	le.PutUint64(b[16:], h.Call)
	le.PutUint64(b[24:], h.Count)
	le.PutUint32(b[32:], h.Part)
	le.PutUint32(b[36:], h.Peer)
	le.PutUint32(b[40:], h.Length)
	le.PutUint32(b[44:], crc32.Checksum(b[:44], castagnoli))
}

// Decode reads a header and refuses what Encode can't have written.
func Decode(b []byte) (Header, error) {
	le := binary.LittleEndian
	switch {
	case le.Uint32(b[0:]) != magic:
		return Header{}, errors.New("not a frame")
	case b[4] != version:
		return Header{}, fmt.Errorf("frame version %d, %d expected", b[4], version)
	case le.Uint32(b[44:]) != crc32.Checksum(b[:44], castagnoli):
		return Header{}, errors.New("damaged frame header")
	}
	h := Header{Kind: Kind(b[5]), Op: dtms.Op(b[6]), DType: formats.DType(b[7]), Comm: le.Uint64(b[8:]), Call: le.Uint64(b[16:]),
		Count: le.Uint64(b[24:]), Part: le.Uint32(b[32:]), Peer: le.Uint32(b[36:]), Length: le.Uint32(b[40:])}
	return h, h.check()
}

func (h Header) check() error {
	switch {
	case h.Kind == 0 || h.Kind >= kindEnd:
		return fmt.Errorf("frame of unknown kind %d", h.Kind)
	case h.Length > MaxPayload:
		return fmt.Errorf("frame of %d bytes, at most %d are allowed", h.Length, MaxPayload)
	case h.Length > 0 && h.Kind != Data && h.Kind != Abort:
		return fmt.Errorf("frame of kind %d with %d bytes of payload", h.Kind, h.Length)
	case h.Kind == Join && !h.Op.Collective():
		return fmt.Errorf("call of unknown %s", h.Op)
	case (h.Kind == Join || h.Kind == Ready) && !h.DType.Valid():
		return fmt.Errorf("unknown element type %d", uint8(h.DType))
	case (h.Kind == Join || h.Kind == Ready) && h.Count > 1<<62:
		return fmt.Errorf("frame with a count of %d", h.Count)
	}
	return nil
}

// ReadHeader reads the next frame's header. io.EOF means the stream ended between frames.
func ReadHeader(r io.Reader, buffer *[HeaderSize]byte) (Header, error) {
	if _, err := io.ReadFull(r, buffer[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the stream ends within a frame")
		}
		return Header{}, err
	}
	h, err := Decode(buffer[:])
	if err != nil {
		return Header{}, &FormatError{err}
	}
	return h, nil
}

// FormatError says that what arrived is no frame.
type FormatError struct{ err error }

func (e *FormatError) Error() string { return e.err.Error() }

// Unwrap is what was wrong.
func (e *FormatError) Unwrap() error { return e.err }

// WrongFrame marks an error as the sender's: a frame that does not belong where it came.
func WrongFrame(err error) error { return &FormatError{err} }
