package tune

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/formats/tuning"
	"blutrain/runtime"
)

// device is a Bencher whose kernels take given times and give given numbers.
type device struct {
	runtime.Program
	manifest artifact.Manifest
	micros   map[string]float64
	results  map[string][]float32 // one for all kernels that have none
	loaded   []string
	timed    []string
	closed   int
}

func (d *device) Manifest() *artifact.Manifest { return &d.manifest }
func (d *device) DeviceName() string           { return "NVIDIA H200" }
func (d *device) Load(kernels []string) error  { d.loaded = append(d.loaded, kernels...); return nil }

func (d *device) Launches(fn string) map[string]int {
	return map[string]map[string]int{"accumulate": {"a": 3, "b": 1, "c": 1}, "apply": {"c": 1}}[fn]
}

func (d *device) Alone(kernels []string, _ []float64, _ uint64) (runtime.Alone, error) {
	return &work{d, kernels}, nil
}

type work struct {
	*device
	kernels []string
}

func (w *work) Outputs() []runtime.Extent { return []runtime.Extent{{DType: formats.F32, Bytes: 16}} }

func (w *work) Run(i int) error {
	if w.kernels[i] == "broken" {
		return errors.New("illegal address")
	}
	return nil
}

func (w *work) Read(i, _ int, at, n int64) (b []byte, err error) {
	numbers, ok := w.results[w.kernels[i]]
	if !ok {
		numbers = []float32{1, -2, 3, math.Float32frombits(0x7fc07fc0)}
	}
	for _, x := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b[at:min(at+n, at+8)], nil // two numbers at a time
}

func (w *work) Time(i, n int) (float64, error) {
	if n > 1 {
		w.timed = append(w.timed, w.kernels[i])
	}
	return float64(n) * w.micros[w.kernels[i]] * 1e-6 * (1 + 0.001*float64(len(w.timed)%3)), nil
}

func (w *work) Close() error { w.closed++; return nil }

func newDevice() *device {
	return &device{manifest: artifact.Manifest{Arch: "sm_90a", Compiler: "0.1.0", Precision: "fp32", Train: &artifact.Train{Batch: artifact.Batch{Accumulate: 2}},
		Functions: []artifact.Function{{Name: "accumulate"}, {Name: "apply"}}},
		micros: map[string]float64{"a": 100, "a1": 80, "a2": 90, "c": 100, "c1": 99.5}, results: map[string][]float32{}}
}

func sites() *tuning.Candidates {
	return &tuning.Candidates{Sites: []tuning.Site{
		{Key: "first", Kernels: []string{"a", "b"}, Options: []tuning.Candidate{{Choice: "x", Kernel: "a"}, {Choice: "y", Kernel: "a1"}, {Choice: "z", Kernel: "a2"}}},
		{Key: "second", Kernels: []string{"c"}, Options: []tuning.Candidate{{Choice: "x", Kernel: "c"}, {Choice: "y", Kernel: "c1"}}},
	}}
}

func run(d *device) (table *tuning.Table, rows []Row, wrong []string, err error) {
	table, err = Run(context.Background(), d, sites(), Options{Rounds: 5, Done: func(r Row) error { rows = append(rows, r); return nil }, Wrong: func(err error) { wrong = append(wrong, err.Error()) }})
	return table, rows, wrong, err
}

// The fastest is chosen, unless the program's kernel is as fast but for noise; gains are of a whole step.
func TestRun(t *testing.T) {
	d := newDevice()
	table, rows, wrong, err := run(d)
	require.NoError(t, err)
	require.Empty(t, wrong)
	require.Equal(t, "NVIDIA H200", table.Device)
	require.Equal(t, "y", table.Find("first").Choice)
	require.Equal(t, "x", table.Find("first").Default)
	require.Equal(t, "x", table.Find("second").Choice, "half a percent is noise")
	require.Equal(t, 2*(3+1), rows[0].Launches, "both kernels of the key, in two micro-batches")
	require.Equal(t, 2*1+1, rows[1].Launches)
	require.InDelta(t, 8*20, rows[0].Gain(), 2)
	require.Zero(t, rows[1].Gain())
	require.Equal(t, []string{"a", "a1", "a2", "c", "c1"}, d.loaded)
	warm := slices.Index(d.timed, "a1") - 1
	require.Greater(t, warm, 3, "the device is kept busy before")
	require.Equal(t, []string{"a", "a1", "a2", "a", "a1", "a2"}, d.timed[warm:warm+6], "in turns")
	require.Equal(t, 2, d.closed)
	_, err = table.Encode()
	require.NoError(t, err)
}

