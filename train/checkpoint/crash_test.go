package checkpoint

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats/atomicfile/crashfs"
)

// run saves four steps, keeping two.
func run(f *crashfs.FS) (acknowledged int, err error) {
	s := &Store{fsys: f, dir: ".", keep: 2, chunk: 64, owner: "me", group: Single{}}
	for step := 1; step <= 4; step++ {
		if _, err := s.Save(snapshot(int64(step))); err != nil {
			return acknowledged, err
		}
		acknowledged = step
		steps, left, err := list(f, ".")
		if err != nil {
			return acknowledged, err
		}
		if len(steps) != min(step, 2) || len(left) != 0 {
			return acknowledged, fmt.Errorf("after step %d there are checkpoints %v and %v", step, steps, left)
		}
	}
	return acknowledged, nil
}

// newestIsWhole: what is found is whole and not older than what was acknowledged.
func newestIsWhole(f *crashfs.FS, acknowledged int) error {
	c, skipped, err := Latest(f, ".")
	if errors.Is(err, ErrNone) && acknowledged == 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w, skipped %v", err, skipped)
	}
	if c.Manifest.Step < int64(acknowledged) {
		return fmt.Errorf("step %d was acknowledged, found %d, skipped %v", acknowledged, c.Manifest.Step, skipped)
	}
	return sameAs(c, snapshot(c.Manifest.Step))
}

func TestEveryCrashLeavesTheNewestAcknowledgedCheckpoint(t *testing.T) {
	checked, err := crashfs.Explore(run, newestIsWhole)
	require.NoError(t, err)
	require.Greater(t, checked, 300)
	t.Logf("%d states after a crash", checked)
}

// TestEverySyncAndRenameIsNeeded leaves out each sync and each rename in turn: the test above must notice every one.
func TestEverySyncAndRenameIsNeeded(t *testing.T) {
	mutants, unnoticed, err := crashfs.Mutants(run, newestIsWhole)
	require.NoError(t, err)
	require.Equal(t, 4*5+2, mutants) // a save: two files, the folder, its rename, its parent; and two removals
	require.Empty(t, unnoticed)
}

// TestResumeAfterEveryCrash: a run that crashes anywhere and is started again ends as one that was not interrupted.
func TestResumeAfterEveryCrash(t *testing.T) {
	_, err := crashfs.Explore(run, func(f *crashfs.FS, acknowledged int) error {
		s := &Store{fsys: f, dir: ".", keep: 2, chunk: 64, owner: "me", group: Single{}}
		c, _, err := restored(s)
		if err != nil {
			return err
		}
		step := int64(0)
		if c != nil {
			step = c.Manifest.Step
		}
		for step++; step <= 4; step++ {
			if _, err := s.Save(snapshot(step)); err != nil {
				return err
			}
		}
		steps, left, err := list(f, ".")
		if len(left) > 0 {
			return fmt.Errorf("left behind: %v", left)
		}
		return errors.Join(err, check(steps), newestIsWhole(f, 4))
	})
	require.NoError(t, err)
}

func check(steps []int64) error {
	if len(steps) == 0 || steps[0] != 4 {
		return fmt.Errorf("checkpoints %v", steps)
	}
	return nil
}

// TestFullDisk: whatever the size of the disk, the newest checkpoint that was acknowledged is whole.
func TestFullDisk(t *testing.T) {
	full := 0
	for size := int64(0); size < 12_000; size += 100 {
		space := size
		f := &crashfs.FS{Space: &space}
		acknowledged, err := run(f)
		if err != nil {
			require.ErrorIs(t, err, syscall.ENOSPC)
			full++
		}
		require.NoError(t, newestIsWhole(f, acknowledged))
		_, left, err := list(f, ".")
		require.NoError(t, err)
		require.Empty(t, left, "what did not fit is removed")
	}
	require.Greater(t, full, 20)
	require.Less(t, full, 119)
}
