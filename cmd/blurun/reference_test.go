package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/internal/clidoc"
	"blutrain/internal/section"
)

// TestReferenceIsCurrent compares the reference of the commands and flags with their declarations.
func TestReferenceIsCurrent(t *testing.T) {
	parser, err := newParser()
	require.NoError(t, err)
	section.Require(t, "../../docs/cli.md", "blurun", clidoc.Markdown(parser.Model))
}
