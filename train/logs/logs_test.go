package logs

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
)

func step(n int64, loss float64) Step {
	return Step{Step: n, Loss: Number(loss), GradNorm: 1.5, LR: 6e-4, TokensPerSec: 1000, Milliseconds: 250, MemoryBytes: 3 << 20}
}

func TestLinesAreTheDocumentedObjects(t *testing.T) {
	var out bytes.Buffer
	l := NewLines(&out)
	mfu, val := Number(0.25), Number(3)
	withMFU := step(2, math.NaN())
	withMFU.MFU = &mfu
	require.NoError(t, l.Step(step(1, 10.98)))
	require.NoError(t, l.Step(withMFU))
	require.NoError(t, l.Eval(Eval{2, 11}))
	require.NoError(t, l.Checkpoint(Checkpoint{Step: 2, Stall: 0.5, Milliseconds: 3000, Bytes: 1 << 30}))
	require.NoError(t, l.Note(Note{2, "disk full"}))
	require.NoError(t, l.Done(Done{Done: true, Steps: 2, Loss: 4, ValLoss: &val, Seconds: 1.5}))
	require.NoError(t, l.Done(Done{Steps: 2, Loss: Number(math.Inf(1)), Error: "loss is not finite"}))
	require.Equal(t, `{"step":1,"loss":10.98,"grad_norm":1.5,"lr":0.0006,"tokens_per_s":1000,"step_ms":250,"memory_bytes":3145728}
{"step":2,"loss":null,"grad_norm":1.5,"lr":0.0006,"tokens_per_s":1000,"step_ms":250,"memory_bytes":3145728,"mfu":0.25}
{"step":2,"val_loss":11}
{"step":2,"checkpoint_stall_ms":0.5,"checkpoint_ms":3000,"checkpoint_bytes":1073741824}
{"step":2,"note":"disk full"}
{"done":true,"steps":2,"loss":4,"val_loss":3,"seconds":1.5}
{"done":false,"steps":2,"loss":null,"seconds":0,"error":"loss is not finite"}
`, out.String())
	for line := range strings.Lines(out.String()) {
		require.True(t, json.Valid([]byte(line)))
	}
}

// TestHistoryAcrossACrash: steps that were taken again after a resumption replace those from before, and a line that was
// cut short by the crash is not in the way.
func TestHistoryAcrossACrash(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	empty, err := ReadHistory(name)
	require.NoError(t, err)
	require.Empty(t, empty.Steps)
	session := func(from, to int64, loss float64) {
		l, err := AppendLines(name)
		require.NoError(t, err)
		for n := from; n <= to; n++ {
			require.NoError(t, l.Step(step(n, loss)))
			require.NoError(t, l.Eval(Eval{n, Number(loss + 0.5)}))
		}
		require.NoError(t, l.Close())
	}
	session(1, 5, 1)
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"step":6,"lo` + strings.Repeat(" ", 9000))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	h, err := ReadHistory(name)
	require.NoError(t, err)
	require.Len(t, h.Steps, 5)
	session(4, 7, 2)
	l, err := AppendLines(name)
	require.NoError(t, err)
	require.NoError(t, l.Note(Note{7, "noted"}))
	require.NoError(t, l.Done(Done{Done: true}))
	require.NoError(t, l.Close())

	h, err = ReadHistory(name)
	require.NoError(t, err)
	var got, evals []float64
	for i, s := range h.Steps {
		require.Equal(t, int64(i+1), s.Step)
		got = append(got, float64(s.Loss))
		evals = append(evals, float64(h.Evals[i].Loss))
	}
	require.Equal(t, []float64{1, 1, 1, 2, 2, 2, 2}, got)
	require.Equal(t, []float64{1.5, 1.5, 1.5, 2.5, 2.5, 2.5, 2.5}, evals)

	require.NoError(t, os.WriteFile(name, []byte("{}\nnonsense\n"), 0o644))
	_, err = ReadHistory(name)
	require.ErrorContains(t, err, "log.jsonl:2: ")
}

