package inspect

import (
	"cmp"
	"fmt"
	"io"

	"blutrain/artifact"
	"blutrain/dialects/blu"
	"blutrain/dialects/dtms"
	"blutrain/ir"
)

// Collective is one call of a communicator, with the work that the function does while it is under way.
type Collective struct {
	Call     dtms.Call
	Tensors  int
	Launches int     // that lie behind it: between its start and its wait
	Flops    float64 // of products and attention in them
	Share    float64 // of the function's Flops
}

// traffic follows the collectives of a function.
type traffic struct {
	all      []Collective
	under    map[any]int // which of them are under way, by what ends them
	launches int
	flops    float64
}

// step counts a step of the function, which is a kernel's launch or, for a target that evaluates operations, one of these.
func (t *traffic) step(flops float64) {
	t.launches++
	t.flops += flops
}

// begin notes a call that ends with the wait of that key.
func (t *traffic) begin(key any, call dtms.Call, tensors int) {
	if t.under == nil {
		t.under = map[any]int{}
	}
	t.under[key] = len(t.all)
	t.all = append(t.all, Collective{Call: call, Tensors: tensors, Launches: -t.launches, Flops: -t.flops})
}

// end notes the wait.
func (t *traffic) end(key any) {
	c := &t.all[t.under[key]]
	c.Launches += t.launches
	c.Flops += t.flops
}

// collectives lists them, when the function has ended.
func (t *traffic) collectives() []Collective {
	for i := range t.all {
		if t.flops > 0 {
			t.all[i].Share = t.all[i].Flops / t.flops
		}
	}
	return t.all
}

// operation follows one of a function that is evaluated operation by operation.
func (t *traffic) operation(op *ir.Op) {
	switch {
	case op.Is(dtms.Start):
		t.begin(dtms.WaitOf(op), dtms.CallOf(op), op.NumOperands())
	case op.Is(dtms.Wait):
		t.end(op)
	case dtms.IsCollective(op):
		t.begin(op, dtms.CallOf(op), op.NumOperands())
		t.end(op)
	default:
		t.step(blu.Flops(op))
	}
}

// Sent is the bytes that a rank sends in one call of a function to ranks of a group ("" is all groups). ok is false where a
// group's size is known at run time only.
func (r *Report) Sent(function, group string) (bytes float64, ok bool) {
	ok = true
	for _, f := range r.communicating() {
		if f.Name != function {
			continue
		}
		for _, c := range f.Collectives {
			if group != "" && group != c.Call.Group {
				continue
			}
			n := r.Mesh.Ranks(c.Call.Group)
			bytes += c.Call.Sent(int64(n))
			ok = ok && n > 0
		}
	}
	return bytes, ok
}

// SentPerStep is the same for a step of training: accumulate for each micro-batch, the last of them with the sums of all
// ranks where they are summed once a step, and apply.
func (r *Report) SentPerStep(group string) (bytes float64, ok bool) {
	one, ok1 := r.Sent(artifact.Accumulate, group)
	two, ok2 := r.Sent(r.Manifest.LastAccumulate(), group)
	three, ok3 := r.Sent("apply", group)
	return one*float64(r.microBatches()-1) + two + three, ok1 && ok2 && ok3
}

func (r *Report) microBatches() int64 {
	if r.Manifest.Train == nil {
		return 1
	}
	return max(1, r.Manifest.Train.Batch.Accumulate)
}

// Formula is what a rank must send in a step for the sums and shards of all ranks, and the formula in words: with n ranks and
// G bytes of gradients, all-reduced once, or with shards of them reduce-scattered for each micro-batch and P bytes of
// parameters gathered. G and P are padded so that n divides them; loss and count, and with shards the norm, are 4 bytes each.
func (r *Report) Formula() (bytes float64, text string, ok bool) {
	n := float64(r.Mesh.Ranks(dtms.World))
	var g float64
	for _, s := range r.Manifest.States {
		if s.Role != artifact.Gradient {
			continue
		}
		if r.Mesh.Zero == 1 {
			g += n * float64(s.Bytes())
		} else {
			g += float64(s.Bytes())
		}
	}
	if r.Mesh.Zero == 0 {
		return 2 * (n - 1) / n * (g + 8), fmt.Sprintf("2 (n-1)/n (G + 8), G = %s", size(int64(g))), n > 0
	}
	m := r.microBatches()
	return (n - 1) / n * (float64(m)*g + g + 2*12), fmt.Sprintf("(n-1)/n (m G + P + 2 12), m = %d micro-batches, G = P = %s with padding", m, size(int64(g))), true
}

// WriteCommunication prints the collectives of every function and what a step sends.
func (r *Report) WriteCommunication(w io.Writer) {
	if !r.Sharded {
		fmt.Fprintln(w, "The program is for one rank: it was compiled without --mesh.")
		return
	}
	fmt.Fprintf(w, "mesh dp = %s, cp = %d%s; zero = %d\n", ranksText(r.Mesh.DP), r.Mesh.CP, context(r.Mesh), r.Mesh.Zero)
	for _, f := range r.communicating() {
		if len(f.Collectives) > 0 {
			r.writeCollectives(w, f)
		}
	}
	if r.Manifest.Train != nil {
		r.writeStep(w)
	}
}

func (r *Report) writeCollectives(w io.Writer, f Function) {
	fmt.Fprintf(w, "\n%s\n", f.Name)
	t := newTable(w, "call\tgroup\tcalls\ttensors\tbytes\teach rank sends\tbehind it: launches\tGFLOP\tof the function\t")
	for i := 0; i < len(f.Collectives); {
		c, calls := f.Collectives[i], 1
		for i++; i < len(f.Collectives) && f.Collectives[i] == c; i++ {
			calls++
		}
		sent := "2 (n-1)/n of it"
		if n := int64(r.Mesh.Ranks(c.Call.Group)); n > 0 {
			sent = size(int64(c.Call.Sent(n)))
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%d\t%s\t%.0f%%\n", c.Call.Op, c.Call.Group, calls, c.Tensors, size(c.Call.Bytes()), sent, c.Launches, number(c.Flops/1e9), 100*c.Share)
	}
	t.Flush()
}

// writeStep prints what a step sends, as counted and by the formula.
func (r *Report) writeStep(w io.Writer) {
	fmt.Fprintf(w, "\na step of %d micro-batches, each rank sends\n", r.microBatches())
	t := newTable(w, "counted\tby the formula\t\t")
	world, known := r.SentPerStep(dtms.World)
	formula, text, ok := r.Formula()
	if known && ok {
		fmt.Fprintf(t, "%s\t%s\tto all n = %d ranks: %s\n", size(int64(world)), size(int64(formula)), r.Mesh.Ranks(dtms.World), text)
	} else {
		fmt.Fprintf(t, "\t\tto all n ranks: %s\n", text)
	}
	if cp, ok := r.SentPerStep(dtms.CP); ok && r.Mesh.CP > 1 {
		fmt.Fprintf(t, "%s\t\tto the %d ranks of a sequence\n", size(int64(cp)), r.Mesh.CP)
	}
	t.Flush()
}

func ranksText(n int) string {
	if n == 0 {
		return "any"
	}
	return fmt.Sprint(n)
}

func context(m dtms.Mesh) string {
	if m.CP == 1 {
		return ""
	}
	return " (" + cmp.Or(m.Context, dtms.Contexts[0]) + ")"
}
