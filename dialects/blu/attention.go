package blu

import (
	"fmt"
	"slices"

	"blutrain/dialects/kinds"
	"blutrain/ir"
)

var attentionAttrs = []ir.AttrDef{
	{Name: "causal", Kind: ir.BoolKind, Doc: "whether a query sees no later keys than its own"},
	{Name: "scale", Kind: ir.F64Kind, Doc: "factor of the scores, usually 1 / sqrt(D)"},
}

// Attention mixes values by the softmax of how well queries and keys agree.
var Attention = define(ir.OpDef{
	Name:    "attention",
	Summary: "scaled dot-product attention, of grouped heads too",
	Description: "q is [B, H, S, D], k is [B, Hk, T, D], v is [B, Hk, T, E], where Hk divides H: query head h reads key head h / (H / Hk). " +
		"o[b, h, s] = sum over t of softmax(scale * q.k)[t] * v[t], and lse[b, h, s], f32 (f64 when q is), is the logarithm of the sum of the exponentials. " +
		"With `causal`, query s sees the keys t <= s + T - S: the last query sees all. A query that sees no key gives zeros, and lse -inf.",
	Operands: []ir.OperandDef{{Name: "q", Type: kinds.FloatTensor}, {Name: "k", Type: kinds.FloatTensor}, {Name: "v", Type: kinds.FloatTensor}},
	Attrs:    attentionAttrs,
	Results:  []ir.ResultDef{{Name: "o", Type: kinds.FloatTensor}, {Name: "lse", Type: kinds.FloatTensor}},
	Traits:   ir.Pure | ir.Differentiable,
	Infer:    inferAttention,
	Eval:     evalMany(evalAttention),
})

// AttentionGrad is the gradient of Attention.
var AttentionGrad = define(ir.OpDef{
	Name:    "attention_grad",
	Summary: "gradient of attention",
	Description: "With p = exp(scale * q.k - lse), 0 where a key is not seen: dv = p^T do; dp = do v^T; ds = p * (dp - sum(do * o)) * scale; dq = ds k; dk = ds^T q. " +
		"dk and dv sum over the query heads that share a key head.",
	Operands: []ir.OperandDef{{Name: "q", Type: kinds.FloatTensor}, {Name: "k", Type: kinds.FloatTensor}, {Name: "v", Type: kinds.FloatTensor},
		{Name: "o", Type: kinds.FloatTensor}, {Name: "lse", Type: kinds.FloatTensor}, {Name: "do", Type: kinds.FloatTensor}},
	Attrs:   attentionAttrs,
	Results: []ir.ResultDef{{Name: "dq", Type: kinds.FloatTensor}, {Name: "dk", Type: kinds.FloatTensor}, {Name: "dv", Type: kinds.FloatTensor}},
	Traits:  ir.Pure,
	Infer:   inferAttentionGrad,
	Eval:    evalMany(evalAttentionGrad),
})

func inferAttention(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	q, k, v := in.Operands[0], in.Operands[1], in.Operands[2]
	if err := checkAttention(q, k, v); err != nil {
		return nil, err
	}
	rows := q.Shape()[:3]
	return []ir.Type{
		c.Tensor(append(slices.Clone(rows), v.Shape()[3]), q.Elem()),
		c.Tensor(rows, statType(c, q.Elem())),
	}, nil
}

func checkAttention(q, k, v *ir.Value) error {
	for i, x := range []*ir.Value{q, k, v} {
		name := string("qkv"[i])
		if len(x.Shape()) != 4 {
			return fmt.Errorf("%s is %s (rank %d), expected [batch, heads, positions, features]", name, ir.ShapeString(x.Shape()), len(x.Shape()))
		}
		if err := wantElem(name, x, q.Elem()); err != nil {
			return err
		}
	}
	qs, ks, vs := q.Shape(), k.Shape(), v.Shape()
	switch {
	case qs[0] != ks[0]:
		return fmt.Errorf("q is %s, k is %s: the batch (axis 0) has %d and %d elements", ir.ShapeString(qs), ir.ShapeString(ks), qs[0], ks[0])
	case qs[3] != ks[3]:
		return fmt.Errorf("q is %s, k is %s: the features (axis 3) have %d and %d elements", ir.ShapeString(qs), ir.ShapeString(ks), qs[3], ks[3])
	case ks[1] == 0 && qs[1] != 0 || ks[1] != 0 && qs[1]%ks[1] != 0:
		return fmt.Errorf("q is %s, k is %s: %d query heads can't share %d key heads evenly", ir.ShapeString(qs), ir.ShapeString(ks), qs[1], ks[1])
	case !slices.Equal(ks[:3], vs[:3]):
		return fmt.Errorf("k is %s, v is %s: batch, heads and positions must be equal", ir.ShapeString(ks), ir.ShapeString(vs))
	}
	return nil
}

func inferAttentionGrad(c *ir.Context, in ir.InferInput) ([]ir.Type, error) {
	q, k, v, o, lse, do := in.Operands[0], in.Operands[1], in.Operands[2], in.Operands[3], in.Operands[4], in.Operands[5]
	if err := checkAttention(q, k, v); err != nil {
		return nil, err
	}
	rows := q.Shape()[:3]
	err := firstError(wantShape("o", o, append(slices.Clone(rows), v.Shape()[3]), "rows of q, features of v"),
		func() error { return wantElem("o", o, q.Elem()) },
		func() error { return equalTypes("o", o, "do", do) },
		func() error { return wantShape("lse", lse, rows, "one for each row of q") },
		func() error { return wantElem("lse", lse, statType(c, q.Elem())) })
	if err != nil {
		return nil, err
	}
	return []ir.Type{q.Type(), k.Type(), v.Type()}, nil
}
