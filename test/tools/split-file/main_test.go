package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	const text = "skipped\n//--- a\none\ntwo\n#--- sub/b\n//--- c\n//-- no\n --- d\nlast"
	parts, err := split("f", []byte(text), false)
	require.NoError(t, err)
	require.Equal(t, []part{{"a", []byte("one\ntwo\n")}, {"sub/b", nil}, {"c", []byte("//-- no\n")}, {"d", []byte("last")}}, parts)

	parts, err = split("f", []byte(text), true)
	require.NoError(t, err)
	require.Equal(t, "\n\none\ntwo\n", string(parts[0].text))
	require.Equal(t, "\n\n\n\n\n", string(parts[1].text))
}

func TestSplitRefuses(t *testing.T) {
	tests := []struct{ text, want string }{
		{"no parts\n", "f: no part separator was found"},
		{"//--- \n", "f:1: error: empty part name"},
		{"//---  a\n", "f:1: error: part name cannot have leading or trailing space"},
		{"//--- a \n", "f:1: error: part name cannot have leading or trailing space"},
		{"//--- a\n#--- a\n", "f:2: error: '#--- a' occurs more than once"},
		{"//--- ../a\n", "f:1: error: part name '../a' leads out of the folder"},
		{"//--- a\n//--- a\n//--- \n", "f:2: error: '//--- a' occurs more than once\nf:3: error: empty part name"},
	}
	for _, tt := range tests {
		_, err := split("f", []byte(tt.text), false)
		require.EqualError(t, err, tt.want, "%q", tt.text)
	}
}
