package data

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats/atomicfile"
	"blutrain/formats/shard"
)

// tokenFile writes a shard of the tokens 0, 1, ... (modulo vocab), beginning at first.
func tokenFile(t *testing.T, name string, first, count, vocab int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	w, err := shard.Create(atomicfile.OS{}, path, vocab)
	require.NoError(t, err)
	for i := range count {
		require.NoError(t, w.Append([]uint16{uint16((first + i) % vocab)}))
	}
	require.NoError(t, w.Commit())
	return path
}

func openShards(t *testing.T, names ...string) *Shards {
	t.Helper()
	s, err := OpenShards(names)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func load(t *testing.T, s *Shards, c Config, from *State) *Loader {
	t.Helper()
	l, err := NewLoader(s, c, from)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return l
}

func next(t *testing.T, l *Loader) Batch {
	t.Helper()
	b, err := l.Next()
	require.NoError(t, err)
	return b
}

// ints is an input of a batch.
func ints(b Batch, name string) []int32 {
	data := b.Inputs[name].Data
	out := make([]int32, len(data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

func tokens(b Batch) []int32 { return ints(b, "tokens") }

func TestSequentialOverTwoFiles(t *testing.T) {
	// 10 tokens are 3 windows of S = 3 (the tenth is only a target), 8 tokens are 2 windows (the eighth is not used).
	s := openShards(t, tokenFile(t, "a.bin", 0, 10, 100), tokenFile(t, "b.bin", 50, 8, 100))
	l := load(t, s, Config{Inputs: Tokens(2, 3), Vocab: 100, Ranks: 1, Sequential: true}, nil)
	require.Equal(t, int64(2), l.Batches())
	b := next(t, l)
	require.Equal(t, []int32{0, 1, 2, 3, 4, 5}, tokens(b))
	require.Equal(t, []int32{1, 2, 3, 4, 5, 6}, ints(b, "targets"))
	b = next(t, l)
	require.Equal(t, []int32{6, 7, 8, 50, 51, 52}, tokens(b))
	require.Equal(t, []int32{7, 8, 9, 51, 52, 53}, ints(b, "targets"))
	b = next(t, l) // from the end of the epoch into the next
	require.Equal(t, []int32{53, 54, 55, 0, 1, 2}, tokens(b))
	require.Equal(t, int64(1), l.State().Epoch())
	require.Equal(t, int64(6), l.State().Row)
}

// A sample is spread over the data: every third of seven batches.
func TestSample(t *testing.T) {
	s := openShards(t, tokenFile(t, "a.bin", 0, 2*15+1, 100))
	l := load(t, s, Config{Inputs: Tokens(2, 2), Vocab: 100, Ranks: 1, Sequential: true, Sample: 2}, nil)
	require.Equal(t, int64(2), l.Batches())
	require.Equal(t, []int32{0, 1, 2, 3}, tokens(next(t, l)))
	require.Equal(t, []int32{12, 13, 14, 15}, tokens(next(t, l)))
	l = load(t, s, Config{Inputs: Tokens(2, 2), Vocab: 100, Ranks: 1, Sequential: true, Sample: 100}, nil)
	require.Equal(t, int64(7), l.Batches())
	next(t, l)
	require.Equal(t, []int32{4, 5, 6, 7}, tokens(next(t, l)))
}

// rows are the first tokens of the rows that a set of ranks sees in n batches, in global order.
func rows(t *testing.T, s *Shards, c Config, n int) []int32 {
	var global []int32
	loaders := make([]*Loader, c.Ranks)
	for r := range loaders {
		c.Rank = r
		loaders[r] = load(t, s, c, nil)
	}
	for range n {
		batches := make([]Batch, len(loaders))
		for r, l := range loaders {
			batches[r] = next(t, l)
		}
		for _, b := range batches {
			first := tokens(b)
			for i := range c.rows() {
				global = append(global, first[i*c.Inputs[0].Shape[1]])
			}
		}
	}
	return global
}

func TestOneOrderForEveryNumberOfRanks(t *testing.T) {
	s := openShards(t, tokenFile(t, "a.bin", 0, 4*25+1, 1000)) // 25 windows
	want := rows(t, s, Config{Inputs: Tokens(1, 4), Vocab: 1000, Ranks: 1, Seed: 7}, 72)
	for _, c := range []struct {
		b     int64
		ranks int
		n     int
	}{{12, 1, 6}, {2, 3, 12}, {1, 8, 9}, {4, 6, 3}} {
		require.Equal(t, want, rows(t, s, Config{Inputs: Tokens(c.b, 4), Vocab: 1000, Ranks: c.ranks, Seed: 7}, c.n), "%d ranks", c.ranks)
	}
	for epoch := range 2 {
		all := slices.Clone(want[25*epoch : 25*(epoch+1)])
		slices.Sort(all)
		for i, first := range all {
			require.Equal(t, int32(4*i), first, "every window once in an epoch")
		}
	}
	require.NotEqual(t, want[:25], want[25:50], "each epoch has its own order")
	require.NotEqual(t, want, rows(t, s, Config{Inputs: Tokens(1, 4), Vocab: 1000, Ranks: 1, Seed: 8}, 72))
}

// TestResumeGivesTheVeryNextBatch from every place of three epochs, also with other ranks than before.
func TestResumeGivesTheVeryNextBatch(t *testing.T) {
	s := openShards(t, tokenFile(t, "a.bin", 0, 31, 100), tokenFile(t, "b.bin", 31, 20, 100))
	c := Config{Inputs: Tokens(2, 3), Vocab: 100, Ranks: 1, Seed: 3}
	whole := load(t, s, c, nil)
	var batches []Batch
	for range 24 {
		batches = append(batches, next(t, whole))
	}
	for i, b := range batches[:23] {
		state := b.After
		require.Equal(t, batches[i+1], next(t, load(t, s, c, &state)))
		two := c
		two.Inputs, two.Ranks, two.Rank = Tokens(1, 3), 2, 1
		require.Equal(t, tokens(batches[i+1])[3:], tokens(next(t, load(t, s, two, &state))))
	}
}

func TestReadAheadDoesNotMoveTheState(t *testing.T) {
	s := openShards(t, tokenFile(t, "a.bin", 0, 31, 100))
	l := load(t, s, Config{Inputs: Tokens(1, 3), Vocab: 100, Ranks: 1}, nil)
	require.Equal(t, int64(0), l.State().Row)
	next(t, l)
	require.Equal(t, int64(1), l.State().Row)
}

func TestLoaderRefuses(t *testing.T) {
	small := openShards(t, tokenFile(t, "small.bin", 0, 31, 100))
	good := Config{Inputs: Tokens(2, 3), Vocab: 100, Ranks: 1}
	for _, c := range []struct {
		change func(c *Config)
		from   *State
		reason string
	}{
		{func(c *Config) { c.Inputs, c.Ranks = Tokens(3, 3), 4 }, nil, "31 tokens in 1 files make 10 windows of S = 3 tokens, a batch of B = 3 on 4 ranks takes 12"},
		{func(c *Config) { c.Inputs = Tokens(2, 31) }, nil, "its 31 tokens hold no window of 31 tokens and the next"},
		{func(c *Config) { c.Vocab = 50 }, nil, "its vocabulary has 100 tokens, the model's has 50"},
		{func(c *Config) { c.Rank = 1 }, nil, "rank 1 of 1"},
		{func(c *Config) { c.Inputs = Tokens(0, 3) }, nil, "B = 0"},
		{func(c *Config) {}, &State{Row: 0, Windows: 9, S: 3}, "10 windows of S = 3 and seed 0, there 9"},
		{func(c *Config) {}, &State{Row: -1, Windows: 10, S: 3}, "row -1"},
		{func(c *Config) { c.Seed = 2 }, &State{Windows: 10, S: 3, Seed: 1}, "seed 2, there"},
	} {
		config := good
		c.change(&config)
		_, err := NewLoader(small, config, c.from)
		require.ErrorContains(t, err, c.reason)
	}
}

func TestTokenOutsideTheVocabulary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bare.bin")
	raw := make([]byte, 40)
	raw[2*13] = 99 // no header, so nothing states a vocabulary
	require.NoError(t, os.WriteFile(path, raw, 0o644))
	l := load(t, openShards(t, path), Config{Inputs: Tokens(1, 4), Vocab: 50, Ranks: 1, Sequential: true}, nil)
	for range 3 {
		next(t, l)
	}
	_, err := l.Next()
	require.ErrorContains(t, err, "bare.bin: token 13 is 99, the model's vocabulary has 50")
	_, err = l.Next()
	require.ErrorContains(t, err, "ended")
}

func TestOpenShardsRefuses(t *testing.T) {
	good := tokenFile(t, "a.bin", 0, 10, 100)
	odd := filepath.Join(t.TempDir(), "odd.bin")
	require.NoError(t, os.WriteFile(odd, []byte("abc"), 0o644))
	for _, c := range []struct {
		names  []string
		reason string
	}{
		{nil, "no token files"},
		{[]string{good, odd}, "odd.bin: token shard: 3 bytes"},
		{[]string{good + "x"}, "no such file"},
		{[]string{filepath.Dir(good)}, "not a regular file"},
	} {
		_, err := OpenShards(c.names)
		require.ErrorContains(t, err, c.reason)
	}
}

// TestPermutation: a bijection for every size, and no place is favoured: over 4000 seeds, element 0 of five lands on each place
// 800 times, give or take five standard deviations (25.3).
func TestPermutation(t *testing.T) {
	for n := int64(1); n < 300; n++ {
		p, seen := newPermutation(n, 5, n), make([]bool, n)
		for i := range n {
			require.False(t, seen[p.at(i)])
			seen[p.at(i)] = true
		}
	}
	counts := make([]int, 5)
	for seed := range uint64(4000) {
		counts[newPermutation(5, seed, 0).at(0)]++
	}
	for _, n := range counts {
		require.InDelta(t, 800, n, 127)
	}
	p, moved := newPermutation(1<<40, 1, 0), 0
	for i := range int64(1000) {
		x := p.at(i)
		require.True(t, x >= 0 && x < 1<<40)
		if x>>39 != i>>39 {
			moved++
		}
	}
	require.InDelta(t, 500, moved, 80)
}

func TestTokenizers(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []uint16
	}{
		{"byte", "hé\n", []uint16{'h', 0xc3, 0xa9, '\n'}},
		// The ids of OpenAI's encoder, as quoted in public: "hello world", and the first words of tinyshakespeare in llm.c.
		{"gpt2", "hello world", []uint16{31373, 995}},
		{"gpt2", "First Citizen:\nBefore we proceed any further, hear me speak.", []uint16{5962, 22307, 25, 198, 8421, 356, 5120, 597, 2252, 11, 3285, 502, 2740, 13}},
	} {
		tok, err := NewTokenizer(c.name)
		require.NoError(t, err)
		got, err := tok.Encode(c.text)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		back, err := tok.Decode(got)
		require.NoError(t, err)
		require.Equal(t, c.text, back)
		again, err := TokenizerFor(tok.Vocab)
		require.NoError(t, err)
		require.Equal(t, tok.Name, again.Name)
		_, err = tok.Decode([]uint16{60000})
		require.ErrorContains(t, err, "token 0 is 60000")
	}
	_, err := NewTokenizer("word")
	require.ErrorContains(t, err, `"word" is unknown`)
	_, err = TokenizerFor(100)
	require.ErrorContains(t, err, "vocabulary of 100")
}

func TestSeparatorIsNeverText(t *testing.T) {
	tok, err := NewTokenizer("gpt2")
	require.NoError(t, err)
	ids, err := tok.Encode("a<|endoftext|>b")
	require.NoError(t, err)
	require.NotContains(t, ids, tok.Separator)
	text, err := tok.Decode([]uint16{64, 50256, 65})
	require.NoError(t, err)
	require.Equal(t, "a<|endoftext|>b", text)
}

// TestChunksDoNotChangeTheTokens: text cut in pieces of any size gives the tokens of the whole.
func TestChunksDoNotChangeTheTokens(t *testing.T) {
	tok, err := NewTokenizer("gpt2")
	require.NoError(t, err)
	text := strings.Repeat("It's  been \n\n 1234 days, naïve   café — don't!\t\tx\n", 4) + "   \n"
	whole, err := tok.Encode(text)
	require.NoError(t, err)
	for size := 1; size < 70; size++ {
		var pieces []uint16
		seen := int64(0)
		require.NoError(t, chunks(strings.NewReader(text), size, func(piece []byte, at int64) error {
			require.Equal(t, seen, at)
			seen += int64(len(piece))
			ids, err := tok.Encode(string(piece))
			pieces = append(pieces, ids...)
			return err
		}))
		require.Equal(t, int64(len(text)), seen)
		require.Equal(t, whole, pieces, "pieces of %d bytes", size)
	}
}

func TestPrepare(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	a, b, bad := write("a.txt", "hello world"), write("b.txt", ""), write("bad.txt", "ok \xff")
	out := filepath.Join(dir, "out.bin")
	for _, c := range []struct {
		tokenizer string
		want      []uint16
	}{
		{"byte", []uint16{0, 'h', 'e', 'l', 'l', 'o', ' ', 'w', 'o', 'r', 'l', 'd', 0}},
		{"gpt2", []uint16{50256, 31373, 995, 50256}},
	} {
		tok, err := NewTokenizer(c.tokenizer)
		require.NoError(t, err)
		n, err := Prepare(out, tok, []string{a, b})
		require.NoError(t, err)
		require.Equal(t, int64(len(c.want)), n)
		f := openShards(t, out).files[0]
		require.Equal(t, tok.Vocab, f.Vocab())
		got := make([]uint16, f.Len())
		require.NoError(t, f.Read(got, 0))
		require.Equal(t, c.want, got)
	}

	before, err := os.ReadFile(out)
	require.NoError(t, err)
	gpt2, _ := NewTokenizer("gpt2")
	for _, c := range []struct {
		texts  []string
		reason string
	}{
		{nil, "no text files"},
		{[]string{a, filepath.Join(dir, "none.txt")}, "none.txt: no such file"},
		{[]string{a, bad}, "bad.txt: byte 3 is not UTF-8"},
		{[]string{out}, "both input and output"},
		{[]string{dir}, "is a directory"},
	} {
		_, err := Prepare(out, gpt2, c.texts)
		require.ErrorContains(t, err, c.reason)
		after, err := os.ReadFile(out)
		require.NoError(t, err)
		require.Equal(t, before, after, "nothing is overwritten")
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 4, fmt.Sprint(entries))
	byteTok, _ := NewTokenizer("byte")
	_, err = Prepare(out, byteTok, []string{bad})
	require.NoError(t, err, "any bytes are bytes")
}

func BenchmarkEncodeGPT2(b *testing.B) {
	tok, _ := NewTokenizer("gpt2")
	text := strings.Repeat("First Citizen:\nBefore we proceed any further, hear me speak.\n\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		_, _ = tok.Encode(text)
	}
}
