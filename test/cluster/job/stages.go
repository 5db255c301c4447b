package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// collectives measures what ranks exchange.
func (j *job) collectives() error {
	for _, n := range j.Ranks {
		if n == 1 {
			continue
		}
		args := []string{"bench", "--collectives", "--nproc-per-node", fmt.Sprint(n), "--steps", "5", "--json", "--sizes", list(j.Sizes)}
		if j.Target == "cuda" {
			args = append(args, "--device", "cuda")
		}
		out, err := j.program("blurun", args...)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(out) {
			var r struct {
				Op     string  `json:"op"`
				Bytes  float64 `json:"bytes"`
				Millis float64 `json:"median_ms"`
				Rate   float64 `json:"bus_gb_per_s"`
			}
			if err := json.Unmarshal(line, &r); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			what := fmt.Sprintf("%s, %.0f MiB", r.Op, r.Bytes/(1<<20))
			if err := j.add(row{Stage: "collectives", What: what, Ranks: n, Value: map[string]float64{"ms": r.Millis, "bus GB/s": r.Rate}}); err != nil {
				return err
			}
		}
	}
	return nil
}

func list(numbers []int) string {
	text := ""
	for i, n := range numbers {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprint(n)
	}
	return text
}

// dataParallel compares data-parallel ranks with one rank: their loss with that of the same global batch, their speed with that of
// the same batch a rank.
func (j *job) dataParallel() error {
	size := sizes[j.Model]
	for _, precision := range j.Precisions {
		alone, err := j.compile(compiled{precision: precision, b: size.b, s: size.s})
		if err != nil {
			return err
		}
		base, _, err := j.train(1, alone, j.count()...)
		if err != nil {
			return err
		}
		if err := j.speed("data", precision+", one rank", 1, base, rate(base), nil); err != nil {
			return err
		}
		for _, n := range j.Ranks {
			if n == 1 {
				continue
			}
			same, _, err := j.train(1, alone, append(j.count(), "--accumulate", fmt.Sprint(n))...)
			if err != nil {
				return err
			}
			for _, zero := range []bool{false, true} {
				model, err := j.compile(compiled{mesh: fmt.Sprintf("dp=%d", n), zero: zero, precision: precision, b: size.b, s: size.s})
				if err != nil {
					return err
				}
				steps, _, err := j.train(n, model, j.count()...)
				if err != nil {
					return err
				}
				what := precision + ", dp"
				if zero {
					what += ", ZeRO-1"
				}
				if err := j.speed("data", what, n, steps, rate(base), same); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (j *job) count() []string { return []string{"--steps", fmt.Sprint(j.Steps)} }

// speed adds a row about a training. base is the tokens a second of one rank alone; same is the run that must have its losses.
func (j *job) speed(stage, what string, ranks int, steps []step, base float64, same []step) error {
	v := map[string]float64{"tokens/s": rate(steps), "memory MiB": last(steps).Memory / (1 << 20)}
	if base > 0 {
		parts := 1.0 // ranks on CPUs share the cores that one rank has alone
		if j.Target == "cuda" {
			parts = float64(ranks)
		}
		v["efficiency"] = rate(steps) / base / parts
	}
	if same != nil {
		v["loss error, first step"] = difference(steps[0], same[0])
		v["loss error, last step"] = difference(last(steps), last(same))
	}
	return j.add(row{Stage: stage, What: what, Ranks: ranks, Value: v})
}

// difference is how far a loss is from another, relatively.
func difference(got, want step) float64 { return math.Abs(*got.Loss-*want.Loss) / math.Abs(*want.Loss) }

// contextParallel compares sequences shared by all ranks with one rank, where one rank has room for them.
func (j *job) contextParallel() error {
	for _, precision := range j.Precisions {
		for _, length := range j.Lengths {
			alone, err := j.compile(compiled{precision: precision, b: 1, s: length})
			if err != nil {
				return err
			}
			what := fmt.Sprintf("%s, S = %d, ", precision, length)
			one, _, err := j.train(1, alone, j.count()...)
			base := 0.0
			if err != nil {
				if err := j.add(row{Stage: "context", What: what + "one rank", Ranks: 1, Note: "failed: " + lastLine(err)}); err != nil {
					return err
				}
				one = nil
			} else {
				base = rate(one)
				if err := j.speed("context", what+"one rank", 1, one, base, nil); err != nil {
					return err
				}
			}
			for _, way := range []string{"ring", "ulysses", "gather"} {
				if heads := j.heads(); way == "ulysses" && heads%j.most != 0 {
					note := fmt.Sprintf("%d heads can't be shared by %d ranks", heads, j.most)
					if err := j.add(row{Stage: "context", What: what + way, Ranks: j.most, Note: note}); err != nil {
						return err
					}
					continue
				}
				model, err := j.compile(compiled{mesh: fmt.Sprintf("cp=%d", j.most), context: way, precision: precision, b: 1, s: length})
				if err != nil {
					return err
				}
				steps, _, err := j.train(j.most, model, j.count()...)
				if err != nil {
					return err
				}
				if err := j.speed("context", what+way, j.most, steps, base, one); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// lastLine is the end of an error's text: what blurun said last.
func lastLine(err error) string {
	lines := bytes.Split(bytes.TrimSpace([]byte(err.Error())), []byte("\n"))
	return string(lines[len(lines)-1])
}

func (j *job) heads() int {
	if j.Model == "tiny" {
		return 4
	}
	return 12
}

// folder makes an empty folder for checkpoints.
func (j *job) folder(name string) (string, error) {
	dir := filepath.Join(j.Out, name)
	return dir, os.RemoveAll(dir)
}

// checkpoints measures how long training waits for checkpoints that are written beside it.
func (j *job) checkpoints() error {
	size := sizes[j.Model]
	for _, zero := range []bool{false, true} {
		model, err := j.compile(compiled{mesh: fmt.Sprintf("dp=%d", j.most), zero: zero, precision: j.Precisions[0], b: size.b, s: size.s})
		if err != nil {
			return err
		}
		dir, err := j.folder("checkpoints")
		if err != nil {
			return err
		}
		steps, saves, err := j.train(j.most, model, "--steps", fmt.Sprint(4*j.Steps), "--checkpoint-dir", dir, "--checkpoint-every", fmt.Sprint(j.Steps))
		if err != nil {
			return err
		}
		if len(saves) < 3 {
			return fmt.Errorf("%d checkpoints were reported, 3 or more expected", len(saves))
		}
		what := "asynchronous"
		if zero {
			what += ", ZeRO-1"
		}
		stall := median(saves, func(s step) float64 { return *s.Stall })
		took := median(saves, func(s step) float64 { return s.Save })
		err = j.add(row{Stage: "checkpoints", What: what, Ranks: j.most, Value: map[string]float64{
			"stall ms": stall, "written in ms": took, "MiB": saves[0].Bytes / (1 << 20), "MB/s": saves[0].Bytes / 1e3 / took,
			"step ms": median(steps[len(steps)/2:], func(s step) float64 { return s.Milliseconds }),
		}})
		if err != nil {
			return err
		}
	}
	return nil
}

// resume stops a run halfway and goes on with half the ranks, each of which takes twice the micro-batches; the loss must be that of a run
// that was left alone.
func (j *job) resume() error {
	size := sizes[j.Model]
	fewer := j.most / 2
	for _, zero := range []bool{false, true} {
		meshes := [2]string{"dp", "dp"}
		what := "dp"
		if zero {
			meshes, what = [2]string{fmt.Sprintf("dp=%d", j.most), fmt.Sprintf("dp=%d", fewer)}, "ZeRO-1"
		}
		var models [2]string
		for i, mesh := range meshes {
			var err error
			v := compiled{mesh: mesh, zero: zero, precision: j.Precisions[0], b: size.b, s: size.s}
			if models[i], err = j.compile(v); err != nil {
				return err
			}
		}
		whole, _, err := j.train(j.most, models[0], j.count()...)
		if err != nil {
			return err
		}
		dir, err := j.folder("resume")
		if err != nil {
			return err
		}
		half := []string{"--checkpoint-dir", dir, "--steps", fmt.Sprint(j.Steps / 2)}
		if _, _, err := j.train(j.most, models[0], half...); err != nil {
			return err
		}
		rest := append([]string{"--checkpoint-dir", dir, "--resume", "--accumulate", fmt.Sprint(j.most / fewer)}, j.count()...)
		steps, _, err := j.train(fewer, models[1], rest...)
		if err != nil {
			return err
		}
		if len(steps) != j.Steps-j.Steps/2 {
			return fmt.Errorf("%d steps were taken after resuming, %d expected", len(steps), j.Steps-j.Steps/2)
		}
		err = j.add(row{Stage: "resume", What: fmt.Sprintf("%s, %d ranks, then %d", what, j.most, fewer), Ranks: fewer,
			Value: map[string]float64{"loss error, last step": difference(last(steps), last(whole))}})
		if err != nil {
			return err
		}
	}
	return nil
}
