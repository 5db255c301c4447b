package ranks

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/runtime"
	"blutrain/runtime/ranks"
)

// writer writes a random function on 4x6 tensors: arithmetic and views, states that are read early and late and written, and collectives,
// whole or in halves with other work between, that take and give what all of these use.
type writer struct {
	*rand.Rand
	strings.Builder
	values  []string
	pending []flight
	n       int
}

type flight struct{ results, operands []string }

const t46 = "tensor<4x6xf32>"

func (w *writer) fresh() string {
	w.n++
	return fmt.Sprintf("%%v%d", w.n)
}

func (w *writer) any() string { return w.values[w.IntN(len(w.values))] }

// line writes an operation with one result.
func (w *writer) line(format string, args ...any) string {
	v := w.fresh()
	fmt.Fprintf(w, "    %s = %s\n", v, fmt.Sprintf(format, args...))
	return v
}

func (w *writer) keep(v string) { w.values = append(w.values, v) }

func (w *writer) reshape(v, from, to string) string {
	return w.line("blu.reshape %s : (tensor<%sxf32>) -> tensor<%sxf32>", v, from, to)
}

func (w *writer) step() {
	switch w.IntN(10) {
	case 0:
		w.keep(w.line("blu.tanh %s : (%s) -> %s", w.any(), t46, t46))
	case 1, 2:
		sum := w.line("blu.sub %s, %s : (%s, %s) -> %s", w.any(), w.any(), t46, t46, t46)
		w.keep(w.line("blu.tanh %s : (%s) -> %s", sum, t46, t46))
	case 3:
		t := w.line("blu.transpose %s {perm = array<i64: 1, 0>} : (%s) -> tensor<6x4xf32>", w.any(), t46)
		s := w.line("dtms.permute %s {group = \"cp\", ranks = 2 : i64, shift = 1 : i64} : (tensor<6x4xf32>) -> tensor<6x4xf32>", t)
		w.keep(w.line("blu.transpose %s {perm = array<i64: 1, 0>} : (tensor<6x4xf32>) -> %s", s, t46))
	case 4:
		half := w.line("blu.slice %s {limits = array<i64: 4, 6>, starts = array<i64: 2, 0>, steps = array<i64: 1, 1>} : (%s) -> tensor<2x6xf32>", w.any(), t46)
		all := w.line("dtms.all_gather %s {group = \"world\", ranks = 2 : i64} : (tensor<2x6xf32>) -> tensor<2x2x6xf32>", half)
		w.keep(w.reshape(all, "2x2x6", "4x6"))
	case 5:
		blocks := w.reshape(w.any(), "4x6", "2x2x6")
		own := w.line("dtms.reduce_scatter %s {group = \"world\", ranks = 2 : i64} : (tensor<2x2x6xf32>) -> tensor<2x6xf32>", blocks)
		less := w.line("blu.tanh %s : (tensor<2x6xf32>) -> tensor<2x6xf32>", own)
		w.keep(w.line("blu.concat %s, %s {axis = 0 : i64} : (tensor<2x6xf32>, tensor<2x6xf32>) -> %s", less, own, t46))
	case 6:
		w.halves()
	case 7, 8:
		w.start()
	default:
		if len(w.pending) > 0 {
			w.wait(w.IntN(len(w.pending)))
		}
	}
}

// halves puts together what comes of a value and what another rank has, with work on something else meanwhile.
func (w *writer) halves() {
	const half = "tensor<2x6xf32>"
	own := w.line("blu.slice %s {limits = array<i64: 2, 6>, starts = array<i64: 0, 0>, steps = array<i64: 1, 1>} : (%s) -> %s", w.any(), t46, half)
	f := w.line("dtms.start %s {group = \"cp\", op = \"permute\", ranks = 2 : i64, shift = 1 : i64} : (%s) -> %s", own, half, half)
	w.keep(w.line("blu.tanh %s : (%s) -> %s", w.any(), t46, t46))
	other := w.line("dtms.wait %s, %s : (%s, %s) -> %s", f, own, half, half, half)
	less := w.line("blu.tanh %s : (%s) -> %s", own, half, half)
	w.keep(w.line("blu.concat %s, %s {axis = 0 : i64} : (%s, %s) -> %s", other, less, half, half, t46))
}

