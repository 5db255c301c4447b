package passes

import (
	"fmt"
	"io"
	"time"
)

// Timing collects how long each pass took, in the order of their first runs. A nil Timing collects nothing.
type Timing struct {
	entries []timed
}

type timed struct {
	name  string
	runs  int
	total time.Duration
}

func (t *Timing) add(name string, d time.Duration) {
	if t == nil {
		return
	}
	for i := range t.entries {
		if t.entries[i].name == name {
			t.entries[i].runs++
			t.entries[i].total += d
			return
		}
	}
	t.entries = append(t.entries, timed{name, 1, d})
}

// Add counts something that is no pass, such as a phase's own work.
func (t *Timing) Add(name string, d time.Duration) { t.add(name, d) }

// Print writes a table: seconds, share, runs, name.
func (t *Timing) Print(w io.Writer) {
	var sum time.Duration
	for _, e := range t.entries {
		sum += e.total
	}
	fmt.Fprintf(w, "%10s %6s %5s  %s\n", "seconds", "share", "runs", "pass")
	for _, e := range t.entries {
		fmt.Fprintf(w, "%10.6f %5.1f%% %5d  %s\n", e.total.Seconds(), 100*e.total.Seconds()/max(sum.Seconds(), 1e-9), e.runs, e.name)
	}
	fmt.Fprintf(w, "%10.6f %5.1f%% %5s  %s\n", sum.Seconds(), 100.0, "", "total")
}
