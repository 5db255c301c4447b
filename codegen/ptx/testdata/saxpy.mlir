// y = a x + y, one element a thread, then a block's sum by shuffles: arithmetic, memory, branches, conversions.
ptx.kernel @saxpy attributes {shared = 128 : i64, target = "sm_80", threads = 128 : i64} (%x: i64, %y: i64, %a: f32, %n: i32) {
  %c5 = ptx.const {value = 5 : i32} : () -> i32
  %c31 = ptx.const {value = 31 : i32} : () -> i32
  %c4 = ptx.const {value = 4 : i32} : () -> i32
  %c128 = ptx.const {value = 128 : i32} : () -> i32
  %tid = ptx.special {register = "tid.x"} : () -> i32
  %block = ptx.special {register = "ctaid.x"} : () -> i32
  %i = ptx.fma %block, %c128, %tid : (i32, i32, i32) -> i32
  %in = ptx.setp %i, %n {is = "lo"} : (i32, i32) -> i1
  %px = ptx.mul_wide %i, %c4, %x : (i32, i32, i64) -> i64
  %py = ptx.mul_wide %i, %c4, %y : (i32, i32, i64) -> i64
  ptx.if %in : (i1) -> () {
    %u = ptx.ld %px {cache = "nc", space = "global"} : (i64) -> f32
    %v = ptx.ld %py {space = "global"} : (i64) -> f32
    %w = ptx.fma %u, %a, %v : (f32, f32, f32) -> f32
    ptx.st %py, %w {space = "global"} : (i64, f32) -> ()
    ptx.yield
  } {}
  %v = ptx.ld %py, %in {space = "global"} : (i64, i1) -> f32
  %c16 = ptx.const {value = 16 : i32} : () -> i32
  %o = ptx.shfl %v, %c16 {mode = "bfly"} : (f32, i32) -> f32
  %s = ptx.add %v, %o : (f32, f32) -> f32
  %shared = ptx.shared_base : () -> i32
  %warp = ptx.shr %tid, %c5 : (i32, i32) -> i32
  %lane = ptx.and %tid, %c31 : (i32, i32) -> i32
  %c0 = ptx.const {value = 0 : i32} : () -> i32
  %first = ptx.setp %lane, %c0 {is = "eq"} : (i32, i32) -> i1
  %at = ptx.fma %warp, %c4, %shared : (i32, i32, i32) -> i32
  ptx.st %at, %s, %first {offset = 64 : i64, space = "shared"} : (i32, f32, i1) -> ()
  ptx.bar_sync
  %half = ptx.cvt %s : (f32) -> f16
  %packed = ptx.pack %s, %v {format = "bf16"} : (f32, f32) -> i32
  %l, %h = ptx.split %packed : (i32) -> (i16, i16)
  %again = ptx.join %h, %l : (i16, i16) -> i32
  %bits = ptx.bitcast %again : (i32) -> f32
  ptx.st %py, %half, %first {space = "global"} : (i64, f16, i1) -> ()
  ptx.st %px, %bits, %first {space = "global"} : (i64, f32, i1) -> ()
  ptx.return
}
