package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/formats/atomicfile"
	"blutrain/train/data"
)

// snapshot is a small state whose numbers tell the step.
func snapshot(step int64) *Snapshot {
	tensor := func(name, role string, v float32) Tensor {
		t := formats.FromFloat32s([]float32{v, v + 0.5, v + 1}, 3)
		return Tensor{Info{Name: name, DType: t.DType, Shape: t.Shape, Role: role}, 0, 3, t.Data}
	}
	return &Snapshot{
		Step: step, Model: "toy", Artifact: "abc", Seed: 42,
		Loader:  data.State{Row: 8 * step, Windows: 100, S: 4, Seed: 42},
		Tensors: []Tensor{tensor("wte", "param", float32(step)), tensor("adamw.m/wte", "optimizer", float32(10*step))},
	}
}

// sameAs says how a checkpoint differs from the snapshot of its step.
func sameAs(c *Checkpoint, want *Snapshot) error {
	m := c.Manifest
	if m.Step != want.Step || m.Seed != want.Seed || m.Loader != want.Loader || m.Model != want.Model || m.Artifact != want.Artifact {
		return fmt.Errorf("manifest of step %d: %+v", want.Step, m)
	}
	if len(m.Tensors) != len(want.Tensors) {
		return fmt.Errorf("%d tensors", len(m.Tensors))
	}
	for _, t := range want.Tensors {
		got := make([]byte, len(t.Data))
		if err := c.Read(t.Name, got); err != nil {
			return err
		}
		if info, ok := c.Manifest.Tensor(t.Name); !ok || info.Role != t.Role || !bytes.Equal(got, t.Data) {
			return fmt.Errorf("tensor %s of step %d differs", t.Name, want.Step)
		}
	}
	return nil
}

// restored reads what a snapshot of the step holds.
func restored(s *Store) (*Checkpoint, []Skipped, error) {
	var want *Snapshot
	var got [][]byte
	c, skipped, err := s.Restore(func(m *Manifest) (wants []Want, err error) {
		want, got = snapshot(m.Step), nil
		for _, t := range m.Tensors {
			got = append(got, make([]byte, 12))
			wants = append(wants, t.Whole(got[len(got)-1]))
		}
		return wants, nil
	})
	if c == nil {
		return c, skipped, err
	}
	for i, t := range c.Manifest.Tensors {
		data := want.Tensors[slices.IndexFunc(want.Tensors, func(w Tensor) bool { return w.Name == t.Name })].Data
		if !bytes.Equal(got[i], data) {
			err = errors.Join(err, fmt.Errorf("tensor %s of step %d was put wrong", t.Name, want.Step))
		}
	}
	return c, skipped, errors.Join(err, sameAs(c, want))
}

func create(t *testing.T, dir string, keep int) *Store {
	t.Helper()
	s, err := Create(dir, keep, Single{})
	require.NoError(t, err)
	s.chunk = 64
	return s
}

func save(s *Store, steps ...int64) error {
	for _, step := range steps {
		if _, err := s.Save(snapshot(step)); err != nil {
			return err
		}
	}
	return nil
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestSaveAndResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "ckpt")
	s := create(t, dir, 2)
	require.NoError(t, s.Fresh())
	require.NoError(t, save(s, 8, 9, 10, 11)) // 9 before 10 by number, after it by name without zeros
	require.ErrorContains(t, save(s, 11), "checkpoint of step 11: there is a valid checkpoint of this step already")
	require.NoError(t, s.Close())
	require.Equal(t, []string{"lock", "step-00000010", "step-00000011"}, names(t, dir))
	s = create(t, dir, 2)
	c, skipped, err := restored(s)
	require.NoError(t, err)
	require.Empty(t, skipped)
	require.Equal(t, int64(11), c.Manifest.Step)
	require.ErrorContains(t, c.Read("nobody", nil), `no tensor "nobody"`)
	require.Error(t, c.Read("wte", make([]byte, 11)))
	require.ErrorContains(t, c.Load([]Want{{"wte", 1, 4, nil}}), "has 3 elements, asked for [1, 4)")
	require.NoError(t, s.Close())
	s = create(t, dir, 2)
	require.ErrorContains(t, s.Fresh(), "has checkpoints up to step 11 of an earlier run: continue it with --resume")
	require.NoError(t, s.Close())
}

