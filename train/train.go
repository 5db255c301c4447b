// Package train is the training loop: it feeds batches to a program, steps its optimizer, evaluates, saves and restores
// checkpoints, and reports. It sees a program through runtime.Program only, and knows neither devices nor how programs are compiled.
package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
	"blutrain/train/data"
	"blutrain/train/logs"
	"blutrain/train/schedule"
)

// Config describes a run.
type Config struct {
	Program  runtime.Program
	Artifact string      // SHA-256 of the compiled file
	Data     data.Source // what to train on
	Val      data.Source // what to evaluate on; nil: nothing
	Steps    int64       // the run ends after this step
	Seed     *uint64     // of initialization, data order and dropout; nil: that of the checkpoint, or 0. At most MaxSeed
	Mesh     *dtms.Mesh  // this rank among those of the job, in host memory; nil: it is alone

	Accumulate int64 // micro-batches of a step on each rank; 0: as many as the model says

	ValEvery   int64 // steps between evaluations; there is one after the last step, too
	ValBatches int64 // of an evaluation; 0: all whole batches of Val

	CheckpointDir   string // "": no checkpoints
	CheckpointEvery int64  // steps between checkpoints; 0: only after the last step
	Keep            int    // checkpoints that stay; 0: all
	Resume          bool   // go on from the newest valid checkpoint, if there is one

	PeakFlops float64 // of the device, per second; 0: not known

	// Logs opens what the run reports to, once it is known after which step it begins (0 unless it is resumed). A log that
	// can't be written is an error at the end of the run, which goes on as long as there is another. Only rank 0 reports.
	Logs func(first int64) (logs.Multi, error)
}

// MaxSeed is the largest seed: run-time scalars are exact to 2^53.
const MaxSeed = 1<<53 - 1

// ErrInterrupted is what Run returns, wrapped, when its context ended before the last step.
var ErrInterrupted = errors.New("interrupted")

// Run trains. When the context ends, the step at hand is finished and a checkpoint saved. What is returned with an
// error is how far the run came.
//
// All ranks of a mesh call Run. They stop together, after the same step, when the context of one of them ends. A rank that can't
// go on tells the others why, and they return errors that name it.
func Run(ctx context.Context, c Config) (logs.Done, error) {
	l, err := start(ctx, c)
	if err != nil {
		ranks{c.Mesh}.abort(err)
		return logs.Done{}, err
	}
	return l.finish(l.run(ctx))
}

// loop is a run under way.
type loop struct {
	Config
	ranks    ranks
	group    group
	manifest *artifact.Manifest
	micros   int64 // micro-batches of a step on each rank
	schedule schedule.Schedule
	seed     uint64
	loader   *data.Loader
	store    *checkpoint.Store
	writer   *checkpoint.Writer
	sink     logs.Multi
	spikes   spikes

	began   time.Time
	first   int64                   // steps taken before this process
	step    int64                   // steps taken
	vote    *vote                   // whether the run ends with the step at hand; nil before the first
	broken  bool                    // the state is not that after a step: the next one went wrong
	saved   int64                   // step of the newest checkpoint begun
	copying *snapshot               // for it; nil once it is complete
	stalls  map[int64]time.Duration // for which checkpoints that are being written have held training up, by step
	last    logs.Step
	val     *logs.Number

	notes   []string // to report once there is a place for it
	unsaved []error  // checkpoints that could not be written
	unheard []error  // logs that could not be written
	nobody  error    // why there is nothing left to report to; nil if there is
}

