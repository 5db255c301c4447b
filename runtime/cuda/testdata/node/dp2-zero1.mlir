builtin.module {
  exec.func @accumulate attributes {arena = 53760 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<16xf32>
    %1 = exec.ref {offset = 256 : i64, space = "arena"} : () -> memref<16xf32>
    %2 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<16xf32>
    %3 = exec.ref {offset = 768 : i64, space = "arena"} : () -> memref<8xf32>
    %4 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<8xf32>
    %5 = exec.ref {offset = 1280 : i64, space = "arena"} : () -> memref<8xf32>
    exec.collective %0, %1, %2, %3, %4, %5 {group = "world", id = 0 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
    %6 = exec.ref {offset = 1536 : i64, space = "arena"} : () -> memref<1024xf32>
    %7 = exec.ref {offset = 5632 : i64, space = "arena"} : () -> memref<512xf32>
    exec.collective %6, %7 {group = "world", id = 1 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<1024xf32>, memref<512xf32>) -> ()
    exec.wait {id = 0 : i64}
    %8 = exec.ref {offset = 7680 : i64, space = "arena"} : () -> memref<64xf32>
    %9 = exec.ref {offset = 7936 : i64, space = "arena"} : () -> memref<32xf32>
    exec.collective %8, %9 {group = "world", id = 2 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<64xf32>, memref<32xf32>) -> ()
    exec.wait {id = 1 : i64}
    %10 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<1024xf32>
    %11 = exec.ref {offset = 12288 : i64, space = "arena"} : () -> memref<512xf32>
    exec.collective %10, %11 {group = "world", id = 3 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<1024xf32>, memref<512xf32>) -> ()
    exec.wait {id = 2 : i64}
    %12 = exec.ref {offset = 14336 : i64, space = "arena"} : () -> memref<16xf32>
    %13 = exec.ref {offset = 14592 : i64, space = "arena"} : () -> memref<16xf32>
    %14 = exec.ref {offset = 14848 : i64, space = "arena"} : () -> memref<16xf32>
    %15 = exec.ref {offset = 15104 : i64, space = "arena"} : () -> memref<256xf32>
    %16 = exec.ref {offset = 16128 : i64, space = "arena"} : () -> memref<48xf32>
    %17 = exec.ref {offset = 16384 : i64, space = "arena"} : () -> memref<8xf32>
    %18 = exec.ref {offset = 16640 : i64, space = "arena"} : () -> memref<8xf32>
    %19 = exec.ref {offset = 16896 : i64, space = "arena"} : () -> memref<8xf32>
    %20 = exec.ref {offset = 17152 : i64, space = "arena"} : () -> memref<128xf32>
    %21 = exec.ref {offset = 17664 : i64, space = "arena"} : () -> memref<24xf32>
    exec.collective %12, %13, %14, %15, %16, %17, %18, %19, %20, %21 {group = "world", id = 4 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<128xf32>, memref<24xf32>) -> ()
    exec.wait {id = 3 : i64}
    %22 = exec.ref {offset = 17920 : i64, space = "arena"} : () -> memref<768xf32>
    %23 = exec.ref {offset = 20992 : i64, space = "arena"} : () -> memref<384xf32>
    exec.collective %22, %23 {group = "world", id = 5 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<768xf32>, memref<384xf32>) -> ()
    exec.wait {id = 4 : i64}
    %24 = exec.ref {offset = 22528 : i64, space = "arena"} : () -> memref<16xf32>
    %25 = exec.ref {offset = 22784 : i64, space = "arena"} : () -> memref<16xf32>
    %26 = exec.ref {offset = 23040 : i64, space = "arena"} : () -> memref<16xf32>
    %27 = exec.ref {offset = 23296 : i64, space = "arena"} : () -> memref<8xf32>
    %28 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<8xf32>
    %29 = exec.ref {offset = 23808 : i64, space = "arena"} : () -> memref<8xf32>
    exec.collective %24, %25, %26, %27, %28, %29 {group = "world", id = 6 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>) -> ()
    exec.wait {id = 5 : i64}
    %30 = exec.ref {offset = 24064 : i64, space = "arena"} : () -> memref<1024xf32>
    %31 = exec.ref {offset = 28160 : i64, space = "arena"} : () -> memref<512xf32>
    exec.collective %30, %31 {group = "world", id = 7 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<1024xf32>, memref<512xf32>) -> ()
    exec.wait {id = 6 : i64}
    %32 = exec.ref {offset = 30208 : i64, space = "arena"} : () -> memref<64xf32>
    %33 = exec.ref {offset = 30464 : i64, space = "arena"} : () -> memref<32xf32>
    exec.collective %32, %33 {group = "world", id = 8 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<64xf32>, memref<32xf32>) -> ()
    exec.wait {id = 7 : i64}
    %34 = exec.ref {offset = 30720 : i64, space = "arena"} : () -> memref<1024xf32>
    %35 = exec.ref {offset = 34816 : i64, space = "arena"} : () -> memref<512xf32>
    exec.collective %34, %35 {group = "world", id = 9 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<1024xf32>, memref<512xf32>) -> ()
    exec.wait {id = 8 : i64}
    %36 = exec.ref {offset = 36864 : i64, space = "arena"} : () -> memref<16xf32>
    %37 = exec.ref {offset = 37120 : i64, space = "arena"} : () -> memref<16xf32>
    %38 = exec.ref {offset = 37376 : i64, space = "arena"} : () -> memref<16xf32>
    %39 = exec.ref {offset = 37632 : i64, space = "arena"} : () -> memref<256xf32>
    %40 = exec.ref {offset = 38656 : i64, space = "arena"} : () -> memref<48xf32>
    %41 = exec.ref {offset = 38912 : i64, space = "arena"} : () -> memref<8xf32>
    %42 = exec.ref {offset = 39168 : i64, space = "arena"} : () -> memref<8xf32>
    %43 = exec.ref {offset = 39424 : i64, space = "arena"} : () -> memref<8xf32>
    %44 = exec.ref {offset = 39680 : i64, space = "arena"} : () -> memref<128xf32>
    %45 = exec.ref {offset = 40192 : i64, space = "arena"} : () -> memref<24xf32>
    exec.collective %36, %37, %38, %39, %40, %41, %42, %43, %44, %45 {group = "world", id = 10 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<128xf32>, memref<24xf32>) -> ()
    exec.wait {id = 9 : i64}
    %46 = exec.ref {offset = 40448 : i64, space = "arena"} : () -> memref<768xf32>
    %47 = exec.ref {offset = 43520 : i64, space = "arena"} : () -> memref<384xf32>
    exec.collective %46, %47 {group = "world", id = 11 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<768xf32>, memref<384xf32>) -> ()
    exec.wait {id = 10 : i64}
    %48 = exec.ref {offset = 45056 : i64, space = "arena"} : () -> memref<16xf32>
    %49 = exec.ref {offset = 45312 : i64, space = "arena"} : () -> memref<16xf32>
    %50 = exec.ref {offset = 45568 : i64, space = "arena"} : () -> memref<256xf32>
    %51 = exec.ref {offset = 46592 : i64, space = "arena"} : () -> memref<8xf32>
    %52 = exec.ref {offset = 46848 : i64, space = "arena"} : () -> memref<8xf32>
    %53 = exec.ref {offset = 47104 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %48, %49, %50, %51, %52, %53 {group = "world", id = 12 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<8xf32>, memref<8xf32>, memref<128xf32>) -> ()
    exec.wait {id = 11 : i64}
    %54 = exec.ref {offset = 47616 : i64, space = "arena"} : () -> memref<976xf32>
    %55 = exec.ref {offset = 51712 : i64, space = "arena"} : () -> memref<488xf32>
    exec.collective %54, %55 {group = "world", id = 13 : i64, op = "reduce_scatter", ranks = 2 : i64} : (memref<976xf32>, memref<488xf32>) -> ()
    exec.wait {id = 12 : i64}
    exec.wait {id = 13 : i64}
    exec.end
  }
  exec.func @apply attributes {arena = 55296 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<1xf32>
    %1 = exec.ref {offset = 256 : i64, space = "arena"} : () -> memref<1xf32>
    %2 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<1xf32>
    %3 = exec.ref {offset = 768 : i64, space = "arena"} : () -> memref<1xf32>
    %4 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<1xf32>
    %5 = exec.ref {offset = 1280 : i64, space = "arena"} : () -> memref<1xf32>
    exec.collective %0, %1, %2, %3, %4, %5 {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>) -> ()
    exec.wait {id = 0 : i64}
    %6 = exec.ref {offset = 1536 : i64, space = "arena"} : () -> memref<488xf32>
    %7 = exec.ref {offset = 3584 : i64, space = "arena"} : () -> memref<128xf32>
    %8 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<8xf32>
    %9 = exec.ref {offset = 4352 : i64, space = "arena"} : () -> memref<8xf32>
    %10 = exec.ref {offset = 4608 : i64, space = "arena"} : () -> memref<384xf32>
    %11 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<976xf32>
    %12 = exec.ref {offset = 10240 : i64, space = "arena"} : () -> memref<256xf32>
    %13 = exec.ref {offset = 11264 : i64, space = "arena"} : () -> memref<16xf32>
    %14 = exec.ref {offset = 11520 : i64, space = "arena"} : () -> memref<16xf32>
    %15 = exec.ref {offset = 11776 : i64, space = "arena"} : () -> memref<768xf32>
    exec.collective %6, %7, %8, %9, %10, %11, %12, %13, %14, %15 {group = "world", id = 1 : i64, op = "all_gather", ranks = 2 : i64} : (memref<488xf32>, memref<128xf32>, memref<8xf32>, memref<8xf32>, memref<384xf32>, memref<976xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<768xf32>) -> ()
    %16 = exec.ref {offset = 14848 : i64, space = "arena"} : () -> memref<24xf32>
    %17 = exec.ref {offset = 15104 : i64, space = "arena"} : () -> memref<128xf32>
    %18 = exec.ref {offset = 15616 : i64, space = "arena"} : () -> memref<8xf32>
    %19 = exec.ref {offset = 15872 : i64, space = "arena"} : () -> memref<8xf32>
    %20 = exec.ref {offset = 16128 : i64, space = "arena"} : () -> memref<8xf32>
    %21 = exec.ref {offset = 16384 : i64, space = "arena"} : () -> memref<512xf32>
    %22 = exec.ref {offset = 18432 : i64, space = "arena"} : () -> memref<32xf32>
    %23 = exec.ref {offset = 18688 : i64, space = "arena"} : () -> memref<48xf32>
    %24 = exec.ref {offset = 18944 : i64, space = "arena"} : () -> memref<256xf32>
    %25 = exec.ref {offset = 19968 : i64, space = "arena"} : () -> memref<16xf32>
    %26 = exec.ref {offset = 20224 : i64, space = "arena"} : () -> memref<16xf32>
    %27 = exec.ref {offset = 20480 : i64, space = "arena"} : () -> memref<16xf32>
    %28 = exec.ref {offset = 20736 : i64, space = "arena"} : () -> memref<1024xf32>
    %29 = exec.ref {offset = 24832 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29 {group = "world", id = 2 : i64, op = "all_gather", ranks = 2 : i64} : (memref<24xf32>, memref<128xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<512xf32>, memref<32xf32>, memref<48xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    exec.wait {id = 1 : i64}
    %30 = exec.ref {offset = 25088 : i64, space = "arena"} : () -> memref<512xf32>
    %31 = exec.ref {offset = 27136 : i64, space = "arena"} : () -> memref<8xf32>
    %32 = exec.ref {offset = 27392 : i64, space = "arena"} : () -> memref<8xf32>
    %33 = exec.ref {offset = 27648 : i64, space = "arena"} : () -> memref<8xf32>
    %34 = exec.ref {offset = 27904 : i64, space = "arena"} : () -> memref<384xf32>
    %35 = exec.ref {offset = 29440 : i64, space = "arena"} : () -> memref<24xf32>
    %36 = exec.ref {offset = 29696 : i64, space = "arena"} : () -> memref<1024xf32>
    %37 = exec.ref {offset = 33792 : i64, space = "arena"} : () -> memref<16xf32>
    %38 = exec.ref {offset = 34048 : i64, space = "arena"} : () -> memref<16xf32>
    %39 = exec.ref {offset = 34304 : i64, space = "arena"} : () -> memref<16xf32>
    %40 = exec.ref {offset = 34560 : i64, space = "arena"} : () -> memref<768xf32>
    %41 = exec.ref {offset = 37632 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41 {group = "world", id = 3 : i64, op = "all_gather", ranks = 2 : i64} : (memref<512xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<384xf32>, memref<24xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<768xf32>, memref<48xf32>) -> ()
    exec.wait {id = 2 : i64}
    %42 = exec.ref {offset = 37888 : i64, space = "arena"} : () -> memref<128xf32>
    %43 = exec.ref {offset = 38400 : i64, space = "arena"} : () -> memref<8xf32>
    %44 = exec.ref {offset = 38656 : i64, space = "arena"} : () -> memref<8xf32>
    %45 = exec.ref {offset = 38912 : i64, space = "arena"} : () -> memref<8xf32>
    %46 = exec.ref {offset = 39168 : i64, space = "arena"} : () -> memref<512xf32>
    %47 = exec.ref {offset = 41216 : i64, space = "arena"} : () -> memref<32xf32>
    %48 = exec.ref {offset = 41472 : i64, space = "arena"} : () -> memref<256xf32>
    %49 = exec.ref {offset = 42496 : i64, space = "arena"} : () -> memref<16xf32>
    %50 = exec.ref {offset = 42752 : i64, space = "arena"} : () -> memref<16xf32>
    %51 = exec.ref {offset = 43008 : i64, space = "arena"} : () -> memref<16xf32>
    %52 = exec.ref {offset = 43264 : i64, space = "arena"} : () -> memref<1024xf32>
    %53 = exec.ref {offset = 47360 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53 {group = "world", id = 4 : i64, op = "all_gather", ranks = 2 : i64} : (memref<128xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<512xf32>, memref<32xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    exec.wait {id = 3 : i64}
    %54 = exec.ref {offset = 47616 : i64, space = "arena"} : () -> memref<512xf32>
    %55 = exec.ref {offset = 49664 : i64, space = "arena"} : () -> memref<8xf32>
    %56 = exec.ref {offset = 49920 : i64, space = "arena"} : () -> memref<8xf32>
    %57 = exec.ref {offset = 50176 : i64, space = "arena"} : () -> memref<8xf32>
    %58 = exec.ref {offset = 50432 : i64, space = "arena"} : () -> memref<1024xf32>
    %59 = exec.ref {offset = 54528 : i64, space = "arena"} : () -> memref<16xf32>
    %60 = exec.ref {offset = 54784 : i64, space = "arena"} : () -> memref<16xf32>
    %61 = exec.ref {offset = 55040 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %54, %55, %56, %57, %58, %59, %60, %61 {group = "world", id = 5 : i64, op = "all_gather", ranks = 2 : i64} : (memref<512xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    exec.wait {id = 4 : i64}
    exec.wait {id = 5 : i64}
    exec.end
  }
  exec.func @eval attributes {arena = 1024 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<1xf32>
    %1 = exec.ref {offset = 256 : i64, space = "arena"} : () -> memref<1xf32>
    %2 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<1xf32>
    %3 = exec.ref {offset = 768 : i64, space = "arena"} : () -> memref<1xf32>
    exec.collective %0, %1, %2, %3 {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>) -> ()
    exec.wait {id = 0 : i64}
    exec.end
  }
}
