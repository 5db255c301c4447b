package checkpoint

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"blutrain/formats/atomicfile"
)

// verdict is how a rank fared with a checkpoint.
type verdict struct{ Damage string }

// Restore reads the newest checkpoint that is whole, what each rank wants of it. Damaged ones are passed over, by all ranks, and
// returned with the reason; one that can't be read here and now is an error, as for Newest. A folder without any checkpoint gives
// nil, one that has only damaged ones an error. What wants returns as an error ends the search.
//
// What a rank wants may have been put in part when a checkpoint turns out to be damaged: then the next one is put over it.
func (s *Store) Restore(wants func(*Manifest) ([]Want, error)) (*Checkpoint, []Skipped, error) {
	candidates, skipped, err := s.candidates()
	if err != nil {
		return nil, skipped, err
	}
	for _, step := range candidates {
		path := filepath.Join(s.dir, stepFolder(step))
		c, damage, err := s.try(path, wants)
		if err != nil {
			return nil, skipped, fmt.Errorf("%s: %w", path, err)
		}
		if damage == nil {
			return c, skipped, nil
		}
		skipped = append(skipped, Skipped{stepFolder(step), damage})
	}
	damaged := slices.ContainsFunc(skipped, func(old Skipped) bool { return !atomicfile.IsTemp(old.Name) })
	if damaged {
		return nil, nil, none(s.dir, skipped)
	}
	return nil, skipped, nil // killed before its first checkpoint, or never started
}

// candidates are the steps to try, newest first, the same on all ranks; what was never completed is removed.
func (s *Store) candidates() ([]int64, []Skipped, error) {
	var steps []int64
	var skipped []Skipped
	var err error
	if s.group.Rank() == 0 {
		if steps, skipped, err = list(s.fsys, s.dir); err == nil {
			err = s.clean(skipped)
		}
	}
	lists, err := exchange(s.group, steps, err)
	if err != nil {
		return nil, nil, err
	}
	return lists[0], skipped, nil
}

// try reads one checkpoint. It is damaged for all when it is for one rank.
func (s *Store) try(path string, wants func(*Manifest) ([]Want, error)) (c *Checkpoint, damage, err error) {
	c, err = Read(s.fsys, path, wants)
	var mine verdict
	if err != nil && isDamage(err) {
		damage, err = err, nil
		mine.Damage = damage.Error()
	}
	all, err := exchange(s.group, mine, err)
	var other otherError
	if errors.As(err, &other) {
		err = other.error
	}
	if err != nil || damage != nil {
		return nil, damage, err
	}
	for rank, v := range all {
		if v.Damage != "" {
			return nil, fmt.Errorf("rank %d: %s", rank, v.Damage), nil
		}
	}
	return c, nil, nil
}
