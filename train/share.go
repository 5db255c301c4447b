package train

import (
	"fmt"
	"slices"
	"strings"

	"blutrain/artifact"
	"blutrain/runtime"
	"blutrain/train/checkpoint"
)

// share is a rank's part of a state: elements [begin, end) of the whole tensor, which is the state itself where it is not sharded.
// They are the first of the state in the program's memory; what follows is padding, and zero.
type share struct {
	state      artifact.State
	shape      []int64 // of the whole tensor
	begin, end int64
	writes     bool // this rank saves it
}

func (s share) bytes() int64 { return (s.end - s.begin) * int64(s.state.DType.Size()) }

// shares are this rank's parts of the persistent states. Of a state that all ranks have, one saves it, so that each saves about as
// many bytes as the others; of one that only some groups of ranks share, the first group does.
func (r ranks) shares(m *artifact.Manifest) (list []share) {
	owners := spread(m, r.world())
	for _, s := range m.States {
		if !s.Persist {
			continue
		}
		if s.Shard == nil {
			elements := s.Bytes() / int64(s.DType.Size())
			list = append(list, share{s, s.Shape, 0, elements, owners[s.Name] == r.rank()})
			continue
		}
		index, first := r.index(s.Shard.Group)
		all, each := s.Shard.Elements(), s.Shard.Piece()
		begin, end := min(all, int64(index)*each), min(all, int64(index+1)*each)
		list = append(list, share{s, s.Shard.Shape, begin, end, first && (begin < end || index == 0)})
	}
	return list
}

// index is this rank's number in its group of that name, and whether the group is the first of them.
func (r ranks) index(group string) (index int, first bool) {
	switch {
	case r.mesh == nil:
		return 0, true
	case group == artifact.DP:
		return r.mesh.DPRank(), r.mesh.CPRank() == 0
	case group == artifact.CP:
		return r.mesh.CPRank(), r.mesh.DPRank() == 0
	}
	return r.mesh.Rank(), true
}

// spread gives each persistent state that all ranks have to the rank with the fewest bytes so far, the largest states first.
func spread(m *artifact.Manifest, ranks int) map[string]int {
	var states []artifact.State
	for _, s := range m.States {
		if s.Persist && s.Shard == nil {
			states = append(states, s)
		}
	}
	slices.SortFunc(states, func(a, b artifact.State) int {
		if a.Bytes() != b.Bytes() {
			return int(max(-1, min(1, b.Bytes()-a.Bytes())))
		}
		return strings.Compare(a.Name, b.Name)
	})
	owners, loads := map[string]int{}, make([]int64, ranks)
	for _, s := range states {
		least := 0
		for r := range loads {
			if loads[r] < loads[least] {
				least = r
			}
		}
		owners[s.Name] = least
		loads[least] += s.Bytes()
	}
	return owners
}

// want reads a share into the program. done, which may be nil, ends it once everything is read.
func (s share) want(p runtime.Program) (w checkpoint.Want, done func() error) {
	w = checkpoint.Want{Name: s.state.Name, Begin: s.begin, End: s.end}
	padding := make([]byte, s.state.Bytes()-s.bytes())
	if in, ok := p.(runtime.StateWriter); ok {
		w.Put = func(at int64, data []byte) error { return in.WriteStateAt(s.state.Name, at, data) }
		if len(padding) > 0 {
			done = func() error { return in.WriteStateAt(s.state.Name, s.bytes(), padding) }
		}
		return w, done
	}
	buffer := make([]byte, s.state.Bytes())
	w.Put = func(at int64, data []byte) error { copy(buffer[at:], data); return nil }
	return w, func() error { return p.WriteState(s.state.Name, buffer) }
}

// wants reads shares into the program, if they are what the checkpoint has.
func wants(p runtime.Program, m *checkpoint.Manifest, shares []share) (list []checkpoint.Want, done []func() error, err error) {
	for _, s := range shares {
		t, ok := m.Tensor(s.state.Name)
		if !ok {
			return nil, nil, fmt.Errorf("it has no %s, which the model has", s.state.Name)
		}
		if t.DType != s.state.DType || !slices.Equal(t.Shape, s.shape) {
			return nil, nil, otherType(s.state.Name, t.DType, t.Shape, s.state.DType, s.shape)
		}
		w, end := s.want(p)
		list = append(list, w)
		if end != nil {
			done = append(done, end)
		}
	}
	return list, done, nil
}
