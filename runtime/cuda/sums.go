package cuda

import (
	"fmt"
	"strings"
)

// sumShape is how many terms a sum has, and to how many places it goes.
type sumShape struct{ terms, places int }

// sumCode is the code for sums of a shape, on a GPU: of vectors of four numbers, and of single ones.
type sumCode struct {
	module           *Module
	vectors, numbers *Function
}

const (
	sumVectors = "sum_vectors"
	sumNumbers = "sum_numbers"
	sumThreads = 256 // of a block; each adds up one vector or number
)

// ptx is the text of its kernels. They are for a few microseconds between others' blocks, so they take few registers and no loop: many small
// blocks find room wherever there is some.
func (s sumShape) ptx() string {
	return ".version 8.0\n.target sm_80\n.address_size 64\n" + s.kernel(sumVectors, 4) + s.kernel(sumNumbers, 1)
}

// kernel adds up so many numbers a thread: parameters are the terms' addresses, the places' and the number of threads that have something to add.
func (s sumShape) kernel(name string, width int) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(".visible .entry %s(", name)
	for i := range s.terms + s.places {
		line("  .param .u64 at%d,", i)
	}
	line("  .param .u64 threads")
	line(") .maxntid %d, 1, 1 {", sumThreads)
	line("  .reg .pred %%beyond;\n  .reg .b32 %%block, %%thread;\n  .reg .b64 %%i, %%n, %%from, %%at<%d>;", s.terms+s.places)
	line("  .reg .f32 %%x<%d>;", s.terms*width)
	line("  mov.u32 %%block, %%ctaid.x;\n  mov.u32 %%thread, %%tid.x;\n  cvt.u64.u32 %%from, %%thread;")
	line("  mad.wide.u32 %%i, %%block, %d, %%from;", sumThreads)
	line("  ld.param.u64 %%n, [threads];\n  setp.ge.u64 %%beyond, %%i, %%n;\n  @%%beyond ret;")
	line("  shl.b64 %%i, %%i, %d;", map[int]int{1: 2, 4: 4}[width])
	for i := range s.terms + s.places {
		line("  ld.param.u64 %%at%d, [at%d];\n  cvta.to.global.u64 %%at%d, %%at%d;\n  add.u64 %%at%d, %%at%d, %%i;", i, i, i, i, i, i)
	}
	for i := range s.terms {
		line("  ld.global%s %s, [%%at%d];", vector(width), numbers(i*width, width), i)
	}
	for i := 1; i < s.terms; i++ {
		for j := range width {
			line("  add.rn.f32 %%x%d, %%x%d, %%x%d;", j, j, i*width+j)
		}
	}
	for i := range s.places {
		line("  st.global%s [%%at%d], %s;", vector(width), s.terms+i, numbers(0, width))
	}
	line("  ret;\n}")
	return b.String()
}

func vector(width int) string {
	if width == 1 {
		return ".f32"
	}
	return fmt.Sprintf(".v%d.f32", width)
}

// numbers are so many registers from the first on.
func numbers(first, width int) string {
	if width == 1 {
		return fmt.Sprintf("%%x%d", first)
	}
	names := make([]string, width)
	for i := range names {
		names[i] = fmt.Sprintf("%%x%d", first+i)
	}
	return "{" + strings.Join(names, ", ") + "}"
}
