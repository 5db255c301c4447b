package ptx

import (
	"slices"

	"blutrain/blublas"
	"blutrain/dialects/blu"
	"blutrain/dialects/exec"
	"blutrain/dialects/tile"
	"blutrain/ir"
)

// attentionSIMT is attention for fp32-strict: on the float32 units, since no tensor core multiplies float32.
func attentionSIMT(a blublas.Attention, by picker) (bool, error) {
	c, kernel, op, d := by.c, by.kernel, by.op, blublas.DeviceFor(a.Target)
	ins, outs := tile.Refs(kernel)
	w := &chain{m: &match{l: &lowering{c: c, kernel: kernel}, kernel: kernel, refs: slices.Concat(ins, outs)}}
	places := map[string]exec.Param{}
	for i, name := range refNames(op) {
		places[name] = exec.Param{Ref: i}
	}
	of := blublas.AttentionForward
	if op.Is(blu.AttentionGrad) {
		of = blublas.AttentionGradKeys
	}
	fit := a.SIMTFitting(of, d)
	if len(fit) == 0 {
		return false, nil
	}
	a, err := by.block(of, fit)
	if err != nil {
		return false, err
	}
	steps := []func(*ir.Builder, blublas.Device) (*blublas.Kernel, error){a.SIMTForward}
	if op.Is(blu.AttentionGrad) {
		steps = []func(*ir.Builder, blublas.Device) (*blublas.Kernel, error){a.SIMTDeltas, a.SIMTGrad, a.SIMTSumQueries}
		places["delta"] = exec.Param{Ref: -1, Offset: w.take(4 * int64(a.Batch*a.Heads*a.Queries))}
		places["parts"] = exec.Param{Ref: -1, Offset: w.take(a.SIMTPartialBytes(d))}
	}
	at := ir.NewBuilder(c, nil).Before(kernel).At(kernel.Loc())
	for _, build := range steps {
		k, err := build(at, d)
		if err != nil {
			return true, kernel.Errorf("%v", err)
		}
		w.add(k, places)
	}
	w.finish()
	kernel.Erase()
	return true, nil
}
