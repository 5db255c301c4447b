builtin.module {
  exec.func @accumulate attributes {arena = 24576 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<256xf32>
    %1 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<256xf32>
    %2 = exec.ref {offset = 2048 : i64, space = "arena"} : () -> memref<256xf32>
    %3 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %0, %1, %2, %3 {group = "cp", id = 0 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 0 : i64}
    %4 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<256xf32>
    %5 = exec.ref {offset = 5120 : i64, space = "arena"} : () -> memref<256xf32>
    %6 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<256xf32>
    %7 = exec.ref {offset = 7168 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %4, %5, %6, %7 {group = "cp", id = 1 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 1 : i64}
    %8 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<256xf32>
    %9 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<256xf32>
    %10 = exec.ref {offset = 10240 : i64, space = "arena"} : () -> memref<256xf32>
    %11 = exec.ref {offset = 11264 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %8, %9, %10, %11 {group = "cp", id = 2 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 2 : i64}
    %12 = exec.ref {offset = 12288 : i64, space = "arena"} : () -> memref<256xf32>
    %13 = exec.ref {offset = 13312 : i64, space = "arena"} : () -> memref<256xf32>
    %14 = exec.ref {offset = 14336 : i64, space = "arena"} : () -> memref<256xf32>
    %15 = exec.ref {offset = 15360 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %12, %13, %14, %15 {group = "cp", id = 3 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 3 : i64}
    %16 = exec.ref {offset = 16384 : i64, space = "arena"} : () -> memref<256xf32>
    %17 = exec.ref {offset = 17408 : i64, space = "arena"} : () -> memref<256xf32>
    %18 = exec.ref {offset = 18432 : i64, space = "arena"} : () -> memref<256xf32>
    %19 = exec.ref {offset = 19456 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %16, %17, %18, %19 {group = "cp", id = 4 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 4 : i64}
    %20 = exec.ref {offset = 20480 : i64, space = "arena"} : () -> memref<256xf32>
    %21 = exec.ref {offset = 21504 : i64, space = "arena"} : () -> memref<256xf32>
    %22 = exec.ref {offset = 22528 : i64, space = "arena"} : () -> memref<256xf32>
    %23 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %20, %21, %22, %23 {group = "cp", id = 5 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 5 : i64}
    exec.end
  }
  exec.func @accumulate_last attributes {arena = 94208 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<256xf32>
    %1 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<256xf32>
    %2 = exec.ref {offset = 2048 : i64, space = "arena"} : () -> memref<256xf32>
    %3 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %0, %1, %2, %3 {group = "cp", id = 0 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 0 : i64}
    %4 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<256xf32>
    %5 = exec.ref {offset = 5120 : i64, space = "arena"} : () -> memref<256xf32>
    %6 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<256xf32>
    %7 = exec.ref {offset = 7168 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %4, %5, %6, %7 {group = "cp", id = 1 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 1 : i64}
    %8 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<1xf32>
    %9 = exec.ref {offset = 8448 : i64, space = "arena"} : () -> memref<1xf32>
    %10 = exec.ref {offset = 8704 : i64, space = "arena"} : () -> memref<16xf32>
    %11 = exec.ref {offset = 8960 : i64, space = "arena"} : () -> memref<16xf32>
    %12 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<16xf32>
    %13 = exec.ref {offset = 9472 : i64, space = "arena"} : () -> memref<1024xf32>
    %14 = exec.ref {offset = 13568 : i64, space = "arena"} : () -> memref<64xf32>
    %15 = exec.ref {offset = 13824 : i64, space = "arena"} : () -> memref<1xf32>
    %16 = exec.ref {offset = 14080 : i64, space = "arena"} : () -> memref<1xf32>
    %17 = exec.ref {offset = 14336 : i64, space = "arena"} : () -> memref<16xf32>
    %18 = exec.ref {offset = 14592 : i64, space = "arena"} : () -> memref<16xf32>
    %19 = exec.ref {offset = 14848 : i64, space = "arena"} : () -> memref<16xf32>
    %20 = exec.ref {offset = 15104 : i64, space = "arena"} : () -> memref<1024xf32>
    %21 = exec.ref {offset = 19200 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21 {group = "world", id = 2 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>, memref<1xf32>, memref<1xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    %22 = exec.ref {offset = 19456 : i64, space = "arena"} : () -> memref<256xf32>
    %23 = exec.ref {offset = 20480 : i64, space = "arena"} : () -> memref<256xf32>
    %24 = exec.ref {offset = 21504 : i64, space = "arena"} : () -> memref<256xf32>
    %25 = exec.ref {offset = 22528 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %22, %23, %24, %25 {group = "cp", id = 3 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 3 : i64}
    %26 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<256xf32>
    %27 = exec.ref {offset = 24576 : i64, space = "arena"} : () -> memref<256xf32>
    %28 = exec.ref {offset = 25600 : i64, space = "arena"} : () -> memref<256xf32>
    %29 = exec.ref {offset = 26624 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %26, %27, %28, %29 {group = "cp", id = 4 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 4 : i64}
    %30 = exec.ref {offset = 27648 : i64, space = "arena"} : () -> memref<1024xf32>
    %31 = exec.ref {offset = 31744 : i64, space = "arena"} : () -> memref<16xf32>
    %32 = exec.ref {offset = 32000 : i64, space = "arena"} : () -> memref<16xf32>
    %33 = exec.ref {offset = 32256 : i64, space = "arena"} : () -> memref<16xf32>
    %34 = exec.ref {offset = 32512 : i64, space = "arena"} : () -> memref<256xf32>
    %35 = exec.ref {offset = 33536 : i64, space = "arena"} : () -> memref<48xf32>
    %36 = exec.ref {offset = 33792 : i64, space = "arena"} : () -> memref<1024xf32>
    %37 = exec.ref {offset = 37888 : i64, space = "arena"} : () -> memref<16xf32>
    %38 = exec.ref {offset = 38144 : i64, space = "arena"} : () -> memref<16xf32>
    %39 = exec.ref {offset = 38400 : i64, space = "arena"} : () -> memref<16xf32>
    %40 = exec.ref {offset = 38656 : i64, space = "arena"} : () -> memref<256xf32>
    %41 = exec.ref {offset = 39680 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41 {group = "world", id = 5 : i64, op = "all_reduce"} : (memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>) -> ()
    %42 = exec.ref {offset = 39936 : i64, space = "arena"} : () -> memref<768xf32>
    %43 = exec.ref {offset = 43008 : i64, space = "arena"} : () -> memref<16xf32>
    %44 = exec.ref {offset = 43264 : i64, space = "arena"} : () -> memref<16xf32>
    %45 = exec.ref {offset = 43520 : i64, space = "arena"} : () -> memref<16xf32>
    %46 = exec.ref {offset = 43776 : i64, space = "arena"} : () -> memref<1024xf32>
    %47 = exec.ref {offset = 47872 : i64, space = "arena"} : () -> memref<64xf32>
    %48 = exec.ref {offset = 48128 : i64, space = "arena"} : () -> memref<768xf32>
    %49 = exec.ref {offset = 51200 : i64, space = "arena"} : () -> memref<16xf32>
    %50 = exec.ref {offset = 51456 : i64, space = "arena"} : () -> memref<16xf32>
    %51 = exec.ref {offset = 51712 : i64, space = "arena"} : () -> memref<16xf32>
    %52 = exec.ref {offset = 51968 : i64, space = "arena"} : () -> memref<1024xf32>
    %53 = exec.ref {offset = 56064 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53 {group = "world", id = 6 : i64, op = "all_reduce"} : (memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>, memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    %54 = exec.ref {offset = 56320 : i64, space = "arena"} : () -> memref<256xf32>
    %55 = exec.ref {offset = 57344 : i64, space = "arena"} : () -> memref<256xf32>
    %56 = exec.ref {offset = 58368 : i64, space = "arena"} : () -> memref<256xf32>
    %57 = exec.ref {offset = 59392 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %54, %55, %56, %57 {group = "cp", id = 7 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 7 : i64}
    %58 = exec.ref {offset = 60416 : i64, space = "arena"} : () -> memref<256xf32>
    %59 = exec.ref {offset = 61440 : i64, space = "arena"} : () -> memref<256xf32>
    %60 = exec.ref {offset = 62464 : i64, space = "arena"} : () -> memref<256xf32>
    %61 = exec.ref {offset = 63488 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %58, %59, %60, %61 {group = "cp", id = 8 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 8 : i64}
    %62 = exec.ref {offset = 64512 : i64, space = "arena"} : () -> memref<1024xf32>
    %63 = exec.ref {offset = 68608 : i64, space = "arena"} : () -> memref<16xf32>
    %64 = exec.ref {offset = 68864 : i64, space = "arena"} : () -> memref<16xf32>
    %65 = exec.ref {offset = 69120 : i64, space = "arena"} : () -> memref<16xf32>
    %66 = exec.ref {offset = 69376 : i64, space = "arena"} : () -> memref<256xf32>
    %67 = exec.ref {offset = 70400 : i64, space = "arena"} : () -> memref<48xf32>
    %68 = exec.ref {offset = 70656 : i64, space = "arena"} : () -> memref<1024xf32>
    %69 = exec.ref {offset = 74752 : i64, space = "arena"} : () -> memref<16xf32>
    %70 = exec.ref {offset = 75008 : i64, space = "arena"} : () -> memref<16xf32>
    %71 = exec.ref {offset = 75264 : i64, space = "arena"} : () -> memref<16xf32>
    %72 = exec.ref {offset = 75520 : i64, space = "arena"} : () -> memref<256xf32>
    %73 = exec.ref {offset = 76544 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73 {group = "world", id = 9 : i64, op = "all_reduce"} : (memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>) -> ()
    %74 = exec.ref {offset = 76800 : i64, space = "arena"} : () -> memref<768xf32>
    %75 = exec.ref {offset = 79872 : i64, space = "arena"} : () -> memref<16xf32>
    %76 = exec.ref {offset = 80128 : i64, space = "arena"} : () -> memref<16xf32>
    %77 = exec.ref {offset = 80384 : i64, space = "arena"} : () -> memref<768xf32>
    %78 = exec.ref {offset = 83456 : i64, space = "arena"} : () -> memref<16xf32>
    %79 = exec.ref {offset = 83712 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %74, %75, %76, %77, %78, %79 {group = "world", id = 10 : i64, op = "all_reduce"} : (memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<768xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %80 = exec.ref {offset = 83968 : i64, space = "arena"} : () -> memref<976xf32>
    %81 = exec.ref {offset = 88064 : i64, space = "arena"} : () -> memref<976xf32>
    exec.collective %80, %81 {group = "world", id = 11 : i64, op = "all_reduce"} : (memref<976xf32>, memref<976xf32>) -> ()
    %82 = exec.ref {offset = 92160 : i64, space = "arena"} : () -> memref<256xf32>
    %83 = exec.ref {offset = 93184 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %82, %83 {group = "world", id = 12 : i64, op = "all_reduce"} : (memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 2 : i64}
    exec.wait {id = 5 : i64}
    exec.wait {id = 6 : i64}
    exec.wait {id = 9 : i64}
    exec.wait {id = 10 : i64}
    exec.wait {id = 11 : i64}
    exec.wait {id = 12 : i64}
    exec.end
  }
  exec.func @eval attributes {arena = 9216 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<256xf32>
    %1 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<256xf32>
    %2 = exec.ref {offset = 2048 : i64, space = "arena"} : () -> memref<256xf32>
    %3 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %0, %1, %2, %3 {group = "cp", id = 0 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 0 : i64}
    %4 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<256xf32>
    %5 = exec.ref {offset = 5120 : i64, space = "arena"} : () -> memref<256xf32>
    %6 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<256xf32>
    %7 = exec.ref {offset = 7168 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %4, %5, %6, %7 {group = "cp", id = 1 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 1 : i64}
    %8 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<1xf32>
    %9 = exec.ref {offset = 8448 : i64, space = "arena"} : () -> memref<1xf32>
    %10 = exec.ref {offset = 8704 : i64, space = "arena"} : () -> memref<1xf32>
    %11 = exec.ref {offset = 8960 : i64, space = "arena"} : () -> memref<1xf32>
    exec.collective %8, %9, %10, %11 {group = "world", id = 2 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>) -> ()
    exec.wait {id = 2 : i64}
    exec.end
  }
}
