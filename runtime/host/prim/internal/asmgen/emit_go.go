package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A goWriter writes expressions as statements of portable Go on one element.
type goWriter struct {
	text  strings.Builder
	names map[*val]string
	vars  int
}

func (g *goWriter) printf(format string, args ...any) { fmt.Fprintf(&g.text, format, args...) }

// function writes the loop as a Go function.
func (g *goWriter) function(l *loop) {
	e, in, out := l.expression()
	g.names, g.vars = map[*val]string{}, 0
	g.printf("// %sGo: %s.\nfunc %sGo%s {\n", l.name, l.doc, l.name, strings.TrimPrefix(l.signature(), "func"))
	for _, p := range l.params() {
		if !p.scalar {
			g.printf("\tv%s := unsafe.Slice(%s, n)\n", p.name, p.name)
		}
	}
	g.printf("\tfor i := range n {\n")
	for i, p := range l.ins {
		if p.scalar {
			g.names[in[i]] = p.name
		} else {
			g.assign(in[i], "v"+p.name+"[i]")
		}
	}
	g.statements(e)
	for i, p := range l.outs {
		g.printf("\t\tv%s[i] = %s\n", p.name, g.ref(out[i]))
	}
	g.printf("\t}\n}\n\n")
}

func (g *goWriter) assign(v *val, text string) {
	g.vars++
	name := fmt.Sprintf("t%d", g.vars)
	g.names[v] = name
	g.printf("\t\t%s := %s\n", name, text)
}

func (g *goWriter) ref(v *val) string {
	if v.op != opConst {
		return g.names[v]
	}
	if v.kind == intLane {
		return fmt.Sprintf("%#x", v.bits)
	}
	x := math.Float32frombits(v.bits)
	if f := float64(x); math.IsInf(f, 0) || math.IsNaN(f) || v.bits == 1<<31 {
		return fmt.Sprintf("math.Float32frombits(%#x)", v.bits)
	}
	return "float32(" + strconv.FormatFloat(float64(x), 'g', -1, 32) + ")"
}

func (g *goWriter) statements(e *expression) {
	for _, v := range e.vals {
		if v.op == opInput {
			continue
		}
		args := make([]any, len(v.args))
		for i, a := range v.args {
			args[i] = g.ref(a)
		}
		g.assign(v, fmt.Sprintf(goForms(v), args...))
	}
}

// goForms is the expression for v, with a verb for each operand.
func goForms(v *val) string {
	switch v.op {
	case opRound:
		return "float32(math." + []string{"RoundToEven", "Floor", "Ceil", "Trunc"}[v.imm] + "(float64(%s)))"
	case opShl:
		return "%s << " + strconv.Itoa(v.imm)
	case opShr:
		return "%s >> " + strconv.Itoa(v.imm)
	case opSar:
		return "uint32(int32(%s) >> " + strconv.Itoa(v.imm) + ")"
	case opCmp:
		switch v.imm {
		case cmpUnord:
			return "isNaN(%s) || isNaN(%s)"
		default:
			return "%s " + map[int]string{cmpEq: "==", cmpLt: "<", cmpLe: "<=", cmpNe: "!=", cmpGe: ">=", cmpGt: ">"}[v.imm] + " %s"
		}
	case opCmpI:
		return "int32(%s) " + map[int]string{cmpEq: "==", cmpGt: ">"}[v.imm] + " int32(%s)"
	case opSelect:
		if v.kind == intLane {
			return "choose(%s, uint32(%s), uint32(%s))"
		}
		return "choose(%s, %s, %s)"
	}
	// Conversions keep the compiler from fusing a product with the sum it goes into.
	return map[opcode]string{
		opAdd: "%s + %s", opSub: "%s - %s", opMul: "float32(%s * %s)", opDiv: "%s / %s",
		opMin: "min32(%s, %s)", opMax: "max32(%s, %s)",
		opAddI: "%s + %s", opSubI: "%s - %s", opMulI: "%s * %s",
		opMinI: "uint32(min(int32(%s), int32(%s)))", opMaxI: "uint32(max(int32(%s), int32(%s)))",
		opAnd: "%s & %s", opOr: "%s | %s", opXor: "%s ^ %s", opAndNot: "^%s & %s",
		opMulHi:    "uint32(uint64(%s) * uint64(%s) >> 32)",
		opSqrt:     "float32(math.Sqrt(float64(%s)))",
		opToInt:    "toInt32(math.RoundToEven(float64(%s)))",
		opTruncInt: "toInt32(float64(%s))", opToFloat: "float32(int32(%s))",
		opAsFloat: "math.Float32frombits(%s)", opAsInt: "math.Float32bits(%s)",
		opMaskBits: "maskBits(%s)", opBitsMask: "%s != 0",
		opFMA: "fma32(%s, %s, %s)", opFNMA: "fma32(-%s, %s, %s)", opScale: "scale32(%s, %s)",
		opMaskAnd: "%s && %s",
	}[v.op]
}
