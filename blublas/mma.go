package blublas

import (
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// mma is a kernel for the tensor cores before Hopper being built: 8 warps, 2 along M and 4 along N, each with BM/2 x BN/4
// results. Tiles come by background copies into a ring of stages of the same swizzled layout that Hopper's copy engine
// writes.
type mma struct {
	Gemm
	b          *ptx.Builder
	size       int
	tiles      [2]tile
	steps      int
	stageBytes int
	tid, lane  *ir.Value
	shared     *ir.Value
	at         place
	warpRow    *ir.Value // first row and column of this warp in the tile
	warpCol    *ir.Value
	operands   [2]*ir.Value
}

const mmaThreads = 256

func (g Gemm) checkMMA(d Device, fail func(string, ...any) error) error {
	size, planes := g.elem()
	switch {
	case planes > 1 || g.Precision == FP32Strict:
		return fail("mma kernels multiply bf16 and tf32")
	case g.BM != 128 || g.BN != 128 && g.BN != 256:
		return fail("a tile of %dx%d; there are 128x128 and 128x256", g.BM, g.BN)
	case g.BK*size != rowBytes:
		return fail("a stage is %d bytes deep, must be %d", g.BK*size, rowBytes)
	case g.Stages < 2:
		return fail("%d stages; at least 2", g.Stages)
	case g.A.Pitch*size%16 != 0 || g.B.Pitch*size%16 != 0 || g.Unaligned[0] || g.Unaligned[1]:
		return fail("rows are %d and %d bytes apart, background copies need multiples of 16", g.A.Pitch*size, g.B.Pitch*size)
	}
	limit := min(int64(d.SharedPerBlock), ptx.SharedLimit(g.Target))
	if n := int64(g.Stages * (g.BM + g.BN) * rowBytes); n > limit {
		return fail("%d bytes of shared memory, a block has %d", n, limit)
	}
	return nil
}

func (g Gemm) buildMMA(at *ir.Builder, d Device) *Kernel {
	m := &mma{Gemm: g, steps: g.depth() / g.BK}
	m.size, _ = g.elem()
	m.tiles[0] = tile{rows: g.BM, depth: g.BK, size: m.size, mnMajor: g.A.MNMajor}
	m.tiles[1] = tile{rows: g.BN, depth: g.BK, size: m.size, mnMajor: g.B.MNMajor}
	m.stageBytes = m.tiles[0].bytes() + m.tiles[1].bytes()
	k := &Kernel{Name: g.Name(), Threads: mmaThreads, Cluster: 1, Shared: g.Stages * m.stageBytes, Params: []Param{{Name: "a"}, {Name: "b"}}}
	k.Grid = ceil(g.M, g.BM) * ceil(g.N, g.BN) * g.SplitK * g.matrices()
	names := g.Epilogue.Params
	if g.SplitK > 1 {
		names = partials.Params
	}
	types := []ir.Type{at.Ctx.I64(), at.Ctx.I64()}
	for _, name := range names {
		k.Params = append(k.Params, Param{Name: name})
		types = append(types, at.Ctx.I64())
	}
	m.b = ptx.NewKernel(at, ptx.Config{Name: k.Name, Target: g.Target, Threads: mmaThreads, BlocksPerSM: 1, Shared: k.Shared}, types...)
	k.Op = m.b.Kernel
	args := k.Op.Body().Args()
	m.prologue(args)
	m.store(m.multiply(), args[2:])
	m.b.Do(ptx.Return, nil)
	return k
}

func (m *mma) prologue(args []*ir.Value) {
	b := m.b
	m.tid, m.shared = b.Special("tid.x"), b.SharedBase()
	m.lane = b.Binary(ptx.And, m.tid, b.I32(31))
	m.at = grid{m.Gemm, ceil(m.M, m.BM), ceil(m.N, m.BN), m.steps}.locate(b, b.Special("ctaid.x"))
	warp := b.DivI(m.tid, 32)
	m.warpRow, m.warpCol = b.MulI(b.DivI(warp, warpsN), m.BM/warpsM), b.MulI(b.RemI(warp, warpsN), m.BN/warpsN)
	m.operands = [2]*ir.Value{m.matrixOf(b, m.at, args[0], m.size, strideA), m.matrixOf(b, m.at, args[1], m.size, strideB)}
}

// bring starts the copies of the tiles of stage i, numbered from this part's first, to the ring's place `to`.
func (m *mma) bring(i, to *ir.Value) {
	b := m.b
	for j, o := range []struct {
		Operand
		extent int
		start  *ir.Value
	}{{m.A, m.M, m.at.row}, {m.B, m.N, m.at.col}} {
		k := b.MulI(b.Add(m.at.step, i), m.BK)
		m.bringTile(m.tiles[j], o.Operand, o.extent, m.operands[j], o.start, k, b.AddI(to, j*m.tiles[0].bytes()))
	}
}

// bringTile copies 16 bytes a thread at a time: 8 threads a row of 128 bytes. What lies outside the matrix is zero.
func (m *mma) bringTile(t tile, o Operand, extent int, base, start, k, to *ir.Value) {
	b := m.b
	per := 16 / m.size
	row, column := b.DivI(m.tid, 8), b.Binary(ptx.And, m.tid, b.I32(7))
	swizzled := b.MulI(b.Binary(ptx.Xor, column, b.Binary(ptx.And, row, b.I32(7))), 16)
	to = b.Add(to, b.Add(b.MulI(row, rowBytes), swizzled))
	for r := 0; r < t.bytes()/rowBytes; r += mmaThreads / 8 {
		// Rows of the tile are rows of the matrix, or stretches of rows of k.
		outer, outerEnd := b.Add(start, b.AddI(row, r)), extent
		inner, innerEnd := b.Add(k, b.MulI(column, per)), m.K
		if t.mnMajor {
			outer, outerEnd = b.Add(k, b.AddI(row, r%t.depth)), m.K
			inner, innerEnd = b.Add(start, b.AddI(b.MulI(column, per), r/t.depth*(rowBytes/t.size))), extent
		}
		left := b.MulI(b.Sub(b.I32(innerEnd), inner), m.size)
		count := b.Min(b.Binary(ptx.Max, left, b.I32(0)), b.I32(16))
		count = b.Select(b.Compare("lt", outer, b.I32(outerEnd)), count, b.I32(0))
		inside := b.Compare("gt", count, b.I32(0))
		// Where nothing is read the address must still be one.
		index := b.Select(inside, b.Add(b.MulI(outer, o.Pitch), inner), b.I32(0))
		b.Do(ptx.CopyAsync, []*ir.Value{to, b.MulWide(index, m.size, base), count}, "bytes", 16, "offset", r*rowBytes)
	}
}

// multiply contracts the tile: accumulators of 16 x 8 results, those of 16 rows after one another.
func (m *mma) multiply() []*ir.Value {
	b := m.b
	for s := range m.Stages - 1 {
		if s < m.steps {
			m.bring(b.I32(s), b.AddI(m.shared, s*m.stageBytes))
		}
		b.Do(ptx.CopyCommit, nil)
	}
	carried := []*ir.Value{b.I32(0), b.I32((m.Stages - 1) * m.stageBytes)}
	for range m.BM / warpsM / 16 * (m.BN / warpsN / 8) {
		carried = append(carried, b.Do(ptx.Fill, []*ir.Value{b.F32(0)}, "count", 4).Result(0))
	}
	out := b.For(b.I32(0), b.I32(m.steps), b.I32(1), true, carried, func(i *ir.Value, carried []*ir.Value) []*ir.Value {
		from, to, acc := carried[0], carried[1], carried[2:]
		b.Do(ptx.CopyWait, nil, "pending", m.Stages-2)
		b.Do(ptx.Sync, nil) // everyone's copies are here, and everyone is done with the stage that is filled now
		coming := b.AddI(i, m.Stages-1)
		b.If(b.Compare("lt", coming, b.I32(m.steps)), true, func() { m.bring(coming, b.Add(m.shared, to)) }, nil)
		b.Do(ptx.CopyCommit, nil)
		acc = m.multiplyStage(b.Add(m.shared, from), acc)
		return append([]*ir.Value{m.nextStage(from), m.nextStage(to)}, acc...)
	})
	return out[2:]
}

func (m *mma) nextStage(offset *ir.Value) *ir.Value {
	b := m.b
	next := b.AddI(offset, m.stageBytes)
	return b.Select(b.Compare("ge", next, b.I32(m.Stages*m.stageBytes)), b.I32(0), next)
}

func (m *mma) multiplyStage(stage *ir.Value, acc []*ir.Value) []*ir.Value {
	b := m.b
	rows, cols := m.BM/warpsM/16, m.BN/warpsN/8
	fromA := m.fragments(m.tiles[0], stage, m.warpRow, true)
	fromB := m.fragments(m.tiles[1], b.AddI(stage, m.tiles[0].bytes()), m.warpCol, false)
	for k := 0; k < m.BK; k += int(ptx.Depth(m.format())) {
		var as, bs []*ir.Value
		for r := range rows {
			as = append(as, b.Vector(fromA(16*r, k)...))
		}
		for c := 0; c < cols; c += 2 {
			x := fromB(8*c, k)
			bs = append(bs, b.Vector(x[0], x[1]), b.Vector(x[2], x[3]))
		}
		for r := range rows {
			for c := range cols {
				acc[r*cols+c] = b.Do(ptx.MMA, []*ir.Value{as[r], bs[c], acc[r*cols+c]}, "format", m.format()).Result(0)
			}
		}
	}
	return acc
}

// fragments reads four registers' worth of 16 rows and 32 bytes of k, from a row of the warp on: for A in the order (rows
// 0-7, first 16 bytes), (rows 8-15, first), (rows 0-7, second), (rows 8-15, second), for B first and second for rows 0-7,
// then for rows 8-15.
func (m *mma) fragments(t tile, at, first *ir.Value, isA bool) func(row, k int) []*ir.Value {
	switch {
	case !t.mnMajor:
		return m.rowFragments(at, first, isA)
	case m.size == 2:
		return m.columnFragments(t, at, first, isA)
	}
	return m.wordFragments(t, at, first, isA)
}

// lanePart splits the lanes into four groups of eight: whether a lane's row of a matrix is among the later 8 of 16 rows,
// and whether it is the second 16 bytes of k; each 0 or 1.
func (m *mma) lanePart(isA bool) (laterRows, secondK *ir.Value) {
	b := m.b
	low, high := b.Binary(ptx.And, b.DivI(m.lane, 8), b.I32(1)), b.DivI(m.lane, 16)
	if isA {
		return low, high
	}
	return high, low
}

// rowFragments reads K-major tiles: each lane names a row's 16 bytes.
func (m *mma) rowFragments(at, first *ir.Value, isA bool) func(row, k int) []*ir.Value {
	b := m.b
	later, second := m.lanePart(isA)
	row := b.Add(b.MulI(later, 8), b.Binary(ptx.And, m.lane, b.I32(7)))
	start := b.Add(at, b.MulI(b.Add(first, row), rowBytes)) // first is a multiple of 16: it doesn't change the swizzle
	columns := map[int]*ir.Value{}
	return func(row, k int) []*ir.Value {
		if columns[k] == nil {
			column := b.Binary(ptx.Xor, b.AddI(second, k*m.size/16), b.Binary(ptx.And, m.lane, b.I32(7)))
			columns[k] = b.Add(start, b.MulI(column, 16))
		}
		x := b.Scalars(b.LoadMatrix(columns[k], 4, row*rowBytes, false))
		if m.Precision == TF32 {
			x = each(x, func(v *ir.Value) *ir.Value { return b.Bitcast(b.TF32(b.Bitcast(v, b.Ctx.F32())), b.Ctx.I32()) })
		}
		return x
	}
}

// columnFragments reads MN-major tiles of 16-bit elements: each lane names 8 elements of one k, and the matrices are
// transposed on the way.
func (m *mma) columnFragments(t tile, at, first *ir.Value, isA bool) func(row, k int) []*ir.Value {
	b := m.b
	later, second := m.lanePart(isA)
	k := b.Add(b.MulI(second, 8), b.Binary(ptx.And, m.lane, b.I32(7)))
	blocks := map[int]*ir.Value{}
	return func(row, k0 int) []*ir.Value {
		if blocks[row] == nil {
			element := b.Add(b.AddI(first, row), b.MulI(later, 8))
			block, column := b.DivI(element, 64), b.DivI(b.Binary(ptx.And, element, b.I32(63)), 8)
			swizzled := b.Binary(ptx.Xor, column, b.Binary(ptx.And, m.lane, b.I32(7)))
			blocks[row] = b.Add(b.Add(at, b.MulI(block, t.depth*rowBytes)), b.Add(b.MulI(k, rowBytes), b.MulI(swizzled, 16)))
		}
		return b.Scalars(b.LoadMatrix(blocks[row], 4, k0*rowBytes, true))
	}
}

// wordFragments reads MN-major tiles of 32-bit elements, one at a time: nothing transposes them.
func (m *mma) wordFragments(t tile, at, first *ir.Value, isA bool) func(row, k int) []*ir.Value {
	b := m.b
	row, k := b.DivI(m.lane, 4), b.Binary(ptx.And, m.lane, b.I32(3))
	word := func(dRow, dK int) *ir.Value {
		element := b.Add(b.AddI(first, dRow), row)
		block, column := b.DivI(element, 32), b.DivI(b.Binary(ptx.And, element, b.I32(31)), 4)
		swizzled := b.Binary(ptx.Xor, column, b.Binary(ptx.And, b.AddI(k, dK), b.I32(7)))
		address := b.Add(b.Add(at, b.MulI(block, t.depth*rowBytes)), b.Add(b.MulI(k, rowBytes), b.MulI(swizzled, 16)))
		address = b.Add(address, b.MulI(b.Binary(ptx.And, element, b.I32(3)), 4))
		x := b.Load(address, b.Ctx.F32(), 1, ptx.Access{Space: "shared", Offset: dK * rowBytes})
		return b.Bitcast(b.TF32(x), b.Ctx.I32())
	}
	return func(row, k int) []*ir.Value {
		x := []*ir.Value{word(row, k), word(row+8, k), word(row, k+4), word(row+8, k+4)}
		if !isA {
			x[1], x[2] = x[2], x[1]
		}
		return x
	}
}

// store hands the results to the epilogue where the products left them: two columns of a row at a time.
func (m *mma) store(acc []*ir.Value, params []*ir.Value) {
	b := m.b
	width := 2 - m.N%2
	row, col := b.Add(m.warpRow, b.DivI(m.lane, 4)), b.Add(m.warpCol, b.MulI(b.Binary(ptx.And, m.lane, b.I32(3)), 2))
	p := newPart(b, b.Add(m.at.row, row), b.Add(m.at.col, col), m.M, m.N, width, params).in(m.at)
	e := m.Epilogue
	if m.SplitK > 1 {
		e = partials
	}
	rows, cols := m.BM/warpsM/16, m.BN/warpsN/8
	for c := range cols {
		for part := 0; part < 2; part += width {
			dCol := 8*c + part
			var pts []*Point
			for r := range 2 * rows {
				var inside *ir.Value
				if m.M%m.BM != 0 {
					inside = b.Compare("lo", b.AddI(p.row, 8*r), b.I32(m.M))
				}
				if m.N%m.BN != 0 {
					inside = both(b, inside, b.Compare("lo", b.AddI(p.col, dCol), b.I32(m.N)))
				}
				pts = append(pts, p.point(8*r, dCol, inside))
			}
			e.fetch(pts)
			for r, pt := range pts {
				var x []*ir.Value
				for i := range width {
					x = append(x, b.Extract(acc[r/2*cols+c], r%2*2+part+i))
				}
				e.Apply(pt, x)
			}
			sumWarpColumns(p, m.lane, b.DivI(b.Add(m.at.row, m.warpRow), 64), dCol, 4)
		}
	}
}
