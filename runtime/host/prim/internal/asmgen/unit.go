package main

import (
	"bytes"
	"fmt"
	"go/format"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// A unit is one assembly file and the Go file that declares its functions.
type unit struct {
	name  string
	build func(*asm)
}

func (u unit) write(files map[string][]byte) error {
	a := &asm{Context: build.NewContext(), data: map[string]bool{}}
	u.build(a)
	a.constants()
	f, err := a.Result()
	if list, ok := err.(build.ErrorList); ok && len(list) > 0 {
		return list[0]
	}
	cfg := printer.Config{Name: "internal/asmgen", Pkg: "prim"}
	if err := pass.Compile.Execute(f); err != nil {
		return err
	}
	text, err := printer.NewGoAsm(cfg).Print(f)
	if err != nil {
		return err
	}
	stubs, err := printer.NewStubs(cfg).Print(f)
	if err != nil {
		return err
	}
	// The file names end in _amd64 and so carry the build constraint.
	files[u.name+"_amd64.s"] = bytes.TrimLeft(text, "\n")
	files[u.name+"_amd64.go"], err = format.Source(stubs)
	return err
}

// asm is an avo context with the few idioms that the units share.
type asm struct {
	*build.Context
	labels  int
	data    map[string]bool // constants named so far in this file
	pending []datum         // and those not written yet
}

type datum struct {
	name string
	bits uint32
	wide uint64 // instead of bits, if not 0
	n    int    // times in a row
}

// fn starts a function. Every function here is a leaf with no frame.
func (a *asm) fn(name, doc, signature string) {
	a.Function(name)
	a.Attributes(attr.NOSPLIT)
	a.Doc(doc)
	a.Pragma("noescape")
	a.SignatureExpr(signature)
}

func (a *asm) load(param string) reg.GPVirtual {
	r := a.GP64()
	a.Load(a.Param(param), r)
	return r
}

// label makes a name unique within the file.
func (a *asm) label(name string) string {
	a.labels++
	return fmt.Sprintf("%s%d", name, a.labels)
}

func (a *asm) ret() {
	a.VZEROUPPER()
	a.RET()
}

// cmpJump compares x with y and jumps to the label if the condition holds.
func (a *asm) cmpJump(x, y operand.Op, jump func(operand.Op), label string) {
	a.CMPQ(x, y)
	jump(operand.LabelRef(label))
}

func imm(n int) operand.Op {
	if n >= -128 && n < 128 {
		return operand.I8(int8(n))
	}
	return operand.I32(int32(n))
}

func mem(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

func memIdx(base, index reg.Register, scale uint8, disp int) operand.Mem {
	return operand.Mem{Base: base, Index: index, Scale: scale, Disp: disp}
}
