package verify

import (
	"math"
	"slices"

	"blutrain/artifact"
	"blutrain/formats"
	"blutrain/ir"
	"blutrain/runtime"
)

// copies holds the copies that a program keeps of its parameters to those, rounded: bit for bit. It is called for what a function has
// left.
func copies(p runtime.Program, function string) (rows []Row, err error) {
	m := p.Manifest()
	for _, s := range m.States {
		if s.Role != artifact.Copy {
			continue
		}
		of, _ := m.State(s.Of)
		param, err := numbersOf(p, of)
		if err != nil {
			return nil, err
		}
		got, err := numbersOf(p, &s)
		if err != nil {
			return nil, err
		}
		for i, x := range param {
			param[i] = float64(math.Float32frombits(uint32(ir.BF16Bits(x)) << 16))
		}
		rows = append(rows, Row{function, s.Name, (&expected{value: param}).of(got), largest(got, param)})
	}
	return rows, nil
}

// numbersOf is what a program has in a state.
func numbersOf(p runtime.Program, s *artifact.State) ([]float64, error) {
	data := make([]byte, s.Bytes())
	err := p.ReadState(s.Name, data)
	return formats.Tensor{DType: s.DType, Shape: s.Shape, Data: data}.Float64s(), err
}

// writesParams reports whether results are parameters.
func writesParams(m *artifact.Manifest, results []result) bool {
	return slices.ContainsFunc(results, func(r result) bool {
		s, ok := m.State(r.name)
		return r.state && ok && s.Role == artifact.Param
	})
}
