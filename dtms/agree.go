package dtms

import (
	"context"
	"encoding/json"
	"fmt"
)

// Fact is something that must be the same on all ranks: the hash of the program, an element type, a shape, a setting.
type Fact struct {
	Name, Value string
}

// factsLimit bounds what Agree accepts from another rank.
const factsLimit = 64 << 10

// Agree compares the facts of all ranks. Where they differ, every rank gets the same error: it names the ranks that differ
// from what most ranks have (from the lowest rank's, at a tie), and the first fact in which each differs.
func Agree(ctx context.Context, c *Communicator, facts []Fact) error {
	mine, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	if len(mine) > factsLimit {
		return fmt.Errorf("agreement: %d bytes of facts, at most %d are allowed", len(mine), factsLimit)
	}
	all, err := Gather(ctx, c, mine, factsLimit)
	if err != nil {
		return fmt.Errorf("agreement: %w", err)
	}
	byRank := make([][]Fact, c.Size())
	for r := range byRank {
		if err := json.Unmarshal(all[r], &byRank[r]); err != nil {
			return fmt.Errorf("agreement: %w", &RankError{Rank: c.WorldRank(r), Fault: Garbled, What: "sent facts that can't be read: " + err.Error()})
		}
	}
	if errs := disagreement(byRank, c.WorldRank); len(errs) > 0 {
		return fmt.Errorf("the ranks do not run the same: %w", errs)
	}
	return nil
}

// Gather gives every rank the bytes of each, by rank: texts of different lengths, of at most limit bytes.
func Gather(ctx context.Context, c *Communicator, mine []byte, limit int) ([][]byte, error) {
	if len(mine) > limit {
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", len(mine), limit)
	}
	lengths := make([]int64, c.Size())
	if err := c.AllGather(ctx, Of([]int64{int64(len(mine))}), Of(lengths)); err != nil {
		return nil, err
	}
	most := 0
	for r, n := range lengths {
		if n < 0 || n > int64(limit) {
			return nil, &RankError{Rank: c.WorldRank(r), Fault: Garbled, What: fmt.Sprintf("sent %d bytes, at most %d are allowed", n, limit)}
		}
		most = max(most, int(n))
	}
	padded, all := make([]byte, most), make([]byte, most*c.Size())
	copy(padded, mine)
	if err := c.AllGather(ctx, Of(padded), Of(all)); err != nil {
		return nil, err
	}
	texts := make([][]byte, c.Size())
	for r, n := range lengths {
		texts[r] = all[r*most : r*most+int(n)]
	}
	return texts, nil
}

// disagreement names the ranks whose facts are not what most ranks have.
func disagreement(byRank [][]Fact, worldRank func(int) int) RankErrors {
	reference := Majority(byRank, func(a, b []Fact) bool { return difference(a, b) == "" })
	var errs RankErrors
	for r := range byRank {
		if d := difference(byRank[r], byRank[reference]); d != "" {
			errs = append(errs, &RankError{Rank: worldRank(r), Fault: Mismatched,
				What: fmt.Sprintf("has %s (rank %d's; compared with most ranks)", d, worldRank(reference))})
		}
	}
	return errs.Sorted()
}

// Majority is the first of those elements that have the most equals.
func Majority[T any](all []T, equal func(a, b T) bool) int {
	best, most := 0, 0
	for i := range all {
		n := 0
		for j := range all {
			if equal(all[i], all[j]) {
				n++
			}
		}
		if n > most {
			best, most = i, n
		}
	}
	return best
}

// difference is the first fact in which a differs from b, "" if there is none.
func difference(a, b []Fact) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return fmt.Sprintf("no %s, where %s is expected", b[i].Name, b[i].Value)
		case i >= len(b):
			return fmt.Sprintf("%s %s, where none is expected", a[i].Name, a[i].Value)
		case a[i].Name != b[i].Name:
			return fmt.Sprintf("%s %s, where %s %s is expected", a[i].Name, a[i].Value, b[i].Name, b[i].Value)
		case a[i].Value != b[i].Value:
			return fmt.Sprintf("%s %s, where %s is expected", a[i].Name, a[i].Value, b[i].Value)
		}
	}
	return ""
}
