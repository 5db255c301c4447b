package inspect

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"blutrain/artifact"
	"blutrain/ir"
)

// most is how many rows a table has; what is left is summed up in one more.
const most = 24

// WriteMemory prints what memory is for: storage by role, then each function that needs an arena, the largest first, with
// who holds it at its peak.
func (r *Report) WriteMemory(w io.Writer) {
	r.writeStorage(w)
	fs := slices.Clone(r.Functions)
	slices.SortStableFunc(fs, func(a, b Function) int { return cmp.Compare(b.Arena, a.Arena) })
	for _, f := range fs {
		if f.Arena > 0 {
			f.write(w)
		}
	}
	if r.Functions == nil {
		fmt.Fprintf(w, "\nThe target %s places no values in memory beforehand.\n", r.Manifest.Target)
	}
}

// roles lists the roles in the order of the table.
var roles = [...]struct {
	role artifact.Role
	name string
}{{artifact.Param, "parameters"}, {artifact.Gradient, "gradients"}, {artifact.Optimizer, "optimizer state"}, {artifact.Accumulator, "accumulators"}, {artifact.Copy, "copies of parameters, in bfloat16"}}

func (r *Report) writeStorage(w io.Writer) {
	t := newTable(w, "bytes\ttensors\t\t")
	for _, role := range roles {
		n, bytes := 0, int64(0)
		for _, s := range r.Manifest.States {
			if s.Role == role.role {
				n, bytes = n+1, bytes+s.Bytes()
			}
		}
		if n > 0 || role.role != artifact.Copy {
			fmt.Fprintf(t, "%s\t%d\t%s\n", size(bytes), n, role.name)
		}
	}
	fmt.Fprintf(t, "%s\t\tarena of the function that needs most\n", size(r.Manifest.Memory.Arena))
	fmt.Fprintf(t, "%s\t\ttotal\n", size(r.Manifest.Memory.Total))
	most := Kernel{}
	for _, k := range r.Kernels {
		if k.Scratch > most.Scratch {
			most = k
		}
	}
	if most.Scratch > 0 {
		fmt.Fprintf(t, "%s\t\tbeside it: what kernels work in, one after the other; %s needs most\n", size(most.Scratch), most.Name)
	}
	t.Flush()
}

func (f *Function) write(w io.Writer) {
	fmt.Fprintf(w, "\n%s: arena of %s; %s in use at the peak, step %d of %d, %s (%s)\n",
		f.Name, size(f.Arena), size(f.Peak), f.PeakStep, f.Steps, f.PeakKernel, f.PeakPlace)
	t := newTable(w, "bytes\tshare\tcount\ttype of each\twritten by\tfor\t")
	rest, count := int64(0), 0
	for i, h := range f.Holders {
		if i >= most {
			rest, count = rest+h.Bytes, count+h.Count
			continue
		}
		fmt.Fprintf(t, "%s\t%.1f%%\t%d\t%s\t%s\t%s\n", size(h.Bytes), share(h.Bytes, f.Peak), h.Count, h.Type, h.By, h.Place.line())
	}
	if count > 0 {
		fmt.Fprintf(t, "%s\t%.1f%%\t%d\t\t(others)\t\n", size(rest), share(rest, f.Peak), count)
	}
	t.Flush()
}

func share(part, whole int64) float64 { return 100 * float64(part) / float64(whole) }

// line is the place with its text.
func (p Place) line() string {
	const longest = 60
	if p.Text == "" {
		return p.String()
	}
	text := []rune(p.Text)
	if len(text) > longest {
		text = append(text[:longest-3], []rune("...")...)
	}
	return p.String() + "  " + string(text)
}

// WriteKernels prints the kernels, those that do most first.
func (r *Report) WriteKernels(w io.Writer) {
	if len(r.Kernels) == 0 {
		fmt.Fprintf(w, "The target %s has no kernels.\n", r.Manifest.Target)
		return
	}
	t := newTable(w, "launches\tsteps\tus each\tGFLOP each\tbytes each\tFLOP/byte\tgrid\tkernel\tin\t")
	launches := 0
	for i := range r.Kernels {
		k := &r.Kernels[i]
		var in []string
		for _, l := range k.Functions {
			in = append(in, fmt.Sprintf("%s %d", l.Function, l.Count))
		}
		fmt.Fprintf(t, "%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Launched(), k.Steps, number(1e6*r.predicted(k)), number(k.Flops/1e9), size(k.Bytes), number(k.Flops/float64(max(1, k.Bytes))), grid(k.Grid), k.Name, strings.Join(in, ", "))
		launches += k.Launched()
	}
	t.Flush()
	fmt.Fprintf(w, "%d kernels, %d launches\n", len(r.Kernels), launches)
	r.writePredicted(w)
}

// number is a number to three digits, or a dash for none.
func number(x float64) string {
	if x == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", x)
}

func grid(extents []int64) string {
	if len(extents) == 0 {
		return "-"
	}
	parts := make([]string, len(extents))
	for i, n := range extents {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, "x")
}

// WriteParams prints the parameters: type, dimensions as written, how they start, weight decay.
func (r *Report) WriteParams(w io.Writer) {
	t := newTable(w, "parameter\ttype\tdimensions\tinitially\tweight decay\t")
	count, n, bytes := 0, int64(0), int64(0)
	for _, s := range r.Manifest.States {
		if s.Role != artifact.Param {
			continue
		}
		count, n, bytes = count+1, n+ir.NumElements(s.Shape), bytes+s.Bytes()
		fmt.Fprintf(t, "%s\t%s %s\t[%s]\t%s\t%s\n", s.Name, ir.ShapeString(s.Shape), s.DType, strings.Join(s.Dims, ", "), s.Init, number(s.WeightDecay))
	}
	t.Flush()
	fmt.Fprintf(w, "%d parameters with %d elements, %s\n", count, n, size(bytes))
}

// newTable starts a table; columns end with tabs.
func newTable(w io.Writer, head string) *tabwriter.Writer {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.TrimSuffix(head, "\t"))
	return t
}

// size is bytes in the largest unit there is at least one of.
func size(n int64) string {
	x, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1024 {
			break
		}
		x, unit = x/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.2f %s", x, unit)
}
