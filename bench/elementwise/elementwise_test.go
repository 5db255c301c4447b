package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Every case compiles, to kernels that read and write at least what the function does.
func TestCasesCompile(t *testing.T) {
	for _, c := range append(cases(), longCases()...) {
		f, err := compile(c.text(512, 768))
		require.NoError(t, err, c.name)
		require.NotEmpty(t, f.kernels, c.name)
		moved := int64(0)
		for _, k := range f.kernels {
			require.Positive(t, k.threads, k.name)
			require.Contains(t, string(k.text), ".entry "+k.entry+"(")
			for _, r := range k.refs {
				moved += r.bytes
			}
		}
		require.GreaterOrEqual(t, moved, f.bytes, c.name)
	}
	for _, c := range longCases() {
		_, err := compile(c.text(16, 50304))
		require.NoError(t, err, c.name)
	}
}