// A candidate that gives something else is named, and not chosen however fast it is; so is one that leaves something out.
func TestWrongCandidate(t *testing.T) {
	for _, c := range []struct {
		gives []float32
		want  string
	}{
		{[]float32{1, -2, 3.1, float32(math.NaN())}, "first: kernel a1 (y): output 0 has an element 3.1"},
		{[]float32{1, math.Float32frombits(0x7fc07fc0), 3, float32(math.NaN())}, "first: kernel a1 (y): output 0 has an element NaN where the program's kernel gives -2"},
		{[]float32{1, -2, 3, 0}, "first: kernel a1 (y): output 0 has an element 0 where the program's kernel gives NaN"},
	} {
		d := newDevice()
		d.results["a1"] = c.gives
		table, rows, wrong, err := run(d)
		require.ErrorContains(t, err, "candidates that are wrong: 1")
		require.Len(t, wrong, 1)
		require.Contains(t, wrong[0], c.want)
		require.Equal(t, "z", table.Find("first").Choice)
		require.Equal(t, 2, rows[0].Options)
	}
	d := newDevice()
	d.results["a1"] = []float32{1.0001, -2, 3, math.Float32frombits(0x7fc07fc0)}
	_, _, wrong, err := run(d)
	require.NoError(t, err, "a sum in another order")
	require.Empty(t, wrong)
}

// Where the program's own kernel gives no numbers there is nothing to compare with.
func TestNoNumbers(t *testing.T) {
	d := newDevice()
	d.results["a"] = []float32{1, float32(math.Inf(1)) - float32(math.Inf(1)), 3, 4}
	_, _, _, err := run(d)
	require.ErrorContains(t, err, "first: kernel a (x): output 0 of the program's kernel has an element that is no number")
	require.Equal(t, 1, d.closed)
}

func TestBrokenCandidate(t *testing.T) {
	list := sites()
	list.Sites[0].Options[1].Kernel = "broken"
	d := newDevice()
	_, err := Run(context.Background(), d, list, Options{Rounds: 1})
	require.ErrorContains(t, err, "first: kernel broken (y): illegal address")
	require.Equal(t, 1, d.closed)

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupted"))
	table, err := Run(ctx, d, list, Options{Rounds: 1})
	require.EqualError(t, err, "interrupted")
	require.Nil(t, table)
	ctx, cancel = context.WithCancelCause(context.Background())
	table, err = Run(ctx, d, sites(), Options{Rounds: 1, Done: func(Row) error { cancel(errors.New("interrupted")); return nil }})
	require.EqualError(t, err, "interrupted: 1 of 2 choices are measured")
	require.Len(t, table.Entries, 1)
}

func TestCompareHalves(t *testing.T) {
	want := []byte{0x80, 0x3f, 0x00, 0x40, 0xc0, 0x7f} // 1, 2, nothing
	require.Empty(t, compare(formats.BF16, want, want, 0.01))
	require.Empty(t, compare(formats.BF16, want, []byte{0x81, 0x3f, 0x00, 0x40, 0xc0, 0x7f}, 0.01))
	require.Contains(t, compare(formats.BF16, want, []byte{0x00, 0x40, 0x00, 0x40, 0xc0, 0x7f}, 0.01), "has an element 2 where the program's kernel gives 1")
	require.Empty(t, compare(formats.Bool, []byte{1}, []byte{1}, 0.01))
	require.NotEmpty(t, compare(formats.Bool, []byte{1}, []byte{0}, 0.01))
}

func TestList(t *testing.T) {
	_, err := List(&artifact.Artifact{})
	require.ErrorContains(t, err, "it holds no candidates: compile it with bluc compile --candidates")
	text, err := sites().Encode()
	require.NoError(t, err)
	list, err := List(&artifact.Artifact{Files: []artifact.File{{Name: tuning.CandidatesName, Data: text}}})
	require.NoError(t, err)
	require.Len(t, list.Sites, 2)
}

// Much slower ones are timed once.
func TestSlowCandidate(t *testing.T) {
	d := newDevice()
	d.micros["a1"] = 200
	table, _, _, err := run(d)
	require.NoError(t, err)
	require.Equal(t, "z", table.Find("first").Choice)
	times := 0
	for _, k := range d.timed {
		if k == "a1" {
			times++
		}
	}
	require.Equal(t, 1, times)
}

// stepper is a device that runs a step launch by launch.
type stepper struct{ *device }

func (s stepper) Call(string, map[string]runtime.Array, runtime.Scalars) (map[string]runtime.Array, error) {
	return nil, nil
}

func (s stepper) Trace(fn string, _ map[string]runtime.Array, _ runtime.Scalars, visit runtime.Visitor) (map[string]runtime.Array, error) {
	for k, n := range s.Launches(fn) {
		for range n {
			if err := visit(&runtime.Step{Kernel: k}, func() error {
				time.Sleep(map[string]time.Duration{"a": 1, "b": 1, "c": 20}[k] * time.Millisecond)
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// What takes most of a step comes first, and what takes next to nothing is left alone.
func TestShares(t *testing.T) {
	u, err := usesOf(stepper{newDevice()}, 0)
	require.NoError(t, err)
	keys := func(least float64) (keys []string) {
		for _, s := range u.worth(sites().Sites, least) {
			keys = append(keys, s.Key)
		}
		return keys
	}
	require.Equal(t, []string{"second", "first"}, keys(0.01))
	require.Equal(t, []string{"second"}, keys(0.5))
	u.share = nil
	require.Equal(t, []string{"first", "second"}, keys(0.5))
}
