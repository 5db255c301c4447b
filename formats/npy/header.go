package npy

import (
	"fmt"
	"strconv"
	"strings"

	"blutrain/formats"
)

// header is what the dictionary says.
type header struct {
	dtype     formats.DType
	bigEndian bool
	fortran   bool
	shape     []int64
}

// parseHeader reads the Python dictionary literal: the keys descr, fortran_order and shape, each once, in any order.
func parseHeader(text string) (header, error) {
	p := &parser{text: text}
	var h header
	seen := map[string]bool{}
	p.expect("{")
	for p.err == nil && !p.accept("}") {
		key := p.str()
		p.expect(":")
		if seen[key] && p.err == nil {
			p.fail("key %q is given twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			p.descr(&h)
		case "fortran_order":
			h.fortran = p.boolean()
		case "shape":
			h.shape = p.shape()
		default:
			p.fail("unknown key %q", key)
		}
		if !p.accept(",") {
			p.expect("}")
			break
		}
	}
	if p.err == nil && strings.TrimRight(p.text[p.at:], " \n\x00") != "" {
		p.fail("text after the dictionary")
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if p.err == nil && !seen[key] {
			p.err = fmt.Errorf("header has no key %q", key)
		}
	}
	return h, p.err
}

// parser walks the header text; after the first error it only stands still.
type parser struct {
	text string
	at   int
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("header, byte %d: %s", p.at, fmt.Sprintf(format, args...))
	}
}

func (p *parser) accept(token string) bool {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
	if p.err != nil || !strings.HasPrefix(p.text[p.at:], token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *parser) expect(token string) {
	if !p.accept(token) {
		p.fail("expected %q", token)
	}
}

// str reads a quoted string without escapes: no name that this reader accepts needs one.
func (p *parser) str() string {
	quote := "'"
	if !p.accept(quote) {
		quote = `"`
		p.expect(quote)
	}
	if p.err != nil {
		return ""
	}
	s, _, ok := strings.Cut(p.text[p.at:], quote)
	if !ok || len(s) > 100 || strings.ContainsAny(s, "\\\n") {
		p.fail("expected a short quoted string")
		return ""
	}
	p.at += len(s) + 1
	return s
}

func (p *parser) boolean() bool {
	if p.accept("True") {
		return true
	}
	p.expect("False")
	return false
}

// descr reads an element type such as '<f4'. A structured type is a list and is refused as such.
func (p *parser) descr(h *header) {
	if p.accept("[") {
		p.fail("structured element types are not supported")
		return
	}
	s := p.str()
	if p.err != nil {
		return
	}
	if s == "bfloat16" {
		h.dtype = formats.BF16
		return
	}
	order, name := byte('|'), s
	if s != "" && strings.IndexByte("<>|=", s[0]) >= 0 {
		order, name = s[0], s[1:]
	}
	d, err := formats.ParseNpy(name)
	if err != nil {
		p.fail("descr %q is not a supported element type", s)
		return
	}
	if order == '=' || order == '|' && d.Size() > 1 && d != formats.BF16 {
		p.fail("descr %q does not say the byte order", s)
		return
	}
	h.dtype, h.bigEndian = d, order == '>'
}

// shape reads a tuple of dimensions; Python 2 wrote them with a trailing L.
func (p *parser) shape() []int64 {
	shape := []int64{}
	p.expect("(")
	for p.err == nil && !p.accept(")") {
		p.accept("") // skip spaces
		digits := p.text[p.at:]
		digits = digits[:len(digits)-len(strings.TrimLeft(digits, "0123456789"))]
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil {
			p.fail("expected a dimension between 0 and 2^63-1")
			return nil
		}
		p.at += len(digits)
		p.accept("L")
		shape = append(shape, n)
		if len(shape) > formats.MaxRank {
			p.fail("more than %d dimensions", formats.MaxRank)
			return nil
		}
		if !p.accept(",") {
			p.expect(")")
			break
		}
	}
	return shape
}
