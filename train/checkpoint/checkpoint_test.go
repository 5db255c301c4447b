package checkpoint

import (
	"bytes"
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
	"sync"
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
		return Tensor{Info{Name: name, DType: t.DType, Shape: t.Shape, Role: role}, t.Data}
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
		if info, ok := c.Tensor(t.Name); !ok || info.Role != t.Role || !bytes.Equal(got, t.Data) {
			return fmt.Errorf("tensor %s of step %d differs", t.Name, want.Step)
		}
	}
	return nil
}

func create(t *testing.T, dir string, keep int, resume bool) (*Store, *Checkpoint, []Skipped) {
	t.Helper()
	s, c, skipped, err := Create(dir, keep, resume, Single{})
	require.NoError(t, err)
	return s, c, skipped
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
	s, c, _ := create(t, dir, 2, false)
	require.Nil(t, c)
	for _, step := range []int64{8, 9, 10, 11} { // 9 before 10 by number, after it by name without zeros
		require.NoError(t, s.Save(snapshot(step)))
	}
	require.ErrorContains(t, s.Save(snapshot(11)), "checkpoint of step 11: there is a valid checkpoint of this step already")
	require.NoError(t, s.Close())
	require.Equal(t, []string{"lock", "step-00000010", "step-00000011"}, names(t, dir))
	s, c, skipped := create(t, dir, 2, true)
	require.Empty(t, skipped)
	require.NoError(t, sameAs(c, snapshot(11)))
	require.ErrorContains(t, c.Read("nobody", nil), `no tensor "nobody"`)
	require.Error(t, c.Read("wte", make([]byte, 11)))
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
	_, _, _, err := Create(dir, 2, false, Single{})
	require.ErrorContains(t, err, "has checkpoints up to step 11 of an earlier run: continue it with --resume")
}

func TestRetentionGoesByNumber(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := create(t, dir, 1, false)
	require.NoError(t, s.Save(snapshot(99_999_999)))
	require.NoError(t, s.Save(snapshot(100_000_000))) // sorts before 99999999 by name
	require.Equal(t, []string{"lock", "step-100000000"}, names(t, dir))
	require.NoError(t, s.Close())
	_, ok := parseStep("step-000000001")
	require.False(t, ok, "not a name we write")
}

func TestNothingToResumeIsAFreshStart(t *testing.T) {
	s, c, skipped := create(t, t.TempDir(), 1, true)
	require.Nil(t, c)
	require.Empty(t, skipped)
	require.NoError(t, s.Close())
	_, _, err := Latest(atomicfile.OS{}, filepath.Join(t.TempDir(), "none"))
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
	{"version 0", "manifest.json", func(b []byte) []byte { return []byte(`{"format":"blutrain checkpoint","version":0,"old":[]}`) }, "format version 0 never was"},
	{"other format", "manifest.json", func(b []byte) []byte { return []byte(`{"format":"other","version":1}`) }, `format is "other"`},
	{"no tensors", "rank-00000.safetensors", nil, "no such file"},
	{"tensors cut short", "rank-00000.safetensors", func(b []byte) []byte { return b[:len(b)-1] }, "the manifest lists"},
	{"a bit in the tensors", "rank-00000.safetensors", func(b []byte) []byte { b[len(b)-2] ^= 4; return b }, "does not have the checksum|do not have the checksum"},
}

