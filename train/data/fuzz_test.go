package data

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// FuzzTokenizer: any text comes back from its tokens, all of them below the vocabulary's size; a text in pieces gives the tokens of
// the whole.
func FuzzTokenizer(f *testing.F) {
	for _, text := range []string{"Hello, world's  end\n\n<|endoftext|>", "x := 1_000 // naïve 中文 \U0001f600\t'tis", " ", "a b\x00\xff", strings.Repeat("ab ", 50)} {
		f.Add(text, uint8(3))
	}
	var all []*Tokenizer
	for _, name := range []string{"byte", "gpt2"} {
		t, err := NewTokenizer(name)
		require.NoError(f, err)
		all = append(all, t)
	}
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		for _, tok := range all {
			if tok.Vocab > 256 && (!utf8.ValidString(text) || len(text) > 1000) { // byte-pair encoding is slow on long words
				continue
			}
			tokens, err := tok.Encode(text)
			require.NoError(t, err)
			for _, x := range tokens {
				require.Less(t, int(x), tok.Vocab)
			}
			back, err := tok.Decode(tokens)
			require.NoError(t, err)
			require.Equal(t, text, back, tok.Name)
			var pieces []uint16
			require.NoError(t, chunks(strings.NewReader(text), int(size)+1, func(piece []byte, at int64) error {
				require.Equal(t, text[at:at+int64(len(piece))], string(piece))
				more, err := tok.Encode(string(piece))
				pieces = append(pieces, more...)
				return err
			}))
			require.Equal(t, tokens, append([]uint16{}, pieces...), tok.Name)
		}
	})
}
