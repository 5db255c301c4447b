package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats/atomicfile"
	"blutrain/formats/atomicfile/crashfs"
)

// turns runs ranks one at a time: each until it exchanges something or ends, in a given order, so that what they do to a file system
// together is the same every time.
type turns struct {
	rank, world int
	in          chan exchanged // what the others gave
	out         chan []byte    // what this rank gives; closed when it ends
}

type exchanged struct {
	parts [][]byte
	err   error
}

func (g turns) Rank() int  { return g.rank }
func (g turns) World() int { return g.world }
func (g turns) Gather(mine []byte) ([][]byte, error) {
	g.out <- append([]byte{}, mine...)
	all := <-g.in
	return all.parts, all.err
}

var errLeft = errors.New("a rank has left")

// inTurn runs ranks in this order between exchanges. When one has ended, whatever the others exchange fails.
func inTurn(order []int, do func(g turns) error) []error {
	errs, groups := make([]error, len(order)), make([]turns, len(order))
	for r := range groups {
		g := turns{r, len(order), make(chan exchanged), make(chan []byte)}
		groups[r] = g
		go func() {
			defer close(g.out)
			<-g.in
			errs[r] = do(g)
		}()
	}
	ended := make([]bool, len(order))
	var last exchanged
	for {
		parts, live, left := make([][]byte, len(order)), 0, false
		for _, r := range order {
			if !ended[r] {
				groups[r].in <- last
				part, ok := <-groups[r].out
				parts[r], ended[r] = part, !ok
			}
			if ended[r] {
				left = true
			} else {
				live++
			}
		}
		if live == 0 {
			return errs
		}
		if last = (exchanged{parts: parts}); left {
			last = exchanged{err: errLeft}
		}
	}
}

// mortal is a file system as one process sees it, which ends before its operation number `left`.
type mortal struct {
	*crashfs.FS
	left *int
}

var errKilled = errors.New("the process has been killed")

func (m mortal) live(do func() error) error {
	if m.left != nil {
		if *m.left == 0 {
			return errKilled
		}
		*m.left--
	}
	return do()
}

type mortalFile struct {
	atomicfile.File
	m mortal
}

func (m mortal) Create(name string, mode fs.FileMode) (f atomicfile.File, err error) {
	err = m.live(func() (err error) { f, err = m.FS.Create(name, mode); return err })
	return mortalFile{f, m}, err
}
func (f mortalFile) Write(p []byte) (n int, err error) {
	err = f.m.live(func() (err error) { n, err = f.File.Write(p); return err })
	return n, err
}
func (f mortalFile) Sync() error         { return f.m.live(f.File.Sync) }
func (m mortal) Mkdir(name string) error { return m.live(func() error { return m.FS.Mkdir(name) }) }
func (m mortal) Rename(from, to string) error {
	return m.live(func() error { return m.FS.Rename(from, to) })
}
func (m mortal) Remove(name string) error  { return m.live(func() error { return m.FS.Remove(name) }) }
func (m mortal) SyncDir(name string) error { return m.live(func() error { return m.FS.SyncDir(name) }) }

// crew is a run of ranks that goes on from what there is and saves the steps up to the third, keeping one.
type crew struct {
	layout
	order []int // in which ranks take turns
	owner string
	dies  int  // the rank that is killed
	left  *int // after so many operations; nil: none is
}

const lastStep = 3

// run gives the newest step that a rank was told is durable.
func (j crew) run(f *crashfs.FS) (acknowledged int, err error) {
	errs := inTurn(j.order, func(g turns) error {
		m := mortal{FS: f}
		if g.rank == j.dies {
			m.left = j.left
		}
		s := &Store{fsys: m, dir: ".", keep: 1, chunk: 48, owner: j.owner, group: g}
		step, _, err := j.read(s, g.rank)
		for step++; err == nil && step <= lastStep; step++ {
			if _, err = s.Save(j.part(g.rank, step)); err == nil {
				acknowledged = max(acknowledged, int(step)) // one rank runs at a time
				err = onlyNewest(s)
			}
		}
		return err
	})
	return acknowledged, errors.Join(errs...)
}

// onlyNewest: a save leaves its checkpoint alone.
func onlyNewest(s *Store) error {
	steps, left, err := list(s.fsys, s.dir)
	if err == nil && s.group.Rank() == 0 && (len(steps) != 1 || len(left) > 0) {
		err = fmt.Errorf("there are checkpoints %v and %v", steps, left)
	}
	return err
}

// next is the job that comes after.
func next(world int) crew {
	return crew{layout: layout{world, world > 1}, order: upTo(world), owner: "next", dies: -1}
}

