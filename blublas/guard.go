package blublas

import (
	"fmt"
	"slices"

	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// Guard is a condition that a kernel looks at before it does anything: a word in memory, its last parameter.
type Guard int

const (
	Always    Guard = iota
	WhenClear       // the word is 0
	WhenSet         // it is not
)

// open gives, inside a kernel, n where the guard lets it run, else 0; the word is the last of the parameters.
func (g Guard) open(b *ptx.Builder, params []*ir.Value, n *ir.Value) *ir.Value {
	if g == Always {
		return n
	}
	return g.choose(b, b.Load(params[len(params)-1], b.Ctx.I32(), 1, ptx.Access{Space: "global"}), n)
}

func (g Guard) choose(b *ptx.Builder, word, n *ir.Value) *ir.Value {
	clear := b.Compare("eq", word, b.I32(0))
	if g == WhenSet {
		return b.Select(clear, b.I32(0), n)
	}
	return b.Select(clear, n, b.I32(0))
}

// open is the guard's; where there are Flags, in the parameter before the word's, the kernel makes the word of them, for those that
// follow.
func (g Gemm) open(b *ptx.Builder, params []*ir.Value, n *ir.Value) *ir.Value {
	if g.Guard == Always || g.Flags == 0 {
		return g.Guard.open(b, params, n)
	}
	word := g.anyFlag(b, params[len(params)-2])
	first := b.And(b.Compare("eq", b.Special("ctaid.x"), b.I32(0)), b.Compare("eq", b.Special("tid.x"), b.I32(0)))
	b.Store(params[len(params)-1], word, ptx.Access{Space: "global", If: first})
	return g.Guard.choose(b, word, n)
}

// anyFlag is whether one of the flags is set; each warp looks at all of them.
func (g Gemm) anyFlag(b *ptx.Builder, flags *ir.Value) *ir.Value {
	lane := b.Binary(ptx.And, b.Special("tid.x"), b.I32(31))
	mine := b.MulWide(lane, 4, flags)
	any := b.I32(0)
	for i := 0; i < g.Flags; i += 32 {
		a := ptx.Access{Space: "global", Offset: 4 * i, Cache: "nc"}
		if i+32 > g.Flags {
			a.If = b.Compare("lo", lane, b.I32(g.Flags-i))
		}
		any = b.Binary(ptx.Or, any, b.Load(mine, b.Ctx.I32(), 1, a))
	}
	return butterfly(b, ptx.Or, any, 16)
}

// params is the names of a kernel's last parameters, after those of its operands.
func (g Gemm) params(e Epilogue) []string {
	names := slices.Clone(e.Params)
	if g.Guard != Always && g.Flags > 0 {
		names = append(names, "flags")
	}
	if g.Guard != Always {
		names = append(names, "flag")
	}
	return names
}

// epilogueOf is a kernel's parameters without those of its guard.
func (g Gemm) epilogueOf(params []*ir.Value) []*ir.Value {
	return params[:len(params)-len(g.params(Epilogue{}))]
}

// guarded tells kernels with a guard apart by name.
func (g Gemm) guarded() string {
	if g.Guard == Always {
		return ""
	}
	return fmt.Sprintf("_g%d_%d", g.Guard, g.Flags)
}
