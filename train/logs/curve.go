package logs

import (
	"image/color"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"blutrain/formats/atomicfile"
)

// Curve draws training and validation loss into loss.png and loss.svg: at the end of a run, and after evaluations before
// that, at most twice a minute.
type Curve struct {
	dir     string
	history *History
	drawn   time.Time
}

// NewCurve draws into a folder, going on with the history of the run before a resumption.
func NewCurve(dir string, history *History) *Curve { return &Curve{dir, history, time.Now()} }

// Step implements Sink.
func (c *Curve) Step(r Step) error { c.history.add(r); return nil }

// Eval implements Sink.
func (c *Curve) Eval(r Eval) error {
	c.history.addEval(r)
	if time.Since(c.drawn) < 30*time.Second {
		return nil
	}
	return c.draw()
}

// Checkpoint implements Sink.
func (c *Curve) Checkpoint(Checkpoint) error { return nil }

// Note implements Sink.
func (c *Curve) Note(Note) error { return nil }

// Done implements Sink.
func (c *Curve) Done(Done) error { return nil }

// Close implements Sink.
func (c *Curve) Close() error { return c.draw() }

func (c *Curve) draw() error {
	c.drawn = time.Now()
	for _, format := range []string{"png", "svg"} {
		if err := Draw(c.history, filepath.Join(c.dir, "loss."+format), format); err != nil {
			return err
		}
	}
	return nil
}

// Draw writes a picture ("png" or "svg") of the losses: each step's in pale, their average over a hundredth of the run, and
// those on validation data. The first hundredth, where the loss falls from that of a guess, may leave the picture at the top.
func Draw(h *History, name, format string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = "Loss", "step", "nats per target"
	p.Legend.Top, p.Legend.XOffs, p.Legend.YOffs = true, -vg.Points(8), -vg.Points(8)
	p.Add(plotter.NewGrid())
	train, val := plotter.XYs{}, plotter.XYs{}
	for _, s := range h.Steps {
		train = append(train, plotter.XY{X: float64(s.Step), Y: float64(s.Loss)})
	}
	for _, e := range h.Evals {
		val = append(val, plotter.XY{X: float64(e.Step), Y: float64(e.Loss)})
	}
	train, val = finite(train), finite(val)
	pale, blue, orange := color.RGBA{0xae, 0xc7, 0xe8, 0xff}, color.RGBA{0x1f, 0x77, 0xb4, 0xff}, color.RGBA{0xff, 0x7f, 0x0e, 0xff}
	for _, l := range []struct {
		label  string
		points plotter.XYs
		color  color.Color
		width  vg.Length
	}{
		{"", thin(train), pale, vg.Points(0.5)},
		{"train", thin(smooth(train, len(train)/100)), blue, vg.Points(1.5)},
		{"validation", thin(val), orange, vg.Points(1.5)},
	} {
		if err := addLine(p, l.label, l.points, l.color, l.width); err != nil {
			return err
		}
	}
	if settled := train[len(train)/100:]; len(settled) > 0 {
		_, _, low, high := plotter.XYRange(slices.Concat(settled, val))
		p.Y.Min, p.Y.Max = low, max(high, low+1e-6)
	}
	w, err := p.WriterTo(8*vg.Inch, 5*vg.Inch, format)
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(atomicfile.OS{}, name, func(out io.Writer) error {
		_, err := w.WriteTo(out)
		return err
	})
}

func addLine(p *plot.Plot, label string, points plotter.XYs, c color.Color, width vg.Length) error {
	if len(points) == 0 {
		return nil
	}
	line, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, width
	p.Add(line)
	if label != "" {
		p.Legend.Add(label, line)
	}
	return nil
}

// finite drops what cannot be drawn.
func finite(points plotter.XYs) plotter.XYs {
	kept := plotter.XYs{}
	for _, p := range points {
		if !math.IsNaN(p.Y) && !math.IsInf(p.Y, 0) {
			kept = append(kept, p)
		}
	}
	return kept
}

// smooth averages each point with up to width before it.
func smooth(points plotter.XYs, width int) plotter.XYs {
	out := slices.Clone(points)
	sum := 0.0
	for i, p := range points {
		sum += p.Y
		if i > width {
			sum -= points[i-width-1].Y
		}
		out[i].Y = sum / float64(min(i, width)+1)
	}
	return out
}

// thin averages runs of points, so that a picture of a million steps stays small.
func thin(points plotter.XYs) plotter.XYs {
	const most = 2000
	if len(points) <= most {
		return points
	}
	run := (len(points) + most - 1) / most
	var out plotter.XYs
	for ; len(points) > 0; points = points[min(run, len(points)):] {
		part := points[:min(run, len(points))]
		var sum plotter.XY
		for _, p := range part {
			sum.X += p.X
			sum.Y += p.Y
		}
		out = append(out, plotter.XY{X: sum.X / float64(len(part)), Y: sum.Y / float64(len(part))})
	}
	return out
}
