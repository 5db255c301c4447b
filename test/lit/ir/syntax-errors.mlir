// RUN: bluc opt %s --split-input-file --verify-diagnostics
// A text that can't be read says where and what was expected.

// expected-error@+1:1 {{unknown operation blu.sofmax; did you mean blu.softmax}}
blu.sofmax

// -----

// expected-error@+1:1 {{unknown dialect bluu of operation bluu.add; did you mean blu?}}
bluu.add

// -----

func.func @f(%x: f32) {
  // expected-error@+1:15 {{%y is used but never defined}}
  func.return %y : (f32) -> ()
}

// -----

func.func @f(%x: f32) {
  // expected-error@+1:15 {{%x has type f32, the signature says f64}}
  func.return %x : (f64) -> ()
}

// -----

// expected-error@+1:18 {{expected a type, found "flat32"}}
func.func @f(%x: flat32) {
}

// -----

// expected-error@+1:25 {{256 is out of the range of type i8}}
arith.constant {value = 256 : i8} : () -> i8