// finds: another number of ranks finds a checkpoint that is whole and not older than what was acknowledged.
func finds(world int) crashfs.Check {
	return func(f *crashfs.FS, acknowledged int) error {
		j := next(world)
		return errors.Join(inTurn(j.order, func(g turns) error {
			step, _, err := j.read(&Store{fsys: f, dir: ".", group: g}, g.rank)
			if err == nil && step < int64(acknowledged) {
				err = fmt.Errorf("step %d was acknowledged, found %d", acknowledged, step)
			}
			return err
		})...)
	}
}

// goesOn: it also comes to the same end.
func goesOn(world int) crashfs.Check {
	return func(f *crashfs.FS, acknowledged int) error {
		if err := finds(world)(f, acknowledged); err != nil {
			return err
		}
		saved, err := next(world).run(f)
		if err != nil {
			return err
		}
		steps, left, err := list(f, ".")
		// What a save removes stays when the crash came between the last save and that.
		if err == nil && (len(left) > 0 || len(steps) == 0 || steps[0] != lastStep || saved > 0 && len(steps) > 1) {
			err = fmt.Errorf("in the end there are %v and %v", steps, left)
		}
		return err
	}
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

var crews = []crew{
	{layout: layout{3, true}, order: []int{0, 1, 2}, owner: "me", dies: -1},
	{layout: layout{3, true}, order: []int{2, 1, 0}, owner: "me", dies: -1},
	{layout: layout{2, false}, order: []int{1, 0}, owner: "me", dies: -1},
}

// TestEveryCrashOfTheMachineOfSeveralRanks: whatever the moment, what the next job finds is whole and not older than what was
// acknowledged, and the next job has another number of ranks.
func TestEveryCrashOfTheMachineOfSeveralRanks(t *testing.T) {
	for i, j := range crews {
		if testing.Short() && i > 0 {
			break
		}
		checked, err := crashfs.Explore(j.run, goesOn(2+i%2))
		require.NoError(t, err)
		require.Greater(t, checked, 300)
		t.Logf("%d ranks in the order %v: %d states after a crash", j.world, j.order, checked)
	}
}

// TestEverySyncAndRenameOfSeveralRanksIsNeeded leaves out each in turn: the test above must notice every one.
func TestEverySyncAndRenameOfSeveralRanksIsNeeded(t *testing.T) {
	mutants, unnoticed, err := crashfs.Mutants(crews[0].run, finds(1))
	require.NoError(t, err)
	require.Equal(t, 3*7+2, mutants) // a save: three ranks' files and the manifest, the folder, its rename, its parent; and two removals
	require.Empty(t, unnoticed)
}

// TestEveryDeathOfARank: a rank ends before each of its operations while the others go on, and then the machine crashes or not.
func TestEveryDeathOfARank(t *testing.T) {
	deaths, checked := 0, 0
	for i, j := range crews {
		if testing.Short() && i > 0 {
			break
		}
		for j.dies = range j.world {
			for at := 0; ; at++ {
				left := at
				j.left = &left
				f := &crashfs.FS{}
				acknowledged, err := j.run(f)
				if err == nil {
					require.Greater(t, at, 8, "operations of rank %d", j.dies)
					break
				}
				deaths++
				n, check := 1, goesOn(3)
				if i == 0 && at%3 == 0 { // and then the machine
					n, err = crashfs.After(f, acknowledged, check)
				} else {
					err = check(f, acknowledged)
				}
				require.NoError(t, err, "%d ranks, rank %d killed before its operation %d", j.world, j.dies, at)
				checked += n
			}
		}
	}
	t.Logf("%d deaths, %d states after them", deaths, checked)
}

// TestALeftoverRankHarmsNobody: a rank that has not noticed yet that its job is gone writes on while the next job saves the same step.
func TestALeftoverRankHarmsNobody(t *testing.T) {
	f := &crashfs.FS{}
	old := crew{layout: layout{2, true}, owner: "old"}
	store := func(g Group, owner string) *Store {
		return &Store{fsys: f, dir: ".", keep: 1, chunk: 48, owner: owner, group: g}
	}
	var late func() error
	errs := inTurn(upTo(2), func(g turns) error {
		s := store(g, "old")
		folder := atomicfile.JoinFolder(f, stepFolder(1), "old")
		if g.rank == 0 { // it begins, and is killed
			_, err := s.beginFolder(stepFolder(1))
			return err
		}
		late = func() error {
			_, err := s.writePart(folder, old.part(1, 1))
			return err
		}
		return nil
	})
	require.NoError(t, errors.Join(errs...))
	errs = inTurn(upTo(2), func(g turns) error {
		s := store(g, "new")
		if _, _, err := old.read(s, g.rank); err != nil {
			return err
		}
		if g.rank == 1 {
			require.ErrorIs(t, late(), fs.ErrNotExist, "its folder is gone, and the new one is not its")
		}
		_, err := s.Save(old.part(g.rank, 1))
		return err
	})
	require.NoError(t, errors.Join(errs...))
	c, _, err := Latest(f, ".")
	require.NoError(t, err)
	require.Equal(t, int64(1), c.Manifest.Step)
}
