package evaluate

import (
	"fmt"

	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Program is the functions of training on one rank, with the storage they read and write.
type Program struct {
	States map[string]*ir.Tensor
	interp ir.Interp
	rank   *dtms.Rank
}

// NewProgram makes a program of a module, all storage zero. rank is nil for a module of one rank.
func NewProgram(c *ir.Context, module *ir.Op, rank *dtms.Rank) *Program {
	p := &Program{States: map[string]*ir.Tensor{}, interp: ir.Interp{Ctx: c, Module: module}, rank: rank}
	if rank != nil {
		p.interp.Exchange = rank.Exchange
	}
	for op := range module.Body().Ops() {
		if op.Is(blu.Param) || op.Is(blu.State) {
			t := op.Attr("type").(*ir.TypeAttr).Type.(*ir.TensorType)
			p.States[ir.SymName(op)] = ir.NewTensor(t.Elem, t.Shape...)
		}
	}
	return p
}

// Call evaluates a function and gives its outputs.
func (p *Program) Call(name string, inputs map[string]*ir.Tensor, scalars map[string]float64) (map[string]*ir.Tensor, error) {
	fn := p.interp.Symbol(name)
	if fn == nil {
		return nil, fmt.Errorf("no function %s", name)
	}
	var args []ir.Datum
	for i := range fn.Body().Args() {
		var x *ir.Tensor
		switch port := blu.ArgPort(fn, i); {
		case port.Kind == blu.StateAttr:
			x = p.States[port.Name]
		case port.Kind == blu.InputAttr:
			x = inputs[port.Name]
		case dtms.IsRankScalar(port.Name):
			x = p.rank.Scalar(port.Name)
		default:
			x = &ir.Tensor{Data: []float64{scalars[port.Name]}}
		}
		if x == nil {
			return nil, fmt.Errorf("%s: argument %d is given nothing", name, i)
		}
		args = append(args, x)
	}
	results, err := p.interp.Call(name, args...)
	if err != nil {
		return nil, err
	}
	outputs := map[string]*ir.Tensor{}
	for i, r := range results {
		port := blu.ResultPort(fn, i)
		into := outputs
		if port.Kind == blu.StateAttr {
			into = p.States
		}
		into[port.Name] = r.(*ir.Tensor)
	}
	return outputs, nil
}
