package binary

import (
	"blutrain/artifact"
	"blutrain/dialects/ptx"
	"blutrain/formats/tuning"
	"blutrain/ir"
)

// TuningAttr is the attribute of a module that says which tuning table chose among its kernels: {found, keys, sha256}. ThreadStoresAttr is
// that of one whose kernels have threads store all results.
const (
	TuningAttr       = "blu.tuning"
	ThreadStoresAttr = "blu.thread_stores"
)

// takeTuning takes that attribute off a module; nil where there is none.
func takeTuning(module *ir.Op) *artifact.Tuning {
	d, ok := module.Attr(TuningAttr).(*ir.DictAttr)
	if !ok {
		return nil
	}
	module.SetAttr(TuningAttr, nil)
	a := ir.Attrs(d.Entries)
	return &artifact.Tuning{SHA256: a.Str("sha256"), Found: int(a.IntOr("found", 0)), Keys: int(a.IntOr("keys", 0))}
}

// takeMark takes an attribute without a value off a module, and reports whether it was there.
func takeMark(module *ir.Op, name string) bool {
	is := module.Attr(name) != nil
	module.SetAttr(name, nil)
	return is
}

// candidates lists the choices that kernels for GPUs were made for, and the kernels that can stand for those of the program.
func candidates(module *ir.Op) (files []artifact.File, err error) {
	list, at := &tuning.Candidates{}, map[string]int{}
	for op := range module.Body().Ops() {
		all, ok := op.Attr("launch.choices").(*ir.ArrayAttr)
		if !op.Is(ptx.Kernel) || !ok {
			continue
		}
		for _, e := range all.Elems {
			d, ok := e.(*ir.DictAttr)
			if !ok {
				return nil, op.Errorf("launch.choices: a choice is %s, no dictionary", e)
			}
			a := ir.Attrs(d.Entries)
			i, known := at[a.Str("key")]
			if !known {
				i, at[a.Str("key")] = len(list.Sites), len(list.Sites)
				s := tuning.Site{Key: a.Str("key"), Options: []tuning.Candidate{{Choice: a.Str("choice"), Kernel: ir.SymName(op)}}}
				if normal, ok := a.Get("normal").(*ir.DenseArrayAttr); ok {
					s.Normal = normal.Floats
				}
				list.Sites = append(list.Sites, s)
			}
			list.Sites[i].Kernels = append(list.Sites[i].Kernels, ir.SymName(op))
		}
	}
	for op := range module.Body().Ops() {
		if d, ok := op.Attr("launch.candidate").(*ir.DictAttr); ok && op.Is(ptx.Kernel) {
			a := ir.Attrs(d.Entries)
			i, known := at[a.Str("key")]
			if !known {
				return nil, op.Errorf("launch.candidate: no kernel has the choice %q", a.Str("key"))
			}
			s := &list.Sites[i]
			s.Options = append(s.Options, tuning.Candidate{Choice: a.Str("choice"), Kernel: ir.SymName(op)})
		}
	}
	if len(list.Sites) == 0 {
		return nil, nil
	}
	text, err := list.Encode()
	return []artifact.File{{Name: tuning.CandidatesName, Data: text}}, err
}
