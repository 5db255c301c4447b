package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/formats"
	"blutrain/runtime"
)

// bigram is a model in plain Go with the interface of a compiled one: the logits of the next token are a row of a table, trained
// by SGD with momentum on cross entropy. Its gradients carry noise drawn from the run-time seed, as dropout would, so that
// two runs agree only when their seeds do.
type bigram struct {
	vocab    int
	manifest artifact.Manifest
	states   map[string][]float32
	calls    int
	onCall   func(n int)
	breakAt  int // step whose loss is NaN
	fail     error
	mesh     *dtms.Mesh // sums go over its ranks; nil: one rank
}

// onMesh makes it a program of several ranks: accumulate_last sums over all of them, and ranks that share a row of the mesh compute
// every cp-th token of it each.
func (b *bigram) onMesh(m *dtms.Mesh) *bigram {
	b.mesh = m
	b.manifest.Mesh = &artifact.Mesh{CP: m.CP.Size()}
	f, _ := b.manifest.Function("accumulate")
	last := *f
	last.Name = artifact.AccumulateLast
	b.manifest.Functions = append(b.manifest.Functions, last)
	return b
}

// mine reports whether this rank computes a token.
func (b *bigram) mine(i int) bool { return b.mesh == nil || i%b.mesh.CP.Size() == b.mesh.CPRank() }

func (b *bigram) allReduce(x []float32) error {
	if b.mesh == nil {
		return nil
	}
	return b.mesh.World.AllReduce(context.Background(), dtms.Of(x), dtms.Of(x))
}

func newBigram(vocab int, batch artifact.Batch) *bigram {
	v := int64(vocab)
	value := func(name string, d formats.DType, shape ...int64) artifact.Value {
		return artifact.Value{Name: name, DType: d, Shape: append([]int64{}, shape...)}
	}
	scalar := func(name string) artifact.Value { return value(name, formats.F32) }
	tokens := []artifact.Value{value("tokens", formats.I32, batch.B, batch.S), value("targets", formats.I32, batch.B, batch.S)}
	b := &bigram{vocab: vocab, states: map[string][]float32{}}
	b.manifest = artifact.Manifest{
		Format: artifact.Format, Version: artifact.Version, Target: "fake", Model: "bigram", Args: map[string]float64{"V": float64(vocab)},
		Train: &artifact.Train{
			Minimize: "loss", Batch: batch, Inputs: tokens,
			Schedule:  artifact.Method{Kind: "cosine", Params: map[string]float64{"max": 2, "min": 0.2, "warmup": 3, "steps": 40}},
			Optimizer: artifact.Method{Kind: "sgd", Params: map[string]float64{"momentum": 0.9}},
		},
		States: []artifact.State{
			{Value: value("w", formats.F32, v, v), Role: artifact.Param, Persist: true},
			{Value: value("sgd.momentum/w", formats.F32, v, v), Role: artifact.Optimizer, Persist: true},
			{Value: value("grads/w", formats.F32, v, v), Role: artifact.Gradient},
			{Value: scalar("loss_sum"), Role: artifact.Accumulator},
			{Value: scalar("count"), Role: artifact.Accumulator},
		},
		Functions: []artifact.Function{
			{Name: "init", Scalars: []artifact.Value{value("seed", formats.I64)}},
			{Name: "accumulate", Inputs: tokens, Scalars: []artifact.Value{value("first", formats.Bool), value("seed", formats.I64)}, Flops: 3e6},
			{Name: "apply", Scalars: []artifact.Value{scalar("lr"), scalar("step")}, Outputs: []artifact.Value{scalar("loss"), scalar("grad_norm")}, Flops: 1e6},
			{Name: "eval", Inputs: tokens, Outputs: []artifact.Value{scalar("loss_sum"), scalar("count")}},
			{Name: "logits", Inputs: tokens[:1], Outputs: []artifact.Value{value("logits", formats.F32, batch.B, batch.S, v)}},
		},
		Memory: artifact.Memory{Params: 4 * v * v, Gradients: 4 * v * v, Optimizer: 4 * v * v, Total: 12 * v * v},
	}
	for _, s := range b.manifest.States {
		b.states[s.Name] = make([]float32, s.Bytes()/4)
		for i := range b.states[s.Name] {
			b.states[s.Name][i] = float32(math.NaN()) // nothing may be read before it is written
		}
	}
	return b
}

func (b *bigram) Manifest() *artifact.Manifest { return &b.manifest }
func (b *bigram) MemoryInUse() int64           { return b.manifest.Memory.Total }
func (b *bigram) Close() error                 { return nil }

