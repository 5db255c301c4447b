builtin.module {
  exec.func @accumulate attributes {arena = 70912 : i64} {
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
    %8 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<16xf32>
    %9 = exec.ref {offset = 8448 : i64, space = "arena"} : () -> memref<16xf32>
    %10 = exec.ref {offset = 8704 : i64, space = "arena"} : () -> memref<16xf32>
    %11 = exec.ref {offset = 8960 : i64, space = "arena"} : () -> memref<4xf32>
    %12 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<4xf32>
    %13 = exec.ref {offset = 9472 : i64, space = "arena"} : () -> memref<4xf32>
    exec.collective %8, %9, %10, %11, %12, %13 {group = "world", id = 2 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    %14 = exec.ref {offset = 9728 : i64, space = "arena"} : () -> memref<1024xf32>
    %15 = exec.ref {offset = 13824 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %14, %15 {group = "world", id = 3 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<1024xf32>, memref<256xf32>) -> ()
    exec.wait {id = 2 : i64}
    %16 = exec.ref {offset = 14848 : i64, space = "arena"} : () -> memref<64xf32>
    %17 = exec.ref {offset = 15104 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %16, %17 {group = "world", id = 4 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<64xf32>, memref<16xf32>) -> ()
    exec.wait {id = 3 : i64}
    %18 = exec.ref {offset = 15360 : i64, space = "arena"} : () -> memref<1024xf32>
    %19 = exec.ref {offset = 19456 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %18, %19 {group = "world", id = 5 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<1024xf32>, memref<256xf32>) -> ()
    %20 = exec.ref {offset = 20480 : i64, space = "arena"} : () -> memref<256xf32>
    %21 = exec.ref {offset = 21504 : i64, space = "arena"} : () -> memref<256xf32>
    %22 = exec.ref {offset = 22528 : i64, space = "arena"} : () -> memref<256xf32>
    %23 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %20, %21, %22, %23 {group = "cp", id = 6 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 6 : i64}
    %24 = exec.ref {offset = 24576 : i64, space = "arena"} : () -> memref<256xf32>
    %25 = exec.ref {offset = 25600 : i64, space = "arena"} : () -> memref<256xf32>
    %26 = exec.ref {offset = 26624 : i64, space = "arena"} : () -> memref<256xf32>
    %27 = exec.ref {offset = 27648 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %24, %25, %26, %27 {group = "cp", id = 7 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 7 : i64}
    exec.wait {id = 4 : i64}
    %28 = exec.ref {offset = 28672 : i64, space = "arena"} : () -> memref<16xf32>
    %29 = exec.ref {offset = 28928 : i64, space = "arena"} : () -> memref<16xf32>
    %30 = exec.ref {offset = 29184 : i64, space = "arena"} : () -> memref<16xf32>
    %31 = exec.ref {offset = 29440 : i64, space = "arena"} : () -> memref<256xf32>
    %32 = exec.ref {offset = 30464 : i64, space = "arena"} : () -> memref<48xf32>
    %33 = exec.ref {offset = 30720 : i64, space = "arena"} : () -> memref<4xf32>
    %34 = exec.ref {offset = 30976 : i64, space = "arena"} : () -> memref<4xf32>
    %35 = exec.ref {offset = 31232 : i64, space = "arena"} : () -> memref<4xf32>
    %36 = exec.ref {offset = 31488 : i64, space = "arena"} : () -> memref<64xf32>
    %37 = exec.ref {offset = 31744 : i64, space = "arena"} : () -> memref<12xf32>
    exec.collective %28, %29, %30, %31, %32, %33, %34, %35, %36, %37 {group = "world", id = 8 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<64xf32>, memref<12xf32>) -> ()
    exec.wait {id = 5 : i64}
    %38 = exec.ref {offset = 32000 : i64, space = "arena"} : () -> memref<768xf32>
    %39 = exec.ref {offset = 35072 : i64, space = "arena"} : () -> memref<192xf32>
    exec.collective %38, %39 {group = "world", id = 9 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<768xf32>, memref<192xf32>) -> ()
    exec.wait {id = 8 : i64}
    %40 = exec.ref {offset = 35840 : i64, space = "arena"} : () -> memref<16xf32>
    %41 = exec.ref {offset = 36096 : i64, space = "arena"} : () -> memref<16xf32>
    %42 = exec.ref {offset = 36352 : i64, space = "arena"} : () -> memref<16xf32>
    %43 = exec.ref {offset = 36608 : i64, space = "arena"} : () -> memref<4xf32>
    %44 = exec.ref {offset = 36864 : i64, space = "arena"} : () -> memref<4xf32>
    %45 = exec.ref {offset = 37120 : i64, space = "arena"} : () -> memref<4xf32>
    exec.collective %40, %41, %42, %43, %44, %45 {group = "world", id = 10 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()
    exec.wait {id = 9 : i64}
    %46 = exec.ref {offset = 37376 : i64, space = "arena"} : () -> memref<1024xf32>
    %47 = exec.ref {offset = 41472 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %46, %47 {group = "world", id = 11 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<1024xf32>, memref<256xf32>) -> ()
    exec.wait {id = 10 : i64}
    %48 = exec.ref {offset = 42496 : i64, space = "arena"} : () -> memref<64xf32>
    %49 = exec.ref {offset = 42752 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %48, %49 {group = "world", id = 12 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<64xf32>, memref<16xf32>) -> ()
    exec.wait {id = 11 : i64}
    %50 = exec.ref {offset = 43008 : i64, space = "arena"} : () -> memref<1024xf32>
    %51 = exec.ref {offset = 47104 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %50, %51 {group = "world", id = 13 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<1024xf32>, memref<256xf32>) -> ()
    %52 = exec.ref {offset = 48128 : i64, space = "arena"} : () -> memref<256xf32>
    %53 = exec.ref {offset = 49152 : i64, space = "arena"} : () -> memref<256xf32>
    %54 = exec.ref {offset = 50176 : i64, space = "arena"} : () -> memref<256xf32>
    %55 = exec.ref {offset = 51200 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %52, %53, %54, %55 {group = "cp", id = 14 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 14 : i64}
    %56 = exec.ref {offset = 52224 : i64, space = "arena"} : () -> memref<256xf32>
    %57 = exec.ref {offset = 53248 : i64, space = "arena"} : () -> memref<256xf32>
    %58 = exec.ref {offset = 54272 : i64, space = "arena"} : () -> memref<256xf32>
    %59 = exec.ref {offset = 55296 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %56, %57, %58, %59 {group = "cp", id = 15 : i64, op = "permute", ranks = 2 : i64, shift = 1 : i64} : (memref<256xf32>, memref<256xf32>, memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 15 : i64}
    exec.wait {id = 12 : i64}
    %60 = exec.ref {offset = 56320 : i64, space = "arena"} : () -> memref<16xf32>
    %61 = exec.ref {offset = 56576 : i64, space = "arena"} : () -> memref<16xf32>
    %62 = exec.ref {offset = 56832 : i64, space = "arena"} : () -> memref<16xf32>
    %63 = exec.ref {offset = 57088 : i64, space = "arena"} : () -> memref<256xf32>
    %64 = exec.ref {offset = 58112 : i64, space = "arena"} : () -> memref<48xf32>
    %65 = exec.ref {offset = 58368 : i64, space = "arena"} : () -> memref<4xf32>
    %66 = exec.ref {offset = 58624 : i64, space = "arena"} : () -> memref<4xf32>
    %67 = exec.ref {offset = 58880 : i64, space = "arena"} : () -> memref<4xf32>
    %68 = exec.ref {offset = 59136 : i64, space = "arena"} : () -> memref<64xf32>
    %69 = exec.ref {offset = 59392 : i64, space = "arena"} : () -> memref<12xf32>
    exec.collective %60, %61, %62, %63, %64, %65, %66, %67, %68, %69 {group = "world", id = 16 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<64xf32>, memref<12xf32>) -> ()
    exec.wait {id = 13 : i64}
    %70 = exec.ref {offset = 59648 : i64, space = "arena"} : () -> memref<768xf32>
    %71 = exec.ref {offset = 62720 : i64, space = "arena"} : () -> memref<192xf32>
    exec.collective %70, %71 {group = "world", id = 17 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<768xf32>, memref<192xf32>) -> ()
    exec.wait {id = 16 : i64}
    %72 = exec.ref {offset = 63488 : i64, space = "arena"} : () -> memref<16xf32>
    %73 = exec.ref {offset = 63744 : i64, space = "arena"} : () -> memref<16xf32>
    %74 = exec.ref {offset = 64000 : i64, space = "arena"} : () -> memref<4xf32>
    %75 = exec.ref {offset = 64256 : i64, space = "arena"} : () -> memref<4xf32>
    exec.collective %72, %73, %74, %75 {group = "world", id = 18 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<16xf32>, memref<16xf32>, memref<4xf32>, memref<4xf32>) -> ()
    exec.wait {id = 17 : i64}
    %76 = exec.ref {offset = 64512 : i64, space = "arena"} : () -> memref<976xf32>
    %77 = exec.ref {offset = 68608 : i64, space = "arena"} : () -> memref<244xf32>
    exec.collective %76, %77 {group = "world", id = 19 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<976xf32>, memref<244xf32>) -> ()
    exec.wait {id = 18 : i64}
    %78 = exec.ref {offset = 69632 : i64, space = "arena"} : () -> memref<256xf32>
    %79 = exec.ref {offset = 70656 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %78, %79 {group = "world", id = 20 : i64, op = "reduce_scatter", ranks = 4 : i64} : (memref<256xf32>, memref<64xf32>) -> ()
    exec.wait {id = 19 : i64}
    exec.wait {id = 20 : i64}
    exec.end
  }
  exec.func @apply attributes {arena = 47872 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<1xf32>
    %1 = exec.ref {offset = 256 : i64, space = "arena"} : () -> memref<1xf32>
    %2 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<1xf32>
    %3 = exec.ref {offset = 768 : i64, space = "arena"} : () -> memref<1xf32>
    %4 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<1xf32>
    %5 = exec.ref {offset = 1280 : i64, space = "arena"} : () -> memref<1xf32>
    exec.collective %0, %1, %2, %3, %4, %5 {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>) -> ()
    exec.wait {id = 0 : i64}
    %6 = exec.ref {offset = 1536 : i64, space = "arena"} : () -> memref<244xf32>
    %7 = exec.ref {offset = 2560 : i64, space = "arena"} : () -> memref<64xf32>
    %8 = exec.ref {offset = 2816 : i64, space = "arena"} : () -> memref<4xf32>
    %9 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<4xf32>
    %10 = exec.ref {offset = 3328 : i64, space = "arena"} : () -> memref<192xf32>
    %11 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<976xf32>
    %12 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<256xf32>
    %13 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<16xf32>
    %14 = exec.ref {offset = 9472 : i64, space = "arena"} : () -> memref<16xf32>
    %15 = exec.ref {offset = 9728 : i64, space = "arena"} : () -> memref<768xf32>
    exec.collective %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 {group = "world", id = 1 : i64, op = "all_gather", ranks = 4 : i64} : (memref<244xf32>, memref<64xf32>, memref<4xf32>, memref<4xf32>, memref<192xf32>, memref<976xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<768xf32>) -> ()
    %16 = exec.ref {offset = 12800 : i64, space = "arena"} : () -> memref<12xf32>
    %17 = exec.ref {offset = 13056 : i64, space = "arena"} : () -> memref<64xf32>
    %18 = exec.ref {offset = 13312 : i64, space = "arena"} : () -> memref<4xf32>
    %19 = exec.ref {offset = 13568 : i64, space = "arena"} : () -> memref<4xf32>
    %20 = exec.ref {offset = 13824 : i64, space = "arena"} : () -> memref<4xf32>
    %21 = exec.ref {offset = 14080 : i64, space = "arena"} : () -> memref<256xf32>
    %22 = exec.ref {offset = 15104 : i64, space = "arena"} : () -> memref<16xf32>
    %23 = exec.ref {offset = 15360 : i64, space = "arena"} : () -> memref<48xf32>
    %24 = exec.ref {offset = 15616 : i64, space = "arena"} : () -> memref<256xf32>
    %25 = exec.ref {offset = 16640 : i64, space = "arena"} : () -> memref<16xf32>
    %26 = exec.ref {offset = 16896 : i64, space = "arena"} : () -> memref<16xf32>
    %27 = exec.ref {offset = 17152 : i64, space = "arena"} : () -> memref<16xf32>
    %28 = exec.ref {offset = 17408 : i64, space = "arena"} : () -> memref<1024xf32>
    %29 = exec.ref {offset = 21504 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29 {group = "world", id = 2 : i64, op = "all_gather", ranks = 4 : i64} : (memref<12xf32>, memref<64xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<256xf32>, memref<16xf32>, memref<48xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    exec.wait {id = 1 : i64}
    %30 = exec.ref {offset = 21760 : i64, space = "arena"} : () -> memref<256xf32>
    %31 = exec.ref {offset = 22784 : i64, space = "arena"} : () -> memref<4xf32>
    %32 = exec.ref {offset = 23040 : i64, space = "arena"} : () -> memref<4xf32>
    %33 = exec.ref {offset = 23296 : i64, space = "arena"} : () -> memref<4xf32>
    %34 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<192xf32>
    %35 = exec.ref {offset = 24320 : i64, space = "arena"} : () -> memref<12xf32>
    %36 = exec.ref {offset = 24576 : i64, space = "arena"} : () -> memref<1024xf32>
    %37 = exec.ref {offset = 28672 : i64, space = "arena"} : () -> memref<16xf32>
    %38 = exec.ref {offset = 28928 : i64, space = "arena"} : () -> memref<16xf32>
    %39 = exec.ref {offset = 29184 : i64, space = "arena"} : () -> memref<16xf32>
    %40 = exec.ref {offset = 29440 : i64, space = "arena"} : () -> memref<768xf32>
    %41 = exec.ref {offset = 32512 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41 {group = "world", id = 3 : i64, op = "all_gather", ranks = 4 : i64} : (memref<256xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<192xf32>, memref<12xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<768xf32>, memref<48xf32>) -> ()
    exec.wait {id = 2 : i64}
    %42 = exec.ref {offset = 32768 : i64, space = "arena"} : () -> memref<64xf32>
    %43 = exec.ref {offset = 33024 : i64, space = "arena"} : () -> memref<4xf32>
    %44 = exec.ref {offset = 33280 : i64, space = "arena"} : () -> memref<4xf32>
    %45 = exec.ref {offset = 33536 : i64, space = "arena"} : () -> memref<4xf32>
    %46 = exec.ref {offset = 33792 : i64, space = "arena"} : () -> memref<256xf32>
    %47 = exec.ref {offset = 34816 : i64, space = "arena"} : () -> memref<16xf32>
    %48 = exec.ref {offset = 35072 : i64, space = "arena"} : () -> memref<256xf32>
    %49 = exec.ref {offset = 36096 : i64, space = "arena"} : () -> memref<16xf32>
    %50 = exec.ref {offset = 36352 : i64, space = "arena"} : () -> memref<16xf32>
    %51 = exec.ref {offset = 36608 : i64, space = "arena"} : () -> memref<16xf32>
    %52 = exec.ref {offset = 36864 : i64, space = "arena"} : () -> memref<1024xf32>
    %53 = exec.ref {offset = 40960 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53 {group = "world", id = 4 : i64, op = "all_gather", ranks = 4 : i64} : (memref<64xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<256xf32>, memref<16xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    exec.wait {id = 3 : i64}
    %54 = exec.ref {offset = 41216 : i64, space = "arena"} : () -> memref<256xf32>
    %55 = exec.ref {offset = 42240 : i64, space = "arena"} : () -> memref<4xf32>
    %56 = exec.ref {offset = 42496 : i64, space = "arena"} : () -> memref<4xf32>
    %57 = exec.ref {offset = 42752 : i64, space = "arena"} : () -> memref<4xf32>
    %58 = exec.ref {offset = 43008 : i64, space = "arena"} : () -> memref<1024xf32>
    %59 = exec.ref {offset = 47104 : i64, space = "arena"} : () -> memref<16xf32>
    %60 = exec.ref {offset = 47360 : i64, space = "arena"} : () -> memref<16xf32>
    %61 = exec.ref {offset = 47616 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %54, %55, %56, %57, %58, %59, %60, %61 {group = "world", id = 5 : i64, op = "all_gather", ranks = 4 : i64} : (memref<256xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    exec.wait {id = 4 : i64}
    exec.wait {id = 5 : i64}
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
