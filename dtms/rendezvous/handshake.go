package rendezvous

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// HandshakeTimeout bounds how long a connection may take to prove itself.
const HandshakeTimeout = 10 * time.Second

const (
	magic   = "BLUTRAIN"
	version = 1

	greetingSize = len(magic) + 2 + nonceSize
	nonceSize    = 32

	accepted = 1
)

// Errors of a handshake that trying again doesn't cure.
var (
	ErrToken    = errors.New("the token is not the same on both sides (BLUTRAIN_TOKEN)")
	ErrStranger = errors.New("what answers there is not a rank of this program")
)

// Dial proves to the accepting side that this side knows the token, and the reverse: each answers the other's challenge
// with a keyed hash (HMAC-SHA-256), so the token itself is never sent. Nothing after the handshake is encrypted.
func Dial(conn net.Conn, token string) error {
	mine, theirs, err := greet(conn)
	if err != nil {
		return err
	}
	if _, err := conn.Write(proof(token, "dial", mine, theirs)); err != nil {
		return err
	}
	var answer [1 + sha256.Size]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[0] != accepted || !hmac.Equal(answer[1:], proof(token, "accept", mine, theirs)) {
		return ErrToken
	}
	return nil
}

// Accept is the other side of Dial.
func Accept(conn net.Conn, token string) error {
	mine, theirs, err := greet(conn)
	if err != nil {
		return err
	}
	var got [sha256.Size]byte
	if _, err := io.ReadFull(conn, got[:]); err != nil {
		return err
	}
	if !hmac.Equal(got[:], proof(token, "dial", theirs, mine)) {
		_, err := conn.Write(make([]byte, 1+sha256.Size)) // of no kind: refused
		return errors.Join(ErrToken, err)
	}
	_, err = conn.Write(append([]byte{accepted}, proof(token, "accept", theirs, mine)...))
	return err
}

// greet exchanges versions and challenges.
func greet(conn net.Conn) (mine, theirs []byte, err error) {
	out := make([]byte, greetingSize)
	copy(out, magic)
	binary.LittleEndian.PutUint16(out[len(magic):], version)
	mine = out[greetingSize-nonceSize:]
	if _, err := rand.Read(mine); err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(out); err != nil {
		return nil, nil, err
	}
	in := make([]byte, greetingSize)
	if n, err := io.ReadFull(conn, in); err != nil {
		if n > 0 && string(in[:min(n, len(magic))]) != magic[:min(n, len(magic))] {
			return nil, nil, ErrStranger
		}
		return nil, nil, err
	}
	if string(in[:len(magic)]) != magic {
		return nil, nil, ErrStranger
	}
	if v := binary.LittleEndian.Uint16(in[len(magic):]); v != version {
		return nil, nil, fmt.Errorf("%w: it speaks version %d of the protocol, this side %d", ErrStranger, v, version)
	}
	return mine, in[greetingSize-nonceSize:], nil
}

func proof(token, side string, dialer, acceptor []byte) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	mac.Write([]byte(side))
	mac.Write(dialer)
	mac.Write(acceptor)
	return mac.Sum(nil)
}

// WriteMessage sends a value as JSON behind its length.
func WriteMessage(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// ReadMessage reads a value of at most limit bytes.
func ReadMessage(r io.Reader, limit int, v any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(length[:])
	if int64(n) > int64(limit) {
		return fmt.Errorf("a message of %d bytes, at most %d are allowed", n, limit)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("a message that can't be read: %w", err)
	}
	return nil
}
