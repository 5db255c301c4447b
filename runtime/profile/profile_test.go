package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/runtime"
	"blutrain/runtime/synthetic"
)

// steps is a program whose functions are a slow kernel between two fast ones and a copy.
type steps struct {
	runtime.Program
	fail string // kernel that fails
}

func (s steps) Trace(fn string, in map[string]runtime.Array, _ runtime.Scalars, visit runtime.Visitor) (map[string]runtime.Array, error) {
	for _, k := range []struct {
		name  string
		sleep time.Duration
		flops float64
	}{{"fast", 0, 0}, {"slow", 5 * time.Millisecond, 1e6}, {"fast", 0, 0}, {"", 0, 0}} {
		step := &runtime.Step{Kernel: k.name, Location: "m.blu:1:2", Flops: k.flops}
		err := visit(step, func() error {
			time.Sleep(k.sleep)
			step.Traffic = runtime.Traffic{Read: 8, Written: 4}
			if k.name != "" && k.name == s.fail {
				return errors.New("lost")
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func TestKernelsAddUp(t *testing.T) {
	p := &Profile{}
	for range 2 {
		require.NoError(t, p.Call(steps{}, synthetic.Call{Function: "f"}))
	}
	kernels := p.Kernels()
	require.Len(t, kernels, 3)
	slow := kernels[0]
	require.Equal(t, "slow", slow.Name, "the one that took longest is first")
	require.Equal(t, 2, slow.Launches)
	require.Equal(t, 2e6, slow.Flops)
	require.Equal(t, runtime.Traffic{Read: 16, Written: 8}, slow.Traffic)
	sum, launches := time.Duration(0), map[string]int{}
	for _, k := range kernels {
		sum += k.Time
		launches[k.Name] = k.Launches
	}
	require.Equal(t, map[string]int{"slow": 2, "fast": 4, CopyName: 2}, launches)
	require.GreaterOrEqual(t, p.Total, sum)
	require.GreaterOrEqual(t, slow.Time, 10*time.Millisecond)
}

func TestFailuresEndACall(t *testing.T) {
	p := &Profile{}
	require.EqualError(t, p.Call(steps{fail: "slow"}, synthetic.Call{Function: "f"}), "lost")
}

// meeting is a program that computes while a collective is under way, and waits for it.
type meeting struct{ runtime.Program }

func (meeting) Trace(fn string, in map[string]runtime.Array, _ runtime.Scalars, visit runtime.Visitor) (map[string]runtime.Array, error) {
	var began time.Time
	for i, s := range []*runtime.Step{
		{Collective: &runtime.Collective{Op: "all_reduce", Group: "world"}}, {Kernel: "k"}, {Collective: &runtime.Collective{Op: "all_reduce", Group: "world", Bytes: 64, Waits: true}},
	} {
		err := visit(s, func() error {
			if i == 0 {
				began = time.Now()
				return nil
			}
			time.Sleep(2 * time.Millisecond)
			if i == 2 {
				s.Collective.Began, s.Collective.Ended = began, time.Now()
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// A collective is on a track of its own for as long as it is under way; the time that launches wait for it is among theirs.
func TestCollectives(t *testing.T) {
	p := &Profile{}
	require.NoError(t, p.Call(meeting{}, synthetic.Call{Function: "f"}))
	kernels := p.Kernels()
	require.Len(t, kernels, 2)
	for _, k := range kernels {
		require.Contains(t, []string{"k", "(wait for all_reduce over world)"}, k.Name)
		require.GreaterOrEqual(t, k.Time, 2*time.Millisecond)
	}
	require.Len(t, p.Flying, 1)
	c := p.Flying[0]
	require.GreaterOrEqual(t, c.Duration, 4*time.Millisecond)
	require.GreaterOrEqual(t, c.Duration, c.Waited+2*time.Millisecond)
	require.EqualValues(t, 64, c.Bytes)

	var out bytes.Buffer
	require.NoError(t, p.WriteTrace(&out))
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			ID       int
			Ts       float64
			Args     map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &trace))
	begin, end := trace.TraceEvents[len(trace.TraceEvents)-2], trace.TraceEvents[len(trace.TraceEvents)-1]
	require.Equal(t, "b", begin.Ph)
	require.Equal(t, "e", end.Ph)
	require.Equal(t, begin.ID, end.ID)
	require.Equal(t, "all_reduce over world", begin.Name)
	require.InDelta(t, c.Duration.Seconds(), (end.Ts-begin.Ts)/1e6, 1e-5)
	require.EqualValues(t, 64, begin.Args["bytes"])
}

// The trace holds what the viewer needs: a name, a phase, times in microseconds that lie within those of the call.
func TestTrace(t *testing.T) {
	p := &Profile{}
	require.NoError(t, p.Call(steps{}, synthetic.Call{Function: "f"}))
	var out bytes.Buffer
	require.NoError(t, p.WriteTrace(&out))
	var trace struct {
		TraceEvents []struct {
			Name, Cat, Ph string
			Ts, Dur       float64
			Args          map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &trace))
	require.Len(t, trace.TraceEvents, 2+1+4)
	call := trace.TraceEvents[2]
	require.Equal(t, "f", call.Name)
	for _, e := range trace.TraceEvents[3:] {
		require.Equal(t, "X", e.Ph)
		require.Equal(t, "f", e.Cat)
		require.GreaterOrEqual(t, e.Ts, call.Ts)
		require.LessOrEqual(t, e.Ts+e.Dur, call.Ts+call.Dur)
		require.Equal(t, "m.blu:1:2", e.Args["source"])
	}
	require.GreaterOrEqual(t, trace.TraceEvents[4].Dur, 5e3)
}
