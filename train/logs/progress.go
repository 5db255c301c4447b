package logs

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/sys/unix"
)

// NewProgress reports to a person: a bar that stays on one line of a terminal, or plain lines elsewhere. The run
// begins after step first and ends with step last.
func NewProgress(w io.Writer, first, last int64) Sink {
	if f, ok := w.(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
			return newBar(f, first, last)
		}
	}
	return newPlain(w, first, last, time.Now)
}

// estimate says how long the rest takes, from a moving average of the steps (weight 0.1 on the newest).
type estimate struct {
	last    int64
	average float64 // milliseconds
}

func (e *estimate) left(r Step) time.Duration {
	if e.average == 0 {
		e.average = float64(r.Milliseconds)
	}
	e.average += 0.1 * (float64(r.Milliseconds) - e.average)
	return time.Duration(float64(e.last-r.Step) * e.average * float64(time.Millisecond)).Round(time.Second)
}

// parts is what is said of a step: what matters most first, for a terminal leaves out what it has no room for. extra comes in between.
func parts(r Step, left time.Duration, extra ...string) []string {
	rate, unit := r.rate()
	list := []string{fmt.Sprintf("loss %.4f", float64(r.Loss)), fmt.Sprintf("%.0f %s/s", rate, unit), left.String() + " left"}
	list = append(list, extra...)
	if r.MFU != nil {
		list = append(list, fmt.Sprintf("MFU %.1f%%", 100*float64(*r.MFU)))
	}
	return append(list, fmt.Sprintf("lr %.2e", float64(r.LR)), fmt.Sprintf("grad norm %.3f", float64(r.GradNorm)), binarySize(r.MemoryBytes))
}

// fit joins as many parts as a line has room for, but at least one.
func fit(parts []string, width int) string {
	text := parts[0]
	for _, p := range parts[1:] {
		if len(text)+len(", ")+len(p) > width {
			break
		}
		text += ", " + p
	}
	return text
}

// binarySize prints bytes as B, KiB, MiB, GiB or TiB.
func binarySize(n int64) string {
	v, unit := float64(n), 0
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGT"[unit-1])
}

// plain prints a line for the first and the last step, and for others when a second has passed since the line before.
type plain struct {
	w        io.Writer
	now      func() time.Time
	first    int64
	estimate estimate
	printed  time.Time
}

func newPlain(w io.Writer, first, last int64, now func() time.Time) *plain {
	return &plain{w: w, now: now, first: first, estimate: estimate{last: last}}
}

func (p *plain) Step(r Step) error {
	left := p.estimate.left(r)
	if now := p.now(); r.Step == p.first+1 || r.Step == p.estimate.last || now.Sub(p.printed) >= time.Second {
		p.printed = now
		_, err := fmt.Fprintf(p.w, "step %d/%d: %s\n", r.Step, p.estimate.last, strings.Join(parts(r, left), ", "))
		return err
	}
	return nil
}

func (p *plain) Eval(r Eval) error {
	_, err := fmt.Fprintf(p.w, "step %d: validation loss %.4f\n", r.Step, float64(r.Loss))
	return err
}

func (p *plain) Checkpoint(r Checkpoint) error {
	_, err := fmt.Fprintln(p.w, checkpointLine(r))
	return err
}

func checkpointLine(r Checkpoint) string {
	rate := float64(r.Bytes) / 1e6 / max(1e-3, float64(r.Milliseconds)/1000)
	return fmt.Sprintf("step %d: checkpoint of %s on disk after %.1f s (%.0f MB/s), training waited %.1f ms for it",
		r.Step, binarySize(r.Bytes), float64(r.Milliseconds)/1000, rate, float64(r.Stall))
}

func (p *plain) Note(r Note) error {
	_, err := fmt.Fprintln(p.w, noteLine(r))
	return err
}

func noteLine(r Note) string { return fmt.Sprintf("step %d: %s", r.Step, r.Text) }

func (p *plain) Done(r Done) error {
	_, err := fmt.Fprintln(p.w, summary(p.first, r))
	return err
}

func (p *plain) Close() error { return nil }

// summary is the end of a run whose process began after step first.
func summary(first int64, r Done) string {
	text := fmt.Sprintf("%d steps", r.Steps-first)
	if first > 0 {
		text += fmt.Sprintf(" after step %d", first)
	}
	text += fmt.Sprintf(" in %s", time.Duration(float64(r.Seconds)*float64(time.Second)).Round(time.Millisecond))
	if !math.IsNaN(float64(r.Loss)) { // there was a step
		text += fmt.Sprintf(", loss %.4f", float64(r.Loss))
	}
	if r.ValLoss != nil {
		text += fmt.Sprintf(", validation loss %.4f", float64(*r.ValLoss))
	}
	return text
}

// bar is the progress line of a terminal.
type bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	first    int64
	estimate estimate
	parts    atomic.Pointer[[]string] // read by the drawing goroutine
	val      []string
	w        io.Writer
	summary  string // what is left to say when the bar is done
}

// barWidth is that of the bar itself, in characters.
const barWidth = 10

func newBar(w io.Writer, first, last int64) *bar {
	b := &bar{progress: mpb.New(mpb.WithOutput(w), mpb.WithWidth(barWidth)), first: first, estimate: estimate{last: last}, w: w}
	b.parts.Store(&[]string{""})
	b.bar = b.progress.AddBar(last,
		mpb.PrependDecorators(decor.CountersNoUnit("step %d/%d")),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string { return fit(*b.parts.Load(), s.AvailableWidth-barWidth-2) })))
	b.bar.SetCurrent(first)
	return b
}

func (b *bar) Step(r Step) error {
	list := parts(r, b.estimate.left(r), b.val...)
	b.parts.Store(&list)
	b.bar.SetCurrent(r.Step)
	return nil
}

func (b *bar) Eval(r Eval) error {
	b.val = []string{fmt.Sprintf("val %.4f", float64(r.Loss))}
	return nil
}

func (b *bar) Checkpoint(r Checkpoint) error {
	_, err := b.progress.Write([]byte(checkpointLine(r) + "\n"))
	return err
}

func (b *bar) Note(r Note) error {
	_, err := b.progress.Write([]byte(noteLine(r) + "\n"))
	return err
}

func (b *bar) Done(r Done) error {
	b.summary = summary(b.first, r)
	return nil
}

func (b *bar) Close() error {
	b.end()
	b.progress.Wait()
	if b.summary == "" {
		return nil
	}
	_, err := fmt.Fprintln(b.w, b.summary)
	return err
}

// end stops drawing, also when the run stopped early.
func (b *bar) end() {
	if !b.bar.AbortedOrCompleted() {
		b.bar.Abort(false)
	}
}
