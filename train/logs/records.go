// Package logs is what a person sees of a training run: JSON lines, TensorBoard events, a picture of the loss and a progress line.
// Each is a Sink that is told of steps and evaluations; none knows how they came about.
package logs

import (
	"errors"
	"math"
	"strconv"
)

// Number is a float64 whose JSON is null where JSON has no number for it: NaN and the infinities.
type Number float64

// NaN is what a number is that is not known.
func NaN() Number { return Number(math.NaN()) }

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	v := float64(n)
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, v, 'g', -1, 64), nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	v, err := strconv.ParseFloat(string(text), 64)
	*n = Number(v)
	return err
}

// Step is what is known after an optimizer step.
type Step struct {
	Step          int64   `json:"step"` // from 1
	Loss          Number  `json:"loss"` // mean over the step's targets
	GradNorm      Number  `json:"grad_norm"`
	LR            Number  `json:"lr"`
	TokensPerSec  Number  `json:"tokens_per_s,omitempty"`  // of all ranks; 0 for a model that isn't one of sequences, which has
	SamplesPerSec Number  `json:"samples_per_s,omitempty"` // instead
	Milliseconds  Number  `json:"step_ms"`
	MemoryBytes   int64   `json:"memory_bytes"`  // of this rank's device
	MFU           *Number `json:"mfu,omitempty"` // share of the device's peak; nil when the peak is not known
}

// rate is how fast samples, or their tokens, are gone through, and in what unit.
func (s Step) rate() (float64, string) {
	if s.SamplesPerSec > 0 {
		return float64(s.SamplesPerSec), "samples"
	}
	return float64(s.TokensPerSec), "tokens"
}

// Eval is the result of an evaluation after a step; step 0 is before training.
type Eval struct {
	Step int64  `json:"step"`
	Loss Number `json:"val_loss"`
}

// Checkpoint is a checkpoint that is complete and durable.
type Checkpoint struct {
	Step         int64  `json:"step"`                // after which the state is that of the checkpoint
	Stall        Number `json:"checkpoint_stall_ms"` // for which training waited: for a buffer, and for the copy of its states
	Milliseconds Number `json:"checkpoint_ms"`       // from the complete copy to durable files
	Bytes        int64  `json:"checkpoint_bytes"`    // of all ranks
}

// Note is something that a person should know: a checkpoint that could not be written, a spike of the loss.
type Note struct {
	Step int64  `json:"step"`
	Text string `json:"note"`
}

// Done is the end of a run.
type Done struct {
	Done    bool    `json:"done"` // whether all steps were taken
	Steps   int64   `json:"steps"`
	Loss    Number  `json:"loss"`               // of the last step
	ValLoss *Number `json:"val_loss,omitempty"` // of the last evaluation
	Seconds Number  `json:"seconds"`            // of this process
	Error   string  `json:"error,omitempty"`
}

// Sink is a place that a run reports to.
type Sink interface {
	Step(Step) error
	Eval(Eval) error
	Checkpoint(Checkpoint) error
	Note(Note) error
	// Done is the last call but Close.
	Done(Done) error
	Close() error
}

// ErrNobody is what a Multi returns when the last of its sinks has failed.
var ErrNobody = errors.New("there is nothing left to report to")

// Multi reports to several sinks. All are told, whatever the others return; one that fails is closed and told no more, so that a
// full disk is reported once, and not at each step.
type Multi []Sink

// Step implements Sink.
func (m Multi) Step(r Step) error { return m.each(func(s Sink) error { return s.Step(r) }) }

// Eval implements Sink.
func (m Multi) Eval(r Eval) error { return m.each(func(s Sink) error { return s.Eval(r) }) }

// Checkpoint implements Sink.
func (m Multi) Checkpoint(r Checkpoint) error {
	return m.each(func(s Sink) error { return s.Checkpoint(r) })
}

// Note implements Sink.
func (m Multi) Note(r Note) error { return m.each(func(s Sink) error { return s.Note(r) }) }

// Done implements Sink.
func (m Multi) Done(r Done) error { return m.each(func(s Sink) error { return s.Done(r) }) }

// Close implements Sink.
func (m Multi) Close() error {
	var errs []error
	for i, s := range m {
		if s != nil {
			m[i] = nil
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

func (m Multi) each(tell func(Sink) error) error {
	var errs []error
	left := 0
	for i, s := range m {
		if s == nil {
			continue
		}
		if err := tell(s); err != nil {
			errs = append(errs, err)
			m[i] = nil
			_ = s.Close() // it would tell of the same fault again
			continue
		}
		left++
	}
	if len(errs) > 0 && left == 0 {
		errs = append(errs, ErrNobody)
	}
	return errors.Join(errs...)
}
