package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// job is a run of all stages.
type job struct {
	options
	ctx     context.Context
	results *os.File
	rows    []row
	most    int // ranks
}

// row is a result: one JSON line, and one line of the table.
type row struct {
	Stage string             `json:"stage"`
	What  string             `json:"what"`
	Ranks int                `json:"ranks"`
	Value map[string]float64 `json:"values"`
	Note  string             `json:"note,omitempty"`
}

// add keeps a result and writes it at once, so that what was measured before a failure is not lost.
func (j *job) add(r row) error {
	j.rows = append(j.rows, r)
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = j.results.Write(append(line, '\n'))
	return err
}

func (j *job) close() error { return j.results.Close() }

// program runs bluc or blurun to its end, which must be a good one, and gives its standard output.
func (j *job) program(name string, args ...string) ([]byte, error) {
	c := j.command(name, args...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	fmt.Fprintln(os.Stderr, "+", name, strings.Join(args, " "))
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

func (j *job) command(name string, args ...string) *exec.Cmd {
	c := exec.CommandContext(j.ctx, filepath.Join(j.Bin, name), args...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = time.Minute
	return c
}

// step is a line of blurun train --json.
type step struct {
	Step         int64    `json:"step"`
	Loss         *float64 `json:"loss"`
	TokensPerSec float64  `json:"tokens_per_s"`
	Milliseconds float64  `json:"step_ms"`
	Memory       float64  `json:"memory_bytes"`
	Stall        *float64 `json:"checkpoint_stall_ms"`
	Save         float64  `json:"checkpoint_ms"`
	Bytes        float64  `json:"checkpoint_bytes"`
}

// train trains on some ranks and gives the lines of steps and of saved checkpoints.
func (j *job) train(ranks int, model string, args ...string) (steps, saves []step, err error) {
	args = append([]string{"train", model, "--data", j.Data, "--json", "--seed", "1"}, args...)
	if ranks > 1 {
		args = append(args, "--nproc-per-node", fmt.Sprint(ranks))
	}
	out, err := j.program("blurun", args...)
	if err != nil {
		return nil, nil, err
	}
	for line := range bytes.Lines(out) {
		var s step
		if err := json.Unmarshal(line, &s); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", line, err)
		}
		switch {
		case s.Stall != nil:
			saves = append(saves, s)
		case s.Milliseconds > 0 && s.Loss != nil:
			steps = append(steps, s)
		}
	}
	if len(steps) == 0 {
		return nil, nil, errors.New("blurun train printed no steps")
	}
	return steps, saves, nil
}

// rate is the median of the tokens a second of all ranks, over the later half of the steps.
func rate(steps []step) float64 {
	return median(steps[len(steps)/2:], func(s step) float64 { return s.TokensPerSec })
}

func median(steps []step, of func(step) float64) float64 {
	var all []float64
	for _, s := range steps {
		all = append(all, of(s))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func last(steps []step) step { return steps[len(steps)-1] }
