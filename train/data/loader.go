package data

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"blutrain/artifact"
	"blutrain/formats"
)

// Config says what batches a Loader gives.
type Config struct {
	Inputs      []artifact.Value // what a batch has for this rank; the first size of each is B, its rows
	Vocab       int64            // of the model: in files of tokens, those at or above it are an error
	Rank, Ranks int              // 0 and 1 for a single process
	Seed        uint64
	Sequential  bool  // windows in the order of the files, instead of a new random order each epoch
	Sample      int64 // only so many blocks of B rows of a pass, evenly spread over it; 0: all whole ones
}

// check says what is wrong with a configuration, whatever the data.
func (c Config) check() error {
	if c.Ranks < 1 || c.Rank < 0 || c.Rank >= c.Ranks || c.Sample < 0 {
		return fmt.Errorf("data: rank %d of %d, a sample of %d blocks", c.Rank, c.Ranks, c.Sample)
	}
	if len(c.Inputs) == 0 {
		return errors.New("data: a batch of no inputs")
	}
	for _, v := range c.Inputs {
		if len(v.Shape) == 0 || v.Shape[0] != c.rows() || slices.Min(v.Shape) < 1 {
			return fmt.Errorf("input %s is %s: it has not a row for each of B = %d samples", v.Name, v.DType.Of(v.Shape), c.rows())
		}
	}
	return nil
}

// rows is B.
func (c Config) rows() int64 {
	if len(c.Inputs) == 0 || len(c.Inputs[0].Shape) == 0 {
		return 0
	}
	return c.Inputs[0].Shape[0]
}

// State is the place of a loader: the rows before it have been given out, to all ranks together. The rows of a run are one
// endless sequence that depends only on the files, S and the seed: each epoch holds every sample once, in its own order. A batch
// of R ranks takes the next R blocks of B rows, rank r the block r of them; so every number of ranks takes the same blocks in
// the same order, one rank in R batches what R ranks take in one, and a batch may begin in one epoch and end in the next.
type State struct {
	Row     int64  `json:"row"`     // rows before this place
	Windows int64  `json:"windows"` // rows in an epoch
	S       int64  `json:"s"`       // tokens of a row; 0 for arrays
	Seed    uint64 `json:"seed"`
}

// Epoch is the number of whole passes over the data before this place.
func (s State) Epoch() int64 { return s.Row / max(1, s.Windows) }

// of says what an epoch is.
func (s State) of() string {
	if s.S == 0 {
		return fmt.Sprintf("%d samples", s.Windows)
	}
	return fmt.Sprintf("%d windows of S = %d", s.Windows, s.S)
}

// Batch is a tensor of B rows for each input.
type Batch struct {
	Inputs map[string]formats.Tensor
	After  State // where the next batch begins
}

// Loader gives out batches, reading ahead in a goroutine. It is for one goroutine; Close ends the reading.
type Loader struct {
	config  Config
	samples samples
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
func NewLoader(source Source, c Config, from *State) (*Loader, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	all, err := source.cut(c)
	if err != nil {
		return nil, err
	}
	state := all.begin()
	state.Seed = c.Seed
	if need := c.rows() * int64(c.Ranks); state.Windows < need {
		return nil, fmt.Errorf("too little data: %s, a batch of B = %d on %d ranks takes %d", all, c.rows(), c.Ranks, need)
	}
	if from != nil {
		if from.Row < 0 || from.Windows != state.Windows || from.S != state.S || from.Seed != state.Seed {
			return nil, fmt.Errorf("the data is not the data of the run to be continued: %s and seed %d, there %s and seed %d (row %d)",
				state.of(), state.Seed, from.of(), from.Seed, from.Row)
		}
		state = *from
	}
	l := &Loader{config: c, samples: all, stride: 1, state: state, ahead: make(chan result, readAhead)}
	if c.Sample > 0 {
		l.stride = max(1, state.Windows/c.rows()/c.Sample)
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
	whole := l.state.Windows / l.config.rows()
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
	c, b := l.config, Batch{Inputs: map[string]formats.Tensor{}, After: state}
	rest := make([][]byte, len(c.Inputs)) // the rows to come
	for k, v := range c.Inputs {
		rest[k] = make([]byte, v.Bytes())
		b.Inputs[v.Name] = formats.Tensor{DType: v.DType, Shape: v.Shape, Data: rest[k]}
	}
	epoch := int64(-1)
	var order permutation
	first := state.Row + int64(c.Rank)*c.rows()*l.stride
	into := make([][]byte, len(rest))
	for i := range c.rows() {
		row := first + i
		number := row % state.Windows
		if !c.Sequential {
			if e := row / state.Windows; e != epoch {
				epoch, order = e, newPermutation(state.Windows, c.Seed, e)
			}
			number = order.at(number)
		}
		for k, data := range rest {
			size := int64(len(data)) / (c.rows() - i)
			into[k], rest[k] = data[:size], data[size:]
		}
		if err := l.samples.read(number, into); err != nil {
			return Batch{}, err
		}
	}
	b.After.Row += c.rows() * int64(c.Ranks) * l.stride
	return b, nil
}
