// A producer and a consumer warpgroup around one stage: the accumulator keeps its registers through the loop.
ptx.kernel @wgmma attributes {blocks_per_sm = 1 : i64, shared = 32784 : i64, target = "sm_90a", threads = 256 : i64} (%a: !ptx.tensormap, %b: !ptx.tensormap, %out: i64) {
  %c0 = ptx.const {value = 0 : i32} : () -> i32
  %c1 = ptx.const {value = 1 : i32} : () -> i32
  %c4 = ptx.const {value = 4 : i32} : () -> i32
  %c12 = ptx.const {value = 12 : i32} : () -> i32
  %c64 = ptx.const {value = 64 : i32} : () -> i32
  %c32 = ptx.const {value = 32 : i32} : () -> i32
  %high = ptx.const {value = 1073741888 : i32} : () -> i32
  %true = ptx.const {value = true} : () -> i1
  %tid = ptx.special {register = "tid.x"} : () -> i32
  %warps = ptx.div %tid, %c32 : (i32, i32) -> i32
  %warp = ptx.shfl %warps, %c0 {mode = "idx"} : (i32, i32) -> i32
  %base = ptx.shared_base : () -> i32
  %zero = ptx.setp %tid, %c0 {is = "eq"} : (i32, i32) -> i1
  ptx.if %zero : (i1) -> () {
    ptx.mbarrier_init %base {count = 1 : i64, offset = 32768 : i64} : (i32) -> ()
    ptx.mbarrier_init %base {count = 4 : i64, offset = 32776 : i64} : (i32) -> ()
    ptx.fence {kind = "mbarrier_init"}
    ptx.yield
  } {}
  ptx.bar_sync
  %producer = ptx.setp %warp, %c4 {is = "lo"} : (i32, i32) -> i1
  ptx.if %producer attributes {uniform} : (i1) -> () {
    ptx.setmaxnreg {count = 24 : i64}
    ptx.if %zero : (i1) -> () {
      %p = ptx.for %c0, %c12, %c1, %c1 : (i32, i32, i32, i32) -> i32 (%i: i32, %parity: i32) {
        ptx.mbarrier_wait %base, %parity {offset = 32776 : i64} : (i32, i32) -> ()
        ptx.mbarrier_expect %base {bytes = 16384 : i64, offset = 32768 : i64} : (i32) -> ()
        %full = ptx.const {value = 32768 : i32} : () -> i32
        %barrier = ptx.add %base, %full : (i32, i32) -> i32
        %k = ptx.mul %i, %c64 : (i32, i32) -> i32
        ptx.tma_load %a, %base, %barrier, %k, %c0 {operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>} : (!ptx.tensormap, i32, i32, i32, i32) -> ()
        ptx.tma_load %b, %base, %barrier, %k, %c0 {offset = 8192 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 2, 0>} : (!ptx.tensormap, i32, i32, i32, i32) -> ()
        %next = ptx.xor %parity, %c1 : (i32, i32) -> i32
        ptx.yield %next : (i32) -> ()
      }
      ptx.yield
    } {}
    ptx.yield
  } {
    ptx.setmaxnreg {count = 240 : i64, inc}
    %acc = ptx.undef : () -> vector<32xf32>
    %r:2 = ptx.for %c0, %c12, %c1, %c0, %acc attributes {uniform} : (i32, i32, i32, i32, vector<32xf32>) -> (i32, vector<32xf32>) (%i: i32, %parity: i32, %x: vector<32xf32>) {
      %started = ptx.setp %i, %c0 {is = "ne"} : (i32, i32) -> i1
      %low = ptx.shr %base, %c4 : (i32, i32) -> i32
      %da = ptx.join %low, %high : (i32, i32) -> i64
      ptx.mbarrier_wait %base, %parity {offset = 32768 : i64} : (i32, i32) -> ()
      ptx.wgmma_fence
      %y = ptx.wgmma %da, %da, %x, %started {format = "bf16"} : (i64, i64, vector<32xf32>, i1) -> vector<32xf32>
      %z = ptx.wgmma %da, %da, %y, %true {format = "bf16", tb} : (i64, i64, vector<32xf32>, i1) -> vector<32xf32>
      ptx.wgmma_commit
      %w = ptx.wgmma_wait %z {pending = 0 : i64} : (vector<32xf32>) -> vector<32xf32>
      ptx.mbarrier_arrive %base {offset = 32776 : i64} : (i32) -> ()
      %next = ptx.xor %parity, %c1 : (i32, i32) -> i32
      ptx.yield %next, %w : (i32, vector<32xf32>) -> ()
    }
    %e = ptx.extract %r#1 {index = 7 : i64} : (vector<32xf32>) -> f32
    ptx.st %out, %e {space = "global"} : (i64, f32) -> ()
    ptx.yield
  }
  ptx.return
}
