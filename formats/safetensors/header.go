package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"blutrain/formats"
)

// readHeader reads the JSON text once the file is known to hold it.
func readHeader(r io.ReaderAt, size int64) ([]byte, error) {
	if size < 8 {
		return nil, fmt.Errorf("file of %d bytes is too short for a header length", size)
	}
	var length [8]byte
	if _, err := r.ReadAt(length[:], 0); err != nil && err != io.EOF {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, fmt.Errorf("header of %d bytes is longer than the %d supported", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("header of %d bytes does not fit in a file of %d: the file is cut short", n, size)
	}
	header := make([]byte, n)
	if _, err := r.ReadAt(header, 8); err != nil && err != io.EOF {
		return nil, err
	}
	switch {
	case n == 0 || header[0] != '{':
		return nil, errors.New("header does not begin with '{'")
	case !utf8.Valid(header):
		return nil, errors.New("header is not UTF-8")
	}
	return header, nil
}

// parser reads the one shape of JSON a header may have, token by token, so that nesting is bounded by the code
// and every key is seen, also the second of two equal ones.
type parser struct{ *json.Decoder }

func parseHeader(header []byte) (*File, error) {
	p := parser{json.NewDecoder(bytes.NewReader(header))}
	p.UseNumber()
	f := &File{}
	err := p.object("header", func(key string) error {
		if key == "__metadata__" {
			f.Metadata = map[string]string{}
			return p.object("__metadata__", func(key string) error {
				value, err := p.str("metadata " + quote(key))
				f.Metadata[key] = value
				return err
			})
		}
		info, err := p.tensor(key)
		f.Tensors = append(f.Tensors, info)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.Token(); err != io.EOF {
		return nil, errors.New("text follows the header's object")
	}
	return f, nil
}

// tensor reads {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}.
func (p parser) tensor(name string) (Info, error) {
	info := Info{Name: name}
	seen := 0
	err := p.object("tensor "+quote(name), func(key string) error {
		seen++
		switch key {
		case "dtype":
			s, err := p.str("dtype")
			if err != nil {
				return err
			}
			info.DType, err = formats.ParseSafetensors(s)
			return err
		case "shape":
			var err error
			info.Shape, err = p.ints("shape", formats.MaxRank)
			return err
		case "data_offsets":
			r, err := p.ints("data_offsets", 2)
			if err == nil && len(r) != 2 {
				err = fmt.Errorf("data_offsets has %d numbers, needs 2", len(r))
			}
			if err == nil {
				info.Begin, info.End = r[0], r[1]
			}
			return err
		}
		return fmt.Errorf("unknown key %s", quote(key))
	})
	if err == nil && seen != 3 {
		err = errors.New("needs dtype, shape and data_offsets")
	}
	if err != nil {
		return info, fmt.Errorf("tensor %s: %w", quote(name), err)
	}
	return info, nil
}

// object reads an object, calling value behind each key. No key may come twice.
func (p parser) object(what string, value func(key string) error) error {
	if err := p.delim(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.More() {
		key, err := p.str("a key of " + what)
		if err != nil {
			return err
		}
		if seen[key] {
			return fmt.Errorf("key %s is given twice in %s", quote(key), what)
		}
		seen[key] = true
		if err := value(key); err != nil {
			return err
		}
	}
	return p.delim(what, '}')
}

// ints reads an array of at most `most` integers between 0 and 2^63-1, written as plain digits.
func (p parser) ints(what string, most int) ([]int64, error) {
	if err := p.delim(what, '['); err != nil {
		return nil, err
	}
	list := []int64{}
	for p.More() {
		token, err := p.token()
		if err != nil {
			return nil, err
		}
		number, ok := token.(json.Number)
		if !ok {
			return nil, fmt.Errorf("%s: expected a number", what)
		}
		n, err := strconv.ParseUint(number.String(), 10, 63)
		if err != nil {
			return nil, fmt.Errorf("%s: %.40s is not an integer between 0 and 2^63-1", what, number)
		}
		if len(list) == most {
			return nil, fmt.Errorf("%s has more than %d numbers", what, most)
		}
		list = append(list, int64(n))
	}
	return list, p.delim(what, ']')
}

func (p parser) str(what string) (string, error) {
	token, err := p.token()
	if err != nil {
		return "", err
	}
	s, ok := token.(string)
	if !ok {
		return "", fmt.Errorf("%s: expected a string", what)
	}
	return s, nil
}

func (p parser) delim(what string, want json.Delim) error {
	token, err := p.token()
	if err != nil {
		return err
	}
	if token != want {
		return fmt.Errorf("%s: expected '%s'", what, want)
	}
	return nil
}

func (p parser) token() (json.Token, error) {
	token, err := p.Token()
	switch {
	case err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("header ends inside its object")
	case err != nil:
		return nil, fmt.Errorf("header is not JSON at byte %d: %w", p.InputOffset(), err)
	}
	return token, nil
}
