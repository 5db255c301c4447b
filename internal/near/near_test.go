package near

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMisses(t *testing.T) {
	names := []string{"canonicalize", "cse", "dce", "inline", "recompute"}
	require.Equal(t, []string{"canonicalize"}, Misses("cannonicalise", names))
	require.Equal(t, []string{"cse", "dce"}, Misses("cse", names))
	require.Equal(t, []string{"cse"}, Misses("sce", []string{"cse"}), "a swap is one edit")
	require.Empty(t, Misses("attention", names))
	require.Empty(t, Misses("x", []string{"y"}), "nothing in common is no near miss")
}

func TestSuggest(t *testing.T) {
	require.Equal(t, "; did you mean inline?", Suggest("inlin", []string{"inline", "cse"}))
	require.Equal(t, "; did you mean cse or dce?", Suggest("cse", []string{"dce", "cse", "inline"}))
	require.Equal(t, "", Suggest("tile", []string{"inline"}))
}
