package blublas

// Cost is a prediction of a kernel's time on a device, with what it is made of.
type Cost struct {
	Seconds float64 // all of it, the second kernel of a split K included
	Math    float64 // if only the multiplying units counted
	Feed    float64 // if only the way from L2 to the multiprocessors counted
	Memory  float64 // if only device memory counted: operands and results once, partial sums twice
	Waves   float64 // tiles for each multiprocessor
}

// launch is what a kernel costs beyond its work: start and end of a grid.
const launch = 3e-6

// Cost predicts the time. Tiles are dealt to the multiprocessors in whole numbers; a tile takes the longer of multiplying
// and feeding, and its epilogue where nothing else runs beside it.
func (g Gemm) Cost(d Device) Cost {
	size, planes := g.elem()
	tiles := ceil(g.M, g.BM) * ceil(g.N, g.BN) * g.SplitK * g.matrices()
	steps := float64(g.depth() / g.BK)
	math1 := steps * g.stepCycles(d) / d.Clock
	if planes > 1 {
		math1 *= g.promotion()
	}
	feed1 := steps * float64((g.BM+g.BN)*g.BK*size*planes) / (d.L2Bandwidth / float64(d.SMs))
	epilogue := float64(g.BM*g.BN) / 32 / d.Clock
	switch {
	case g.Unit == WGMMA && g.SplitK > 1 && g.Consumers == 3:
		epilogue *= 3 // not in whole rows, see ByRows: 768 x 768 in 8 parts of 192 x 192 takes 37.7 us, in 7 parts of 128 x 256, which are, 35.0
	case g.Unit != WGMMA || g.SplitK > 1 || g.Epilogue.Reads == 0:
	case planes > 1:
		epilogue *= 4 // not measured
	case g.planWGMMA().fetching != nil: // by then what is read is there
		epilogue *= 4
	default:
		epilogue *= 8 // waits for memory; 3 us for 128 x 256 of bfloat16 were measured, and 10 of float32 in a step of training, launch by launch
		if g.rowsPerConsumer()*g.BN/128 > 128 {
			math1 *= 1.3 // no registers to read ahead in
		}
	}
	waves := g.waves(tiles, d)
	body := waves * max(math1, feed1)
	if g.Pingpong || g.Unit == SIMT && g.simtPerSM() > 1 {
		body += epilogue
	} else {
		body += waves * epilogue
	}
	matrices := float64(g.matrices())
	mn := float64(g.M) * float64(g.N) * matrices
	bytes := float64(size*planes)*(float64(g.M)+float64(g.N))*float64(g.K)*matrices + 4*mn
	c := Cost{Math: waves * math1, Feed: waves * feed1, Waves: float64(tiles) / float64(d.SMs)}
	if g.SplitK > 1 {
		partial := 8 * mn * float64(g.SplitK)
		bytes += partial
		body += launch + (partial/2+4*mn)/d.Bandwidth
	}
	c.Memory = bytes / d.Bandwidth
	c.Seconds = launch + max(body, c.Memory)
	return c
}

// promotion is what products of planes take for one of the tensor cores': the consumer that adds to its sums has none of its own under way, and
// where consumers take turns neither has. Measured on long K: 250 TFLOP/s with 128 x 192 tiles, 237 with 128 x 128, 213 in turns,
// of 271.
func (g Gemm) promotion() float64 {
	switch {
	case g.Pingpong:
		return 1.27
	case g.BN < 192:
		return 1.14
	}
	return 1.08
}

// waves is the tiles that the multiprocessor with the most works through, one after the other. Two blocks that share one are done
// with two tiles at the same time; one that is left over is not twice as fast alone.
func (g Gemm) waves(tiles int, d Device) float64 {
	if g.Unit != SIMT || g.simtPerSM() == 1 {
		return float64(ceil(tiles, d.SMs))
	}
	pairs, rest := 2*float64(tiles/(2*d.SMs)), tiles%(2*d.SMs)
	switch {
	case rest > d.SMs:
		return pairs + 2
	case rest > 0:
		return pairs + 1.4
	}
	return pairs
}

// stepCycles is the cycles in which a multiprocessor multiplies one stage of one tile. Hopper's tensor cores take a
// 64 x n x 32 bytes product in n/2 cycles; the instructions before it reach a part of what there is, and the float32 units
// about 0.7; 8 x 16 results in each thread of two blocks 0.74, in deep stages 0.76.
func (g Gemm) stepCycles(d Device) float64 {
	volume := float64(g.BM * g.BN * g.BK)
	size, _ := g.elem()
	perCycle := d.Tensor * 2 / float64(size)
	switch g.Unit {
	case SIMT:
		part := 0.7
		alone := g.A.MNMajor && g.M%4 != 0 || g.B.MNMajor && g.N%4 != 0 // elements are read one at a time
		switch {
		case g.Consumers == 1 && g.BK == 8:
			part = 0.74
		case g.Consumers == 1 && !alone:
			part = 0.76
		}
		return volume / (d.Float * part)
	case MMA:
		perCycle *= d.MMA
	}
	return float64(len(g.products())) * volume / perCycle
}
