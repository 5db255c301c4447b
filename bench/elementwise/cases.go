package main

import (
	"fmt"
	"strings"
)

// testCase is a function of tensors of float32: of rows x cols where nothing else is said.
type testCase struct {
	name string
	body string // types: X of rows x cols, T transposed, B of bfloat16; R of a number a row, C a column; I of a whole number a row, V of a table
}

// table is the rows of the table that rows are added to.
const table = 50257

// cases are the loops of a transformer that are no products.
func cases() []testCase {
	return []testCase{
		{"add", `(%x: X, %y: X) -> X {
  %0 = blu.add %x, %y : (X, X) -> X
  func.return %0 : (X) -> ()
}`},
		{"gelu", `(%x: X) -> X {
  %0 = blu.gelu %x {approximate = "tanh"} : (X) -> X
  func.return %0 : (X) -> ()
}`},
		{"gelu gradient", `(%x: X, %dy: X) -> X {
  %0 = blu.gelu_grad %x, %dy {approximate = "tanh"} : (X, X) -> X
  func.return %0 : (X) -> ()
}`},
		{"chain to bf16", `(%x: X, %y: X, %b: C) -> (X, B) {
  %0 = blu.broadcast %b {axes = array<i64: 1>} : (C) -> X
  %1 = blu.add %x, %0 : (X, X) -> X
  %2 = blu.add %1, %y : (X, X) -> X
  %3 = blu.cast %2 : (X) -> B
  func.return %2, %3 : (X, B) -> ()
}`},
		{"layernorm", `(%x: X, %g: C, %b: C) -> (X, R, R) {
  %0:3 = blu.layernorm %x, %g, %b {eps = 1.0e-05 : f64} : (X, C, C) -> (X, R, R)
  func.return %0#0, %0#1, %0#2 : (X, R, R) -> ()
}`},
		{"layernorm to bf16", `(%x: X, %g: C, %b: C) -> B {
  %0:3 = blu.layernorm %x, %g, %b {eps = 1.0e-05 : f64} : (X, C, C) -> (X, R, R)
  %1 = blu.cast %0#0 : (X) -> B
  func.return %1 : (B) -> ()
}`},
		{"layernorm gradient", `(%x: X, %g: C, %mean: R, %rstd: R, %dy: X) -> (X, C, C) {
  %0:3 = blu.layernorm_grad %x, %g, %mean, %rstd, %dy : (X, C, R, R, X) -> (X, C, C)
  func.return %0#0, %0#1, %0#2 : (X, C, C) -> ()
}`},
		{"layernorm again and its gradient", `(%x: X, %g: C, %b: C, %narrow: B, %residual: X) -> (B, X, B, C, C) {
  %dy = blu.cast %narrow : (B) -> X
  %0:3 = blu.layernorm %x, %g, %b {eps = 1.0e-05 : f64} : (X, C, C) -> (X, R, R)
  %1 = blu.cast %0#0 : (X) -> B
  %2:3 = blu.layernorm_grad %x, %g, %0#1, %0#2, %dy : (X, C, R, R, X) -> (X, C, C)
  %3 = blu.add %residual, %2#0 : (X, X) -> X
  %4 = blu.cast %3 : (X) -> B
  %5 = blu.reduce_sum %3 {axes = array<i64: 0>} : (X) -> C
  func.return %1, %3, %4, %2#1, %5 : (B, X, B, C, C) -> ()
}`},
		{"rmsnorm", `(%x: X, %g: C) -> (X, R) {
  %0:2 = blu.rmsnorm %x, %g {eps = 1.0e-05 : f64} : (X, C) -> (X, R)
  func.return %0#0, %0#1 : (X, R) -> ()
}`},
		{"softmax", `(%x: X) -> X {
  %0 = blu.softmax %x {axis = 1 : i64} : (X) -> X
  func.return %0 : (X) -> ()
}`},
		{"column sums", `(%x: X) -> C {
  %0 = blu.reduce_sum %x {axes = array<i64: 0>} : (X) -> C
  func.return %0 : (C) -> ()
}`},
		{"column sums of bf16", `(%x: B) -> C {
  %0 = blu.cast %x : (B) -> X
  %1 = blu.reduce_sum %0 {axes = array<i64: 0>} : (X) -> C
  func.return %1 : (C) -> ()
}`},
		{"scatter", `(%x: X, %i: I) -> V {
  %0 = blu.scatter_add %x, %i {rows = 50257 : i64} : (X, I) -> V
  func.return %0 : (V) -> ()
}`},
		{"transpose", `(%x: X) -> T {
  %0 = blu.transpose %x {perm = array<i64: 1, 0>} : (X) -> T
  %1 = blu.neg %0 : (T) -> T
  func.return %1 : (T) -> ()
}`},
	}
}

// longCases are loops whose rows are too long for the registers of a block of threads, as those of a language model's logits.
func longCases() []testCase {
	loss := `(%x: Y, %r: R) -> (R, Y) {
  %l = WIDEN
  %a = blu.abs %r : (R) -> R
  %t = blu.cast %a : (R) -> I
  %0:3 = blu.cross_entropy %l, %t {ignore = -1 : i64} : (X, I) -> (tensor<f32>, tensor<f32>, R)
  %1 = blu.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %2 = blu.cross_entropy_grad %l, %t, %0#2, %1 {ignore = -1 : i64} : (X, I, R, tensor<f32>) -> X
  %3 = NARROW
  func.return %0#2, %3 : (R, Y) -> ()
}`
	in := func(y, widen, narrow string) string {
		return strings.NewReplacer("Y", y, "WIDEN", widen, "NARROW", narrow).Replace(loss)
	}
	return []testCase{
		{"cross entropy", in("X", "blu.reshape %x : (X) -> X", "blu.reshape %2 : (X) -> X")},
		{"cross entropy of bf16", in("B", "blu.cast %x : (B) -> X", "blu.cast %2 : (X) -> B")},
		{"softmax", `(%x: X) -> X {
  %0 = blu.softmax %x {axis = 1 : i64} : (X) -> X
  func.return %0 : (X) -> ()
}`},
	}
}

// text is the function as a module.
func (c testCase) text(rows, cols int) string {
	types := strings.NewReplacer(
		"X", fmt.Sprintf("tensor<%dx%dxf32>", rows, cols), "T", fmt.Sprintf("tensor<%dx%dxf32>", cols, rows),
		"B", fmt.Sprintf("tensor<%dx%dxbf16>", rows, cols), "R", fmt.Sprintf("tensor<%dxf32>", rows), "C", fmt.Sprintf("tensor<%dxf32>", cols),
		"I", fmt.Sprintf("tensor<%dxi32>", rows), "V", fmt.Sprintf("tensor<%dx%dxf32>", table, cols))
	return "func.func @f" + types.Replace(c.body)
}
