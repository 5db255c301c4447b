package checkpoint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats"
	"blutrain/formats/atomicfile"
	"blutrain/train/data"
)

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

// onRanks runs a rank each in goroutines.
func onRanks(world int, do func(g ranks) error) []error {
	errs := make([]error, world)
	var wait sync.WaitGroup
	for r, g := range newRanks(world) {
		wait.Go(func() { errs[r] = do(g) })
	}
	wait.Wait()
	return errs
}

// whole is a tensor whose numbers tell the step and their places.
func whole(step int64, shape ...int64) formats.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = float32(step)*1000 + float32(i)
	}
	return formats.FromFloat32s(values, shape...)
}

// layout is how many ranks hold each of the tensors: 1 for one that a single rank writes.
type layout struct {
	world   int
	sharded bool
}

var tensors = []struct {
	name, role string
	shape      []int64
	shard      bool
}{
	{"wte", "param", []int64{7, 5}, false}, {"wpe", "param", []int64{3}, false}, {"count", "param", []int64{}, false}, {"none", "param", []int64{0, 4}, false},
	{"adamw.m/wte", "optimizer", []int64{7, 5}, true}, {"adamw.m/wpe", "optimizer", []int64{3}, true},
}

// piece is the elements of n that a rank has when all of them share it.
func (l layout) piece(rank int, n int64) (begin, end int64) {
	each := (n + int64(l.world) - 1) / int64(l.world)
	return min(n, int64(rank)*each), min(n, int64(rank+1)*each)
}

// part is what a rank saves.
func (l layout) part(rank int, step int64) *Snapshot {
	s := &Snapshot{Step: step, Model: "toy", Artifact: "abc", Seed: 42, Loader: data.State{Row: 8 * step, Windows: 100, S: 4, Seed: 42}}
	for i, t := range tensors {
		all := whole(step, t.shape...)
		begin, end := int64(0), int64(all.Len())
		if t.shard && l.sharded {
			if begin, end = l.piece(rank, end); begin == end {
				continue
			}
		} else if i%l.world != rank {
			continue
		}
		info := Info{Name: t.name, DType: all.DType, Shape: all.Shape, Role: t.role}
		s.Tensors = append(s.Tensors, Tensor{info, begin, end, all.Data[4*begin : 4*end]})
	}
	return s
}

// read restores what a rank needs, and says whether it is that of the step.
func (l layout) read(s *Store, rank int) (step int64, skipped []Skipped, err error) {
	type part struct {
		begin int64
		want  []byte
		got   []byte
	}
	var parts []part
	c, skipped, err := s.Restore(func(m *Manifest) (wants []Want, err error) {
		parts = nil
		if len(m.Tensors) != len(tensors) || m.Loader.Row != 8*m.Step {
			return nil, fmt.Errorf("manifest %+v", m)
		}
		for _, t := range tensors {
			all := whole(m.Step, t.shape...)
			begin, end := int64(0), int64(all.Len())
			if t.shard && l.sharded {
				begin, end = l.piece(rank, end)
			}
			p := part{begin, all.Data[4*begin : 4*end], make([]byte, 4*(end-begin))}
			parts = append(parts, p)
			wants = append(wants, Want{t.name, begin, end, func(at int64, data []byte) error { copy(p.got[at:], data); return nil }})
		}
		return wants, nil
	})
	if err != nil || c == nil {
		return 0, skipped, err
	}
	for i, p := range parts {
		if !bytes.Equal(p.want, p.got) {
			return 0, nil, fmt.Errorf("rank %d of %d: %s of step %d is wrong", rank, l.world, tensors[i].name, c.Manifest.Step)
		}
	}
	return c.Manifest.Step, skipped, nil
}

func inFolder(dir string, g Group, keep int, do func(*Store) error) error {
	s, err := Create(dir, keep, g)
	if err != nil {
		return err
	}
	s.chunk = 48
	return errors.Join(do(s), s.Close())
}

// TestAnyNumberOfRanksReadsWhatAnyOtherSaved: sharded or not, on 4, then 2, 3, 1 and again 4 ranks.
func TestAnyNumberOfRanksReadsWhatAnyOtherSaved(t *testing.T) {
	dir := t.TempDir()
	for i, l := range []layout{{4, false}, {2, true}, {3, true}, {3, false}, {1, false}, {4, true}, {1, true}, {40, true}, {2, false}} {
		step := int64(i + 1)
		errs := onRanks(l.world, func(g ranks) error {
			return inFolder(dir, g, 0, func(s *Store) error {
				got, skipped, err := l.read(s, g.rank)
				if got != step-1 || len(skipped) > 0 {
					err = errors.Join(err, fmt.Errorf("step %d, skipped %v", got, skipped))
				}
				if err != nil {
					return err
				}
				_, err = s.Save(l.part(g.rank, step))
				return err
			})
		})
		require.NoError(t, errors.Join(errs...), "%+v", l)
		c, _, err := Latest(atomicfile.OS{}, dir)
		require.NoError(t, err)
		require.Equal(t, l.world, c.Manifest.World)
	}
}

