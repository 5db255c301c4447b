package main

import "math"

// An expression is a straight line of operations on one vector of 32-bit lanes,
// from which the assembly of each instruction set and the portable Go are
// written. All of them give the same bits (of a NaN, the fact that it is one).
type expression struct {
	vals   []*val
	consts map[uint32]*val
}

type kind uint8

const (
	floatLane kind = iota
	intLane
	maskLane
)

type opcode uint8

const (
	opInput opcode = iota
	opConst
	// two operands, the second of which may be a constant in memory
	opAdd
	opSub
	opMul
	opDiv
	opMin // x < y ? x : y, as x86 has it
	opMax // x > y ? x : y
	opAddI
	opSubI
	opMulI
	opMinI
	opMaxI
	opAnd
	opOr
	opXor
	opAndNot // ^x & y
	opMulHi  // high half of the unsigned product
	// one operand
	opSqrt
	opRound // imm: 0 to even, 1 down, 2 up, 3 towards zero
	opShl   // imm
	opShr
	opSar
	opToInt // to nearest even
	opTruncInt
	opToFloat
	opAsFloat // the same bits
	opAsInt
	opMaskBits // a mask as lanes of ones or zeros
	opBitsMask // and back: lanes that are 0, or have the highest bit set
	// others
	opFMA   // x*y + z
	opFNMA  // z - x*y
	opScale // x * 2^y, y integral and |y| <= 250, one rounding
	opCmp   // imm: predicate
	opCmpI  // imm: predicate, cmpEq or cmpGt
	opSelect
	opMaskAnd
)

// Predicates, numbered as in VCMPPS.
const (
	cmpEq    = 0
	cmpLt    = 1
	cmpLe    = 2
	cmpUnord = 3
	cmpNe    = 4
	cmpGe    = 13
	cmpGt    = 14
)

type val struct {
	op   opcode
	kind kind
	args []*val
	imm  int
	bits uint32 // opConst
	id   int
}

func newExpression() *expression { return &expression{consts: map[uint32]*val{}} }

func (e *expression) emit(op opcode, k kind, imm int, args ...*val) *val {
	v := &val{op: op, kind: k, args: args, imm: imm, id: len(e.vals)}
	e.vals = append(e.vals, v)
	return v
}

func (e *expression) input(k kind) *val { return e.emit(opInput, k, 0) }

func (e *expression) constBits(bits uint32, k kind) *val {
	if c := e.consts[bits]; c != nil && c.kind == k {
		return c
	}
	c := &val{op: opConst, kind: k, bits: bits, id: -1 - len(e.consts)}
	e.consts[bits] = c
	return c
}

// c is a float32 constant, i an integer one.
func (e *expression) c(x float64) *val { return e.constBits(math.Float32bits(float32(x)), floatLane) }
func (e *expression) i(x int) *val     { return e.constBits(uint32(x), intLane) }

func (e *expression) add(x, y *val) *val { return e.emit(opAdd, floatLane, 0, x, y) }
func (e *expression) sub(x, y *val) *val { return e.emit(opSub, floatLane, 0, x, y) }
func (e *expression) mul(x, y *val) *val { return e.emit(opMul, floatLane, 0, x, y) }
func (e *expression) div(x, y *val) *val { return e.emit(opDiv, floatLane, 0, x, y) }
func (e *expression) min(x, y *val) *val { return e.emit(opMin, floatLane, 0, x, y) }
func (e *expression) max(x, y *val) *val { return e.emit(opMax, floatLane, 0, x, y) }
func (e *expression) sqrt(x *val) *val   { return e.emit(opSqrt, floatLane, 0, x) }

func (e *expression) fma(x, y, z *val) *val  { return e.emit(opFMA, floatLane, 0, x, y, z) }
func (e *expression) fnma(x, y, z *val) *val { return e.emit(opFNMA, floatLane, 0, x, y, z) }
func (e *expression) scale(x, n *val) *val   { return e.emit(opScale, floatLane, 0, x, n) }

func (e *expression) round(x *val, mode int) *val { return e.emit(opRound, floatLane, mode, x) }

func (e *expression) intOp(op opcode, x, y *val) *val { return e.emit(op, intLane, 0, x, y) }
func (e *expression) shl(x *val, n int) *val          { return e.emit(opShl, intLane, n, x) }
func (e *expression) shr(x *val, n int) *val          { return e.emit(opShr, intLane, n, x) }
func (e *expression) sar(x *val, n int) *val          { return e.emit(opSar, intLane, n, x) }
func (e *expression) toInt(x *val) *val               { return e.emit(opToInt, intLane, 0, x) }
func (e *expression) truncInt(x *val) *val            { return e.emit(opTruncInt, intLane, 0, x) }
func (e *expression) toFloat(x *val) *val             { return e.emit(opToFloat, floatLane, 0, x) }
func (e *expression) asFloat(x *val) *val             { return e.emit(opAsFloat, floatLane, 0, x) }
func (e *expression) asInt(x *val) *val               { return e.emit(opAsInt, intLane, 0, x) }

func (e *expression) cmp(p int, x, y *val) *val  { return e.emit(opCmp, maskLane, p, x, y) }
func (e *expression) cmpI(p int, x, y *val) *val { return e.emit(opCmpI, maskLane, p, x, y) }

// sel is x where m, else y.
func (e *expression) sel(m, x, y *val) *val { return e.emit(opSelect, x.kind, 0, m, x, y) }
func (e *expression) and(m, n *val) *val    { return e.emit(opMaskAnd, maskLane, 0, m, n) }

func (e *expression) maskBits(m *val) *val { return e.emit(opMaskBits, intLane, 0, m) }
func (e *expression) bitsMask(x *val) *val { return e.emit(opBitsMask, maskLane, 0, x) }

func (e *expression) abs(x *val) *val {
	return e.asFloat(e.intOp(opAnd, e.asInt(x), e.i(0x7fffffff)))
}

func (e *expression) neg(x *val) *val {
	return e.asFloat(e.intOp(opXor, e.asInt(x), e.i(0x80000000)))
}

// copySign is |x| with the sign of s.
func (e *expression) copySign(x, s *val) *val {
	mag := e.intOp(opAnd, e.asInt(x), e.i(0x7fffffff))
	return e.asFloat(e.intOp(opOr, mag, e.intOp(opAnd, e.asInt(s), e.i(0x80000000))))
}

func (e *expression) isNaN(x *val) *val { return e.cmp(cmpUnord, x, x) }

// poly is c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
func (e *expression) poly(x *val, c ...float64) *val {
	p := e.c(c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		p = e.fma(p, x, e.c(c[i]))
	}
	return p
}
