package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"blutrain/formats/atomicfile"
	"blutrain/runtime"
	"blutrain/runtime/profile"
	"blutrain/runtime/synthetic"
)

type profileCmd struct {
	Model string `arg:"" help:"Compiled model, NAME.blx."`
	Fn    string `placeholder:"NAME" help:"Function to profile. Default: a step of training."`
	Steps int    `placeholder:"N" default:"3" help:"Steps to profile, after one that isn't (${default})."`
	Top   int    `placeholder:"N" default:"30" help:"Kernels to list, those that take longest (${default}); 0: all."`
	Trace string `placeholder:"FILE" help:"Write the launches for ui.perfetto.dev, as JSON."`
	Seed  uint64 `placeholder:"N" help:"Seed of the initializers and the random tokens (0)."`
	JSON  bool   `help:"Print one JSON object for each kernel."`
	deviceFlags
}

// Run implements the command.
func (c *profileCmd) Run(e *env) (err error) {
	if c.Steps < 1 || c.Top < 0 {
		return usagef("--steps must be at least 1, --top at least 0")
	}
	if err := atomicfile.Distinct([]string{c.Model}, []string{c.Trace}); err != nil {
		return usageError(err.Error())
	}
	_, p, err := e.open(c.Model, c.deviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	tracer, ok := p.(runtime.Tracer)
	if !ok {
		return fmt.Errorf("%s: its device does not run functions launch by launch", c.Model)
	}
	if err := e.restore(p, "", c.Seed); err != nil {
		return err
	}
	work, err := synthetic.NewWork(p.Manifest(), c.Fn, c.Seed)
	if err != nil {
		return err
	}
	warmup, prof := &profile.Profile{}, &profile.Profile{}
	for i := range c.Steps + 1 {
		into := prof
		if i == 0 {
			into = warmup
		}
		if err := work.Run(func(call synthetic.Call) error { return into.Call(tracer, call) }); err != nil {
			return err
		}
	}
	if c.Trace != "" {
		if err := atomicfile.WriteFile(atomicfile.OS{}, c.Trace, prof.WriteTrace); err != nil {
			return err
		}
	}
	return c.print(e.stdout, prof, roofOf(p, c.workers(&job{size: 1, localSize: 1})))
}

// row is what is said of a kernel, for one step.
type profileRow struct {
	Kernel      string  `json:"kernel"`
	Source      string  `json:"source"`
	Launches    float64 `json:"launches"`
	Millis      float64 `json:"ms"`
	Share       float64 `json:"share"`
	GFlops      float64 `json:"gflops"`
	PeakPercent float64 `json:"peak_percent,omitempty"`
	GBytes      float64 `json:"gbytes_per_s"`
}

func (c *profileCmd) row(k profile.Kernel, total time.Duration, top roof) profileRow {
	seconds := max(k.Time.Seconds(), 1e-9)
	r := profileRow{
		Kernel: k.Name, Source: k.Location, Launches: float64(k.Launches) / float64(c.Steps), Millis: 1e3 * seconds / float64(c.Steps),
		Share: k.Time.Seconds() / total.Seconds(), GFlops: k.Flops / seconds / 1e9, GBytes: float64(k.Traffic.Read+k.Traffic.Written) / seconds / 1e9,
	}
	r.PeakPercent = 100 * top.seconds(k.Flops, float64(k.Traffic.Read+k.Traffic.Written)) / seconds
	return r
}

func (c *profileCmd) print(w io.Writer, p *profile.Profile, top roof) error {
	kernels := p.Kernels()
	sum := profile.Kernel{Name: "all"}
	for _, k := range kernels {
		sum.Launches, sum.Flops = sum.Launches+k.Launches, sum.Flops+k.Flops
		sum.Traffic.Add(k.Traffic)
	}
	sum.Time = p.Total
	if c.JSON {
		lines := json.NewEncoder(w)
		for _, k := range append(kernels, sum) {
			if err := lines.Encode(c.row(k, p.Total, top)); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "launches\tms\tshare\tGFLOP/s\tpeak\tGB/s\t kernel\t source")
	show := func(k profile.Kernel) {
		r := c.row(k, p.Total, top)
		share, flops := "", ""
		if k.Flops > 0 {
			flops = fmt.Sprintf("%.1f", r.GFlops)
		}
		if r.PeakPercent > 0 {
			share = fmt.Sprintf("%.0f%%", r.PeakPercent)
		}
		fmt.Fprintf(table, "%.0f\t%.2f\t%.1f%%\t%s\t%s\t%.1f\t %s\t %s\n", r.Launches, r.Millis, 100*r.Share, flops, share, r.GBytes, r.Kernel, r.Source)
	}
	shown := kernels
	if c.Top > 0 && len(kernels) > c.Top {
		shown = kernels[:c.Top]
	}
	for _, k := range shown {
		show(k)
	}
	if rest := kernels[len(shown):]; len(rest) > 0 {
		others := profile.Kernel{Name: fmt.Sprintf("%d others", len(rest))}
		for _, k := range rest {
			others.Launches, others.Time, others.Flops = others.Launches+k.Launches, others.Time+k.Time, others.Flops+k.Flops
			others.Traffic.Add(k.Traffic)
		}
		show(others)
	}
	show(sum)
	return table.Flush()
}