// start checks everything that can be checked before the first step, and brings the program to the state to go on from.
func start(ctx context.Context, c Config) (*loop, error) {
	l := &loop{Config: c, ranks: ranks{c.Mesh}, manifest: c.Program.Manifest(), began: time.Now(), saved: -1, last: logs.Step{Loss: logs.NaN()}}
	if err := l.check(); err != nil {
		return nil, err
	}
	if err := l.meet(ctx); err != nil {
		return nil, err
	}
	for _, open := range []func() error{l.begin, l.openLoader, l.openLogs, func() error { return l.ranks.agree(ctx, l.beginning()) }} {
		if err := open(); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// meet makes sure that all ranks are about to do the same.
func (l *loop) meet(ctx context.Context) (err error) {
	if l.ranks.world() > 1 {
		facts, err := l.settings()
		if err == nil {
			err = l.ranks.agree(ctx, facts)
		}
		if err != nil {
			return err
		}
	}
	l.group, err = l.ranks.newGroup(ctx)
	return err
}

func (l *loop) check() error {
	err := CheckFunctions(l.manifest)
	if err != nil {
		return err
	}
	if l.schedule, err = schedule.New(l.manifest.Train.Schedule); err != nil {
		return err
	}
	if l.Steps < 1 || l.ValEvery < 0 || l.ValBatches < 0 || l.CheckpointEvery < 0 || l.Keep < 0 || l.Accumulate < 0 {
		return errors.New("steps must be at least 1, and no interval or number negative")
	}
	if l.micros = l.Accumulate; l.micros == 0 {
		l.micros = l.manifest.Train.Batch.Accumulate
	}
	if l.Seed != nil {
		l.seed = *l.Seed
	}
	if l.seed > MaxSeed {
		return fmt.Errorf("seed %d is larger than %d", l.seed, MaxSeed)
	}
	if l.Resume && l.CheckpointDir == "" {
		return errors.New("to resume, name the folder of checkpoints")
	}
	return nil
}

// openLoader begins at the data's beginning, or where begin found that the run goes on.
func (l *loop) openLoader() (err error) {
	if l.loader == nil {
		l.loader, err = data.NewLoader(l.Data, l.loaderConfig(), nil)
	}
	if err != nil || l.Val == nil {
		return err
	}
	if err := l.tryValidation(); err != nil {
		return fmt.Errorf("validation: %w", err)
	}
	return nil
}

// tryValidation reads what evaluations are going to read: data that cannot be used should be known now, not after hours, when the first
// evaluation comes.
func (l *loop) tryValidation() error {
	return evaluation(l.Val, l.loaderConfig(), l.ValBatches, func(data.Batch, bool) error { return nil })
}

func (l *loop) loaderConfig() data.Config {
	c := DataConfig(l.manifest, l.Mesh)
	c.Seed = l.seed
	return c
}

func (l *loop) openLogs() (err error) {
	if l.ranks.rank() != 0 {
		return nil
	}
	if l.sink, err = l.Logs(l.first); err != nil {
		return err
	}
	if l.first >= l.Steps {
		l.notes = append(l.notes, fmt.Sprintf("nothing to do: the run is to end with step %d", l.Steps))
	}
	for _, text := range l.notes {
		l.note(text)
	}
	return l.nobody
}

// finish saves what is worth saving (not the state after a step that went wrong), ends the background work, and says how it went.
func (l *loop) finish(err error) (logs.Done, error) {
	if l.broken {
		l.ranks.abort(err)
	} else if l.step > l.first {
		err = errors.Join(err, l.save())
	}
	if l.writer != nil {
		l.reportSaves(l.writer.Close())
		l.writer = nil
	}
	err = errors.Join(err, summary(l.unsaved), summary(l.unheard))
	done := logs.Done{Done: err == nil, Steps: l.step, Loss: l.last.Loss, ValLoss: l.val, Seconds: logs.Number(time.Since(l.began).Seconds())}
	if err != nil {
		done.Error = err.Error()
	}
	return done, errors.Join(err, l.sink.Done(done), l.close())
}

// summary makes one error of many of a kind: a disk that was full for an hour is not told of a thousand times.
func summary(errs []error) error {
	switch n := len(errs); n {
	case 0:
		return nil
	case 1:
		return errs[0]
	default:
		return fmt.Errorf("%w (and %d times before; the first: %v)", errs[n-1], n-1, errs[0])
	}
}

// close releases what was opened.
func (l *loop) close() error {
	var errs []error
	errs = append(errs, l.sink.Close())
	if l.loader != nil {
		l.loader.Close()
	}
	if l.writer != nil {
		l.writer.Close() // nothing has been saved yet
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	if l.group.c != nil {
		errs = append(errs, l.group.c.Close())
	}
	return errors.Join(errs...)
}
