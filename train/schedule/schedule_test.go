package schedule

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
)

type params = map[string]float64

func TestLR(t *testing.T) {
	for _, c := range []struct {
		kind   string
		params params
		lr     map[int64]float64 // by hand from the formulas of the documentation
	}{
		{"constant", params{"max": 2}, map[int64]float64{1: 2, 1e9: 2}},
		{"constant", params{"max": 2, "warmup": 4}, map[int64]float64{1: 0.5, 2: 1, 3: 1.5, 4: 2, 5: 2, 100: 2}},
		{"linear", params{"max": 2, "min": 1, "warmup": 2, "steps": 6},
			map[int64]float64{1: 1, 2: 2, 3: 2, 4: 1.75, 5: 1.5, 6: 1.25, 7: 1, 100: 1}},
		{"cosine", params{"max": 6e-4, "min": 6e-5, "warmup": 700, "steps": 19073},
			map[int64]float64{1: 6e-4 / 700, 700: 6e-4, 701: 6e-4, 19074: 6e-5, 30000: 6e-5}},
		{"cosine", params{"max": 1, "steps": 4},
			map[int64]float64{1: 1, 2: 0.5 + math.Sqrt2/4, 3: 0.5, 4: 0.5 - math.Sqrt2/4, 5: 0}},
		{"wsd", params{"max": 1, "min": 0, "warmup": 2, "decay": 4, "steps": 10},
			map[int64]float64{1: 0.5, 2: 1, 3: 1, 7: 1, 8: 0.5, 9: 1 - math.Sqrt(0.5), 10: 1 - math.Sqrt(0.75), 11: 0}},
		{"wsd", params{"max": 1, "decay": 0, "steps": 3}, map[int64]float64{1: 1, 3: 1, 4: 0}},
		{"linear", params{"max": 1, "warmup": 3, "steps": 3}, map[int64]float64{3: 1, 4: 0}},
	} {
		s, err := New(artifact.Method{Kind: c.kind, Params: c.params})
		require.NoError(t, err)
		require.Equal(t, int64(c.params["steps"]), s.Steps())
		for step, want := range c.lr {
			require.InDelta(t, want, s.LR(step), 1e-15, "%s %v at step %d", c.kind, c.params, step)
		}
	}
}

// TestShape: rising during warmup, never rising after, within its bounds, without a jump.
func TestShape(t *testing.T) {
	for _, kind := range []string{"linear", "cosine", "wsd"} {
		p := params{"max": 1e-3, "min": 1e-4, "warmup": 50, "steps": 500}
		if kind == "wsd" {
			p["decay"] = 100
		}
		s, err := New(artifact.Method{Kind: kind, Params: p})
		require.NoError(t, err)
		for step := int64(2); step < 600; step++ {
			before, now := s.LR(step-1), s.LR(step)
			require.LessOrEqual(t, now, 1e-3)
			require.GreaterOrEqual(t, now, min(1e-4, 1e-3*float64(step)/50))
			if step <= 50 {
				require.Greater(t, now, before)
			} else {
				require.LessOrEqual(t, now, before)
			}
			require.Less(t, math.Abs(now-before), 1.01e-4)
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		kind   string
		params params
		reason string
	}{
		{"step", nil, `"step" is unknown (constant, cosine, linear, wsd are known)`},
		{"cosine", params{"max": 1}, "steps is missing"},
		{"cosine", params{"steps": 10}, "max is missing"},
		{"cosine", params{"max": 1, "steps": 10, "decay": 1}, `"decay" is unknown (max, steps, min, warmup are known)`},
		{"wsd", params{"max": 1, "steps": 10}, "decay is missing"},
		{"constant", params{"max": 0}, "max = 0 is not a positive number"},
		{"constant", params{"max": math.NaN()}, "max = NaN"},
		{"constant", params{"max": math.Inf(1)}, "max = +Inf"},
		{"constant", params{"max": 1, "warmup": 1.5}, "warmup = 1.5 is not a whole number"},
		{"constant", params{"max": 1, "warmup": -1}, "warmup = -1"},
		{"linear", params{"max": 1, "min": 2, "steps": 10}, "min = 2 is not between 0 and max = 1"},
		{"linear", params{"max": 1, "min": math.NaN(), "steps": 10}, "min = NaN"},
		{"linear", params{"max": 1, "steps": 0}, "steps = 0 is not at least 1"},
		{"linear", params{"max": 1, "steps": math.Inf(1)}, "steps = +Inf"},
		{"linear", params{"max": 1, "steps": 10, "warmup": 11}, "longer than steps = 10"},
		{"wsd", params{"max": 1, "steps": 10, "warmup": 6, "decay": 5}, "longer than steps"},
	} {
		_, err := New(artifact.Method{Kind: c.kind, Params: c.params})
		require.ErrorContains(t, err, c.reason)
	}
}