func (w *writer) start() {
	f := flight{}
	how := []string{`op = "all_reduce"`, `op = "permute", ranks = 2 : i64, shift = -1 : i64`}[w.IntN(2)]
	for range 1 + w.IntN(2) {
		f.operands = append(f.operands, w.any())
	}
	n, types := len(f.operands), strings.TrimSuffix(strings.Repeat(t46+", ", len(f.operands)), ", ")
	v := w.fresh()
	for i := range n {
		f.results = append(f.results, fmt.Sprintf("%s#%d", v, i))
	}
	if n == 1 {
		f.results[0] = v
		fmt.Fprintf(w, "    %s = ", v)
	} else {
		fmt.Fprintf(w, "    %s:%d = ", v, n)
	}
	fmt.Fprintf(w, "dtms.start %s {group = \"world\", %s} : (%s) -> (%s)\n", strings.Join(f.operands, ", "), how, types, types)
	w.pending = append(w.pending, f)
}

func (w *writer) wait(i int) {
	f := w.pending[i]
	w.pending = append(w.pending[:i], w.pending[i+1:]...)
	n := len(f.operands)
	types := strings.TrimSuffix(strings.Repeat(t46+", ", n), ", ")
	v := w.fresh()
	name := v
	if n > 1 {
		name = fmt.Sprintf("%s:%d", v, n)
	}
	fmt.Fprintf(w, "    %s = dtms.wait %s : (%s, %s) -> (%s)\n", name, strings.Join(append(f.results, f.operands...), ", "), types, types, types)
	for k := range n {
		x := v
		if n > 1 {
			x = fmt.Sprintf("%s#%d", v, k)
		}
		w.keep(w.line("blu.tanh %s : (%s) -> %s", x, t46, t46))
		if w.IntN(3) > 0 { // as it is, too
			w.keep(x)
		}
	}
}

// randomModule is a module with function f of states a and b, inputs x and y, and outputs o and p.
func randomModule(seed uint64) string {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 46)), values: []string{"%a", "%b", "%x", "%y"}}
	for range 6 + w.IntN(14) {
		w.step()
	}
	for len(w.pending) > 0 {
		w.wait(0)
	}
	late := func() string { return w.values[len(w.values)-1-w.IntN(min(5, len(w.values)-2))] }
	results := []string{late(), late(), late(), w.any()}
	return fmt.Sprintf(`
  blu.state @a {persist = true, role = "optimizer", type = %[1]s}
  blu.state @b {persist = true, role = "optimizer", type = %[1]s}
  func.func @f(%%a: %[1]s {blu.state = @a}, %%b: %[1]s {blu.state = @b}, %%x: %[1]s {blu.input = "x"}, %%y: %[1]s {blu.input = "y"})
      -> (%[1]s {blu.state = @a}, %[1]s {blu.state = @b}, %[1]s {blu.output = "o"}, %[1]s {blu.output = "p"}) {
%[2]s    func.return %[3]s : (%[1]s, %[1]s, %[1]s, %[1]s) -> ()
  }
}
`, t46, w.String(), strings.Join(results, ", "))
}

// Random functions give on the CPU, where memory is planned and collectives go on beside kernels, what the reference gives.
func TestRandom(t *testing.T) {
	const programs = 150
	for seed := range uint64(programs) {
		text := randomModule(seed)
		var mu sync.Mutex
		got := map[string][]float32{}
		for _, target := range targets {
			a := compile(t, target, 1, 2, text)
			require.NoError(t, run(t, a, 1, 2, func(r *ranks.Rank) error {
				me := uint64(r.Mesh.Rank())
				for call := range uint64(2) {
					in := map[string]runtime.Array{"x": array(numbers(10*me+call, 24), 4, 6), "y": array(numbers(10*me+call+5, 24), 4, 6)}
					out, err := r.Call("f", in, nil)
					if err != nil {
						return err
					}
					for _, name := range []string{"a", "b", "o", "p"} {
						values := floats(out["o"])
						switch name {
						case "p":
							values = floats(out["p"])
						case "a", "b":
							if values, err = state(r, name); err != nil {
								return err
							}
						}
						mu.Lock()
						got[fmt.Sprint(target, me, call, name)] = values
						mu.Unlock()
					}
				}
				return nil
			}), "seed %d on %s\n%s", seed, target, text)
		}
		for key, values := range got {
			if rest, ok := strings.CutPrefix(key, "cpu"); ok {
				want := got["ref"+rest]
				require.NoError(t, near(key, values, func(i int) float64 { return float64(want[i]) }), "seed %d\n%s", seed, text)
			}
		}
	}
}
