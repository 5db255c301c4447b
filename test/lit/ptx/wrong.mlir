// RUN: bluc opt %s --split-input-file --verify-diagnostics
// What the hardware cannot do is refused where it is written.

// expected-error@+1 {{ptx.kernel: no target "sm_70"}}
ptx.kernel @k attributes {target = "sm_70", threads = 32 : i64} () {
  ptx.return
}

// -----

// expected-error@+1 {{ptx.kernel: 200000 bytes of shared memory; a block on sm_89 has 101376}}
ptx.kernel @k attributes {shared = 200000 : i64, target = "sm_89", threads = 32 : i64} () {
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_80", threads = 128 : i64} () {
  // expected-error@+1 {{ptx.wgmma_fence: needs sm_90a, the kernel is for sm_80}}
  ptx.wgmma_fence
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_80", threads = 32 : i64} (%p: i64) {
  // expected-error@+1 {{ptx.ld: can't move vector<8xf32> at once}}
  %v = ptx.ld %p {space = "global"} : (i64) -> vector<8xf32>
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_80", threads = 32 : i64} (%p: i64) {
  // expected-error@+1 {{ptx.ld: an address in shared memory has 32 bits, not 64}}
  %v = ptx.ld %p {space = "shared"} : (i64) -> f32
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_80", threads = 32 : i64} (%p: i64) {
  // expected-error@+1 {{ptx.ld: offset 4 is no multiple of 16 bytes}}
  %v = ptx.ld %p {offset = 4 : i64, space = "global"} : (i64) -> vector<4xf32>
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_90a", threads = 128 : i64} (%a: i64) {
  %c = ptx.undef : () -> vector<32xf32>
  %true = ptx.const {value = true} : () -> i1
  // expected-error@+1 {{ptx.wgmma: operand 2 is tied to the result, so it must be made in this block and used once}}
  %d = ptx.wgmma %a, %a, %c, %true {format = "bf16"} : (i64, i64, vector<32xf32>, i1) -> vector<32xf32>
  %e = ptx.extract %c {index = 0 : i64} : (vector<32xf32>) -> f32
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_90a", threads = 128 : i64} (%a: i64) {
  %c = ptx.undef : () -> vector<32xf32>
  %true = ptx.const {value = true} : () -> i1
  // expected-error@+1 {{ptx.wgmma: tf32 operands are K-major}}
  %d = ptx.wgmma %a, %a, %c, %true {format = "tf32", ta} : (i64, i64, vector<32xf32>, i1) -> vector<32xf32>
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_80", threads = 32 : i64} (%x: i32) {
  // expected-error@+1 {{ptx.setp: no relation "less"}}
  %p = ptx.setp %x, %x {is = "less"} : (i32, i32) -> i1
  ptx.return
}

// -----

ptx.kernel @k attributes {target = "sm_80", threads = 32 : i64} (%x: i32) {
  // expected-error@+1 {{ptx.for: carried value 0 has type i32 before the loop, f32 in the body, i32 after it}}
  %r = ptx.for %x, %x, %x, %x : (i32, i32, i32, i32) -> i32 (%i: i32, %y: f32) {
    ptx.yield %i : (i32) -> ()
  }
  ptx.return
}
