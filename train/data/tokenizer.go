// Package data is where training gets its batches: text to shards (Prepare), shards of tokens or arrays (Source) to shuffled batches
// (Loader). It knows nothing of models beyond what they take as inputs and the size of their vocabulary.
package data

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tiktoken-go/tokenizer"
)

// Tokenizer turns text into tokens and back.
type Tokenizer struct {
	Name  string // byte or gpt2
	Vocab int    // tokens are in [0, Vocab)

	// Separator is the token put before each file's text: 50256 (<|endoftext|>) for gpt2, as llm.c does, and the byte 0 for byte.
	Separator uint16

	gpt2 tokenizer.Codec // nil for byte
}

// NewTokenizer gives the tokenizer of this name: "byte", whose tokens are the bytes of the text, or "gpt2", the byte-pair
// encoding of GPT-2. Text like "<|endoftext|>" is encoded as the characters it is, never as the separator.
func NewTokenizer(name string) (*Tokenizer, error) {
	switch name {
	case "byte":
		return &Tokenizer{Name: name, Vocab: 256, Separator: 0}, nil
	case "gpt2":
		codec, err := tokenizer.Get(tokenizer.R50kBase)
		if err != nil {
			return nil, err
		}
		codec.SetErrorMode(tokenizer.ErrorModeNone)
		return &Tokenizer{Name: name, Vocab: 50257, Separator: 50256, gpt2: codec}, nil
	}
	return nil, fmt.Errorf("tokenizer %q is unknown (byte and gpt2 are known)", name)
}

// TokenizerFor gives the tokenizer with this vocabulary size.
func TokenizerFor(vocab int) (*Tokenizer, error) {
	switch vocab {
	case 256:
		return NewTokenizer("byte")
	case 50257:
		return NewTokenizer("gpt2")
	}
	return nil, fmt.Errorf("no tokenizer has a vocabulary of %d (byte has 256, gpt2 has 50257)", vocab)
}

// Encode gives the tokens of a text, which must be UTF-8 for gpt2.
func (t *Tokenizer) Encode(text string) ([]uint16, error) {
	if t.gpt2 == nil {
		tokens := make([]uint16, len(text))
		for i := range len(text) {
			tokens[i] = uint16(text[i])
		}
		return tokens, nil
	}
	text, stand, err := withoutDelete(text)
	if err != nil {
		return nil, err
	}
	ids, _, err := t.gpt2.Encode(text)
	if err != nil {
		return nil, err
	}
	tokens := make([]uint16, len(ids))
	for i, id := range ids {
		tokens[i] = uint16(id)
		if stand != 0 && id == controls+uint(stand) {
			tokens[i] = deleteToken
		}
	}
	return tokens, nil
}

// GPT-2's tokens of control characters, which are parts of no other: those of 0 to 31 are in a row, delete's is after them.
const (
	controls    = 188
	deleteToken = 221
)

// withoutDelete has another control character, one that the text doesn't hold, stand for delete (0x7F), which the library leaves
// out of its tokens. To the patterns and merges of GPT-2 they are alike.
func withoutDelete(text string) (replaced string, stand byte, err error) {
	if !strings.Contains(text, "\x7f") {
		return text, 0, nil
	}
	for c := byte(1); c < 28; c++ {
		if (c < '\t' || c > '\r') && strings.IndexByte(text, c) < 0 { // those between are white space, as those from 28 on are to some
			return strings.ReplaceAll(text, "\x7f", string(rune(c))), c, nil
		}
	}
	return "", 0, errors.New("the text holds every control character, and delete")
}

// Decode gives the text of tokens. A token may end inside a character, so the result of a part need not be UTF-8.
func (t *Tokenizer) Decode(tokens []uint16) (string, error) {
	var text strings.Builder
	for i, token := range tokens {
		switch {
		case int(token) >= t.Vocab:
			return "", fmt.Errorf("token %d is %d, the vocabulary of %s has %d", i, token, t.Name, t.Vocab)
		case t.gpt2 == nil:
			text.WriteByte(byte(token))
		case token == t.Separator:
			text.WriteString("<|endoftext|>")
		default:
			piece, err := t.gpt2.Decode([]uint{uint(token)})
			if err != nil {
				return "", err
			}
			text.WriteString(piece)
		}
	}
	return text.String(), nil
}
