package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
	"blutrain/train/data"
	"blutrain/train/logs"
)

// run takes steps until the last, an error, or the end of the context of any rank.
func (l *loop) run(ctx context.Context) error {
	for l.step < l.Steps {
		if stop, err := l.stops(ctx); stop || err != nil {
			l.broken = err != nil
			return l.stopped(err)
		}
		r, err := l.takeStep(ctx)
		if err != nil {
			l.broken = true
			return fmt.Errorf("step %d: %w", l.step+1, err)
		}
		if l.ranks.rank() == 0 {
			l.report(l.sink.Step(r))
		}
		if err := finite(r); err != nil {
			l.broken = true
			return errors.Join(fmt.Errorf("step %d: %w", r.Step, err), l.nobody)
		}
		l.step, l.last = r.Step, r
		if err := l.afterStep(); err != nil {
			// The state is good, but the others may wait for this rank's part in an evaluation, so a save together is not possible.
			l.broken = l.ranks.world() > 1
			return errors.Join(fmt.Errorf("after step %d: %w", l.step, err), l.nobody)
		}
	}
	return l.nobody
}

// stops reports whether all ranks stop here. Several have said during the step before whether they want to, so that no step waits for what all
// say: what makes one want to later is said in the next.
func (l *loop) stops(ctx context.Context) (bool, error) {
	if l.vote == nil || l.ranks.world() == 1 {
		l.vote = l.ranks.ask(ctx, l.wantsEnd(ctx))
	}
	return l.vote.answer()
}

func (l *loop) wantsEnd(ctx context.Context) bool { return ctx.Err() != nil || l.nobody != nil }

// stopped is why the run ends before the last step.
func (l *loop) stopped(err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("after step %d: %w", l.step, err)
	case l.nobody != nil:
		return fmt.Errorf("after step %d: %w", l.step, l.nobody)
	}
	return fmt.Errorf("%w after step %d of %d", ErrInterrupted, l.step, l.Steps)
}

// takeStep accumulates the step's micro-batches, updates the parameters, and measures.
func (l *loop) takeStep(ctx context.Context) (r logs.Step, err error) {
	step, batch := l.step+1, l.manifest.Train.Batch
	begin := time.Now()
	lr := l.schedule.LR(step)
	for micro := range l.micros {
		rows, err := l.loader.Next()
		if err != nil {
			return r, err
		}
		scalars := runtime.Scalars{"first": 0, "seed": l.microSeed(step, micro)}
		if micro == 0 {
			scalars["first"] = 1
		}
		if _, err := l.Program.Call(l.accumulate(micro), inputs(rows), scalars); err != nil {
			return r, err
		}
	}
	l.settle()
	if step < l.Steps {
		l.vote = l.ranks.ask(ctx, l.wantsEnd(ctx)) // late, for it is in the micro-batches that most of the time goes by
	}
	out, err := l.Program.Call("apply", nil, runtime.Scalars{"lr": lr, "step": float64(step)})
	if err != nil {
		return r, err
	}
	elapsed := time.Since(begin).Seconds()
	r = logs.Step{
		Step: step, Loss: scalar(out, "loss"), GradNorm: scalar(out, "grad_norm"), LR: logs.Number(lr), Milliseconds: logs.Number(1000 * elapsed),
		MemoryBytes: l.Program.MemoryInUse(), MFU: l.utilization(elapsed),
	}
	samples := float64(batch.B*l.micros*int64(l.ranks.dp())) / elapsed // of all ranks
	if batch.S > 0 {
		r.TokensPerSec = logs.Number(samples * float64(batch.S))
	} else {
		r.SamplesPerSec = logs.Number(samples)
	}
	return r, nil
}

// accumulate is the function for a micro-batch: the last one's may sum over the ranks.
func (l *loop) accumulate(micro int64) string {
	if micro == l.micros-1 {
		return l.manifest.LastAccumulate()
	}
	return artifact.Accumulate
}

// report keeps the errors of logs for the end of the run, and tells the other logs of them, unless there is none left: then nobody
// sees what the run does, and it ends.
func (l *loop) report(err error) {
	switch {
	case errors.Is(err, logs.ErrNobody):
		if l.nobody == nil {
			l.nobody = err
		}
	case err != nil:
		l.unheard = append(l.unheard, err)
		l.note(err.Error())
	}
}

