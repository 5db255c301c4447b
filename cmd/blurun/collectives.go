package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"blutrain/dtms"
)

// collectivesCmd is bench --collectives: how fast the ranks that are there exchange memory.
type collectivesCmd struct {
	sizes   []int64 // MiB, of all that a rank holds of a call
	repeats int
	json    bool
	device  string // "" or cpu, cuda, cuda:1
}

// collectiveRow is one measurement. Bus bandwidth is what each rank sends and what it receives, by the fewest bytes with which the
// operation can be done, per second; so it is comparable between operations and numbers of ranks.
type collectiveRow struct {
	Op      string  `json:"op"`
	Ranks   int     `json:"ranks"`
	Bytes   int64   `json:"bytes"`
	By      string  `json:"by,omitempty"` // between GPUs
	Median  float64 `json:"median_ms"`    // of the slowest rank in each repetition
	BusRate float64 `json:"bus_gb_per_s"`
}

// measured is an operation as it is measured: n is the number of ranks, and the larger of its buffers has all the bytes.
type measured struct {
	name string
	op   dtms.Op
	sent func(n float64) float64 // share of the bytes that a rank has to send
	want func(rank, n int, i, count int64) float32
}

// fill is element i of rank's input: sums of it over the ranks are exact.
func fill(rank int, i int64) float32 { return float32(rank + 1 + int(i%7)) }

// sumOf is element i of the sum over n ranks.
func sumOf(n int, i int64) float32 { return float32(n*(n+1)/2 + n*int(i%7)) }

// exchanges are what training uses.
var exchanges = [...]measured{
	{"all_reduce", dtms.AllReduce, func(n float64) float64 { return 2 * (n - 1) / n },
		func(_, n int, i, _ int64) float32 { return sumOf(n, i) }},
	{"reduce_scatter", dtms.ReduceScatter, func(n float64) float64 { return (n - 1) / n },
		func(rank, n int, i, count int64) float32 { return sumOf(n, int64(rank)*count+i) }},
	{"all_gather", dtms.AllGather, func(n float64) float64 { return (n - 1) / n },
		func(_, n int, i, count int64) float32 { return fill(int(i/(count/int64(n))), i%(count/int64(n))) }},
	{"send_recv", dtms.Permute, func(float64) float64 { return 1 },
		func(rank, n int, i, _ int64) float32 { return fill((rank+n-1)%n, i) }},
}

// run measures on one rank. Every result is compared with what it must be.
func (c collectivesCmd) run(e *env, j *job) (err error) {
	if j.size == 1 {
		return usagef("--collectives measures what several ranks exchange: start them with --nproc-per-node or another launcher")
	}
	x, err := newExchanger(e.ctx, j, c.device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	var rows []collectiveRow
	for _, m := range exchanges {
		if !x.makes(m.op) {
			continue
		}
		for _, mib := range c.sizes {
			row, err := c.measure(e.ctx, j.world, x, m, mib<<20)
			if err != nil {
				return fmt.Errorf("%s of %d MiB: %w", m.name, mib, err)
			}
			rows = append(rows, row)
		}
	}
	if !j.first() {
		return nil
	}
	if c.json {
		lines := json.NewEncoder(e.stdout)
		for _, r := range rows {
			if err := lines.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "on %d ranks\tMiB\tms\tbus GB/s\t\n", j.size)
	for _, r := range rows {
		fmt.Fprintf(table, "%s\t%d\t%.3f\t%.2f\t\n", r.Op, r.Bytes>>20, r.Median, r.BusRate)
	}
	return table.Flush()
}

// measure times one operation on about so many bytes.
func (c collectivesCmd) measure(ctx context.Context, w *dtms.Communicator, x exchanger, m measured, bytes int64) (row collectiveRow, err error) {
	n := int64(w.Size())
	count := max(1, bytes/4/n) * n // elements of the larger buffer
	in, out := make([]float32, count), make([]float32, count)
	switch m.op {
	case dtms.ReduceScatter:
		out = out[:count/n]
	case dtms.AllGather:
		in = in[:count/n]
	}
	for i := range in {
		in[i] = fill(w.Rank(), int64(i))
	}
	call := dtms.Call{Op: m.op}
	if m.op == dtms.Permute {
		call.Peer = 1
	}
	run, free, err := x.prepare(call, in, out)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, free()) }()
	times := make([]time.Duration, c.repeats)
	for i := range c.repeats + 1 {
		if err := w.Barrier(ctx); err != nil {
			return row, err
		}
		took, err := run(ctx)
		if err != nil {
			return row, err
		}
		if i > 0 { // the first is not counted
			times[i-1] = took
		}
	}
	if err := x.result(out); err != nil {
		return row, err
	}
	for i, x := range out {
		if want := m.want(w.Rank(), int(n), int64(i), int64(len(out))); x != want {
			return row, fmt.Errorf("element %d is %v, not %v", i, x, want)
		}
	}
	median, err := slowest(ctx, w, times)
	row = collectiveRow{Op: m.name, Ranks: int(n), Bytes: 4 * count, By: string(x.by(m.op)), Median: 1e3 * median.Seconds()}
	row.BusRate = m.sent(float64(n)) * float64(row.Bytes) / median.Seconds() / 1e9
	return row, err
}

// slowest is the median over repetitions of the time of the slowest rank.
func slowest(ctx context.Context, w *dtms.Communicator, times []time.Duration) (time.Duration, error) {
	mine, all := make([]int64, len(times)), make([]int64, len(times)*w.Size())
	for i, t := range times {
		mine[i] = int64(t)
	}
	if err := w.AllGather(ctx, dtms.Of(mine), dtms.Of(all)); err != nil {
		return 0, err
	}
	worst := make([]time.Duration, len(times))
	for i, t := range all {
		worst[i%len(times)] = max(worst[i%len(times)], time.Duration(t))
	}
	slices.Sort(worst)
	return worst[len(worst)/2], nil
}