// TestARankReadsOnlyWhatItNeeds counts the bytes.
func TestARankReadsOnlyWhatItNeeds(t *testing.T) {
	dir := t.TempDir()
	big := whole(1, 1000)
	errs := onRanks(4, func(g ranks) error {
		return inFolder(dir, g, 0, func(s *Store) error {
			s.chunk = 64
			begin, end := layout{world: 4}.piece(g.rank, 1000)
			info := Info{Name: "m", DType: big.DType, Shape: big.Shape}
			_, err := s.Save(&Snapshot{Step: 1, Tensors: []Tensor{{info, begin, end, big.Data[4*begin : 4*end]}}})
			return err
		})
	})
	require.NoError(t, errors.Join(errs...))
	counted := &counting{}
	c, err := Open(counted, filepath.Join(dir, stepFolder(1)))
	require.NoError(t, err)
	counted.read, counted.opened = 0, 0
	got := make([]byte, 4*130)
	require.NoError(t, c.Load([]Want{{"m", 490, 620, func(at int64, data []byte) error { copy(got[at:], data); return nil }}}))
	require.Equal(t, big.Data[4*490:4*620], got)
	require.Equal(t, 2, counted.opened)
	require.Less(t, counted.read, int64(4*130+2*4*64+2*2*150), "the range, rounded to chunks, and the headers, twice")
}

type counting struct {
	atomicfile.OS
	mu     sync.Mutex
	read   int64
	opened int
}

type countingFile struct {
	atomicfile.ReadFile
	c *counting
}

func (c *counting) Open(name string) (atomicfile.ReadFile, error) {
	f, err := c.OS.Open(name)
	c.opened++
	return countingFile{f, c}, err
}

func (f countingFile) ReadAt(p []byte, at int64) (int, error) {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	f.c.read += int64(len(p))
	return f.ReadFile.ReadAt(p, at)
}

// TestARankThatFailsFailsAll: no rank believes in a checkpoint that another could not write or read.
func TestARankThatFailsFailsAll(t *testing.T) {
	dir := t.TempDir()
	l := layout{3, true}
	save := func(step int64, breaks func(*Snapshot, int)) []error {
		return onRanks(3, func(g ranks) error {
			return inFolder(dir, g, 0, func(s *Store) error {
				snap := l.part(g.rank, step)
				breaks(snap, g.rank)
				_, err := s.Save(snap)
				return err
			})
		})
	}
	require.Equal(t, make([]error, 3), save(1, func(*Snapshot, int) {}))
	require.Equal(t, make([]error, 3), save(2, func(*Snapshot, int) {}))
	for reason, breaks := range map[string]func(*Snapshot, int){
		"needs ":                func(s *Snapshot, rank int) { s.Tensors[0].Data = s.Tensors[0].Data[:len(s.Tensors[0].Data)-rank%2] },
		"not the same on ranks": func(s *Snapshot, rank int) { s.Tensors[len(s.Tensors)-1].Role = fmt.Sprint(rank) },
		"comes twice":           func(s *Snapshot, rank int) { s.Tensors = append(s.Tensors, s.Tensors[0:rank%2]...) },
		"the one before ends at": func(s *Snapshot, rank int) {
			s.Tensors[len(s.Tensors)-1].Begin += int64(rank % 2)
			s.Tensors[len(s.Tensors)-1].End += int64(rank % 2)
		},
		"elements": func(s *Snapshot, rank int) { s.Tensors = s.Tensors[:len(s.Tensors)-rank/2] },
	} {
		for _, err := range save(3, breaks) {
			require.ErrorContains(t, err, reason)
		}
	}
	require.Equal(t, []string{"lock", "step-00000001", "step-00000002"}, names(t, dir))

	// What only one rank reads is damaged: all go back.
	file := filepath.Join(dir, stepFolder(2), rankFile(2))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	b[len(b)-1] ^= 1
	require.NoError(t, os.WriteFile(file, b, 0o644))
	errs := onRanks(3, func(g ranks) error {
		return inFolder(dir, g, 0, func(s *Store) error {
			step, skipped, err := l.read(s, g.rank)
			if step != 1 || len(skipped) != 1 || !slices.ContainsFunc(skipped, func(s Skipped) bool { return s.Name == stepFolder(2) }) {
				err = errors.Join(err, fmt.Errorf("step %d, skipped %v", step, skipped))
			}
			return err
		})
	})
	require.NoError(t, errors.Join(errs...))
}

// TestTwoRunsOfSeveralRanks: the second is refused on all of its ranks.
func TestTwoRunsOfSeveralRanks(t *testing.T) {
	dir := t.TempDir()
	s := create(t, dir, 1)
	for _, err := range onRanks(2, func(g ranks) error { return inFolder(dir, g, 1, func(*Store) error { return nil }) }) {
		require.ErrorContains(t, err, "is in use by another run")
	}
	require.NoError(t, s.Close())
}
