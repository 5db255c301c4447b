package share_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/lower/share"
)

func TestAdmits(t *testing.T) {
	type spans = []share.Span
	for _, c := range []struct {
		name   string
		others spans
		new    share.Span
		hands  []int // the others that are handed over to the new one, or the other way round
		want   bool
	}{
		{"nobody there", nil, share.Span{3, 9}, nil, true},
		{"the old value is read before", spans{{-1, 2}}, share.Span{3, 9}, nil, true},
		{"the old value is read after", spans{{-1, 4}}, share.Span{3, 9}, []int{0}, false},
		{"read and written by one operation", spans{{-1, 3}}, share.Span{3, 9}, nil, false},
		{"the same, in one place", spans{{-1, 3}}, share.Span{3, 9}, []int{0}, true},
		{"a chain of sums, from its end", spans{{-1, 2}, {7, 9}}, share.Span{2, 7}, []int{0, 1}, true},
		{"a term of the chain is read again after it", spans{{-1, 2}, {7, 9}}, share.Span{2, 8}, []int{0, 1}, false},
		{"the sum before is read by the next but one", spans{{-1, 4}, {7, 9}}, share.Span{2, 7}, []int{0, 1}, false},
		{"the chain does not hand over its first", spans{{-1, 2}, {7, 9}}, share.Span{2, 7}, []int{1}, false},
		{"two terms at a time", spans{{7, 9}, {2, 7}}, share.Span{3, 7}, []int{0, 1}, false},
		{"before all others", spans{{4, 9}}, share.Span{1, 3}, nil, true},
		{"within another", spans{{1, 9}}, share.Span{3, 4}, []int{0}, false},
		{"around another", spans{{3, 4}}, share.Span{1, 9}, []int{0}, false},
		{"read by the end of the program", spans{{2, 10}}, share.Span{10, 10}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := share.Admits(c.others, c.new, func(i int) bool {
				for _, h := range c.hands {
					if h == i {
						return true
					}
				}
				return false
			})
			require.Equal(t, c.want, got)
		})
	}
}
