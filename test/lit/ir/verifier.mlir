// RUN: bluc opt %s --split-input-file --verify-diagnostics
// Every fault is reported, in order.

func.func @f(%x: tensor<4xf32>, %y: tensor<4xi32>, %z: tensor<5xf32>) {
  // expected-error@+3 {{blu.softmax: result 0 (y) must be a floating-point tensor, is tensor<4xi32>}}
  // expected-error@+2 {{blu.softmax: operand 0 (x) must be a floating-point tensor, is tensor<4xi32>}}
  // expected-error@+1 {{blu.softmax: attribute axis is missing}}
  %a = blu.softmax %y : (tensor<4xi32>) -> tensor<4xi32>
  // expected-error@+1 {{blu.softmax: unknown attribute axes; did you mean axis?}}
  %b = blu.softmax %x {axes = 0 : i64, axis = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{blu.softmax: attribute axis must be a 64-bit integer, is 0 : i32}}
  %c = blu.softmax %x {axis = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @f() {
  // expected-error@+2 {{arith.addi: operand 0, %1, is used before it is defined, or where it may not have been}}
  // expected-error@+1 {{arith.addi: operand 1, %1, is used before it is defined, or where it may not have been}}
  %b = arith.addi %a, %a : (i32, i32) -> i32
  // expected-note@+2 {{defined here}}
  // expected-note@+1 {{defined here}}
  %a = arith.constant {value = 1 : i32} : () -> i32
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{func.call: there is no symbol @hepler; did you mean helper?}}
  func.call {callee = @hepler}
  func.return
}
func.func private @helper()

// -----

// expected-note@+1 {{first defined here}}
func.func private @twice()
// expected-error@+1 {{symbol @twice is defined twice}}
func.func private @twice()

// -----

func.func @f() {
  // expected-error@+1 {{is the last of its block, where func.func needs a terminator}}
  arith.constant {value = 1 : i32} : () -> i32
}

// -----

// expected-error@+1 {{dialect tile has no type blok; did you mean block?}}
func.func private @f(!tile.blok<1x1xf32>)
