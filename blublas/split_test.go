package blublas

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects/ptx"
	"blutrain/dialects/ptx/emulate"
	"blutrain/ir"
)

// A matrix that is read once for two sets of planes has those that it has when each is made by itself, and the flags of the blocks
// that found what planes don't hold; what is beside it in the launch has its own.
func TestSplitTwoWays(t *testing.T) {
	rows, columns := Set{Name: "rows"}, Set{Name: "columns", MNMajor: true}
	for _, size := range [][3]int{{200, 150, 150}, {1, 68, 68}, {70, 261, 264}, {640, 64, 64}} {
		x := Matrix{Name: "x", Rows: size[0], Cols: size[1], Pitch: size[2], PlanePitch: (size[2] + 7) / 8 * 8, Unaligned: size[2]%4 != 0}
		other := Matrix{Name: "other", Rows: 130, Cols: 64, Pitch: 64, PlanePitch: 64, Sets: []Set{{Name: "beside"}}}
		r := rand.New(rand.NewPCG(7, uint64(size[0])))
		memory := &emulate.Memory{}
		fill := func(m Matrix, largest float64) *emulate.Buffer {
			b := memory.Alloc(4 * m.Rows * m.Pitch)
			for i := range m.Rows * m.Pitch {
				v := r.NormFloat64() * math.Exp2(float64(r.IntN(40)-20))
				if i == (m.Rows-1)*m.Pitch+m.Cols-1 {
					v = largest
				}
				b.Write(4*i, encode(ir.F32, []float64{v}))
			}
			return b
		}
		for _, largest := range []float64{1, 1e30, math.Inf(-1)} {
			from := map[string]*emulate.Buffer{"x": fill(x, largest), "other": fill(other, 1)}
			made := func(of ...Matrix) map[string]*emulate.Buffer {
				s := Split{Precision: FP16x3, Of: of, Target: ptx.SM90A}
				d := small(s.Target)
				places := map[string]*emulate.Buffer{}
				for _, m := range of {
					places[m.Name] = from[m.Name]
					for _, set := range m.Sets {
						for i, n := range []int{int(m.PlaneBytes()), int(m.PlaneBytes()), m.ScaleBytes(set), 4 * m.Flags(d)} {
							places[s.params(set)[i]] = memory.Alloc(n)
						}
					}
				}
				k, err := s.Build(ir.NewBuilder(ir.NewContext(ptx.Dialect), nil), d)
				require.NoError(t, err)
				var params []any
				for _, p := range k.Params {
					params = append(params, places[p.Name].Base)
				}
				require.NoError(t, emulate.Launch(memory, k.Op, k.Grid, params...))
				return places
			}
			of := func(sets ...Set) Matrix { x := x; x.Sets = sets; return x }
			both := made(other, of(rows, columns))
			for _, set := range []Set{rows, columns} {
				one := made(of(set))
				for _, name := range (Split{Precision: FP16x3}).params(set) {
					if name == set.Name+".flags" {
						require.Equal(t, largest != 1, raised(one[name]), "%v %s", size, name)
						require.Equal(t, largest != 1, raised(both[name]), "%v %s beside another", size, name)
						continue
					}
					require.Equal(t, one[name].Data, both[name].Data, "%v %s", size, name)
				}
			}
			require.False(t, raised(both["beside.flags"]))
		}
	}
}

// raised reports whether a flag is set.
func raised(flags *emulate.Buffer) bool {
	for _, b := range flags.Data {
		if b != 0 {
			return true
		}
	}
	return false
}