func TestRetentionGoesByNumber(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 1)
	require.NoError(t, save(s, 99_999_999, 100_000_000)) // sorts before 99999999 by name
	require.Equal(t, []string{"lock", "step-100000000"}, names(t, dir))
	require.NoError(t, s.Close())
	_, ok := parseStep("step-000000001")
	require.False(t, ok, "not a name we write")
}

func TestNothingToResumeIsAFreshStart(t *testing.T) {
	s := create(t, t.TempDir(), 1)
	c, skipped, err := restored(s)
	require.NoError(t, err)
	require.Nil(t, c)
	require.Empty(t, skipped)
	require.NoError(t, s.Close())
	_, _, err = Latest(atomicfile.OS{}, filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, ErrNone)
}

// damage is what can have happened to the newest of two checkpoints.
var damage = []struct {
	name, file string
	change     func(b []byte) []byte // nil: remove the file
	reason     string
}{
	{"no manifest", "manifest.json", nil, "no such file"},
	{"manifest cut short", "manifest.json", func(b []byte) []byte { return b[:len(b)-1] }, "damaged"},
	{"empty manifest", "manifest.json", func([]byte) []byte { return nil }, "damaged"},
	{"manifest of another step", "manifest.json", func(b []byte) []byte { return bytes.Replace(b, []byte(`"step": 2`), []byte(`"step": 3`), 1) }, "does not have the checksum"},
	{"manifest with another row", "manifest.json", func(b []byte) []byte { return bytes.Replace(b, []byte(`"row": 16`), []byte(`"row": 17`), 1) }, "does not have the checksum"},
	{"other format", "manifest.json", func(b []byte) []byte { return []byte(`{"format":"other","version":1}`) }, `format is "other"`},
	{"no tensors", "rank-00000.safetensors", nil, "no such file"},
	{"tensors cut short", "rank-00000.safetensors", func(b []byte) []byte { return b[:len(b)-1] }, "the manifest lists"},
	{"a bit in the tensors", "rank-00000.safetensors", func(b []byte) []byte { b[len(b)-2] ^= 4; return b }, `bytes \[128, \d+\) do not have the checksum`},
	{"a bit in the header", "rank-00000.safetensors", func(b []byte) []byte { return bytes.Replace(b, []byte(`"2"`), []byte(`"3"`), 1) }, "do not have the checksum"},
}

func TestDamagedCheckpointsAreSkippedWithTheReason(t *testing.T) {
	for _, d := range damage {
		dir := t.TempDir()
		s := create(t, dir, 0)
		require.NoError(t, save(s, 1, 2))
		require.NoError(t, s.Close())
		file := filepath.Join(dir, stepFolder(2), d.file)
		if d.change == nil {
			require.NoError(t, os.Remove(file))
		} else {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(file, d.change(b), 0o644))
		}
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".tmp-step-00000003"), 0o755))
		s = create(t, dir, 1)
		c, skipped, err := restored(s)
		require.NoError(t, err, d.name)
		require.Equal(t, int64(1), c.Manifest.Step)
		require.Len(t, skipped, 2)
		require.ErrorContains(t, skipped[0].Reason, "never completed")
		require.Equal(t, stepFolder(2), skipped[1].Name)
		require.Regexp(t, d.reason, skipped[1].Reason.Error(), d.name)
		require.Less(t, len(skipped[1].Reason.Error()), 300)

		// The run goes on from step 1 and saves step 2 again, in place of the damaged one.
		require.NoError(t, save(s, 2))
		require.NoError(t, s.Close())
		c, _, err = Latest(atomicfile.OS{}, dir)
		require.NoError(t, err)
		require.NoError(t, sameAs(c, snapshot(2)))
		require.Equal(t, []string{"lock", "step-00000002"}, names(t, dir), "the unfinished folder is gone")
	}
}

