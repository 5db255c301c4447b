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
func attentionSIMT(c *ir.Context, kernel, op *ir.Op, a blublas.Attention) (bool, error) {
	d := blublas.DeviceFor(a.Target)
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
	a, err := a.SIMTBest(of, d)
	if err != nil {
		return false, nil
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
