package prim

// An Operand is a block seen as [rows, cols]: element (r, c) is Data[r*Row + c*Col].
// Col is 1, or 0 for an operand that is the same in all columns.
type Operand[T float32 | int32 | uint32] struct {
	Data     []T
	Row, Col int
}

// Rows is a block whose rows start stride elements apart.
func Rows[T float32 | int32 | uint32](data []T, stride int) Operand[T] {
	return Operand[T]{data, stride, 1}
}

// PerRow is one value a row, stride elements apart, the same in all columns.
func PerRow[T float32 | int32 | uint32](data []T, stride int) Operand[T] {
	return Operand[T]{data, stride, 0}
}

// PerCol is one value a column, the same in all rows.
func PerCol[T float32 | int32 | uint32](data []T) Operand[T] { return Operand[T]{data, 0, 1} }

// Scalar is one value, data[0], the same everywhere.
func Scalar[T float32 | int32 | uint32](data []T) Operand[T] { return Operand[T]{data, 0, 0} }

func (o Operand[T]) row(r, cols int) []T { return o.Data[r*o.Row:][:cols] }

func (o Operand[T]) at(r int) T { return o.Data[r*o.Row] }

// flat reports whether the block may be taken as one long row: its rows follow each
// other, or it is one value.
func (o Operand[T]) flat(cols int) bool {
	return o.Col == 1 && o.Row == cols || o.Row == 0 && o.Col == 0
}

// UnaryRows computes dst = op(x) on [rows, cols]. dst must be a block of Rows.
func (k *Kernels) UnaryRows(op UnaryOp, rows, cols int, dst, x Operand[float32]) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if dst.flat(cols) && x.flat(cols) {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		d := dst.row(r, cols)
		if x.Col == 1 {
			k.Unary(op, d, x.row(r, cols))
			continue
		}
		k.Unary(op, d[:1], x.Data[r*x.Row:])
		k.Fill(d, d[0])
	}
}

// BinaryRows computes dst = op(x, y) on [rows, cols]. dst must be a block of Rows; x
// and y may be Rows, PerRow, PerCol or Scalar.
func (k *Kernels) BinaryRows(op BinaryOp, rows, cols int, dst, x, y Operand[float32]) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if dst.flat(cols) && x.flat(cols) && y.flat(cols) {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		d := dst.row(r, cols)
		switch {
		case x.Col == 1 && y.Col == 1:
			k.Binary(op, d, x.row(r, cols), y.row(r, cols))
		case x.Col == 1:
			k.BinaryVS(op, d, x.row(r, cols), y.at(r))
		case y.Col == 1:
			k.BinarySV(op, d, x.at(r), y.row(r, cols))
		default:
			k.Fill(d, x.at(r))
			k.BinaryVS(op, d[:1], d[:1], y.at(r))
			k.Fill(d, d[0])
		}
	}
}

// CompareRows sets mask to ones where op(x, y) holds on [rows, cols]; see BinaryRows.
func (k *Kernels) CompareRows(op CompareOp, rows, cols int, mask Operand[uint32], x, y Operand[float32]) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if mask.flat(cols) && x.flat(cols) && y.flat(cols) {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		m := mask.row(r, cols)
		switch {
		case x.Col == 1 && y.Col == 1:
			k.Compare(op, m, x.row(r, cols), y.row(r, cols))
		case x.Col == 1:
			k.CompareVS(op, m, x.row(r, cols), y.at(r))
		case y.Col == 1:
			k.CompareVS(swapped[op], m, y.row(r, cols), x.at(r))
		default:
			m1 := Floats(m)
			k.Fill(m1, x.at(r))
			k.CompareVS(op, m, m1, y.at(r))
		}
	}
}

// CompareI32Rows is CompareRows for integers.
func (k *Kernels) CompareI32Rows(op CompareOp, rows, cols int, mask Operand[uint32], x, y Operand[int32]) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if mask.flat(cols) && x.flat(cols) && y.flat(cols) {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		m := mask.row(r, cols)
		switch {
		case x.Col == 1 && y.Col == 1:
			k.CompareI32(op, m, x.row(r, cols), y.row(r, cols))
		case x.Col == 1:
			k.CompareI32VS(op, m, x.row(r, cols), y.at(r))
		case y.Col == 1:
			k.CompareI32VS(swapped[op], m, y.row(r, cols), x.at(r))
		default:
			one := intsOfBits(m)
			k.FillI32(one, x.at(r))
			k.CompareI32VS(op, m, one, y.at(r))
		}
	}
}

// swapped is the comparison that holds for y, x where op holds for x, y.
var swapped = [numCompare]CompareOp{Eq: Eq, Ne: Ne, Lt: Gt, Le: Ge, Gt: Lt, Ge: Le}

// BinaryI32Rows computes dst = op(x, y) on [rows, cols]; see BinaryRows.
func (k *Kernels) BinaryI32Rows(op IntOp, rows, cols int, dst, x, y Operand[int32]) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if dst.flat(cols) && x.flat(cols) && y.flat(cols) {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		d := dst.row(r, cols)
		switch {
		case x.Col == 1 && y.Col == 1:
			k.BinaryI32(op, d, x.row(r, cols), y.row(r, cols))
		case x.Col == 1:
			k.BinaryI32VS(op, d, x.row(r, cols), y.at(r))
		case y.Col == 1:
			k.BinaryI32SV(op, d, x.at(r), y.row(r, cols))
		default:
			k.FillI32(d, x.at(r))
			k.BinaryI32VS(op, d, d, y.at(r))
		}
	}
}

// SelectRows computes dst = x where mask is ones, y where it is zero, on [rows, cols]; see
// BinaryRows. Integers pass through Floats.
func (k *Kernels) SelectRows(rows, cols int, dst Operand[float32], mask Operand[uint32], x, y Operand[float32]) {
	if rows <= 0 || cols <= 0 {
		return
	}
	if dst.flat(cols) && mask.flat(cols) && mask.Col == 1 && x.flat(cols) && y.flat(cols) {
		rows, cols = 1, rows*cols
	}
	for r := range rows {
		d := dst.row(r, cols)
		if mask.Col == 0 {
			from := y
			if mask.at(r) != 0 {
				from = x
			}
			k.spread(d, from, r)
			continue
		}
		m := mask.row(r, cols)
		switch {
		case x.Col == 1 && y.Col == 1:
			k.Select(d, m, x.row(r, cols), y.row(r, cols))
		case x.Col == 1:
			k.SelectVS(d, m, x.row(r, cols), y.at(r))
		case y.Col == 1:
			k.SelectSV(d, m, x.at(r), y.row(r, cols))
		default:
			k.SelectSS(d, m, x.at(r), y.at(r))
		}
	}
}

// spread copies row r of an operand to d, once or in all columns.
func (k *Kernels) spread(d []float32, o Operand[float32], r int) {
	if o.Col == 1 {
		copy(d, o.row(r, len(d)))
	} else {
		k.Fill(d, o.at(r))
	}
}

// CopyRows copies x to dst on [rows, cols], repeating what is one value a row or column.
func (k *Kernels) CopyRows(rows, cols int, dst, x Operand[float32]) {
	for r := range rows {
		k.spread(dst.row(r, cols), x, r)
	}
}