// refusing is a file system that doesn't let some files be read.
type refusing struct {
	atomicfile.OS
	open, read map[string]error // by base name
}

func (r refusing) Open(name string) (atomicfile.ReadFile, error) {
	if err := r.open[filepath.Base(name)]; err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	f, err := r.OS.Open(name)
	if err == nil && r.read[filepath.Base(name)] != nil {
		return unreadable{f, r.read[filepath.Base(name)]}, nil
	}
	return f, err
}

type unreadable struct {
	atomicfile.ReadFile
	err error
}

func (u unreadable) ReadAt([]byte, int64) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: "x", Err: u.err}
}

// TestUnreadableCheckpointsAreNotPassedOver: a checkpoint that may be good is not gone back behind, since it would be written over then.
func TestUnreadableCheckpointsAreNotPassedOver(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 0)
	require.NoError(t, save(s, 1, 2))
	for _, r := range []refusing{
		{open: map[string]error{"manifest.json": syscall.EACCES}}, {open: map[string]error{rankFile(0): syscall.EMFILE}},
		{read: map[string]error{"manifest.json": syscall.EIO}}, {read: map[string]error{rankFile(0): syscall.ESTALE}},
	} {
		_, _, err := Latest(r, dir)
		require.ErrorContains(t, err, filepath.Join(dir, stepFolder(2))+": ")
		require.NotErrorIs(t, err, ErrNone)
		s.fsys = r
		_, _, err = restored(s)
		require.ErrorContains(t, err, filepath.Join(dir, stepFolder(2))+": ")
	}
	s.fsys = atomicfile.OS{}
	_, _, err := s.Restore(func(*Manifest) ([]Want, error) { return nil, errors.New("of another model") })
	require.EqualError(t, err, filepath.Join(dir, stepFolder(2))+": of another model")
	_, _, err = s.Restore(func(m *Manifest) ([]Want, error) {
		return []Want{{"wte", 0, 3, func(int64, []byte) error { return errors.New("device lost") }}}, nil
	})
	require.EqualError(t, err, filepath.Join(dir, stepFolder(2))+": device lost")
	for _, v := range []int{1, 3} {
		text := fmt.Sprintf(`{"format":"blutrain checkpoint","version":%d,"new":[], "checksum": ""}`, v)
		sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
		text = strings.Replace(text, `: ""`, `: "`+sum+`"`, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, stepFolder(2), "manifest.json"), []byte(text), 0o644))
		_, _, err = restored(s)
		require.EqualError(t, err, fmt.Sprintf("%s: format version is %d, this program reads 2", filepath.Join(dir, stepFolder(2)), v))
	}
	require.NoError(t, s.Close())
	s = create(t, t.TempDir(), 0)
	require.NoError(t, os.Rename(filepath.Join(dir, stepFolder(2)), filepath.Join(s.dir, stepFolder(2))))
	require.ErrorContains(t, save(s, 2), "which may be good: format version is 3")
	require.NoError(t, s.Close())
	require.Equal(t, []string{"lock", "step-00000002"}, names(t, s.dir))
}

func TestEveryDamagedByteIsFound(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 0)
	require.NoError(t, save(s, 1))
	for _, name := range []string{manifestName, rankFile(0)} {
		file := filepath.Join(dir, stepFolder(1), name)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for i := range b {
			b[i] ^= 1
			require.NoError(t, os.WriteFile(file, b, 0o644))
			b[i] ^= 1
			_, _, err := Latest(atomicfile.OS{}, dir)
			require.ErrorIs(t, err, ErrNone, "%s byte %d", name, i)
		}
		require.NoError(t, os.WriteFile(file, b, 0o644))
	}
	_, _, err := Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestForgedManifests: a right checksum does not make a manifest right.