// TestTwoRunsInOneLog: the second is refused while the first goes on.
func TestTwoRunsInOneLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	l, err := AppendLines(name)
	require.NoError(t, err)
	_, err = AppendLines(name)
	require.EqualError(t, err, name+" is in use by another run")
	require.NoError(t, l.Step(step(1, 2)))
	require.NoError(t, l.Close())
	l, err = AppendLines(name)
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// TestDamagedLog: a changed bit gives other numbers or an error that names the line, and a log that is cut short is that of the lines
// before.
func TestDamagedLog(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	l, err := AppendLines(name)
	require.NoError(t, err)
	for n := range int64(3) {
		require.NoError(t, errors.Join(l.Step(step(n+1, 2)), l.Eval(Eval{n + 1, 3}), l.Checkpoint(Checkpoint{Step: n + 1}), l.Note(Note{n + 1, "noted"})))
	}
	require.NoError(t, l.Close())
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	refused := 0
	for i := range whole {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		require.NoError(t, os.WriteFile(name, b, 0o644))
		if _, err := ReadHistory(name); err != nil {
			refused++
			line := 1 + bytes.Count(b[:i], []byte("\n"))
			require.Regexp(t, fmt.Sprintf(`log.jsonl:(%d|%d): `, line, line+1), err.Error())
		}
	}
	require.Greater(t, refused, len(whole)/4)
	for n := range whole {
		require.NoError(t, os.WriteFile(name, whole[:n], 0o644))
		h, err := ReadHistory(name)
		require.NoError(t, err)
		require.LessOrEqual(t, len(h.Steps), 3)
	}
}

func TestAppendToAFileOfOneCutLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log.jsonl")
	require.NoError(t, os.WriteFile(name, []byte(`{"step":1`), 0o644))
	l, err := AppendLines(name)
	require.NoError(t, err)
	require.NoError(t, l.Eval(Eval{1, 2}))
	require.NoError(t, l.Close())
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "{\"step\":1,\"val_loss\":2}\n", string(b))
}

// TestMaskedCRC: CRC-32C of "123456789" is e3069283 (RFC 3720's polynomial); the mask is TFRecord's.
func TestMaskedCRC(t *testing.T) {
	crc := uint32(0xe3069283)
	require.Equal(t, (crc>>15|crc<<17)+0xa282ead8, maskedCRC([]byte("123456789")))
}

// parsed is an Event in the few fields written here.
type parsed struct {
	seconds float64
	step    int64
	version string
	scalars map[string]float64
	session uint64
}

// parseEvents reads a TFRecord file of events and checks every checksum.
func parseEvents(t *testing.T, b []byte) (list []parsed) {
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		require.Equal(t, maskedCRC(b[:8]), binary.LittleEndian.Uint32(b[8:]))
		data := b[12 : 12+n]
		require.Equal(t, maskedCRC(data), binary.LittleEndian.Uint32(b[12+n:]))
		b = b[12+n+4:]
		e := parsed{scalars: map[string]float64{}}
		fields(t, data, func(num protowire.Number, v uint64, text []byte) {
			switch num {
			case 1:
				e.seconds = math.Float64frombits(v)
			case 2:
				e.step = int64(v)
			case 3:
				e.version = string(text)
			case 5:
				fields(t, text, func(_ protowire.Number, _ uint64, value []byte) {
					var tag string
					fields(t, value, func(num protowire.Number, v uint64, text []byte) {
						if num == 1 {
							tag = string(text)
						} else {
							e.scalars[tag] = float64(math.Float32frombits(uint32(v)))
						}
					})
				})
			case 7:
				fields(t, text, func(_ protowire.Number, v uint64, _ []byte) { e.session = v })
			}
		})
		list = append(list, e)
	}
	return list
}

func fields(t *testing.T, b []byte, use func(num protowire.Number, v uint64, text []byte)) {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		require.Positive(t, n)
		b = b[n:]
		var v uint64
		var text []byte
		switch kind {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var v32 uint32
			v32, n = protowire.ConsumeFixed32(b)
			v = uint64(v32)
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		}
		require.Positive(t, n)
		use(num, v, text)
		b = b[n:]
	}
}

