package blublas

import (
	"fmt"
	"strings"
)

// A choice between kernels that compute the same may be left to measurements. A key is what decides which is best, a choice is
// one of them by its parameters: one line of text each, for package formats/tuning. They name shapes and parameters of templates, not
// their code, so that a table outlives changes of it; times may need to be measured again.

// Key is what decides which kernel is best for a product. precision is its promise, which may be kept in several ways.
func (g Gemm) Key(precision string) string {
	w := words{fmt.Sprintf("product %s m=%d n=%d k=%d", precision, g.M, g.N, g.K)}
	for i, o := range []Operand{g.A, g.B} {
		major := map[bool]string{false: "k", true: "mn"}[o.MNMajor]
		w.add("%s=%s:%d", string("ab"[i]), major, o.Pitch)
		w.when(g.Unaligned[i], "%s=unaligned", string("ab"[i]))
	}
	for _, b := range g.Batch {
		w.add("batch=%d:%d:%d", b.Size, b.A, b.B)
	}
	if g.Epilogue.Kind != "" {
		w.add("%s", g.Epilogue.Kind)
	}
	w.when(g.Epilogue.Sums, "sums")
	return w.String()
}

// Choice is the parameters that Candidates chooses.
func (g Gemm) Choice() string {
	w := words{fmt.Sprintf("%s %s tile=%dx%dx%d", g.Unit, g.Precision, g.BM, g.BN, g.BK)}
	w.when(g.Stages > 0, "stages=%d", g.Stages)
	w.when(g.Consumers > 0, "warpgroups=%d", g.Consumers)
	w.when(g.Cluster > 1, "cluster=%d", g.Cluster)
	w.when(g.Pingpong, "turns")
	w.when(g.SplitK > 1, "split=%d", g.SplitK)
	return w.String()
}

// Key is what decides which block is best for one of the kernels of attention.
func (a Attention) Key(kernel AttentionKernel) string {
	name := map[AttentionKernel]string{AttentionForward: "forward", AttentionGradQueries: "gradient-queries", AttentionGradKeys: "gradient-keys"}[kernel]
	w := words{fmt.Sprintf("attention-%s %s batch=%d heads=%d/%d queries=%d keys=%d features=%d", name, a.Precision, a.Batch, a.Heads, a.KeyHeads, a.Queries, a.Keys, a.Features)}
	w.when(a.Causal, "causal")
	return w.String()
}

// Choice is the parameters of a block.
func (k AttentionBlock) Choice() string {
	w := words{fmt.Sprintf("warps=%d tiles=%d", k.Warps, k.Tiles)}
	if k.Consumers > 0 {
		w = words{fmt.Sprintf("warpgroups=%d", k.Consumers)}
	}
	w.add("columns=%d stages=%d", k.Columns, k.Stages)
	w.when(k.PerSM > 1, "per-sm=%d", k.PerSM)
	w.when(k.Held, "held")
	w.when(k.HeldPart, "held-part")
	w.when(k.Staged, "staged")
	w.when(k.Ahead, "ahead")
	w.when(k.Turns, "turns")
	return w.String()
}

// words is text that grows.
type words []string

func (w *words) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

func (w *words) when(it bool, format string, args ...any) {
	if it {
		w.add(format, args...)
	}
}

func (w words) String() string { return strings.Join(w, " ") }