func (b *bigram) Call(fn string, in map[string]runtime.Array, s runtime.Scalars) (map[string]runtime.Array, error) {
	if _, err := (runtime.Options{Mesh: b.mesh}).CheckCall(&b.manifest, fn, in, s); err != nil {
		return nil, err
	}
	if b.calls++; b.onCall != nil {
		b.onCall(b.calls)
	}
	switch fn {
	case "init":
		random := rand.New(rand.NewPCG(uint64(s["seed"]), 0))
		for i := range b.states["w"] {
			b.states["w"][i] = float32(0.02 * random.NormFloat64())
			b.states["sgd.momentum/w"][i] = 0
		}
	case "accumulate":
		b.accumulate(ints(in["tokens"]), ints(in["targets"]), s["first"] == 1, uint64(s["seed"]))
	case artifact.AccumulateLast:
		b.accumulate(ints(in["tokens"]), ints(in["targets"]), s["first"] == 1, uint64(s["seed"]))
		return nil, errors.Join(b.allReduce(b.states["grads/w"]), b.allReduce(b.states["loss_sum"]), b.allReduce(b.states["count"]))
	case "apply":
		return b.apply(float32(s["lr"]), int(s["step"]))
	case "eval":
		sums := make([]float32, 2)
		tokens, targets := ints(in["tokens"]), ints(in["targets"])
		for i, t := range tokens {
			if b.mine(i) {
				sums[0] -= float32(math.Log(b.softmax(t)[targets[i]]))
				sums[1]++
			}
		}
		err := b.allReduce(sums)
		return scalars("loss_sum", float64(sums[0]), "count", float64(sums[1])), err
	case "logits":
		var out []float32
		for _, t := range ints(in["tokens"]) {
			out = append(out, b.row(t)...)
		}
		shape := append(in["tokens"].Shape[:2:2], int64(b.vocab))
		return map[string]runtime.Array{"logits": runtime.Array(formats.FromFloat32s(out, shape...))}, nil
	}
	return nil, nil
}

func (b *bigram) row(token int32) []float32 {
	return b.states["w"][int(token)*b.vocab : (int(token)+1)*b.vocab]
}

func (b *bigram) softmax(token int32) []float64 {
	p, sum := make([]float64, b.vocab), 0.0
	for i, x := range b.row(token) {
		p[i] = math.Exp(float64(x))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

func (b *bigram) accumulate(tokens, targets []int32, first bool, seed uint64) {
	grads, noise := b.states["grads/w"], rand.New(rand.NewPCG(seed, 1))
	if first {
		clear(grads)
		b.states["loss_sum"][0], b.states["count"][0] = 0, 0
	}
	for i, t := range tokens {
		if !b.mine(i) {
			for range b.vocab {
				noise.Float64()
			}
			continue
		}
		p := b.softmax(t)
		b.states["loss_sum"][0] -= float32(math.Log(p[targets[i]]))
		b.states["count"][0]++
		p[targets[i]]--
		for j, d := range p {
			grads[int(t)*b.vocab+j] += float32(d * (1 + 0.01*noise.Float64()))
		}
	}
}

func (b *bigram) apply(lr float32, step int) (map[string]runtime.Array, error) {
	if b.fail != nil {
		return nil, b.fail
	}
	count, norm := b.states["count"][0], 0.0
	for i, g := range b.states["grads/w"] {
		g /= count
		norm += float64(g) * float64(g)
		m := &b.states["sgd.momentum/w"][i]
		*m = 0.9**m + g
		b.states["w"][i] -= lr * *m
	}
	loss := float64(b.states["loss_sum"][0] / count)
	if step == b.breakAt {
		loss = math.NaN()
	}
	return scalars("loss", loss, "grad_norm", math.Sqrt(norm)), nil
}

func (b *bigram) state(name string, n int) ([]float32, error) {
	s, ok := b.states[name]
	if !ok || n != 4*len(s) {
		return nil, fmt.Errorf("state %q of %d bytes", name, n)
	}
	return s, nil
}

func (b *bigram) ReadState(name string, dst []byte) error {
	s, err := b.state(name, len(dst))
	copy(dst, formats.FromFloat32s(s).Data)
	return err
}

func (b *bigram) WriteState(name string, src []byte) error {
	s, err := b.state(name, len(src))
	for i := range s {
		s[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
	return err
}

func ints(a runtime.Array) []int32 {
	out := make([]int32, len(a.Data)/4)
	for i := range out {
		out[i] = int32(binary.LittleEndian.Uint32(a.Data[4*i:]))
	}
	return out
}

func scalars(name1 string, v1 float64, name2 string, v2 float64) map[string]runtime.Array {
	return map[string]runtime.Array{
		name1: runtime.Array(formats.FromFloat32s([]float32{float32(v1)})),
		name2: runtime.Array(formats.FromFloat32s([]float32{float32(v2)})),
	}
}

var errDevice = errors.New("device lost")
