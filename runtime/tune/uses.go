package tune

import (
	"cmp"
	"slices"
	"time"

	"blutrain/formats/tuning"
	"blutrain/runtime"
	"blutrain/runtime/profile"
	"blutrain/runtime/synthetic"
)

// uses is what kernels are to a step of training, or, where a program isn't one of training, to all of its functions.
type uses struct {
	launches map[string]int
	share    map[string]float64 // of the step's time; nil where it isn't known
}

// usesOf counts launches, and times a step where one rank can run it.
func usesOf(p runtime.Bencher, seed uint64) (u uses, err error) {
	u.launches = map[string]int{}
	count := func(function string) {
		for k, n := range p.Launches(function) {
			u.launches[k] += n
		}
	}
	m := p.Manifest()
	if m.Train == nil {
		for _, f := range m.Functions {
			count(f.Name)
		}
		return u, nil
	}
	work, err := synthetic.NewWork(m, "", seed)
	if err != nil {
		return u, err
	}
	for _, c := range work.Calls {
		count(c.Function)
	}
	tracer, ok := p.(runtime.Tracer)
	if !ok || m.Mesh != nil {
		return u, nil
	}
	if _, err := p.Call("init", nil, runtime.Scalars{"seed": float64(seed)}); err != nil {
		return u, err
	}
	step := &profile.Profile{}
	for range 2 { // the first loads what isn't there yet
		step = &profile.Profile{}
		if err := work.Run(func(c synthetic.Call) error { return step.Call(tracer, c) }); err != nil {
			return u, err
		}
	}
	var all time.Duration
	for _, k := range step.Kernels() {
		all += k.Time
	}
	u.share = map[string]float64{}
	for _, k := range step.Kernels() {
		u.share[k.Name] = float64(k.Time) / float64(max(1, all))
	}
	return u, nil
}

// worth is the choices whose kernels take at least a part of a step, those that take most first; all of them where that isn't known.
func (u uses) worth(sites []tuning.Site, least float64) []tuning.Site {
	if u.share == nil {
		return sites
	}
	part := func(s tuning.Site) (sum float64) {
		for _, k := range s.Kernels {
			sum += u.share[k]
		}
		return sum
	}
	out := slices.DeleteFunc(slices.Clone(sites), func(s tuning.Site) bool { return part(s) < least })
	slices.SortStableFunc(out, func(x, y tuning.Site) int { return cmp.Compare(part(y), part(x)) })
	return out
}
