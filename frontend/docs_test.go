package frontend

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

const reference = "../docs/language.md"

// TestProgramsInTheReference checks every program in the reference, and that each of its errors is produced.
func TestProgramsInTheReference(t *testing.T) {
	text, err := os.ReadFile(reference)
	require.NoError(t, err)
	programs := regexp.MustCompile("(?s)```blu\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, programs)
	for _, p := range programs {
		_, diags := Check("doc.blu", []byte(p[1]), Options{})
		require.NoError(t, diags.Err(), p[1])
		out, _ := Format("doc.blu", []byte(p[1]))
		require.Equal(t, p[1], string(out))
	}
}
