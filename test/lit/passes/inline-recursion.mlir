// RUN: bluc opt %s --pass-pipeline='builtin.module(inline)' --split-input-file --verify-diagnostics

func.func @main() {
  func.call {callee = @even}
  func.return
}
// expected-note@+1 {{defined here}}
func.func private @even() {
  func.call {callee = @odd}
  func.return
}
func.func private @odd() {
  // expected-error@+1 {{function @even calls itself by way of @odd: it can't be inlined}}
  func.call {callee = @even}
  func.return
}

// -----

// expected-note@+1 {{defined here}}
func.func private @self() {
  // expected-error@+1 {{function @self calls itself: it can't be inlined}}
  func.call {callee = @self}
  func.return
}
