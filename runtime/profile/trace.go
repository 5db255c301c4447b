package profile

import (
	"encoding/json"
	"io"
	"time"
)

// WriteTrace writes the events in the Trace Event Format, which ui.perfetto.dev and chrome://tracing show: complete
// events ("X") with times in microseconds, calls on one track and launches on another.
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
func (p *Profile) WriteTrace(w io.Writer) error {
	const calls, launches = 1, 2
	events := []traceEvent{
		{Name: "thread_name", Phase: "M", Process: 1, Thread: calls, Args: map[string]any{"name": "calls"}},
		{Name: "thread_name", Phase: "M", Process: 1, Thread: launches, Args: map[string]any{"name": "launches"}},
	}
	for _, e := range p.Events {
		t := traceEvent{Name: e.Kernel, Category: e.Function, Phase: "X", Process: 1, Thread: launches, Start: microseconds(e.Start), Duration: microseconds(e.Duration)}
		if e.Kernel == "" {
			t.Name, t.Thread = e.Function, calls
		} else {
			t.Args = map[string]any{"source": e.Location, "flops": e.Flops, "bytes_read": e.Traffic.Read, "bytes_written": e.Traffic.Written}
		}
		events = append(events, t)
	}
	return json.NewEncoder(w).Encode(struct {
		Events []traceEvent `json:"traceEvents"`
		Unit   string       `json:"displayTimeUnit"`
	}{events, "ms"})
}

type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Start    float64        `json:"ts"`
	Duration float64        `json:"dur"`
	Args     map[string]any `json:"args,omitempty"`
}

func microseconds(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
