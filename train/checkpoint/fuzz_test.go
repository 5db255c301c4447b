package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
)

// FuzzManifest: any text is read or refused; what is read is written as the same text, and its tensors are whole. Texts get the
// checksum that belongs to them, so that what is behind it is reached.
func FuzzManifest(f *testing.F) {
	m := &Manifest{Step: 3, World: 2, Model: "m", Artifact: "a", Seed: 7,
		Tensors: []Info{
			{Name: "w", DType: formats.F32, Shape: []int64{2, 3}, Role: "param", Pieces: []Piece{{0, 0, 6}}},
			{Name: "m/w", DType: formats.BF16, Shape: []int64{5}, Role: "optimizer", Pieces: []Piece{{0, 0, 3}, {1, 3, 5}}},
			{Name: "s", DType: formats.I64, Shape: []int64{}, Role: "accumulator", Pieces: []Piece{{1, 0, 1}}},
		},
		Files: []FileInfo{{Rank: 0, Bytes: 9, Chunk: 4, Chunks: []string{"0", "1", "2"}}, {Rank: 1, Bytes: 4, Chunk: 4, Chunks: []string{"3"}}}}
	text, err := m.encode()
	require.NoError(f, err)
	f.Add(text)
	_, err = parseManifest(text)
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, text []byte) {
		text = sealed(text)
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		again, err := m.encode()
		require.NoError(t, err)
		require.Equal(t, string(text), string(again))
		for _, x := range m.Tensors {
			found, ok := m.Tensor(x.Name)
			require.True(t, ok)
			var elements int64
			for _, p := range found.Pieces {
				require.Equal(t, p.Rank, m.file(p.Rank).Rank)
				elements += p.End - p.Begin
			}
			require.Equal(t, found.elements(), elements)
		}
	})
}

// sealed puts the checksum of a text into it, where there is a place for one.
func sealed(text []byte) []byte {
	const key = `"checksum": "`
	i := bytes.LastIndex(text, []byte(key)) + len(key)
	if i < len(key) || len(text) < i+2*sha256.Size {
		return text
	}
	rest := append(bytes.Clone(text[:i]), text[i+2*sha256.Size:]...)
	sum := sha256.Sum256(rest)
	out := append(bytes.Clone(text[:i]), hex.EncodeToString(sum[:])...)
	return append(out, text[i+2*sha256.Size:]...)
}