func TestDamagedCheckpointsAreSkippedWithTheReason(t *testing.T) {
	for _, d := range damage {
		dir := t.TempDir()
		s, _, _ := create(t, dir, 0, false)
		require.NoError(t, s.Save(snapshot(1)))
		require.NoError(t, s.Save(snapshot(2)))
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
		s, c, skipped := create(t, dir, 1, true)
		require.NoError(t, sameAs(c, snapshot(1)), d.name)
		require.NoError(t, c.Close())
		require.Len(t, skipped, 2)
		require.ErrorContains(t, skipped[0].Reason, "never completed")
		require.Equal(t, stepFolder(2), skipped[1].Name)
		require.Regexp(t, d.reason, skipped[1].Reason.Error(), d.name)
		require.Less(t, len(skipped[1].Reason.Error()), 300)

		// The run goes on from step 1 and saves step 2 again, in place of the damaged one.
		require.NoError(t, s.Save(snapshot(2)))
		require.NoError(t, s.Close())
		c, _, err := Latest(atomicfile.OS{}, dir)
		require.NoError(t, err)
		require.NoError(t, sameAs(c, snapshot(2)))
		require.NoError(t, c.Close())
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
	s, _, _ := create(t, dir, 0, false)
	require.NoError(t, s.Save(snapshot(1)))
	require.NoError(t, s.Save(snapshot(2)))
	require.NoError(t, s.Close())
	for _, r := range []refusing{
		{open: map[string]error{"manifest.json": syscall.EACCES}}, {open: map[string]error{rankFile(0): syscall.EMFILE}},
		{read: map[string]error{"manifest.json": syscall.EIO}}, {read: map[string]error{rankFile(0): syscall.ESTALE}},
	} {
		_, _, err := Latest(r, dir)
		require.ErrorContains(t, err, filepath.Join(dir, stepFolder(2))+": ")
		require.NotErrorIs(t, err, ErrNone)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, stepFolder(2), "manifest.json"), []byte(`{"format":"blutrain checkpoint","version":2,"new":[]}`), 0o644))
	_, _, _, err := Create(dir, 0, true, Single{})
	require.EqualError(t, err, filepath.Join(dir, stepFolder(2))+": format version is 2, this program reads 1")
	s, _, _ = create(t, t.TempDir(), 0, false)
	require.NoError(t, os.Rename(filepath.Join(dir, stepFolder(2)), filepath.Join(s.dir, stepFolder(2))))
	require.ErrorContains(t, s.Save(snapshot(2)), "which may be good: format version is 2")
	require.NoError(t, s.Close())
	require.Equal(t, []string{"lock", "step-00000002"}, names(t, s.dir))
}

func TestEveryDamagedByteIsFound(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := create(t, dir, 0, false)
	require.NoError(t, s.Save(snapshot(1)))
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
	c, _, err := Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.NoError(t, s.Close())
}

// TestForgedManifests: a right checksum does not make a manifest right.
func TestForgedManifests(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := create(t, dir, 0, false)
	require.NoError(t, s.Save(snapshot(1)))
	file := filepath.Join(dir, stepFolder(1), manifestName)
	good, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, c := range []struct {
		change func(m *Manifest)
		reason string
	}{
		{func(m *Manifest) { m.Step = 2 }, "its manifest is of step 2"},
		{func(m *Manifest) { m.World = 0 }, "of 0 ranks"},
		{func(m *Manifest) { m.Tensors[0].Owner = 1 }, "owner 1 of 1 ranks"},
		{func(m *Manifest) { m.Tensors[0].Name = "wte" }, "comes twice"},
		{func(m *Manifest) { m.Tensors[0].Shape = []int64{1 << 40, 1 << 40} }, "overflows"},
		{func(m *Manifest) { m.Tensors[0].Shape = []int64{1} }, "is not f32[1]"},
		{func(m *Manifest) { m.Tensors = m.Tensors[:1] }, "hold 2 tensors, the manifest lists 1"},
		{func(m *Manifest) { m.Files[0].Name = "../x" }, "is not that of a rank"},
		{func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }, "comes twice"},
		{func(m *Manifest) { m.Files = nil }, "1 ranks own tensors, there are 0 files"},
		{func(m *Manifest) { m.Files[0].SHA256 = "" }, "damaged"},
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
	s, _, _ := create(t, dir, 1, false)
	_, _, _, err := Create(dir, 1, true, Single{})
	require.ErrorContains(t, err, fmt.Sprintf("%s is in use by another run (process %d", dir, os.Getpid()))
	require.NoError(t, s.Close())
	s, _, _ = create(t, dir, 1, true)
	require.NoError(t, s.Close())
}

