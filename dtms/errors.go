package dtms

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is the kind of a rank's failure.
type Fault uint8

// The faults.
const (
	Missing    Fault = iota + 1 // it never came to the meeting point
	Late                        // it did not do its part of a call before the deadline, though it lives
	Silent                      // it stopped giving signs of life: stopped, hung, or cut off
	Dead                        // its connection ended: the process is gone
	Left                        // it closed its communicator while others still needed it
	Failed                      // it gave up, and said why
	Mismatched                  // it called something else, or runs something else
	Garbled                     // it sent what no rank sends
)

var faultNames = [...]string{
	Missing: "missing", Late: "late", Silent: "silent", Dead: "dead", Left: "left", Failed: "failed", Mismatched: "mismatched", Garbled: "garbled",
}

// String is the fault in one word.
func (f Fault) String() string {
	if f == 0 || int(f) >= len(faultNames) {
		return fmt.Sprintf("fault(%d)", uint8(f))
	}
	return faultNames[f]
}

// RankError says what is wrong with one rank.
type RankError struct {
	Rank  int    // in the job, not in a sub-group
	Fault Fault  // what kind of failure it is
	What  string // the predicate of a sentence: "died: connection reset by peer"
	Err   error  `json:"-"` // the cause, where it is this rank's own
}

func (e *RankError) Error() string { return fmt.Sprintf("rank %d %s", e.Rank, e.What) }

// Unwrap is the cause, where it is known on this rank.
func (e *RankError) Unwrap() error { return e.Err }

// RankErrors is what is wrong with several ranks, in order of rank.
type RankErrors []*RankError

func (e RankErrors) Error() string {
	texts := make([]string, len(e))
	for i, r := range e {
		texts[i] = r.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives errors.As and errors.Is every rank's error.
func (e RankErrors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, r := range e {
		errs[i] = r
	}
	return errs
}

// Faults lists the ranks that an error names, in order of rank; nil if it names none.
func Faults(err error) RankErrors {
	var many RankErrors
	if errors.As(err, &many) {
		return many
	}
	var one *RankError
	if errors.As(err, &one) {
		return RankErrors{one}
	}
	return nil
}

// Sorted orders errors by rank and keeps the first of each rank.
func (e RankErrors) Sorted() RankErrors {
	e = slices.Clone(e)
	slices.SortStableFunc(e, func(a, b *RankError) int { return a.Rank - b.Rank })
	return slices.CompactFunc(e, func(a, b *RankError) bool { return a.Rank == b.Rank })
}

// Ranks writes a list of ranks for a message: rank 2; ranks 1, 2 and 5; ranks 4-7.
func Ranks(ranks []int) string {
	ranks = slices.Clone(ranks)
	slices.Sort(ranks)
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j-i >= 2 {
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		} else {
			for k := i; k <= j; k++ {
				parts = append(parts, fmt.Sprint(ranks[k]))
			}
		}
		i = j + 1
	}
	switch {
	case len(ranks) == 0:
		return "no rank"
	case len(ranks) == 1:
		return "rank " + parts[0]
	case len(parts) == 1:
		return "ranks " + parts[0]
	}
	return "ranks " + strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