func TestEvents(t *testing.T) {
	var out bytes.Buffer
	e, err := newEvents(&out, 4, func() time.Time { return time.Unix(1000, 5e8) })
	require.NoError(t, err)
	mfu := Number(0.5)
	r := step(5, 2.5)
	r.MFU = &mfu
	require.NoError(t, e.Step(r))
	require.NoError(t, e.Eval(Eval{5, 3}))
	list := parseEvents(t, out.Bytes())
	require.Len(t, list, 4)
	require.Equal(t, parsed{1000.5, 0, "brain.Event:2", map[string]float64{}, 0}, list[0])
	require.Equal(t, parsed{1000.5, 5, "", map[string]float64{}, 1}, list[1])
	require.Equal(t, map[string]float64{"loss/train": 2.5, "grad_norm": 1.5, "lr": float64(float32(6e-4)), "perf/tokens_per_s": 1000,
		"perf/memory_bytes": 3 << 20, "perf/mfu": 0.5}, list[2].scalars)
	require.Equal(t, map[string]float64{"loss/val": 3}, list[3].scalars)

	dir := t.TempDir()
	for range 2 { // two sessions, two files
		e, err = NewEvents(dir, 0)
		require.NoError(t, err)
		require.NoError(t, e.Step(step(1, 1)))
		require.NoError(t, e.Close())
	}
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	b, err := os.ReadFile(files[0])
	require.NoError(t, err)
	require.Len(t, parseEvents(t, b), 2)
	_, err = NewEvents(filepath.Join(dir, "none"), 0)
	require.Error(t, err)
}

func TestCurve(t *testing.T) {
	dir := t.TempDir()
	c := NewCurve(dir, &History{})
	require.NoError(t, c.Close(), "nothing to draw is a picture of nothing")
	for n := range int64(5000) {
		loss := 10 / math.Sqrt(float64(n+1))
		if n == 700 {
			loss = math.NaN()
		}
		require.NoError(t, c.Step(step(n+1, loss)))
		if n%500 == 0 {
			require.NoError(t, c.Eval(Eval{n + 1, Number(loss + 0.1)}))
		}
	}
	require.NoError(t, c.Close())
	f, err := os.Open(filepath.Join(dir, "loss.png"))
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.Decode(f)
	require.NoError(t, err)
	colors := map[string]int{}
	for y := range picture.Bounds().Dy() {
		for x := range picture.Bounds().Dx() {
			r, g, b, _ := picture.At(x, y).RGBA()
			colors[fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)]++
		}
	}
	require.Greater(t, colors["1f77b4"], 100, "the training loss")
	require.Greater(t, colors["ff7f0e"], 100, "the validation loss")
	svg, err := os.ReadFile(filepath.Join(dir, "loss.svg"))
	require.NoError(t, err)
	require.Less(t, len(svg), 200_000)
	require.Contains(t, string(svg), "validation")
	require.NoError(t, xml.Unmarshal(svg, new(struct{})))
}

func TestPlainProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := newPlain(&out, 10, 15, func() time.Time { return now })
	mfu := Number(0.123)
	for n := int64(11); n <= 15; n++ {
		r := step(n, 2)
		if n == 15 {
			r.MFU = &mfu
		}
		require.NoError(t, p.Step(r))
		now = now.Add(400 * time.Millisecond)
	}
	require.NoError(t, p.Eval(Eval{15, 2.25}))
	require.NoError(t, p.Checkpoint(Checkpoint{Step: 10, Stall: 0.52, Milliseconds: 4000, Bytes: 1 << 30}))
	require.NoError(t, p.Note(Note{15, "noted"}))
	val := Number(2.25)
	require.NoError(t, p.Done(Done{Steps: 15, Loss: 2, ValLoss: &val, Seconds: 61.5}))
	require.Equal(t, `step 11/15: loss 2.0000, 1000 tokens/s, 1s left, lr 6.00e-04, grad norm 1.500, 3.0 MiB
step 14/15: loss 2.0000, 1000 tokens/s, 0s left, lr 6.00e-04, grad norm 1.500, 3.0 MiB
step 15/15: loss 2.0000, 1000 tokens/s, 0s left, MFU 12.3%, lr 6.00e-04, grad norm 1.500, 3.0 MiB
step 15: validation loss 2.2500
step 10: checkpoint of 1.0 GiB on disk after 4.0 s (268 MB/s), training waited 0.5 ms for it
step 15: noted
5 steps after step 10 in 1m1.5s, loss 2.0000, validation loss 2.2500
`, out.String())
}

