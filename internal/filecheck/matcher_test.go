package filecheck

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The groups of a match matter where a variable is set from one.
func TestMatcherGroups(t *testing.T) {
	tests := []struct {
		ere, text string
		want      []string // the match, then the groups; nil for no match
	}{
		{`a|ab`, "xab", []string{"ab"}},
		{`(a*)(a*)`, "aaa", []string{"aaa", "aaa", ""}},
		{`(.*) = (.*)`, "x = y = z", []string{"x = y = z", "x = y", "z"}},
		{`(a)|(b)`, "b", []string{"b", "", "b"}},
		{`(a|ab)(c|bcd)`, "abcd", []string{"abcd", "a", "bcd"}},
		{`x{2,3}`, "xxxx", []string{"xxx"}},
		{`é.[à-ü]`, "aéxé", []string{"éxé"}},
		{`(.)(.)\2\1`, "xabba", []string{"abba", "a", "b"}},
		{`(a+)b\1`, "aabaaa", []string{"aabaa", "aa"}},
		{`(a|aa)\1`, "aaaa", []string{"aaaa", "aa"}},
		{`((a|b)*c)\1`, "abcabc", []string{"abcabc", "abc", "b"}},
		{`(x)\1`, "xy", nil},
		{`^(.)\1$`, "ab\naa\n", []string{"aa", "a"}},
		{`(a?){3}\1b`, "aab", []string{"aab", ""}},
		{`([^a]+).\1`, "b\na\nb", nil},
	}
	for _, tt := range tests {
		m, err := compile(tt.ere, false)
		require.NoError(t, err, tt.ere)
		groups, err := m.find(tt.text)
		require.NoError(t, err, tt.ere)
		var got []string
		for i := 0; i < len(groups); i += 2 {
			if groups[i] < 0 {
				got = append(got, "")
			} else {
				got = append(got, tt.text[groups[i]:groups[i+1]])
			}
		}
		require.Equal(t, tt.want, got, "%s on %q", tt.ere, tt.text)
	}
}

func TestMatcherGivesUp(t *testing.T) {
	m, err := compile(`((x*)*)*y\1`, false)
	require.NoError(t, err)
	_, err = m.find(strings.Repeat("x", 200))
	require.ErrorContains(t, err, "too complex")
}
