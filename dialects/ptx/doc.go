// Package ptx is the dialect of NVIDIA's virtual instruction set: one operation for each instruction that kernels of this
// project need, values for its virtual registers, and structured control flow, so that a kernel's dump reads beside the
// PTX text that codegen/ptx prints from it. It knows nothing of where kernels come from.
//
// # Registers
//
// A value is a register: i1 a predicate; i16, i32, i64, f16, bf16, f32 and f64 a register of that width. Addresses are
// plain integers: i64 in global memory, i32 in shared memory. Two 16-bit numbers in one register are an i32. A value of
// type vector<NxT> is N registers: what vector loads give, and what matrix instructions take.
//
// Some operations work in place: the result has the registers of the operand that the description calls tied. That costs
// nothing where the tied operand is not used again; elsewhere its registers are copied first. Asynchronous matrix
// products are stricter, since a copy inside a group of them would serialize it: see ptx.wgmma.
//
// # Control flow
//
// ptx.for and ptx.if carry values as scf does. `uniform` promises that all threads of a warp take the same way, which the
// warp-wide instructions inside need. Nothing else in the dialect branches.
package ptx