func TestBinarySize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536 << 20: "1.5 GiB", 1 << 50: "1024.0 TiB"} {
		require.Equal(t, want, binarySize(n))
	}
}

// onTerminal is what a pseudo-terminal of 80 columns shows of a run.
func onTerminal(t *testing.T, run func(p Sink)) string {
	master, terminal := pty(t)
	shown := make(chan string)
	go func() {
		b, _ := io.ReadAll(master) // ends with an error when the terminal is closed
		shown <- string(b)
	}()
	p := NewProgress(terminal, 0, 4)
	require.IsType(t, &bar{}, p)
	run(p)
	require.NoError(t, p.Close())
	require.NoError(t, terminal.Close())
	return <-shown
}

func TestBarOnATerminal(t *testing.T) {
	stopped := onTerminal(t, func(p Sink) {
		require.NoError(t, p.Eval(Eval{0, 9}))
		require.NoError(t, p.Step(step(1, 2)))
		time.Sleep(200 * time.Millisecond)
		require.NoError(t, p.Checkpoint(Checkpoint{Step: 1}))
		require.NoError(t, p.Note(Note{1, "noted"}))
		require.NoError(t, p.Done(Done{Steps: 1, Loss: 2}))
	})
	require.Contains(t, stopped, "step 1/4 [=>------] loss 2.0000, 1000 tokens/s, 1s left, val 9.0000, lr 6.00e-04\r\n", "what has room in 80 columns")
	require.Contains(t, stopped, "step 1: checkpoint of 0 B on disk after 0.0 s")
	require.Contains(t, stopped, "step 1: noted\r\n")
	require.True(t, strings.HasSuffix(stopped, "1 steps in 0s, loss 2.0000\r\n"), "%q", stopped)

	finished := onTerminal(t, func(p Sink) {
		for n := range int64(4) {
			require.NoError(t, p.Step(step(n+1, 2)))
		}
		require.NoError(t, p.Done(Done{Done: true, Steps: 4, Loss: 2}))
	})
	require.Contains(t, finished, "step 4/4 [========] loss 2.0000")
	require.True(t, strings.HasSuffix(finished, "4 steps in 0s, loss 2.0000\r\n"), "%q", finished)
}

func pty(t *testing.T) (master, terminal *os.File) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}))
	terminal, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	return master, terminal
}

func TestNotATerminal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer f.Close()
	require.IsType(t, &plain{}, NewProgress(f, 0, 1))
}

// told counts what a sink is told, and fails at steps.
type told struct {
	calls, closed int
	fail          bool
}

func (f *told) Step(Step) error {
	f.calls++
	if f.fail {
		return errors.New("disk full")
	}
	return nil
}
func (f *told) Eval(Eval) error { f.calls++; return nil }
func (f *told) Note(Note) error { f.calls++; return nil }
func (f *told) Checkpoint(Checkpoint) error {
	f.calls++
	return nil
}
func (f *told) Done(Done) error { f.calls++; return nil }
func (f *told) Close() error    { f.closed++; return nil }

// TestMultiTellsAll: what fails is closed, told no more, and reported once; the others are told everything.
func TestMultiTellsAll(t *testing.T) {
	a, b, c := &told{fail: true}, &told{}, &told{fail: true}
	m := Multi{a, b, c}
	require.EqualError(t, m.Step(Step{}), "disk full\ndisk full")
	require.NoError(t, errors.Join(m.Step(Step{}), m.Eval(Eval{}), m.Note(Note{}), m.Checkpoint(Checkpoint{}), m.Done(Done{})))
	b.fail = true
	err := m.Step(Step{})
	require.ErrorIs(t, err, ErrNobody)
	require.ErrorContains(t, err, "disk full")
	require.NoError(t, errors.Join(m.Step(Step{}), m.Close()))
	require.Equal(t, []told{{1, 1, true}, {7, 1, true}, {1, 1, true}}, []told{*a, *b, *c})
}
