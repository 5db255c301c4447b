package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/runtime"
)

// Sampler continues a text token by token with a function that gives logits [B, S, V] for tokens [B, S]. Only the first row is
// used, and only logits at or before the last token given, so the function must be causal.
type Sampler struct {
	Program     runtime.Program
	Function    string  // usually logits
	Temperature float64 // divides the logits; 0: always the likeliest token
	TopK        int     // draw among the K likeliest only; 0: all
	Seed        uint64

	rows, columns, vocab int64
	output               string
	random               *rand.Rand
}

// open checks the function's interface.
func (s *Sampler) open() error {
	if !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0) || s.TopK < 0 {
		return fmt.Errorf("temperature %g and top-k %d must not be negative", s.Temperature, s.TopK)
	}
	f, ok := s.Program.Manifest().Function(s.Function)
	if !ok {
		return fmt.Errorf("model %s has no function %s", s.Program.Manifest().Model, s.Function)
	}
	if len(f.Inputs) != 1 || f.Inputs[0].DType != formats.I32 || len(f.Inputs[0].Shape) != 2 || len(f.Outputs) != 1 {
		return fmt.Errorf("function %s does not take tokens: i32[B, S] and give logits", s.Function)
	}
	in, out := f.Inputs[0].Shape, f.Outputs[0]
	if len(out.Shape) != 3 || !slices.Equal(in, out.Shape[:2]) || !out.DType.IsFloat() || slices.Contains(out.Shape, 0) {
		return fmt.Errorf("function %s gives %s%v; logits are [%d, %d, V]", s.Function, out.DType, out.Shape, in[0], in[1])
	}
	if out.Shape[2] > 1<<16 {
		return fmt.Errorf("function %s gives logits of %d tokens; tokens have 16 bits", s.Function, out.Shape[2])
	}
	s.rows, s.columns, s.vocab, s.output = in[0], in[1], out.Shape[2], out.Name
	s.random = rand.New(rand.NewPCG(s.Seed, 0))
	return nil
}

// Generate continues prompt, which must not be empty, by n tokens, and calls emit with each. The function sees the last S
// tokens at most.
func (s *Sampler) Generate(prompt []uint16, n int, emit func(token uint16) error) error {
	if err := s.open(); err != nil {
		return err
	}
	if len(prompt) == 0 {
		return errors.New("the prompt has no tokens")
	}
	for i, t := range prompt {
		if int64(t) >= s.vocab {
			return fmt.Errorf("token %d of the prompt is %d, the vocabulary has %d", i, t, s.vocab)
		}
	}
	tokens := slices.Clone(prompt)
	for range n {
		tokens = tokens[max(0, len(tokens)-int(s.columns)):]
		logits, err := s.logits(tokens)
		if err != nil {
			return err
		}
		next, err := s.draw(logits)
		if err != nil {
			return err
		}
		tokens = append(tokens, next)
		if err := emit(next); err != nil {
			return err
		}
	}
	return nil
}

// logits of the token after the last.
func (s *Sampler) logits(tokens []uint16) ([]float64, error) {
	in := make([]int32, s.rows*s.columns)
	for i, t := range tokens {
		in[i] = int32(t)
	}
	f, _ := s.Program.Manifest().Function(s.Function)
	array := map[string]runtime.Array{f.Inputs[0].Name: runtime.Array(formats.FromInt32s(in, s.rows, s.columns))}
	out, err := s.Program.Call(s.Function, array, runtime.Scalars{"seed": 0})
	if err != nil {
		return nil, err
	}
	t := formats.Tensor(out[s.output])
	row := int64(t.DType.Size()) * s.vocab
	at := row * int64(len(tokens)-1)
	return formats.Tensor{DType: t.DType, Shape: []int64{s.vocab}, Data: t.Data[at : at+row]}.Float64s(), nil
}

// draw picks a token from softmax(logits / temperature), restricted to the likeliest.
func (s *Sampler) draw(logits []float64) (uint16, error) {
	order := make([]int, len(logits))
	for i, x := range logits {
		if math.IsNaN(x) {
			return 0, fmt.Errorf("logit %d is NaN", i)
		}
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	if s.Temperature == 0 {
		return uint16(order[0]), nil
	}
	if s.TopK > 0 {
		order = order[:min(s.TopK, len(order))]
	}
	weights, sum := make([]float64, len(order)), 0.0
	for i, token := range order {
		weights[i] = math.Exp((logits[token] - logits[order[0]]) / s.Temperature)
		sum += weights[i]
	}
	at := s.random.Float64() * sum
	for i, w := range weights {
		if at -= w; at < 0 {
			return uint16(order[i]), nil
		}
	}
	return uint16(order[0]), nil
}

// SampleVocabulary is the number of tokens that a function gives logits for, or 0 when it gives none.
func SampleVocabulary(m *artifact.Manifest, function string) int {
	f, ok := m.Function(function)
	if !ok || len(f.Outputs) != 1 || len(f.Outputs[0].Shape) != 3 {
		return 0
	}
	return int(f.Outputs[0].Shape[2])
}
