package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats"
	"blutrain/formats/tuning"
	"blutrain/runtime"
)

// fastGPU is a device on which every first candidate takes half the time of what the program runs, and others twice as long.
type fastGPU struct {
	runtime.Program
	manifest *artifact.Manifest
	name     string
	wrong    string // a kernel that gives something else
	kernels  []string
}

func (g *fastGPU) Manifest() *artifact.Manifest   { return g.manifest }
func (g *fastGPU) Close() error                   { return nil }
func (g *fastGPU) DeviceName() string             { return g.name }
func (g *fastGPU) Load([]string) error            { return nil }
func (g *fastGPU) Launches(string) map[string]int { return map[string]int{} }
func (g *fastGPU) Outputs() []runtime.Extent {
	return []runtime.Extent{{DType: formats.F32, Bytes: 4}}
}
func (g *fastGPU) Run(int) error { return nil }

func (g *fastGPU) Alone(kernels []string, _ []float64, _ uint64) (runtime.Alone, error) {
	with := *g
	with.kernels = kernels
	return &with, nil
}

func (g *fastGPU) Read(i, _ int, _, _ int64) ([]byte, error) {
	x := float32(1)
	if g.kernels[i] == g.wrong {
		x = 2
	}
	return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)), nil
}

func (g *fastGPU) Time(i, n int) (float64, error) {
	switch {
	case strings.HasSuffix(g.kernels[i], ".candidate1"):
		return float64(n) * 50e-6, nil
	case strings.Contains(g.kernels[i], ".candidate"):
		return float64(n) * 200e-6, nil
	}
	return float64(n) * 100e-6, nil
}

// What is measured on a device is what the next compilation chooses.
func TestTune(t *testing.T) {
	w := work{t, t.TempDir()}
	compile := func(o driver.Options) *artifact.Artifact {
		o.Target, o.Precision = "cuda", "bf16"
		r, err := driver.Compile("tiny.blu", []byte(source), o)
		require.NoError(t, err)
		return r.Artifact
	}
	a := compile(driver.Options{Tuning: "none", Candidates: 3})
	require.NoError(t, a.Write(w.path("tiny.blx")))
	text, _ := a.File(tuning.CandidatesName)
	list, err := tuning.ParseCandidates(text)
	require.NoError(t, err)
	choices := 0
	for _, s := range list.Sites {
		if len(s.Options) > 1 {
			choices++
		}
	}
	require.Positive(t, choices)

	gpu := &fastGPU{name: "NVIDIA H200"}
	do := func(args ...string) (status int, stdout, stderr string) {
		var out, errs bytes.Buffer
		e := &env{ctx: context.Background(), stdout: &out, stderr: &errs, openDevice: func(a *artifact.Artifact, _ string, _ runtime.Options) (runtime.Program, error) {
			gpu.manifest = &a.Manifest
			return gpu, nil
		}}
		status = run(args, e)
		return status, out.String(), errs.String()
	}
	table := w.path("table.json")
	status, out, errs := do("tune", w.path("tiny.blx"), "-o", table)
	require.Zero(t, status, errs)
	require.Contains(t, out, "launches          us     best us    gain  key: choice\n")
	require.Contains(t, out, "100.0        50.0   50.0%  product bf16 ")
	measured, _, err := tuning.Open(table)
	require.NoError(t, err)
	require.Len(t, measured.Entries, len(list.Sites))
	require.Equal(t, "NVIDIA H200", measured.Device)
	for _, s := range list.Sites {
		require.Equal(t, s.Options[min(1, len(s.Options)-1)].Choice, measured.Find(s.Key).Choice)
	}

	tuned := compile(driver.Options{Tuning: table, Candidates: 3})
	require.Equal(t, len(list.Sites), tuned.Manifest.Tuning.Found)
	text, _ = tuned.File(tuning.CandidatesName)
	again, err := tuning.ParseCandidates(text)
	require.NoError(t, err)
	for i, s := range again.Sites {
		require.Equal(t, list.Sites[i].Options[min(1, len(s.Options)-1)].Choice, s.Options[0].Choice)
	}

	// Entries of other models stay; of the same keys they are replaced.
	measured.Entries = append(measured.Entries, tuning.Entry{Key: "another", Choice: "c", Micros: 1, Default: "d", DefaultMicros: 1})
	measured.Entries[0].Choice = "old"
	old, err := measured.Encode()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(table, old, 0o644))
	status, out, errs = do("tune", w.path("tiny.blx"), "-o", table, "--json", "--rounds", "1")
	require.Zero(t, status, errs)
	var row struct {
		Key, Choice string
		Gain        *float64 `json:"gain_us"`
	}
	first, _, _ := strings.Cut(out, "\n")
	require.NoError(t, json.Unmarshal([]byte(first), &row))
	require.NotNil(t, row.Gain)
	merged, _, err := tuning.Open(table)
	require.NoError(t, err)
	require.Len(t, merged.Entries, len(list.Sites)+1)
	require.NotNil(t, merged.Find("another"))
	require.NotEqual(t, "old", merged.Find(measured.Entries[0].Key).Choice)

	// A wrong candidate is named; what is right is kept.
	for _, s := range list.Sites {
		if len(s.Options) > 1 {
			gpu.wrong = s.Options[1].Kernel
		}
	}
	status, _, errs = do("tune", w.path("tiny.blx"), "-o", table)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "kernel "+gpu.wrong+" (")
	require.Contains(t, errs, "candidates that are wrong: 1")
	gpu.wrong = ""

	// Nothing is written over that isn't of this device, or no table.
	gpu.name = "NVIDIA H100"
	for name, want := range map[string]string{table: `table.json: it was measured on device "NVIDIA H200", this is "NVIDIA H100": write to another file`, w.path("tiny.txt"): "tiny.txt:1:2: not a tuning table"} {
		if name != table {
			require.NoError(t, os.WriteFile(name, []byte("text"), 0o644))
		}
		before, err := os.ReadFile(name)
		require.NoError(t, err)
		status, _, errs = do("tune", w.path("tiny.blx"), "-o", name)
		require.Equal(t, 1, status)
		require.Contains(t, errs, want)
		after, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}
}

func TestTuneRefuses(t *testing.T) {
	w := work{t, t.TempDir()}
	w.compile("tiny.blx", source, "cpu")
	status, _, errs := w.run("tune", w.path("tiny.blx"), "-o", w.path("t.json"))
	require.Equal(t, 1, status)
	require.Equal(t, "blurun: error: "+w.path("tiny.blx")+": it holds no candidates: compile it with bluc compile --candidates, for --target cuda\n", errs)
	require.NoFileExists(t, w.path("t.json"))
	status, _, errs = w.run("tune", w.path("tiny.blx"), "-o", w.path("tiny.blx"))
	require.Equal(t, 2, status, errs)
	status, _, errs = w.run("tune", w.path("tiny.blx"), "-o", w.path("t.json"), "--rounds", "0")
	require.Equal(t, 2, status)
	require.Contains(t, errs, "--rounds must be at least 1")
	status, _, errs = w.run("tune", w.path("tiny.blx"))
	require.Equal(t, 2, status)
	require.Contains(t, errs, "--output")
}
