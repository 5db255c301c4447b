package driver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/formats/tuning"
)

// tuned compiles a small GPT-2 for a GPU.
func tuned(t *testing.T, o Options) (*Result, error) {
	src, err := os.ReadFile("../examples/gpt2.blu")
	require.NoError(t, err)
	o.Target, o.Set = "cuda", map[string]float64{"V": 256, "T": 128, "L": 1, "H": 2, "C": 128, "B": 2, "S": 128}
	return Compile("gpt2.blu", src, o)
}

func mustTune(t *testing.T, o Options) (*artifact.Artifact, []byte) {
	r, err := tuned(t, o)
	require.NoError(t, err)
	text, err := r.Artifact.Encode()
	require.NoError(t, err)
	return r.Artifact, text
}

func candidatesOf(t *testing.T, a *artifact.Artifact) *tuning.Candidates {
	text, ok := a.File(tuning.CandidatesName)
	require.True(t, ok)
	list, err := tuning.ParseCandidates(text)
	require.NoError(t, err)
	return list
}

// An artifact with candidates runs the same kernels as one without, but for planes that products would share; a table changes what it names, and nothing else.
func TestTuning(t *testing.T) {
	for _, precision := range []string{"bf16", "fp32", "fp32-strict"} {
		t.Run(precision, func(t *testing.T) {
			if testing.Short() && precision != "bf16" {
				t.Skip("one precision is enough for a short test")
			}
			plain, text := mustTune(t, Options{Precision: precision, Tuning: "none"})
			require.Nil(t, plain.Manifest.Tuning)
			with, _ := mustTune(t, Options{Precision: precision, Tuning: "none", Candidates: 3})
			list := candidatesOf(t, with)
			require.Greater(t, len(list.Sites), 5)
			table := &tuning.Table{Arch: "sm_90a", Device: "NVIDIA H200", Compiler: Version}
			program, _ := with.File(artifact.ProgramName)
			for _, s := range list.Sites {
				require.LessOrEqual(t, len(s.Options), 3)
				for i, o := range s.Options {
					require.True(t, strings.Contains(string(program), "exec.kernel @"+o.Kernel+" "), o.Kernel)
					require.Equal(t, i == 0, strings.Contains(string(program), "kernel = @"+o.Kernel+"}"), "%s is launched", o.Kernel)
				}
				table.Entries = append(table.Entries, tuning.Entry{Key: s.Key, Choice: s.Options[0].Choice, Micros: 1, Default: "d", DefaultMicros: 2})
			}
			for _, f := range plain.Files { // what the program runs is as without candidates, but that products which are measured share no planes
				if shares := precision == "fp32" && strings.Contains(f.Name, "gemm_"); strings.HasPrefix(f.Name, "kernels/") && !shares {
					same, ok := with.File(f.Name)
					require.True(t, ok && string(same) == string(f.Data), f.Name)
				}
			}

			path := filepath.Join(t.TempDir(), "a table}.json")
			write := func() string {
				b, err := table.Encode()
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, b, 0o644))
				return tuning.Hash(b)
			}
			hash := write()
			same, _ := mustTune(t, Options{Precision: precision, Tuning: path})
			require.Equal(t, &artifact.Tuning{SHA256: hash, Found: len(list.Sites), Keys: len(list.Sites)}, same.Manifest.Tuning)
			for _, f := range plain.Files {
				again, ok := same.File(f.Name)
				require.True(t, ok && string(again) == string(f.Data), "%s: what was chosen anyway", f.Name)
			}

			changed := list.Sites[0]
			for _, s := range list.Sites {
				if len(s.Options) > 1 {
					changed = s
				}
			}
			table.Find(changed.Key).Choice = changed.Options[1].Choice
			table.Entries = table.Entries[1:]
			table.Entries = append(table.Entries, tuning.Entry{Key: "product of another model", Choice: "c", Micros: 1, Default: "d", DefaultMicros: 2})
			write()
			other, once := mustTune(t, Options{Precision: precision, Tuning: path, Candidates: 3})
			require.Equal(t, len(list.Sites)-1, other.Manifest.Tuning.Found)
			for _, s := range candidatesOf(t, other).Sites {
				if s.Key == changed.Key {
					require.Equal(t, changed.Options[1].Choice, s.Options[0].Choice)
					require.Equal(t, changed.Options[0].Choice, s.Options[1].Choice)
				}
			}
			_, again := mustTune(t, Options{Precision: precision, Tuning: path, Candidates: 3})
			require.True(t, string(once) == string(again), "the same for the same table")
			_, untouched := mustTune(t, Options{Precision: precision, Tuning: "none"})
			require.True(t, string(text) == string(untouched))
		})
	}
}

// A choice that this compiler doesn't have is as if it weren't there, and counted so.
func TestUnknownChoice(t *testing.T) {
	with, _ := mustTune(t, Options{Precision: "bf16", Tuning: "none", Candidates: 2})
	key := candidatesOf(t, with).Sites[0].Key
	b, err := (&tuning.Table{Arch: "sm_90a", Device: "d", Compiler: "0.0.1", Entries: []tuning.Entry{{Key: key, Choice: "wgmma bf16 tile=7x7x7", Micros: 1, Default: "d", DefaultMicros: 2}}}).Encode()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "t.json")
	require.NoError(t, os.WriteFile(path, b, 0o644))
	r, err := tuned(t, Options{Precision: "bf16", Tuning: path})
	require.NoError(t, err)
	require.Zero(t, r.Artifact.Manifest.Tuning.Found)
	var said []string
	for _, d := range r.Warnings {
		said = append(said, d.Message)
	}
	require.Contains(t, strings.Join(said, "\n"), "0 of ")
	require.Contains(t, strings.Join(said, "\n"), "was measured with kernels of compiler 0.0.1, this is "+Version)
}

func TestTuningRefused(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return path
	}
	b, err := (&tuning.Table{Arch: "sm_80", Device: "NVIDIA A100", Compiler: Version}).Encode()
	require.NoError(t, err)
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Tuning: filepath.Join(dir, "none there")}, "no such file"},
		{Options{Tuning: write("damaged", "{\n")}, "damaged:1:2: not a tuning table: unexpected end of JSON input"},
		{Options{Tuning: write("a100", string(b))}, "the table was measured with kernels for sm_80 (on NVIDIA A100), and can't choose among those for sm_90a"},
		{Options{Candidates: 1}, "--candidates must be from 2 to 64"},
		{Options{Candidates: 65}, "--candidates must be from 2 to 64"},
		{Options{Candidates: 8, ThreadStores: true}, "--thread-stores can't be combined with --candidates"},
	} {
		_, err := tuned(t, c.o)
		require.ErrorContains(t, err, c.want)
	}
	_, err = Compile("m.blu", nil, Options{Candidates: 8})
	require.ErrorContains(t, err, "--tuning, --candidates and --thread-stores are for --target cuda: the target cpu has no kernels in PTX")
}

// The tables that come with the compiler can be read, and are of its kernels.
func TestShippedTables(t *testing.T) {
	for _, target := range Targets {
		for _, arch := range target.Archs {
			table, _, err := openTable(shippedTable, arch)
			require.NoError(t, err)
			require.True(t, table != nil || arch != "sm_90a")
		}
	}
}