func TestForgedManifests(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 0)
	require.NoError(t, save(s, 1))
	file := filepath.Join(dir, stepFolder(1), manifestName)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, c := range []struct {
		change func(m *Manifest)
		reason string
	}{
		{func(m *Manifest) { m.Step = 2 }, "its manifest is of step 2"},
		{func(m *Manifest) { m.World = 0 }, "of 0 ranks"},
		{func(m *Manifest) { m.Tensors[0].Pieces[0].Rank = 1 }, "a piece of it is with rank 1 of 1"},
		{func(m *Manifest) { m.Tensors[0].Pieces[0].Rank = -1 }, "a piece of it is with rank -1 of 1"},
		{func(m *Manifest) { m.Tensors[0].Pieces = nil }, "its pieces have 0 of 3 elements"},
		{func(m *Manifest) { m.Tensors[0].Pieces[0].End = 2 }, "its pieces have 2 of 3 elements"},
		{func(m *Manifest) { m.Tensors[0].Pieces[0].End = 0 }, "a piece of it is [0, 0)"},
		{func(m *Manifest) { m.Tensors[0].Pieces[0].Begin = 1 }, "a piece of it is [1, 3), the one before ends at 0"},
		{func(m *Manifest) { m.Tensors[0].Pieces = []Piece{{0, 0, 1}, {0, 1, 3}} }, "rank 0 has two pieces of it"},
		{func(m *Manifest) { m.Tensors[0].Name = "wte" }, "comes twice"},
		{func(m *Manifest) { m.Tensors[0].Name = "wpe" }, `it has no tensor "wpe" of f32[3]`},
		{func(m *Manifest) { m.Tensors[0].Shape = []int64{1 << 40, 1 << 40} }, "overflows"},
		{func(m *Manifest) { m.Tensors[0].Shape = []int64{3, 1} }, `it has no tensor "adamw.m/wte" of f32[3 1]`},
		{func(m *Manifest) { m.Tensors = m.Tensors[:1] }, "holds 2 tensors, the manifest lists 1"},
		{func(m *Manifest) { m.Files[0].Rank = 7 }, "is not that of a rank"},
		{func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }, "comes twice"},
		{func(m *Manifest) { m.Files = nil }, "1 ranks hold tensors, there are 0 files"},
		{func(m *Manifest) { m.Files[0].Chunks[1] = "" }, "damaged: bytes [64, 128)"},
		{func(m *Manifest) { m.Files[0].Chunks = m.Files[0].Chunks[1:] }, "checksums for "},
		{func(m *Manifest) { m.Files[0].Chunk = 0 }, "checksums for "},
		{func(m *Manifest) { m.Files[0].Bytes = -1 }, "checksums for -1 bytes"},
	} {
		var m Manifest
		require.NoError(t, json.Unmarshal(good, &m))
		c.change(&m)
		text, err := m.encode()
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(file, text, 0o644))
		_, skipped, err := Latest(atomicfile.OS{}, dir)
		require.ErrorIs(t, err, ErrNone)
		require.ErrorContains(t, skipped[0].Reason, c.reason)
	}
	require.NoError(t, s.Close())
}

func TestTwoRunsInOneFolder(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 1)
	_, err := Create(dir, 1, Single{})
	require.ErrorContains(t, err, fmt.Sprintf("%s is in use by another run (process %d", dir, os.Getpid()))
	require.NoError(t, s.Close())
	s = create(t, dir, 1)
	require.NoError(t, s.Close())
}

// TestRanksMustShareTheFolder: ranks whose folders are not the same one, each on its host's own disk, say, learn so before they train,
// whatever an earlier run has left there. Another way to the same folder is as good.
func TestRanksMustShareTheFolder(t *testing.T) {
	for name, c := range map[string]struct {
		elsewhere func(dir string) string
		refused   bool
	}{
		"not there": {func(dir string) string { return dir + "-missing" }, true},
		"empty":     {func(string) string { return t.TempDir() }, true},
		"of another run": {func(string) string {
			other := t.TempDir()
			require.NoError(t, create(t, other, 1).Close())
			return other
		}, true},
		"a link": {func(dir string) string {
			link := filepath.Join(t.TempDir(), "link")
			require.NoError(t, os.Symlink(dir, link))
			return link
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			dirs := []string{dir, dir, c.elsewhere(dir)}
			errs := onRanks(3, func(g ranks) error {
				s, err := createWithin(10*time.Millisecond, dirs[g.rank], 1, g)
				if err != nil {
					return err
				}
				return s.Close()
			})
			for rank, err := range errs {
				if !c.refused {
					require.NoError(t, err, "rank %d", rank)
					continue
				}
				require.ErrorContains(t, err, dirs[2]+" is not the folder of rank 0", "rank %d", rank)
			}
			require.NoError(t, create(t, dir, 1).Close(), "the folder is free again")
		})
	}
}

