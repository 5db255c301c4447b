package data

import (
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"blutrain/formats/atomicfile"
	"blutrain/formats/shard"
)

// chunkSize is how much text is read at a time.
const chunkSize = 1 << 20

// Prepare tokenizes text files into one shard: for each file the separator, then its text. The shard appears under
// its name when it is complete; what had that name before stays until then. It returns the number of tokens.
func Prepare(out string, t *Tokenizer, texts []string) (int64, error) {
	if len(texts) == 0 {
		return 0, errors.New("no text files")
	}
	if err := atomicfile.Distinct(texts, []string{out}); err != nil { // a slip on the command line must not replace the text
		return 0, err
	}
	w, err := shard.Create(atomicfile.OS{}, out, t.Vocab)
	if err != nil {
		return 0, err
	}
	for _, name := range texts {
		if err := prepareFile(w, t, name); err != nil {
			return 0, errors.Join(err, w.Discard())
		}
	}
	return w.Len(), w.Commit()
}

func prepareFile(w *shard.Writer, t *Tokenizer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := w.Append([]uint16{t.Separator}); err != nil {
		return err
	}
	return chunks(f, chunkSize, func(text []byte, at int64) error {
		if i := notUTF8(text); i >= 0 && t.gpt2 != nil {
			return fmt.Errorf("%s: byte %d is not UTF-8, which tokenizer %s needs", name, at+int64(i), t.Name)
		}
		tokens, err := t.Encode(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return w.Append(tokens)
	})
}

// chunks calls use with pieces of about size bytes and their offsets. A piece ends where GPT-2's pattern always ends a
// match, before a space that follows a visible ASCII character, so tokenizing the pieces is tokenizing the whole.
// Text without such a place grows the piece.
func chunks(r io.Reader, size int, use func(text []byte, at int64) error) error {
	var text []byte
	at := int64(0)
	for {
		old := len(text)
		text = append(text, make([]byte, size)...)
		n, err := io.ReadFull(r, text[old:])
		text = text[:old+n]
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return err
		}
		if err != nil {
			return use(text, at)
		}
		if end := lastBoundary(text); end > 0 {
			if err := use(text[:end], at); err != nil {
				return err
			}
			at += int64(end)
			text = append([]byte(nil), text[end:]...)
		}
	}
}

func lastBoundary(text []byte) int {
	for i := len(text) - 1; i > 0; i-- {
		if before := text[i-1]; (text[i] == ' ' || text[i] == '\n') && before > ' ' && before < 0x7f {
			return i
		}
	}
	return 0
}

// notUTF8 is the position of the first byte that is not UTF-8, or -1.
func notUTF8(text []byte) int {
	if utf8.Valid(text) {
		return -1
	}
	for i := 0; ; {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
}
