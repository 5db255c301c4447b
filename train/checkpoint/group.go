package checkpoint

import (
	"encoding/json"
	"fmt"
)

// Group is the ranks that save together. Each rank calls Gather the same number of times in the same order.
type Group interface {
	Rank() int
	World() int
	// Gather gives every rank what each of them passed, by rank; it returns when all have called it.
	Gather(mine []byte) ([][]byte, error)
}

// Single is the group of a run with one rank.
type Single struct{}

// Rank implements Group.
func (Single) Rank() int { return 0 }

// World implements Group.
func (Single) World() int { return 1 }

// Gather implements Group.
func (Single) Gather(mine []byte) ([][]byte, error) { return [][]byte{mine}, nil }

// message is what a rank tells the others: a value, or why it has none.
type message[T any] struct {
	Value T
	Err   string `json:",omitempty"`
}

// exchange gives every rank the values of all. When a rank has failed, all have; a rank that has gets its own error back.
func exchange[T any](g Group, mine T, err error) ([]T, error) {
	m := message[T]{Value: mine}
	if err != nil {
		m.Err = err.Error()
	}
	text, jsonErr := json.Marshal(m)
	if jsonErr != nil {
		return nil, jsonErr
	}
	texts, gatherErr := g.Gather(text)
	if err != nil {
		return nil, err
	}
	if gatherErr != nil {
		return nil, gatherErr
	}
	values := make([]T, len(texts))
	for rank, text := range texts {
		var m message[T]
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
		if m.Err != "" {
			return nil, fmt.Errorf("rank %d: %s", rank, m.Err)
		}
		values[rank] = m.Value
	}
	return values, nil
}
