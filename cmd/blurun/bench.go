package main

import (
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"time"

	"blutrain/artifact"
	"blutrain/internal/peak"
	"blutrain/runtime"
	"blutrain/runtime/host/prim"
	"blutrain/runtime/synthetic"
)

type benchCmd struct {
	Model string `arg:"" optional:"" help:"Compiled model, NAME.blx."`
	Fn    string `placeholder:"NAME" help:"Function to time. Default: a step of training."`
	Steps int    `placeholder:"N" default:"10" help:"Steps to time, after one that isn't (${default})."`
	Seed  uint64 `placeholder:"N" help:"Seed of the initializers and the random tokens (0)."`
	JSON  bool   `help:"Print a JSON object with the time of every step."`

	Collectives bool    `help:"Without a model: time what ranks exchange, in memory or, with --device cuda, between GPUs."`
	Sizes       []int64 `placeholder:"MIB" default:"1,25,100,512" help:"Sizes for --collectives in MiB (${default})."`
	deviceFlags
	rankFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *benchCmd) Validate() error {
	switch {
	case c.Steps < 1:
		return errors.New("--steps must be at least 1")
	case c.Collectives != (c.Model == ""):
		return errors.New("give a model, or --collectives without one")
	case slices.ContainsFunc(c.Sizes, func(mib int64) bool { return mib < 1 || mib > 1<<20 }):
		return errors.New("--sizes must be from 1 to 1048576 MiB")
	}
	return errors.Join(checkSeed(c.Seed), c.deviceFlags.Validate(), c.rankFlags.Validate())
}

// benchResult is what bench reports. Rates are those of the median step.
type benchResult struct {
	Model        string    `json:"model"`
	Artifact     string    `json:"artifact"`
	Ranks        int       `json:"ranks"`
	BetweenGPUs  string    `json:"between_gpus,omitempty"` // what moves memory between the ranks' GPUs
	Threads      int       `json:"threads"`
	Millis       []float64 `json:"step_ms"`
	Median       float64   `json:"median_ms"`
	TokensPerSec float64   `json:"tokens_per_s,omitempty"`
	GFlops       float64   `json:"gflops"`
	PeakPercent  float64   `json:"peak_percent,omitempty"`
	MemoryBytes  int64     `json:"memory_bytes"`
	ThreadStores bool      `json:"thread_stores,omitempty"` // compiled so: slower
}

// Run implements the command.
func (c *benchCmd) Run(e *env) error {
	return e.asRanks(c.rankFlags, func(j *job) error {
		if c.Collectives {
			return collectivesCmd{c.Sizes, c.Steps, c.JSON, c.Device}.run(e, j)
		}
		return c.steps(e, j)
	})
}

// steps times steps of a model, on one rank.
func (c *benchCmd) steps(e *env, j *job) (err error) {
	a, p, err := j.open(e, c.Model, c.deviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := e.restore(p, "", c.Seed); err != nil {
		return err
	}
	work, err := synthetic.NewWork(p.Manifest(), c.Fn, c.Seed)
	if err != nil {
		return err
	}
	threads := c.workers(j)
	r := benchResult{Model: a.Manifest.Model, Artifact: a.Hash, Ranks: j.size, BetweenGPUs: links(p), Threads: threads, MemoryBytes: p.MemoryInUse(), ThreadStores: a.Manifest.ThreadStores}
	for i := range c.Steps + 1 {
		if e.ctx.Err() != nil {
			return e.ctx.Err()
		}
		start := time.Now()
		err := work.Run(func(call synthetic.Call) error {
			_, err := p.Call(call.Function, call.In, call.Scalars)
			return err
		})
		if err != nil {
			return err
		}
		if i > 0 {
			r.Millis = append(r.Millis, 1e3*time.Since(start).Seconds())
		}
	}
	r.rates(work, float64(dataRanks(j)), peakFlops(&a.Manifest, threads))
	if !j.first() {
		return nil
	}
	if c.JSON {
		return json.NewEncoder(e.stdout).Encode(r)
	}
	text := fmt.Sprintf("%.1f ms a step, median of %d, from %.1f to %.1f", r.Median, c.Steps, slices.Min(r.Millis), slices.Max(r.Millis))
	if r.TokensPerSec > 0 {
		text += fmt.Sprintf("; %.0f tokens/s", r.TokensPerSec)
	}
	if r.GFlops > 0 {
		text += fmt.Sprintf("; %.1f GFLOP/s", r.GFlops)
	}
	if r.PeakPercent > 0 {
		text += fmt.Sprintf(", %.0f%% of the measured peak of %d cores", r.PeakPercent, r.Threads)
	}
	if r.ThreadStores {
		text += "; compiled with --thread-stores, which is slower"
	}
	_, err = fmt.Fprintln(e.stdout, text)
	return err
}

// dataRanks is the number of ranks that work on sequences of their own.
func dataRanks(j *job) int {
	if j.mesh == nil {
		return 1
	}
	return j.mesh.DP.Size()
}

// rates derives what is reported from the times: tokens of all ranks, operations of this one.
func (r *benchResult) rates(w *synthetic.Work, ranks, peak float64) {
	sorted := slices.Sorted(slices.Values(r.Millis))
	r.Median = sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		r.Median = (r.Median + sorted[len(sorted)/2-1]) / 2
	}
	seconds := r.Median / 1e3
	r.TokensPerSec, r.GFlops = ranks*float64(w.Tokens)/seconds, w.Flops/seconds/1e9
	if peak > 0 {
		r.PeakPercent = 100 * w.Flops / seconds / peak
	}
}

// workers is how many threads compute on this rank.
func (d deviceFlags) workers(j *job) int {
	if n := j.threads(d.Threads); n > 0 {
		return n
	}
	return goruntime.GOMAXPROCS(0)
}

// roof is what a device does in a second at most: floating-point operations, and bytes of memory; 0 where that is not known.
type roof struct{ flops, bytes float64 }

// seconds is the least that so much work takes; 0 where nothing is known.
func (r roof) seconds(flops, bytes float64) float64 {
	least := 0.0
	if r.flops > 0 {
		least = flops / r.flops
	}
	if r.bytes > 0 {
		least = max(least, bytes/r.bytes)
	}
	return least
}

// roofOf is that of the device that runs a program; of a CPU the operations are measured, and bytes don't count.
func roofOf(p runtime.Program, workers int) roof {
	if r, ok := p.(runtime.Roofed); ok {
		flops, bytes := r.Roof()
		return roof{flops, bytes}
	}
	return roof{flops: peakFlops(p.Manifest(), workers)}
}

// peakFlops is what the workers can do at most, measured; 0 where that is not known.
func peakFlops(m *artifact.Manifest, workers int) float64 {
	if m.Target != "cpu" {
		return 0
	}
	return float64(workers) * peak.Flops(prim.Detect().ISA())
}
