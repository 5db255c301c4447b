package binary

import (
	"blutrain/artifact"
	"blutrain/dialects/dtms"
	"blutrain/dialects/exec"
	"blutrain/dialects/mem"
	"blutrain/ir"
)

// mesh reads the mesh that a module has been made for; nil for a module of one rank.
func mesh(module *ir.Op) (*artifact.Mesh, error) {
	m, ok, err := dtms.MeshOf(module)
	if err != nil || !ok {
		return nil, err
	}
	return &artifact.Mesh{DP: m.DP, CP: m.CP, Zero: m.Zero, Context: m.Context}, nil
}

// shard reads what a state is a rank's piece of; nil for one that every rank has all of.
func shard(op *ir.Op) *artifact.Shard {
	d, ok := op.Attr("shard").(*ir.DictAttr)
	if !ok {
		return nil
	}
	a := ir.Attrs(d.Entries)
	return &artifact.Shard{Group: a.Str("group"), Ranks: int(a.IntOr("ranks", 0)), Shape: append([]int64{}, a.Ints("shape")...)}
}

// collectives lists those of a function, in the order in which they begin.
func collectives(fn *ir.Op, m *artifact.Mesh) (list []artifact.Collective) {
	for op := range fn.Body().Ops() {
		var call dtms.Call
		switch {
		case op.Is(exec.Collective):
			call = mem.CallOf(op)
		case dtms.IsCollective(op), op.Is(dtms.Start):
			call = dtms.CallOf(op)
		default:
			continue
		}
		list = append(list, artifact.Collective{
			Op: call.Op, Group: call.Group, DType: dtype(call.Elem), Elements: call.Elems, Sent: int64(call.Sent(int64(m.Ranks(call.Group)))),
		})
	}
	return list
}
