// Package train is the training loop: it feeds batches to a program, steps its optimizer, evaluates, saves and restores
// checkpoints, and reports. It sees a program through runtime.Program only, and knows neither devices nor how programs are compiled.
package train

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
	"blutrain/train/data"
	"blutrain/train/logs"
	"blutrain/train/schedule"
)

// Config describes a run.
type Config struct {
	Program  runtime.Program
	Artifact string       // SHA-256 of the compiled file
	Data     *data.Shards // what to train on
	Val      *data.Shards // what to evaluate on; nil: nothing
	Steps    int64        // the run ends after this step
	Seed     *uint64      // of initialization, data order and dropout; nil: that of the checkpoint, or 0. At most MaxSeed
	Group    checkpoint.Group

	ValEvery   int64 // steps between evaluations; there is one after the last step, too
	ValBatches int64 // of an evaluation; 0: all whole batches of Val

	CheckpointDir   string // "": no checkpoints
	CheckpointEvery int64  // steps between checkpoints; 0: only after the last step
	Keep            int    // checkpoints that stay; 0: all
	Resume          bool   // go on from the newest valid checkpoint, if there is one

	PeakFlops float64 // of the device, per second; 0: not known

	// Logs opens what the run reports to, once it is known after which step it begins (0 unless it is resumed). A log that
	// can't be written is an error at the end of the run, which goes on as long as there is another.
	Logs func(first int64) (logs.Multi, error)
}

// MaxSeed is the largest seed: run-time scalars are exact to 2^53.
const MaxSeed = 1<<53 - 1

// ErrInterrupted is what Run returns, wrapped, when its context ended before the last step.
var ErrInterrupted = errors.New("interrupted")

// Run trains. When the context ends, the step at hand is finished and a checkpoint saved. What is returned with an
// error is how far the run came.
func Run(ctx context.Context, c Config) (logs.Done, error) {
	l, err := start(c)
	if err != nil {
		return logs.Done{}, err
	}
	return l.finish(l.run(ctx))
}

// loop is a run under way.
type loop struct {
	Config
	manifest *artifact.Manifest
	schedule schedule.Schedule
	seed     uint64
	loader   *data.Loader
	store    *checkpoint.Store
	writer   *checkpoint.Writer
	sink     logs.Multi
	spikes   spikes

	began  time.Time
	first  int64 // steps taken before this process
	step   int64 // steps taken
	broken bool  // the state is not that after a step: the next one went wrong
	saved  int64 // step of the newest checkpoint begun
	last   logs.Step
	val    *logs.Number

	notes   []string // to report once there is a place for it
	unsaved []error  // checkpoints that could not be written
	unheard []error  // logs that could not be written
}

// start checks everything that can be checked before the first step, and brings the program to the state to go on from.
func start(c Config) (*loop, error) {
	l := &loop{Config: c, manifest: c.Program.Manifest(), began: time.Now(), saved: -1, last: logs.Step{Loss: logs.NaN()}}
	if err := l.check(); err != nil {
		return nil, err
	}
	for _, open := range []func() error{l.begin, l.openLoader, l.openLogs} {
		if err := open(); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *loop) check() error {
	err := CheckFunctions(l.manifest)
	if err != nil {
		return err
	}
	if l.schedule, err = schedule.New(l.manifest.Train.Schedule); err != nil {
		return err
	}
	if l.Steps < 1 || l.ValEvery < 0 || l.ValBatches < 0 || l.CheckpointEvery < 0 || l.Keep < 0 {
		return errors.New("steps must be at least 1, and no interval or number negative")
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
		l.loader, err = data.NewLoader(l.Data, l.loaderConfig(false), nil)
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
	c := l.loaderConfig(true)
	c.Sample = l.ValBatches
	val, err := data.NewLoader(l.Val, c, nil)
	if err != nil {
		return err
	}
	defer val.Close()
	for range val.Batches() {
		if _, err := val.Next(); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) loaderConfig(sequential bool) data.Config {
	b := l.manifest.Train.Batch
	return data.Config{B: b.B, S: b.S, Vocab: vocabulary(l.manifest), Rank: l.Group.Rank(), Ranks: l.Group.World(), Seed: l.seed, Sequential: sequential}
}

func (l *loop) openLogs() (err error) {
	if l.sink, err = l.Logs(l.first); err != nil {
		return err
	}
	if l.first >= l.Steps {
		l.notes = append(l.notes, fmt.Sprintf("nothing to do: the run is to end with step %d", l.Steps))
	}
	for _, text := range l.notes {
		if err := l.note(text); err != nil {
			return err
		}
	}
	return nil
}

// finish saves what is worth saving (not the state after a step that went wrong), ends the background work, and says how it went.
func (l *loop) finish(err error) (logs.Done, error) {
	if !l.broken && l.step > l.first {
		err = errors.Join(err, l.save())
	}
	if l.writer != nil {
		l.unsaved = append(l.unsaved, l.writer.Close()...)
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
		errs = append(errs, l.writer.Close()...)
	}
	if l.store != nil {
		errs = append(errs, l.store.Close())
	}
	return errors.Join(errs...)
}
