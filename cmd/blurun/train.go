package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"blutrain/artifact"
	"blutrain/train"
	"blutrain/train/data"
	"blutrain/train/logs"
	"blutrain/train/schedule"
)

type trainCmd struct {
	Model           string   `arg:"" help:"Compiled model, NAME.blx."`
	Data            []string `required:"" placeholder:"FILES" help:"Files to train on: tokens, or arrays named after the inputs of the loss (.safetensors, .npy, folders of them); patterns like train_*.bin are expanded."`
	ValData         []string `placeholder:"FILES" help:"Files to evaluate on."`
	Steps           *int64   `placeholder:"N" help:"Last step. Default: the length of the model's schedule."`
	Seed            *uint64  `placeholder:"N" help:"Seed of initialization, data order and dropout. Default: 0, or that of the checkpoint."`
	ValEvery        int64    `placeholder:"N" default:"250" help:"Steps between evaluations (${default}); there is one after the last step, too."`
	ValBatches      int64    `placeholder:"N" default:"20" help:"Batches of an evaluation, of all ranks together, spread evenly over the data (${default}); 0: all."`
	LogDir          string   `placeholder:"DIR" help:"Folder for log.jsonl, TensorBoard events and the loss curve."`
	CheckpointDir   string   `placeholder:"DIR" help:"Folder for checkpoints; there is one after the last step."`
	CheckpointEvery int64    `placeholder:"N" help:"Steps between checkpoints. Default: only the last."`
	Keep            int      `placeholder:"N" default:"3" help:"Newest checkpoints to keep (${default}); 0: all."`
	Resume          bool     `help:"Go on from the newest valid checkpoint, if there is one."`
	Accumulate      int64    `placeholder:"N" help:"Micro-batches of a step on each rank. Default: the model's."`
	PeakTflops      *float64 `placeholder:"X" help:"Peak of the device in 10^12 operations a second, to report utilization."`
	JSON            bool     `help:"Print one JSON object a step."`
	deviceFlags
	rankFlags
}

// Validate implements kong's interface: it refuses flags that cannot be meant.
func (c *trainCmd) Validate() error {
	switch {
	case c.Steps != nil && *c.Steps < 1:
		return errors.New("--steps must be at least 1")
	case c.Accumulate < 0:
		return errors.New("--accumulate must not be negative")
	case c.Accumulate > math.MaxInt32:
		return fmt.Errorf("--accumulate must be at most %d", math.MaxInt32)
	case c.ValEvery < 0 || c.ValBatches < 0 || c.CheckpointEvery < 0 || c.Keep < 0:
		return errors.New("--val-every, --val-batches, --checkpoint-every and --keep must not be negative")
	case c.PeakTflops != nil && !(*c.PeakTflops > 0 && *c.PeakTflops <= math.MaxFloat64/1e12):
		return errors.New("--peak-tflops must be a number above 0")
	case c.CheckpointDir == "" && (c.Resume || c.CheckpointEvery > 0):
		return errors.New("--resume and --checkpoint-every need --checkpoint-dir")
	case c.Seed != nil && checkSeed(*c.Seed) != nil:
		return checkSeed(*c.Seed)
	}
	return errors.Join(c.deviceFlags.Validate(), c.rankFlags.Validate())
}

// Run implements the command.
func (c *trainCmd) Run(e *env) error {
	signal.Ignore(syscall.SIGPIPE) // whoever read the log may leave: then writing fails, and the run can still be saved
	return e.asRanks(c.rankFlags, func(j *job) error { return c.train(e, j) })
}

// train is the command on one rank.
func (c *trainCmd) train(e *env, j *job) (err error) {
	a, p, err := j.open(e, c.Model, c.deviceFlags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	config := train.Config{
		Program: p, Artifact: a.Hash, Seed: c.Seed, Mesh: j.mesh, Accumulate: c.Accumulate,
		ValEvery: c.ValEvery, ValBatches: c.ValBatches,
		CheckpointDir: c.CheckpointDir, CheckpointEvery: c.CheckpointEvery, Keep: c.Keep, Resume: c.Resume,
	}
	if c.PeakTflops != nil {
		config.PeakFlops = *c.PeakTflops * 1e12
	}
	if config.Steps, err = c.steps(a.Manifest.Train); err != nil {
		return err
	}
	if config.Data, err = openData(c.Data); err != nil {
		return err
	}
	defer config.Data.Close()
	if len(c.ValData) > 0 {
		if config.Val, err = openData(c.ValData); err != nil {
			return err
		}
		defer config.Val.Close()
	}
	config.Logs = func(first int64) (logs.Multi, error) { return c.logs(e, first, config.Steps) }
	if _, err = train.Run(e.ctx, config); err != nil {
		err = settled{err}
	}
	return err
}

// steps is where the run ends.
func (c *trainCmd) steps(t *artifact.Train) (int64, error) {
	if t == nil {
		return 0, fmt.Errorf("%s has no train block", c.Model)
	}
	s, err := schedule.New(t.Schedule)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", c.Model, err)
	}
	if c.Steps != nil {
		return *c.Steps, nil
	}
	if s.Steps() == 0 {
		return 0, usagef("the model's schedule has no length: give --steps")
	}
	return s.Steps(), nil
}

// logs opens what the run reports to.
func (c *trainCmd) logs(e *env, first, last int64) (logs.Multi, error) {
	var all logs.Multi
	if c.JSON {
		all = append(all, logs.NewLines(e.stdout))
	} else {
		all = append(all, logs.NewProgress(e.stderr, first, last))
	}
	if c.LogDir == "" {
		return all, nil
	}
	files, err := openLogs(c.LogDir, first)
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return append(all, files...), nil
}

// openLogs opens the files of a log folder. A run that does not go on from a checkpoint needs a folder without a log.
func openLogs(dir string, first int64) (logs.Multi, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	name := filepath.Join(dir, "log.jsonl")
	history, err := logs.ReadHistory(name)
	if err != nil {
		return nil, err
	}
	if first == 0 && len(history.Steps) > 0 {
		return nil, fmt.Errorf("%s is the log of an earlier run: choose another folder", name)
	}
	lines, err := logs.AppendLines(name)
	if err != nil {
		return nil, err
	}
	events, err := logs.NewEvents(dir, first)
	if err != nil {
		return nil, errors.Join(err, lines.Close())
	}
	return logs.Multi{lines, events, logs.NewCurve(dir, history)}, nil
}

// openData opens files of tokens or arrays; a pattern stands for all files that match, in the order of their names.
func openData(patterns []string) (data.Source, error) {
	var names []string
	for _, p := range patterns {
		matches, err := filepath.Glob(p)
		if err != nil {
			return nil, usagef("%s: %v", p, err)
		}
		if len(matches) == 0 {
			return nil, fmt.Errorf("%s: no such file", p)
		}
		names = append(names, matches...)
	}
	return data.Open(names)
}
