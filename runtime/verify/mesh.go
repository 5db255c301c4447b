package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"blutrain/artifact"
	"blutrain/dialects"
	"blutrain/dialects/blu"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
	"blutrain/runtime/ranks"
	"blutrain/runtime/ref"
	"blutrain/runtime/synthetic"
)

// WholeModule is the name of the module in the reference of a mesh's artifact that holds the functions of one rank alone.
const WholeModule = "whole"

// micros is the number of micro-batches of each rank in the step that ranks are compared in: the last sums over the ranks, the others
// don't.
const micros = 2

// Mesh runs a step of training on all ranks of a mesh, within this process, and compares what they arrive at with the step of one rank
// alone that the artifact carries: sums of gradients, losses and counts, then parameters and optimizer states after the update, and an
// evaluation. The ranks of a row get micro-batches of their own, the reference gets them one after the other. States that are cut into
// shards are put together; those that every rank has must be the same bits on all.
func Mesh(ctx context.Context, a *artifact.Artifact, device string, dp, cp int, o runtime.Options, tolerance float64, seed uint64) ([]Row, error) {
	whole, ignored, err := Whole(a)
	if err != nil {
		return nil, err
	}
	p, err := ref.Open(whole, runtime.Options{})
	if err != nil {
		return nil, fmt.Errorf("the step of one rank: %w", err)
	}
	c := &meshCheck{artifact: a, reference: p.(ref.Program), dp: dp, tolerance: tolerance, random: rand.New(rand.NewPCG(seed, 0))}
	if err := c.prepare(seed, ignored); err != nil {
		return nil, err
	}
	want, err := c.one(nil)
	if err != nil {
		return nil, fmt.Errorf("the step of one rank: %w", err)
	}
	got := make([]*found, dp*cp)
	err = ranks.Run(ctx, a, device, dp, cp, o, func(r *ranks.Rank) error {
		f, err := c.rank(r)
		got[r.Mesh.Rank()] = f
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.compare(want, got)
}

// Whole is the artifact of one rank alone that a mesh's artifact carries, for the reference device, and the targets that its losses
// ignore.
func Whole(a *artifact.Artifact) (whole *artifact.Artifact, ignored []int64, err error) {
	if a.Manifest.Mesh == nil || a.Manifest.Train == nil {
		return nil, nil, fmt.Errorf("model %s was not compiled for training on a mesh of ranks: compile it with bluc compile --mesh", a.Manifest.Model)
	}
	text, ok := a.File(artifact.ReferenceName)
	if !ok {
		return nil, nil, fmt.Errorf("the artifact has no %s", artifact.ReferenceName)
	}
	c := dialects.NewContext()
	module, err := ir.Parse(c, artifact.ReferenceName, text)
	if err != nil {
		return nil, nil, err
	}
	inner := ir.LookupSymbol(module, WholeModule)
	if inner == nil || inner.Body() == nil {
		return nil, nil, fmt.Errorf("%s has no module @%s with the functions of one rank: compile the model again", artifact.ReferenceName, WholeModule)
	}
	inner.Remove()
	ir.WalkPost(inner, func(op *ir.Op) {
		if op.Is(blu.CrossEntropy) && !slices.Contains(ignored, op.Attrs().IntOr("ignore", 0)) {
			ignored = append(ignored, op.Attrs().IntOr("ignore", 0))
		}
	})
	m := wholeManifest(a.Manifest)
	program := ir.Print(inner, ir.PrintOptions{Locations: true, ElideAbove: -1})
	return &artifact.Artifact{Manifest: m, Files: []artifact.File{{Name: artifact.ProgramName, Data: program}}}, ignored, nil
}

// wholeManifest describes the program of one rank: states in one piece, no copies, and no function or scalar that is about ranks.
func wholeManifest(m artifact.Manifest) artifact.Manifest {
	w := m
	w.Target, w.Mesh = "ref", nil
	w.States = m.Own()
	copies := len(w.States) < len(m.States)
	for i := range w.States {
		if s := &w.States[i]; s.Shard != nil {
			s.Shape, s.Shard = s.Shard.Shape, nil
		}
	}
	w.Memory.Copies, w.Functions = 0, nil
	for _, f := range m.Functions {
		if f.Name == m.LastAccumulate() && f.Name != "accumulate" || f.Name == artifact.Refresh && copies {
			continue
		}
		f.Collectives = nil
		f.Scalars = slices.DeleteFunc(slices.Clone(f.Scalars), func(v artifact.Value) bool { return m.IsMeshScalar(v.Name) })
		w.Functions = append(w.Functions, f)
	}
	return w
}

// meshCheck is a comparison under way.
type meshCheck struct {
	artifact  *artifact.Artifact
	reference ref.Program
	dp        int
	tolerance float64
	random    *rand.Rand

	start   map[string][]byte            // states before the step
	batches [][]map[string]runtime.Array // by micro-batch and row of the mesh
}

// found is what a step arrives at: states after all of its micro-batches and after the update, outputs, and those of an evaluation.
type found struct {
	sums, updated map[string][]byte
	apply, eval   map[string][]float64
	copies        []Row // of one rank of many, after the update
}

// prepare makes up the states before the step, which are those of one rank, and the batches.
func (c *meshCheck) prepare(seed uint64, ignored []int64) (err error) {
	if _, err := c.reference.Call("init", nil, runtime.Scalars{"seed": float64(seed)}); err != nil {
		return err
	}
	if err := synthetic.Shake(c.reference, c.random); err != nil {
		return err
	}
	if c.start, err = states(c.reference); err != nil {
		return err
	}
	f, _ := c.reference.Manifest().Function("accumulate")
	c.batches = make([][]map[string]runtime.Array, micros)
	for i := range c.batches {
		for range c.dp {
			in := synthetic.Inputs(c.reference.Manifest(), f, c.random)
			if targets, ok := in["targets"]; ok && len(ignored) == 1 && targets.DType == formats.I32 {
				c.ignore(targets.Data, int32(ignored[0]))
			}
			c.batches[i] = append(c.batches[i], in)
		}
	}
	return nil
}

// ignore makes some targets count for nothing: in each batch another share of them, so that the ranks' counts are unequal.
func (c *meshCheck) ignore(targets []byte, value int32) {
	share := 0.5 * c.random.Float64()
	for i := 0; i < len(targets); i += 4 {
		if c.random.Float64() < share {
			binary.LittleEndian.PutUint32(targets[i:], uint32(value))
		}
	}
}

// states reads all states of a program.
func states(p runtime.Program) (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, s := range p.Manifest().Own() {
		all[s.Name] = make([]byte, s.Bytes())
		if err := p.ReadState(s.Name, all[s.Name]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// one is the step on one rank, with or without roundings.
func (c *meshCheck) one(change ref.Change) (f *found, err error) {
	f = &found{apply: map[string][]float64{}, eval: map[string][]float64{}}
	if err := write(c.reference, c.start); err != nil {
		return nil, err
	}
	call := func(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]*ir.Tensor, error) {
		out, states, err := c.reference.CallChanged(fn, in, s, change)
		if err != nil {
			return nil, err
		}
		return out, c.keep(states)
	}
	for i, batches := range c.batches {
		for row, in := range batches {
			if _, err := call("accumulate", in, synthetic.Scalars(i == 0 && row == 0)); err != nil {
				return nil, err
			}
		}
	}
	if f.sums, err = states(c.reference); err != nil {
		return nil, err
	}
	out, err := call("apply", nil, synthetic.Scalars(false))
	if err != nil {
		return nil, err
	}
	for name, x := range out {
		f.apply[name] = x.Data
	}
	if f.updated, err = states(c.reference); err != nil {
		return nil, err
	}
	for _, in := range c.batches[0] {
		out, err := call("eval", in, synthetic.Scalars(false))
		if err != nil {
			return nil, err
		}
		for name, x := range out { // sums of all rows
			f.eval[name] = add(f.eval[name], x.Data)
		}
	}
	return f, nil
}

func add(sum, x []float64) []float64 {
	if sum == nil {
		return slices.Clone(x)
	}
	for i := range sum {
		sum[i] += x[i]
	}
	return sum
}

// keep writes the states of an evaluation that left them as they were.
func (c *meshCheck) keep(states map[string]*ir.Tensor) error {
	for name, x := range states {
		var raw []byte
		for _, v := range x.Data {
			raw = ir.EncodeElement(raw, x.Elem, v)
		}
		if err := c.reference.WriteState(name, raw); err != nil {
			return err
		}
	}
	return nil
}

// rank is the step on one rank of the mesh.
func (c *meshCheck) rank(r *ranks.Rank) (f *found, err error) {
	f = &found{apply: map[string][]float64{}, eval: map[string][]float64{}}
	for _, s := range r.Manifest().Own() {
		if err := r.WriteState(s.Name, piece(s, c.start[s.Name], r.Mesh.Rank())); err != nil {
			return nil, err
		}
	}
	for i, batches := range c.batches {
		fn := "accumulate"
		if i == micros-1 {
			fn = r.Manifest().LastAccumulate()
		}
		if _, err := r.Call(fn, batches[r.Mesh.DPRank()], synthetic.Scalars(i == 0)); err != nil {
			return nil, err
		}
	}
	if f.sums, err = states(r); err != nil {
		return nil, err
	}
	out, err := r.Call("apply", nil, synthetic.Scalars(false))
	if err != nil {
		return nil, err
	}
	numbers(f.apply, out)
	if f.copies, err = copies(r, "apply"); err != nil {
		return nil, err
	}
	if f.updated, err = states(r); err != nil {
		return nil, err
	}
	if out, err = r.Call("eval", c.batches[0][r.Mesh.DPRank()], synthetic.Scalars(false)); err == nil {
		numbers(f.eval, out)
	}
	return f, err
}

func numbers(to map[string][]float64, out map[string]runtime.Array) {
	for name, x := range out {
		to[name] = formats.Tensor(x).Float64s()
	}
}

// piece is what a rank has of a state: all of it, or its piece, padded with zeros.
func piece(s artifact.State, whole []byte, rank int) []byte {
	if s.Shard == nil {
		return whole
	}
	own := make([]byte, s.Bytes())
	if begin := rank * len(own); begin < len(whole) {
		copy(own, whole[begin:])
	}
	return own
}

// together is a state as all ranks have it.
func (c *meshCheck) together(s artifact.State, of func(*found) []byte, got []*found) ([]float64, error) {
	first := of(got[0])
	tensor := func(data []byte) []float64 {
		return formats.Tensor{DType: s.DType, Shape: []int64{int64(len(data) / s.DType.Size())}, Data: data}.Float64s()
	}
	switch {
	case s.Shard != nil && s.Shard.Group != artifact.World:
		return nil, fmt.Errorf("state %s is cut over group %s, which can't be put together here", s.Name, s.Shard.Group)
	case s.Shard != nil:
		var all []float64
		for _, f := range got {
			all = append(all, tensor(of(f))...)
		}
		return all[:s.Shard.Elements()], nil
	case s.Role == artifact.Accumulator && c.artifact.Manifest.Mesh.Zero > 0: // summed over the ranks in apply, and nowhere kept
		var sum []float64
		for _, f := range got {
			sum = add(sum, tensor(of(f)))
		}
		return sum, nil
	}
	for r, f := range got {
		if !slices.Equal(first, of(f)) {
			return nil, fmt.Errorf("state %s should be the same on all ranks, and has other bits on rank %d than on rank 0", s.Name, r)
		}
	}
	return tensor(first), nil
}

// compare lists the errors of what the ranks found.
func (c *meshCheck) compare(want *found, got []*found) ([]Row, error) {
	type entry struct {
		function string
		again    func(*found) []float64 // the same in another evaluation of one rank's step
	}
	var all []entry
	var results []result // one for each
	for _, s := range c.artifact.Manifest.Own() {
		function, of := "apply", func(f *found) []byte { return f.updated[s.Name] }
		if s.Role == artifact.Gradient || s.Role == artifact.Accumulator {
			function, of = "accumulate", func(f *found) []byte { return f.sums[s.Name] }
		}
		x, err := c.together(s, of, got)
		if err != nil {
			return nil, err
		}
		exact := func(f *found) []float64 {
			return formats.Tensor{DType: s.DType, Shape: []int64{int64(len(x))}, Data: of(f)}.Float64s()
		}
		all = append(all, entry{function, exact})
		results = append(results, result{name: s.Name, got: x, want: &expected{value: exact(want), tolerance: c.tolerance}})
	}
	for _, o := range []struct {
		function string
		of       func(*found) map[string][]float64
	}{{"apply", func(f *found) map[string][]float64 { return f.apply }}, {"eval", func(f *found) map[string][]float64 { return f.eval }}} {
		for _, name := range slices.Sorted(maps.Keys(o.of(want))) {
			for r, f := range got {
				if !slices.Equal(o.of(f)[name], o.of(got[0])[name]) {
					return nil, fmt.Errorf("output %s of %s should be the same on all ranks, and is %v on rank %d, %v on rank 0", name, o.function, o.of(f)[name], r, o.of(got[0])[name])
				}
			}
			again := func(f *found) []float64 { return o.of(f)[name] }
			all = append(all, entry{o.function, again})
			results = append(results, result{name: name, got: again(got[0]), want: &expected{value: again(want), tolerance: c.tolerance}})
		}
	}
	err := settle(results, c.random, func(change ref.Change) (values [][]float64, err error) {
		f, err := c.one(change)
		if err != nil {
			return nil, fmt.Errorf("the step of one rank: %w", err)
		}
		for _, e := range all {
			values = append(values, e.again(f))
		}
		return values, nil
	})
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, function := range []string{"accumulate", "apply", "eval"} {
		for i, e := range all {
			if r := results[i]; e.function == function {
				rows = append(rows, Row{function, r.name, r.want.of(r.got), largest(r.got, r.want.value)})
			}
		}
		if function == "apply" {
			rows = append(rows, copiesOf(got)...)
		}
	}
	return rows, nil
}

// copiesOf is what was found of each copy on the ranks: of the first on which it is off, or else of rank 0.
func copiesOf(got []*found) []Row {
	rows := slices.Clone(got[0].copies)
	for i := range rows {
		if r := slices.IndexFunc(got, func(f *found) bool { return f.copies[i].Off() }); r >= 0 {
			rows[i] = got[r].copies[i]
		}
	}
	return rows
}
