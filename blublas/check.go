package blublas

import (
	"fmt"

	"blutrain/dialects/ptx"
)

// Check says why the kernel can't be built for a device, or nil.
func (g Gemm) Check(d Device) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("gemm %s %s %dx%dx%d: "+format, append([]any{g.Precision, g.Unit, g.M, g.N, g.K}, args...)...)
	}
	size, _ := g.elem()
	switch {
	case g.M < 1 || g.N < 1 || g.K < 1:
		return fail("every extent must be at least 1")
	case g.SplitK < 1 || g.SplitK > ceil(g.K, max(g.BK, 1)):
		return fail("K can't be split into %d parts of at least one stage (%d)", g.SplitK, g.BK)
	case g.Epilogue.Apply == nil && g.SplitK == 1:
		return fail("no epilogue: nothing would be stored")
	case g.Epilogue.Sums && g.SplitK > 1:
		return fail("the kernel that adds the parts of K sums no columns")
	case uint64(g.M)*uint64(g.N)*uint64(g.SplitK)*uint64(g.matrices()) >= 1<<32:
		return fail("%d results: element indices have 32 bits", uint64(g.M)*uint64(g.N)*uint64(g.SplitK)*uint64(g.matrices()))
	case g.Unit != SIMT && g.Of != [2]*Function{}:
		return fail("functions of operands are for the float32 units")
	case len(g.Batch) > MaxBatch:
		return fail("a batch of %d dimensions; at most %d", len(g.Batch), MaxBatch)
	case len(g.Batch) > 0 && (g.Epilogue.Sums || g.Precision == FP16x3):
		return fail("a batch has no column sums, and no scales of blocks")
	case g.Target == ptx.SM90A && d.Target != ptx.SM90A:
		return fail("made for %s, which %s is not", g.Target, d.Name)
	case uint64(g.M)*uint64(g.A.Pitch) >= 1<<32 && !g.A.MNMajor || uint64(g.K)*uint64(g.A.Pitch) >= 1<<32 && g.A.MNMajor:
		return fail("A is too large for 32-bit element indices")
	}
	for i, o := range []struct {
		name string
		o    Operand
		n    int
	}{{"A", g.A, g.M}, {"B", g.B, g.N}} {
		row := g.K
		if o.o.MNMajor {
			row = o.n
		}
		if o.o.Pitch < row {
			return fail("%s has rows of %d elements %d apart", o.name, row, o.o.Pitch)
		}
		if g.Unit == WGMMA && (o.o.Pitch*size%16 != 0 || g.Unaligned[i]) {
			return fail("rows of %s are %d bytes apart, the copy engine needs a multiple of 16, and an address that is one", o.name, o.o.Pitch*size)
		}
		for _, b := range g.Batch {
			if g.Unit != SIMT && (b.A*size%16 != 0 || b.B*size%16 != 0) {
				return fail("matrices are %d and %d bytes apart, background copies need multiples of 16", b.A*size, b.B*size)
			}
		}
	}
	switch g.Unit {
	case WGMMA:
		return g.checkWGMMA(d, fail)
	case SIMT:
		return g.checkSIMT(d, fail)
	case MMA:
		return g.checkMMA(d, fail)
	}
	return fail("no unit %q", g.Unit)
}

func (g Gemm) checkWGMMA(d Device, fail func(string, ...any) error) error {
	size, planes := g.elem()
	switch {
	case g.Precision == FP32Strict:
		return fail("tensor cores don't multiply float32")
	case g.Target != ptx.SM90A:
		return fail("wgmma needs sm_90a, not %s", g.Target)
	case g.Precision == TF32 && (g.A.MNMajor || g.B.MNMajor):
		return fail("wgmma reads tf32 K-major only: transpose the operand first")
	case g.BK*size != rowBytes:
		return fail("a stage is %d bytes deep, must be %d", g.BK*size, rowBytes)
	case g.Consumers < 1 || g.Consumers > 3:
		return fail("%d consumer warpgroups; 1 to 3 fit a block", g.Consumers)
	case g.Pingpong && g.Consumers != 2:
		return fail("taking turns needs 2 consumers, not %d", g.Consumers)
	case g.BM < 64 || g.BM%(64*g.sharing()) != 0:
		return fail("a consumer multiplies a multiple of 64 rows: BM = %d with %d consumers that share a tile", g.BM, g.sharing())
	case g.BM > 256:
		return fail("BM = %d: a box of the copy engine has at most 256 rows", g.BM)
	case g.BN%64 != 0 || g.BN < 64 || g.BN > 256:
		return fail("BN = %d; a multiple of 64, at most 256", g.BN)
	case g.Cluster < 1 || g.Cluster > 4 || g.BN/8%g.Cluster != 0 || g.BK/8%g.Cluster != 0:
		return fail("%d blocks can't share B's %d columns or %d k in parts of 8", g.Cluster, g.BN, g.BK)
	case g.Stages < 2:
		return fail("%d stages; at least 2", g.Stages)
	}
	per := g.rowsPerConsumer() * g.BN / 128
	if planes > 1 {
		per *= 2 // the products of a stage beside the sums
	}
	if limit := map[int]int{1: 200, 2: 200, 3: 96}[g.Consumers]; per > limit {
		return fail("%d accumulators in each thread, %d fit", per, limit)
	}
	if n := g.planWGMMA().sharedBytes(); n > d.SharedPerBlock {
		return fail("%d bytes of shared memory, %s has %d", n, d.Name, d.SharedPerBlock)
	}
	return g.checkRefuge(d, fail)
}