// TestLockEndsWithItsProcess: a killed run does not lock its folder for ever.
func TestLockEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv("CHECKPOINT_TEST_HOLD"); dir != "" {
		s, err := Create(dir, 1, Single{})
		if err != nil {
			fmt.Println(err)
		}
		defer runtime.KeepAlive(s) // or the collector closes the lock's file
		fmt.Println("held")
		time.Sleep(time.Hour) // a process that waits for nothing is ended by Go's runtime
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^TestLockEndsWithItsProcess$")
	child.Env = append(os.Environ(), "CHECKPOINT_TEST_HOLD="+dir)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	line := make([]byte, 5)
	_, err = out.Read(line)
	require.NoError(t, err)
	require.Equal(t, "held\n", string(line))
	_, err = Create(dir, 1, Single{})
	require.ErrorContains(t, err, fmt.Sprintf("process %d", child.Process.Pid))
	require.NoError(t, child.Process.Signal(syscall.SIGKILL))
	_ = child.Wait()
	s := create(t, dir, 1)
	require.NoError(t, s.Close())
}

func TestWriterInTheBackground(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 2)
	w := NewWriter(s)
	complete := func() error { return nil }
	for step := range int64(5) {
		snap := w.Snapshot()
		*snap = *snapshot(step + 1)
		w.Save(snap, complete)
	}
	saved := w.Close()
	require.Len(t, saved, 5)
	for i, s := range saved {
		require.NoError(t, s.Err)
		require.Equal(t, int64(i+1), s.Step)
		require.Positive(t, s.Bytes)
		require.Positive(t, s.Took)
	}
	require.Equal(t, []string{"lock", "step-00000004", "step-00000005"}, names(t, dir))
	c, _, err := Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.NoError(t, sameAs(c, snapshot(5)))

	w = NewWriter(s)
	snap := w.Snapshot()
	*snap = *snapshot(5) // exists
	w.Save(snap, complete)
	first, second := w.Snapshot(), w.Snapshot() // one of them is free when the save has ended
	saved = w.Saved()
	require.Len(t, saved, 1)
	require.ErrorContains(t, saved[0].Err, "step 5: there is a valid checkpoint")
	require.Empty(t, w.Saved(), "told once")
	*first, *second = *snapshot(6), *snapshot(4)
	second.Tensors[0].Data = nil
	w.Save(first, complete)
	w.Save(second, complete)
	third := w.Snapshot()
	*third = *snapshot(7)
	w.Save(third, func() error { return errors.New("device lost") })
	saved = w.Close()
	require.NoError(t, saved[0].Err)
	require.ErrorContains(t, saved[1].Err, "checkpoint of step 4: ")
	require.EqualError(t, saved[2].Err, "checkpoint of step 7: device lost")
	require.NoError(t, s.Close())
	require.Contains(t, names(t, dir), "step-00000006")
}

// TestAllDamagedIsNoFreshStart: a run does not begin anew over what it cannot read.
func TestAllDamagedIsNoFreshStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "step-00000007"), 0o755))
	s := create(t, dir, 1)
	_, skipped, err := restored(s)
	require.ErrorIs(t, err, ErrNone)
	require.ErrorContains(t, err, "no valid checkpoint; step-00000007: open ")
	require.Nil(t, skipped)
	require.NoError(t, s.Close())
}

func TestNamesOutsideAreIgnored(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step-1", "step-00000001x", "step--0000001", "notes", "step-99999999999999999999"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	_, skipped, err := Latest(atomicfile.OS{}, dir)
	require.ErrorIs(t, err, ErrNone)
	require.Empty(t, skipped)
	require.True(t, strings.HasPrefix(err.Error(), dir))
}
