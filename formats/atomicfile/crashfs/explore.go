package crashfs

import (
	"fmt"
	"slices"
	"strings"
)

// Scenario uses a file system until it is done or the machine crashes, and returns how much of its work it was told is
// durable. It may be run many times and must do the same each time.
type Scenario func(f *FS) (acknowledged int, err error)

// Check says what is wrong with what a crash left, given what had been acknowledged.
type Check func(survivor *FS, acknowledged int) error

// Explore stops the scenario before each of its operations, and after the last, and checks every survivor.
// It returns the first failure and the number of survivors checked.
func Explore(scenario Scenario, check Check) (checked int, err error) {
	return explore(scenario, check, nil)
}

// Mutants explores the scenario once for each of its syncs and renames, with that operation left out. It returns the
// operations whose absence nothing noticed: what the scenario does without need, or what check is blind to.
func Mutants(scenario Scenario, check Check) (mutants int, unnoticed []string, err error) {
	whole := &FS{}
	if _, err := scenario(whole); err != nil {
		return 0, nil, err
	}
	for i, op := range whole.Trace {
		if kind, _, _ := strings.Cut(op, " "); !slices.Contains([]string{"sync", "syncdir", "rename"}, kind) {
			continue
		}
		mutants++
		if _, err := explore(scenario, check, &i); err == nil {
			unnoticed = append(unnoticed, fmt.Sprintf("%d: %s", i, op))
		}
	}
	return mutants, unnoticed, nil
}

// After checks every survivor of a crash now, the file system as it is among them, and gives their number.
func After(f *FS, acknowledged int, check Check) (checked int, err error) {
	for _, s := range f.survivors() {
		checked++
		if err := check(s.fs, acknowledged); err != nil {
			return checked, fmt.Errorf("crash after %d operations (last: %s), %s: %w", len(f.Trace), last(f.Trace), s.what, err)
		}
	}
	return checked, nil
}

func explore(scenario Scenario, check Check, skip *int) (checked int, err error) {
	whole := &FS{skip: skip}
	if _, err := scenario(whole); err != nil {
		return 0, fmt.Errorf("without a crash: %w", err)
	}
	for crash := 0; crash <= len(whole.Trace); crash++ {
		f := &FS{crash: &crash, skip: skip}
		if crash == len(whole.Trace) {
			f.crash = nil // the scenario ends, and what it reads behind its last operation is there
		}
		acknowledged, err := scenario(f)
		if crash < len(whole.Trace) && err == nil {
			return checked, fmt.Errorf("crash before operation %d (%s): the scenario reports success", crash, whole.Trace[crash])
		}
		n, err := After(f, acknowledged, check)
		checked += n
		if err != nil {
			return checked, err
		}
	}
	return checked, nil
}

func last(trace []string) string {
	if len(trace) == 0 {
		return "none"
	}
	return trace[len(trace)-1]
}

type survivor struct {
	fs   *FS
	what string
}

// survivors are the file systems that the crash can leave: with none of the changes that were not durable, with all, with
// all but the second half of the last write, with each alone, and with all but each.
func (f *FS) survivors() []survivor {
	ops := f.pendingOps()
	list := []survivor{
		{f.survivor(func(int) bool { return false }, -1), "nothing unsynced kept"},
	}
	if len(ops) == 0 {
		return list
	}
	list = append(list,
		survivor{f.survivor(func(int) bool { return true }, -1), "everything kept"},
		survivor{f.survivor(func(int) bool { return true }, ops[len(ops)-1]), "last write torn"})
	for _, op := range ops {
		list = append(list,
			survivor{f.survivor(func(i int) bool { return i == op }, -1), "only kept: " + f.Trace[op]},
			survivor{f.survivor(func(i int) bool { return i != op }, -1), "only lost: " + f.Trace[op]})
	}
	return list
}

// pendingOps are the numbers of the operations that are not durable, in order.
func (f *FS) pendingOps() []int {
	var ops []int
	for _, n := range f.nodes {
		for _, c := range n.pending {
			ops = append(ops, c.op)
		}
	}
	slices.Sort(ops)
	return ops
}

// survivor copies what is durable and the changes that keep chooses; the write numbered torn loses its second half.
func (f *FS) survivor(keep func(op int) bool, torn int) *FS {
	s := &FS{}
	s.root = s.newNode(true)
	if f.root != nil {
		copyNode(s, s.root, f.root, keep, torn)
	}
	return s
}

func copyNode(s *FS, to, from *node, keep func(op int) bool, torn int) {
	kept := &node{data: from.data, entries: from.entries}
	for _, c := range from.pending {
		if c.op == torn {
			c.data = c.data[:len(c.data)/2]
		}
		if keep(c.op) {
			kept.pending = append(kept.pending, c)
		}
	}
	to.data = kept.content()
	for name, child := range kept.now() {
		to.entries[name] = s.newNode(child.dir)
		copyNode(s, to.entries[name], child, keep, torn)
	}
}
