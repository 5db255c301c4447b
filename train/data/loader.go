package data

import (
	"context"
	"errors"
	"fmt"
)

// Config says what batches a Loader gives.
type Config struct {
	B, S        int64 // rows of this rank in a batch, tokens of a row
	Vocab       int64 // of the model: tokens at or above it are an error
	Rank, Ranks int   // 0 and 1 for a single process
	Seed        uint64
	Sequential  bool  // windows in the order of the files, instead of a new random order each epoch
	Sample      int64 // only so many blocks of B rows of a pass, evenly spread over it; 0: all whole ones
}

// State is the place of a loader: the rows before it have been given out, to all ranks together. The rows of a run are one
// endless sequence that depends only on the files, S and the seed: each epoch holds every window once, in its own order. A batch
// of R ranks takes the next R blocks of B rows, rank r the block r of them; so every number of ranks takes the same blocks in
// the same order, one rank in R batches what R ranks take in one, and a batch may begin in one epoch and end in the next.
type State struct {
	Row     int64  `json:"row"`     // rows before this place
	Windows int64  `json:"windows"` // rows in an epoch
	S       int64  `json:"s"`
	Seed    uint64 `json:"seed"`
}

// Epoch is the number of whole passes over the data before this place.
func (s State) Epoch() int64 { return s.Row / max(1, s.Windows) }

// Batch is B rows of S tokens, row after row, and for each token the one that follows it.
type Batch struct {
	Tokens, Targets []int32
	After           State // where the next batch begins
}

// Loader gives out batches, reading ahead in a goroutine. It is for one goroutine; Close ends the reading.
type Loader struct {
	config  Config
	windows windows
	stride  int64 // blocks of B rows from one to the next that is given out
	state   State
	ahead   chan result
	stop    context.CancelFunc
}

type result struct {
	batch Batch
	err   error
}

// readAhead is the number of batches held ready.
const readAhead = 2

// NewLoader starts at the beginning of the data, or at the place a state says.
func NewLoader(s *Shards, c Config, from *State) (*Loader, error) {
	if c.B < 1 || c.S < 1 || c.Vocab < 1 || c.Ranks < 1 || c.Rank < 0 || c.Rank >= c.Ranks || c.Sample < 0 {
		return nil, fmt.Errorf("data: B = %d, S = %d, vocabulary %d, rank %d of %d", c.B, c.S, c.Vocab, c.Rank, c.Ranks)
	}
	w, err := newWindows(s, c.S, c.Vocab)
	if err != nil {
		return nil, err
	}
	if need := c.B * int64(c.Ranks); w.count() < need {
		return nil, fmt.Errorf("too little data: %d tokens in %d files make %d windows of S = %d tokens, a batch of B = %d on %d ranks takes %d",
			s.Tokens(), len(s.files), w.count(), c.S, c.B, c.Ranks, need)
	}
	state := State{Windows: w.count(), S: c.S, Seed: c.Seed}
	if from != nil {
		if from.Row < 0 || from.Windows != state.Windows || from.S != state.S || from.Seed != state.Seed {
			return nil, fmt.Errorf("the data is not the data of the run to be continued: %d windows of S = %d and seed %d, there %d of S = %d and seed %d (row %d)",
				state.Windows, state.S, state.Seed, from.Windows, from.S, from.Seed, from.Row)
		}
		state = *from
	}
	l := &Loader{config: c, windows: w, stride: 1, state: state, ahead: make(chan result, readAhead)}
	if c.Sample > 0 {
		l.stride = max(1, w.count()/c.B/c.Sample)
	}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	go l.run(ctx, state)
	return l, nil
}

// Next gives the next batch.
func (l *Loader) Next() (Batch, error) {
	r, ok := <-l.ahead
	if !ok {
		return Batch{}, errors.New("data: the loader has ended")
	}
	if r.err != nil {
		return Batch{}, r.err
	}
	l.state = r.batch.After
	return r.batch, nil
}

// State is the place after the last batch that Next gave.
func (l *Loader) State() State { return l.state }

// Blocks is the number of blocks of B rows in one pass over the data, or in the sample of it: the same for every number of ranks.
func (l *Loader) Blocks() int64 {
	whole := l.windows.count() / l.config.B
	if l.config.Sample > 0 {
		return min(l.config.Sample, whole)
	}
	return whole
}

// Batches is the number of batches of all ranks in one pass, or in the sample of it. Blocks that make no whole batch are not in it.
func (l *Loader) Batches() int64 { return l.Blocks() / int64(l.config.Ranks) }

// Close ends the reading ahead, and returns when no file is read any more.
func (l *Loader) Close() {
	l.stop()
	for range l.ahead {
	}
}

func (l *Loader) run(ctx context.Context, state State) {
	defer close(l.ahead)
	for {
		batch, err := l.read(state)
		select {
		case <-ctx.Done():
			return
		case l.ahead <- result{batch, err}:
		}
		if err != nil {
			return
		}
		state = batch.After
	}
}

// read makes the batch at a place.
func (l *Loader) read(state State) (Batch, error) {
	c := l.config
	b := Batch{Tokens: make([]int32, c.B*c.S), Targets: make([]int32, c.B*c.S), After: state}
	epoch := int64(-1)
	var order permutation
	first := state.Row + int64(c.Rank)*c.B*l.stride
	for i := range c.B {
		row := first + i
		window := row % state.Windows
		if !c.Sequential {
			if e := row / state.Windows; e != epoch {
				epoch, order = e, newPermutation(state.Windows, c.Seed, e)
			}
			window = order.at(window)
		}
		if err := l.windows.read(window, b.Tokens[i*c.S:(i+1)*c.S], b.Targets[i*c.S:(i+1)*c.S]); err != nil {
			return Batch{}, err
		}
	}
	b.After.Row += c.B * int64(c.Ranks) * l.stride
	return b, nil
}