// TestLockEndsWithItsProcess: a killed run does not lock its folder for ever.
func TestLockEndsWithItsProcess(t *testing.T) {
	if dir := os.Getenv("CHECKPOINT_TEST_HOLD"); dir != "" {
		s, _, _, err := Create(dir, 1, true, Single{})
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
	_, _, _, err = Create(dir, 1, true, Single{})
	require.ErrorContains(t, err, fmt.Sprintf("process %d", child.Process.Pid))
	require.NoError(t, child.Process.Signal(syscall.SIGKILL))
	_ = child.Wait()
	s, _, _ := create(t, dir, 1, true)
	require.NoError(t, s.Close())
}

// ranks are a group of goroutines.
type ranks struct {
	rank, world int
	hub         *hub
}

type hub struct {
	sync.Mutex
	all     *sync.Cond
	parts   [][]byte
	count   int
	results [][]byte
	round   int
}

func newRanks(world int) (groups []ranks) {
	h := &hub{parts: make([][]byte, world)}
	h.all = sync.NewCond(h)
	for r := range world {
		groups = append(groups, ranks{r, world, h})
	}
	return groups
}

func (r ranks) Rank() int  { return r.rank }
func (r ranks) World() int { return r.world }
func (r ranks) Gather(mine []byte) ([][]byte, error) {
	h := r.hub
	h.Lock()
	defer h.Unlock()
	h.parts[r.rank] = mine
	round := h.round
	if h.count++; h.count == r.world {
		h.results, h.parts, h.count = h.parts, make([][]byte, r.world), 0
		h.round++
		h.all.Broadcast()
	}
	for h.round == round {
		h.all.Wait()
	}
	return h.results, nil
}

// TestRanksSaveTogether: each rank writes what it owns, any number of ranks reads all; a rank that fails fails all.
func TestRanksSaveTogether(t *testing.T) {
	dir := t.TempDir()
	save := func(step int64, breakRank int) []error {
		groups := newRanks(3)
		errs := make([]error, 3)
		var wait sync.WaitGroup
		for r, g := range groups {
			wait.Go(func() {
				s, c, _, err := Create(dir, 1, true, g)
				if err != nil {
					errs[r] = err
					return
				}
				if c != nil {
					_ = c.Close()
				}
				snap := snapshot(step)
				snap.Tensors = snap.Tensors[:min(r, 1)*1] // rank 0 owns nothing
				for i := range snap.Tensors {
					snap.Tensors[i].Name = fmt.Sprint("shard", r)
				}
				if r == breakRank {
					snap.Tensors[0].Data = nil
				}
				_, _ = g.Gather(nil) // all have opened before one saves
				errs[r] = errors.Join(s.Save(snap), s.Close())
			})
		}
		wait.Wait()
		return errs
	}
	require.Equal(t, make([]error, 3), save(1, -1))
	c, _, err := Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.Equal(t, 3, c.Manifest.World)
	require.Equal(t, []int{1, 2}, []int{c.Manifest.Tensors[0].Owner, c.Manifest.Tensors[1].Owner})
	require.NoError(t, c.Read("shard2", make([]byte, 12)))
	require.NoError(t, c.Close())

	for r, err := range save(2, 1) {
		require.ErrorContains(t, err, "12 of 12 bytes were not written")
		if r != 1 {
			require.ErrorContains(t, err, "rank 1: ")
		}
	}
	require.Equal(t, []string{"lock", "step-00000001"}, names(t, dir))
}

func TestWriterInTheBackground(t *testing.T) {
	dir := t.TempDir()
	s, _, _ := create(t, dir, 2, false)
	w := NewWriter(s)
	for step := range int64(5) {
		snap := w.Snapshot()
		*snap = *snapshot(step + 1)
		w.Save(snap)
	}
	require.Empty(t, w.Close())
	require.Equal(t, []string{"lock", "step-00000004", "step-00000005"}, names(t, dir))
	c, _, err := Latest(atomicfile.OS{}, dir)
	require.NoError(t, err)
	require.NoError(t, sameAs(c, snapshot(5)))
	require.NoError(t, c.Close())

	w = NewWriter(s)
	snap := w.Snapshot()
	*snap = *snapshot(5) // exists
	w.Save(snap)
	first, second := w.Snapshot(), w.Snapshot() // the second is free when the save has ended
	require.ErrorContains(t, errors.Join(w.Errs()...), "step 5: there is a valid checkpoint")
	require.Empty(t, w.Errs(), "told once")
	*first, *second = *snapshot(6), *snapshot(4)
	second.Tensors[0].Data = nil
	w.Save(first)
	w.Save(second)
	require.ErrorContains(t, errors.Join(w.Close()...), "checkpoint of step 4: ")
	require.NoError(t, s.Close())
	require.True(t, slices.Contains(names(t, dir), "step-00000006"))
}

// TestAllDamagedIsNoFreshStart: a run does not begin anew over what it cannot read.
func TestAllDamagedIsNoFreshStart(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "step-00000007"), 0o755))
	_, _, skipped, err := Create(dir, 1, true, Single{})
	require.ErrorIs(t, err, ErrNone)
	require.ErrorContains(t, err, "no valid checkpoint; step-00000007: open ")
	require.Nil(t, skipped)
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