// finite is an error when the step has produced a number that is none: parameters are lost from here on.
func finite(r logs.Step) error {
	for _, v := range []struct {
		what  string
		value logs.Number
	}{{"loss", r.Loss}, {"norm of the gradient", r.GradNorm}} {
		if x := float64(v.value); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("the %s is %v", v.what, x)
		}
	}
	return nil
}

// afterStep reports on checkpoints, and evaluates and saves when it is time.
func (l *loop) afterStep() error {
	if text := l.spikes.add(float64(l.last.Loss)); text != "" {
		l.note(text)
	}
	if err := l.reserve(); err != nil {
		return err
	}
	if l.writer != nil {
		l.reportSaves(l.writer.Saved())
	}
	last := l.step == l.Steps
	if l.Val != nil && (last || l.ValEvery > 0 && l.step%l.ValEvery == 0) {
		if err := l.evaluate(); err != nil {
			return err
		}
	}
	if l.CheckpointEvery > 0 && l.step%l.CheckpointEvery == 0 && !last {
		return l.save()
	}
	return nil
}

// note reports a remark, on rank 0.
func (l *loop) note(text string) {
	if l.ranks.rank() == 0 {
		l.report(l.sink.Note(logs.Note{Step: l.step, Text: text}))
	}
}

// evaluate reports the mean loss on the validation data: always the same batches.
func (l *loop) evaluate() error {
	mean, err := Evaluate(l.Program, l.Mesh, l.Val, l.ValBatches)
	if err != nil {
		return fmt.Errorf("evaluation: %w", err)
	}
	value := logs.Number(mean)
	l.val = &value
	if l.ranks.rank() == 0 {
		l.report(l.sink.Eval(logs.Eval{Step: l.step, Loss: value}))
	}
	return nil
}

// microSeed is the seed of a micro-batch: the same when the step is taken again after a resumption, and whichever rank of how many
// takes it, as its rows are.
func (l *loop) microSeed(step, micro int64) float64 {
	number := uint64(micro)*uint64(l.ranks.dp()) + uint64(l.ranks.dpRank()) // within the step, of all ranks
	x := data.Mix(l.seed ^ data.Mix(uint64(step)^data.Mix(number)))
	return float64(x & MaxSeed)
}

// utilization is the share of the device's peak that a step of this duration used.
func (l *loop) utilization(seconds float64) *logs.Number {
	if l.PeakFlops <= 0 {
		return nil
	}
	accumulate, _ := l.manifest.Function("accumulate")
	apply, _ := l.manifest.Function("apply")
	flops := accumulate.Flops*float64(l.micros) + apply.Flops
	share := logs.Number(flops / seconds / l.PeakFlops)
	return &share
}

func inputs(b data.Batch) map[string]runtime.Array {
	in := map[string]runtime.Array{}
	for name, t := range b.Inputs {
		in[name] = runtime.Array(t)
	}
	return in
}

// scalar reads an output of one element; checkFunctions has seen that it is there.
func scalar(out map[string]runtime.Array, name string) logs.Number {
	return logs.Number(formats.Tensor(out[name]).Float64s()[0])
}

// spikes finds losses far above the recent ones: more than six standard deviations and a tenth above a moving average.
type spikes struct {
	seen           int
	mean, variance float64
}

// add takes the next loss and says so when it is a spike. The first 50 losses, which fall fast, only teach it.
func (s *spikes) add(loss float64) string {
	const warmup, weight = 50, 0.05
	text := ""
	if limit := s.mean + math.Max(6*math.Sqrt(s.variance), 0.1*math.Abs(s.mean)); s.seen >= warmup && loss > limit {
		text = fmt.Sprintf("the loss jumped to %.4f, the steps before had %.4f on average", loss, s.mean)
	}
	if s.seen == 0 {
		s.mean = loss
	}
	s.seen++
	d := loss - s.mean
	s.mean += weight * d
	s.variance = (1 - weight) * (s.variance + weight*d*d)
	return text
}
