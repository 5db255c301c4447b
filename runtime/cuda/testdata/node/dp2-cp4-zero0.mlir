builtin.module {
  exec.func @accumulate attributes {arena = 36864 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<128xf32>
    %1 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<128xf32>
    %2 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<128xf32>
    %3 = exec.ref {offset = 1536 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %0, %1, %2, %3 {group = "cp", id = 0 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 0 : i64}
    %4 = exec.ref {offset = 2048 : i64, space = "arena"} : () -> memref<128xf32>
    %5 = exec.ref {offset = 2560 : i64, space = "arena"} : () -> memref<128xf32>
    %6 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<128xf32>
    %7 = exec.ref {offset = 3584 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %4, %5, %6, %7 {group = "cp", id = 1 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 1 : i64}
    %8 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<128xf32>
    %9 = exec.ref {offset = 4608 : i64, space = "arena"} : () -> memref<128xf32>
    %10 = exec.ref {offset = 5120 : i64, space = "arena"} : () -> memref<128xf32>
    %11 = exec.ref {offset = 5632 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %8, %9, %10, %11 {group = "cp", id = 2 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 2 : i64}
    %12 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<128xf32>
    %13 = exec.ref {offset = 6656 : i64, space = "arena"} : () -> memref<128xf32>
    %14 = exec.ref {offset = 7168 : i64, space = "arena"} : () -> memref<128xf32>
    %15 = exec.ref {offset = 7680 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %12, %13, %14, %15 {group = "cp", id = 3 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 3 : i64}
    %16 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<128xf32>
    %17 = exec.ref {offset = 8704 : i64, space = "arena"} : () -> memref<128xf32>
    %18 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<128xf32>
    %19 = exec.ref {offset = 9728 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %16, %17, %18, %19 {group = "cp", id = 4 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 4 : i64}
    %20 = exec.ref {offset = 10240 : i64, space = "arena"} : () -> memref<128xf32>
    %21 = exec.ref {offset = 10752 : i64, space = "arena"} : () -> memref<128xf32>
    %22 = exec.ref {offset = 11264 : i64, space = "arena"} : () -> memref<128xf32>
    %23 = exec.ref {offset = 11776 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %20, %21, %22, %23 {group = "cp", id = 5 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 5 : i64}
    %24 = exec.ref {offset = 12288 : i64, space = "arena"} : () -> memref<128xf32>
    %25 = exec.ref {offset = 12800 : i64, space = "arena"} : () -> memref<128xf32>
    %26 = exec.ref {offset = 13312 : i64, space = "arena"} : () -> memref<128xf32>
    %27 = exec.ref {offset = 13824 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %24, %25, %26, %27 {group = "cp", id = 6 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 6 : i64}
    %28 = exec.ref {offset = 14336 : i64, space = "arena"} : () -> memref<128xf32>
    %29 = exec.ref {offset = 14848 : i64, space = "arena"} : () -> memref<128xf32>
    %30 = exec.ref {offset = 15360 : i64, space = "arena"} : () -> memref<128xf32>
    %31 = exec.ref {offset = 15872 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %28, %29, %30, %31 {group = "cp", id = 7 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    %32 = exec.ref {offset = 16384 : i64, space = "arena"} : () -> memref<128xf32>
    %33 = exec.ref {offset = 16896 : i64, space = "arena"} : () -> memref<128xf32>
    %34 = exec.ref {offset = 17408 : i64, space = "arena"} : () -> memref<128xf32>
    %35 = exec.ref {offset = 17920 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %32, %33, %34, %35 {group = "cp", id = 8 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 7 : i64}
    %36 = exec.ref {offset = 18432 : i64, space = "arena"} : () -> memref<128xf32>
    %37 = exec.ref {offset = 18944 : i64, space = "arena"} : () -> memref<128xf32>
    %38 = exec.ref {offset = 19456 : i64, space = "arena"} : () -> memref<128xf32>
    %39 = exec.ref {offset = 19968 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %36, %37, %38, %39 {group = "cp", id = 9 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 8 : i64}
    %40 = exec.ref {offset = 20480 : i64, space = "arena"} : () -> memref<128xf32>
    %41 = exec.ref {offset = 20992 : i64, space = "arena"} : () -> memref<128xf32>
    %42 = exec.ref {offset = 21504 : i64, space = "arena"} : () -> memref<128xf32>
    %43 = exec.ref {offset = 22016 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %40, %41, %42, %43 {group = "cp", id = 10 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 9 : i64}
    exec.wait {id = 10 : i64}
    %44 = exec.ref {offset = 22528 : i64, space = "arena"} : () -> memref<128xf32>
    %45 = exec.ref {offset = 23040 : i64, space = "arena"} : () -> memref<128xf32>
    %46 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<128xf32>
    %47 = exec.ref {offset = 24064 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %44, %45, %46, %47 {group = "cp", id = 11 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 11 : i64}
    %48 = exec.ref {offset = 24576 : i64, space = "arena"} : () -> memref<128xf32>
    %49 = exec.ref {offset = 25088 : i64, space = "arena"} : () -> memref<128xf32>
    %50 = exec.ref {offset = 25600 : i64, space = "arena"} : () -> memref<128xf32>
    %51 = exec.ref {offset = 26112 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %48, %49, %50, %51 {group = "cp", id = 12 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 12 : i64}
    %52 = exec.ref {offset = 26624 : i64, space = "arena"} : () -> memref<128xf32>
    %53 = exec.ref {offset = 27136 : i64, space = "arena"} : () -> memref<128xf32>
    %54 = exec.ref {offset = 27648 : i64, space = "arena"} : () -> memref<128xf32>
    %55 = exec.ref {offset = 28160 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %52, %53, %54, %55 {group = "cp", id = 13 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    %56 = exec.ref {offset = 28672 : i64, space = "arena"} : () -> memref<128xf32>
    %57 = exec.ref {offset = 29184 : i64, space = "arena"} : () -> memref<128xf32>
    %58 = exec.ref {offset = 29696 : i64, space = "arena"} : () -> memref<128xf32>
    %59 = exec.ref {offset = 30208 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %56, %57, %58, %59 {group = "cp", id = 14 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 13 : i64}
    %60 = exec.ref {offset = 30720 : i64, space = "arena"} : () -> memref<128xf32>
    %61 = exec.ref {offset = 31232 : i64, space = "arena"} : () -> memref<128xf32>
    %62 = exec.ref {offset = 31744 : i64, space = "arena"} : () -> memref<128xf32>
    %63 = exec.ref {offset = 32256 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %60, %61, %62, %63 {group = "cp", id = 15 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 14 : i64}
    %64 = exec.ref {offset = 32768 : i64, space = "arena"} : () -> memref<128xf32>
    %65 = exec.ref {offset = 33280 : i64, space = "arena"} : () -> memref<128xf32>
    %66 = exec.ref {offset = 33792 : i64, space = "arena"} : () -> memref<128xf32>
    %67 = exec.ref {offset = 34304 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %64, %65, %66, %67 {group = "cp", id = 16 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 15 : i64}
    exec.wait {id = 16 : i64}
    %68 = exec.ref {offset = 34816 : i64, space = "arena"} : () -> memref<128xf32>
    %69 = exec.ref {offset = 35328 : i64, space = "arena"} : () -> memref<128xf32>
    %70 = exec.ref {offset = 35840 : i64, space = "arena"} : () -> memref<128xf32>
    %71 = exec.ref {offset = 36352 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %68, %69, %70, %71 {group = "cp", id = 17 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 17 : i64}
    exec.end
  }
  exec.func @accumulate_last attributes {arena = 106496 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<128xf32>
    %1 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<128xf32>
    %2 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<128xf32>
    %3 = exec.ref {offset = 1536 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %0, %1, %2, %3 {group = "cp", id = 0 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 0 : i64}
    %4 = exec.ref {offset = 2048 : i64, space = "arena"} : () -> memref<128xf32>
    %5 = exec.ref {offset = 2560 : i64, space = "arena"} : () -> memref<128xf32>
    %6 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<128xf32>
    %7 = exec.ref {offset = 3584 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %4, %5, %6, %7 {group = "cp", id = 1 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 1 : i64}
    %8 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<128xf32>
    %9 = exec.ref {offset = 4608 : i64, space = "arena"} : () -> memref<128xf32>
    %10 = exec.ref {offset = 5120 : i64, space = "arena"} : () -> memref<128xf32>
    %11 = exec.ref {offset = 5632 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %8, %9, %10, %11 {group = "cp", id = 2 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 2 : i64}
    %12 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<128xf32>
    %13 = exec.ref {offset = 6656 : i64, space = "arena"} : () -> memref<128xf32>
    %14 = exec.ref {offset = 7168 : i64, space = "arena"} : () -> memref<128xf32>
    %15 = exec.ref {offset = 7680 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %12, %13, %14, %15 {group = "cp", id = 3 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 3 : i64}
    %16 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<128xf32>
    %17 = exec.ref {offset = 8704 : i64, space = "arena"} : () -> memref<128xf32>
    %18 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<128xf32>
    %19 = exec.ref {offset = 9728 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %16, %17, %18, %19 {group = "cp", id = 4 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 4 : i64}
    %20 = exec.ref {offset = 10240 : i64, space = "arena"} : () -> memref<128xf32>
    %21 = exec.ref {offset = 10752 : i64, space = "arena"} : () -> memref<128xf32>
    %22 = exec.ref {offset = 11264 : i64, space = "arena"} : () -> memref<128xf32>
    %23 = exec.ref {offset = 11776 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %20, %21, %22, %23 {group = "cp", id = 5 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 5 : i64}
    %24 = exec.ref {offset = 12288 : i64, space = "arena"} : () -> memref<1xf32>
    %25 = exec.ref {offset = 12544 : i64, space = "arena"} : () -> memref<1xf32>
    %26 = exec.ref {offset = 12800 : i64, space = "arena"} : () -> memref<16xf32>
    %27 = exec.ref {offset = 13056 : i64, space = "arena"} : () -> memref<16xf32>
    %28 = exec.ref {offset = 13312 : i64, space = "arena"} : () -> memref<16xf32>
    %29 = exec.ref {offset = 13568 : i64, space = "arena"} : () -> memref<1024xf32>
    %30 = exec.ref {offset = 17664 : i64, space = "arena"} : () -> memref<64xf32>
    %31 = exec.ref {offset = 17920 : i64, space = "arena"} : () -> memref<1xf32>
    %32 = exec.ref {offset = 18176 : i64, space = "arena"} : () -> memref<1xf32>
    %33 = exec.ref {offset = 18432 : i64, space = "arena"} : () -> memref<16xf32>
    %34 = exec.ref {offset = 18688 : i64, space = "arena"} : () -> memref<16xf32>
    %35 = exec.ref {offset = 18944 : i64, space = "arena"} : () -> memref<16xf32>
    %36 = exec.ref {offset = 19200 : i64, space = "arena"} : () -> memref<1024xf32>
    %37 = exec.ref {offset = 23296 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37 {group = "world", id = 6 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>, memref<1xf32>, memref<1xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    %38 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<128xf32>
    %39 = exec.ref {offset = 24064 : i64, space = "arena"} : () -> memref<128xf32>
    %40 = exec.ref {offset = 24576 : i64, space = "arena"} : () -> memref<128xf32>
    %41 = exec.ref {offset = 25088 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %38, %39, %40, %41 {group = "cp", id = 7 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 7 : i64}
    %42 = exec.ref {offset = 25600 : i64, space = "arena"} : () -> memref<128xf32>
    %43 = exec.ref {offset = 26112 : i64, space = "arena"} : () -> memref<128xf32>
    %44 = exec.ref {offset = 26624 : i64, space = "arena"} : () -> memref<128xf32>
    %45 = exec.ref {offset = 27136 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %42, %43, %44, %45 {group = "cp", id = 8 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    %46 = exec.ref {offset = 27648 : i64, space = "arena"} : () -> memref<128xf32>
    %47 = exec.ref {offset = 28160 : i64, space = "arena"} : () -> memref<128xf32>
    %48 = exec.ref {offset = 28672 : i64, space = "arena"} : () -> memref<128xf32>
    %49 = exec.ref {offset = 29184 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %46, %47, %48, %49 {group = "cp", id = 9 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 8 : i64}
    %50 = exec.ref {offset = 29696 : i64, space = "arena"} : () -> memref<128xf32>
    %51 = exec.ref {offset = 30208 : i64, space = "arena"} : () -> memref<128xf32>
    %52 = exec.ref {offset = 30720 : i64, space = "arena"} : () -> memref<128xf32>
    %53 = exec.ref {offset = 31232 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %50, %51, %52, %53 {group = "cp", id = 10 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 9 : i64}
    %54 = exec.ref {offset = 31744 : i64, space = "arena"} : () -> memref<128xf32>
    %55 = exec.ref {offset = 32256 : i64, space = "arena"} : () -> memref<128xf32>
    %56 = exec.ref {offset = 32768 : i64, space = "arena"} : () -> memref<128xf32>
    %57 = exec.ref {offset = 33280 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %54, %55, %56, %57 {group = "cp", id = 11 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 10 : i64}
    exec.wait {id = 11 : i64}
    %58 = exec.ref {offset = 33792 : i64, space = "arena"} : () -> memref<128xf32>
    %59 = exec.ref {offset = 34304 : i64, space = "arena"} : () -> memref<128xf32>
    %60 = exec.ref {offset = 34816 : i64, space = "arena"} : () -> memref<128xf32>
    %61 = exec.ref {offset = 35328 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %58, %59, %60, %61 {group = "cp", id = 12 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 12 : i64}
    %62 = exec.ref {offset = 35840 : i64, space = "arena"} : () -> memref<1024xf32>
    %63 = exec.ref {offset = 39936 : i64, space = "arena"} : () -> memref<16xf32>
    %64 = exec.ref {offset = 40192 : i64, space = "arena"} : () -> memref<16xf32>
    %65 = exec.ref {offset = 40448 : i64, space = "arena"} : () -> memref<16xf32>
    %66 = exec.ref {offset = 40704 : i64, space = "arena"} : () -> memref<256xf32>
    %67 = exec.ref {offset = 41728 : i64, space = "arena"} : () -> memref<48xf32>
    %68 = exec.ref {offset = 41984 : i64, space = "arena"} : () -> memref<1024xf32>
    %69 = exec.ref {offset = 46080 : i64, space = "arena"} : () -> memref<16xf32>
    %70 = exec.ref {offset = 46336 : i64, space = "arena"} : () -> memref<16xf32>
    %71 = exec.ref {offset = 46592 : i64, space = "arena"} : () -> memref<16xf32>
    %72 = exec.ref {offset = 46848 : i64, space = "arena"} : () -> memref<256xf32>
    %73 = exec.ref {offset = 47872 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73 {group = "world", id = 13 : i64, op = "all_reduce"} : (memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>) -> ()
    %74 = exec.ref {offset = 48128 : i64, space = "arena"} : () -> memref<768xf32>
    %75 = exec.ref {offset = 51200 : i64, space = "arena"} : () -> memref<16xf32>
    %76 = exec.ref {offset = 51456 : i64, space = "arena"} : () -> memref<16xf32>
    %77 = exec.ref {offset = 51712 : i64, space = "arena"} : () -> memref<16xf32>
    %78 = exec.ref {offset = 51968 : i64, space = "arena"} : () -> memref<1024xf32>
    %79 = exec.ref {offset = 56064 : i64, space = "arena"} : () -> memref<64xf32>
    %80 = exec.ref {offset = 56320 : i64, space = "arena"} : () -> memref<768xf32>
    %81 = exec.ref {offset = 59392 : i64, space = "arena"} : () -> memref<16xf32>
    %82 = exec.ref {offset = 59648 : i64, space = "arena"} : () -> memref<16xf32>
    %83 = exec.ref {offset = 59904 : i64, space = "arena"} : () -> memref<16xf32>
    %84 = exec.ref {offset = 60160 : i64, space = "arena"} : () -> memref<1024xf32>
    %85 = exec.ref {offset = 64256 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85 {group = "world", id = 14 : i64, op = "all_reduce"} : (memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>, memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    %86 = exec.ref {offset = 64512 : i64, space = "arena"} : () -> memref<128xf32>
    %87 = exec.ref {offset = 65024 : i64, space = "arena"} : () -> memref<128xf32>
    %88 = exec.ref {offset = 65536 : i64, space = "arena"} : () -> memref<128xf32>
    %89 = exec.ref {offset = 66048 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %86, %87, %88, %89 {group = "cp", id = 15 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 15 : i64}
    %90 = exec.ref {offset = 66560 : i64, space = "arena"} : () -> memref<128xf32>
    %91 = exec.ref {offset = 67072 : i64, space = "arena"} : () -> memref<128xf32>
    %92 = exec.ref {offset = 67584 : i64, space = "arena"} : () -> memref<128xf32>
    %93 = exec.ref {offset = 68096 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %90, %91, %92, %93 {group = "cp", id = 16 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    %94 = exec.ref {offset = 68608 : i64, space = "arena"} : () -> memref<128xf32>
    %95 = exec.ref {offset = 69120 : i64, space = "arena"} : () -> memref<128xf32>
    %96 = exec.ref {offset = 69632 : i64, space = "arena"} : () -> memref<128xf32>
    %97 = exec.ref {offset = 70144 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %94, %95, %96, %97 {group = "cp", id = 17 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 16 : i64}
    %98 = exec.ref {offset = 70656 : i64, space = "arena"} : () -> memref<128xf32>
    %99 = exec.ref {offset = 71168 : i64, space = "arena"} : () -> memref<128xf32>
    %100 = exec.ref {offset = 71680 : i64, space = "arena"} : () -> memref<128xf32>
    %101 = exec.ref {offset = 72192 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %98, %99, %100, %101 {group = "cp", id = 18 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 17 : i64}
    %102 = exec.ref {offset = 72704 : i64, space = "arena"} : () -> memref<128xf32>
    %103 = exec.ref {offset = 73216 : i64, space = "arena"} : () -> memref<128xf32>
    %104 = exec.ref {offset = 73728 : i64, space = "arena"} : () -> memref<128xf32>
    %105 = exec.ref {offset = 74240 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %102, %103, %104, %105 {group = "cp", id = 19 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 18 : i64}
    exec.wait {id = 19 : i64}
    %106 = exec.ref {offset = 74752 : i64, space = "arena"} : () -> memref<128xf32>
    %107 = exec.ref {offset = 75264 : i64, space = "arena"} : () -> memref<128xf32>
    %108 = exec.ref {offset = 75776 : i64, space = "arena"} : () -> memref<128xf32>
    %109 = exec.ref {offset = 76288 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %106, %107, %108, %109 {group = "cp", id = 20 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 20 : i64}
    %110 = exec.ref {offset = 76800 : i64, space = "arena"} : () -> memref<1024xf32>
    %111 = exec.ref {offset = 80896 : i64, space = "arena"} : () -> memref<16xf32>
    %112 = exec.ref {offset = 81152 : i64, space = "arena"} : () -> memref<16xf32>
    %113 = exec.ref {offset = 81408 : i64, space = "arena"} : () -> memref<16xf32>
    %114 = exec.ref {offset = 81664 : i64, space = "arena"} : () -> memref<256xf32>
    %115 = exec.ref {offset = 82688 : i64, space = "arena"} : () -> memref<48xf32>
    %116 = exec.ref {offset = 82944 : i64, space = "arena"} : () -> memref<1024xf32>
    %117 = exec.ref {offset = 87040 : i64, space = "arena"} : () -> memref<16xf32>
    %118 = exec.ref {offset = 87296 : i64, space = "arena"} : () -> memref<16xf32>
    %119 = exec.ref {offset = 87552 : i64, space = "arena"} : () -> memref<16xf32>
    %120 = exec.ref {offset = 87808 : i64, space = "arena"} : () -> memref<256xf32>
    %121 = exec.ref {offset = 88832 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121 {group = "world", id = 21 : i64, op = "all_reduce"} : (memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>) -> ()
    %122 = exec.ref {offset = 89088 : i64, space = "arena"} : () -> memref<768xf32>
    %123 = exec.ref {offset = 92160 : i64, space = "arena"} : () -> memref<16xf32>
    %124 = exec.ref {offset = 92416 : i64, space = "arena"} : () -> memref<16xf32>
    %125 = exec.ref {offset = 92672 : i64, space = "arena"} : () -> memref<768xf32>
    %126 = exec.ref {offset = 95744 : i64, space = "arena"} : () -> memref<16xf32>
    %127 = exec.ref {offset = 96000 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %122, %123, %124, %125, %126, %127 {group = "world", id = 22 : i64, op = "all_reduce"} : (memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<768xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %128 = exec.ref {offset = 96256 : i64, space = "arena"} : () -> memref<976xf32>
    %129 = exec.ref {offset = 100352 : i64, space = "arena"} : () -> memref<976xf32>
    exec.collective %128, %129 {group = "world", id = 23 : i64, op = "all_reduce"} : (memref<976xf32>, memref<976xf32>) -> ()
    %130 = exec.ref {offset = 104448 : i64, space = "arena"} : () -> memref<256xf32>
    %131 = exec.ref {offset = 105472 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %130, %131 {group = "world", id = 24 : i64, op = "all_reduce"} : (memref<256xf32>, memref<256xf32>) -> ()
    exec.wait {id = 6 : i64}
    exec.wait {id = 13 : i64}
    exec.wait {id = 14 : i64}
    exec.wait {id = 21 : i64}
    exec.wait {id = 22 : i64}
    exec.wait {id = 23 : i64}
    exec.wait {id = 24 : i64}
    exec.end
  }
  exec.func @eval attributes {arena = 13312 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<128xf32>
    %1 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<128xf32>
    %2 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<128xf32>
    %3 = exec.ref {offset = 1536 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %0, %1, %2, %3 {group = "cp", id = 0 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 0 : i64}
    %4 = exec.ref {offset = 2048 : i64, space = "arena"} : () -> memref<128xf32>
    %5 = exec.ref {offset = 2560 : i64, space = "arena"} : () -> memref<128xf32>
    %6 = exec.ref {offset = 3072 : i64, space = "arena"} : () -> memref<128xf32>
    %7 = exec.ref {offset = 3584 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %4, %5, %6, %7 {group = "cp", id = 1 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 1 : i64}
    %8 = exec.ref {offset = 4096 : i64, space = "arena"} : () -> memref<128xf32>
    %9 = exec.ref {offset = 4608 : i64, space = "arena"} : () -> memref<128xf32>
    %10 = exec.ref {offset = 5120 : i64, space = "arena"} : () -> memref<128xf32>
    %11 = exec.ref {offset = 5632 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %8, %9, %10, %11 {group = "cp", id = 2 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 2 : i64}
    %12 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<128xf32>
    %13 = exec.ref {offset = 6656 : i64, space = "arena"} : () -> memref<128xf32>
    %14 = exec.ref {offset = 7168 : i64, space = "arena"} : () -> memref<128xf32>
    %15 = exec.ref {offset = 7680 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %12, %13, %14, %15 {group = "cp", id = 3 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 3 : i64}
    %16 = exec.ref {offset = 8192 : i64, space = "arena"} : () -> memref<128xf32>
    %17 = exec.ref {offset = 8704 : i64, space = "arena"} : () -> memref<128xf32>
    %18 = exec.ref {offset = 9216 : i64, space = "arena"} : () -> memref<128xf32>
    %19 = exec.ref {offset = 9728 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %16, %17, %18, %19 {group = "cp", id = 4 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 4 : i64}
    %20 = exec.ref {offset = 10240 : i64, space = "arena"} : () -> memref<128xf32>
    %21 = exec.ref {offset = 10752 : i64, space = "arena"} : () -> memref<128xf32>
    %22 = exec.ref {offset = 11264 : i64, space = "arena"} : () -> memref<128xf32>
    %23 = exec.ref {offset = 11776 : i64, space = "arena"} : () -> memref<128xf32>
    exec.collective %20, %21, %22, %23 {group = "cp", id = 5 : i64, op = "permute", ranks = 4 : i64, shift = 1 : i64} : (memref<128xf32>, memref<128xf32>, memref<128xf32>, memref<128xf32>) -> ()
    exec.wait {id = 5 : i64}
    %24 = exec.ref {offset = 12288 : i64, space = "arena"} : () -> memref<1xf32>
    %25 = exec.ref {offset = 12544 : i64, space = "arena"} : () -> memref<1xf32>
    %26 = exec.ref {offset = 12800 : i64, space = "arena"} : () -> memref<1xf32>
    %27 = exec.ref {offset = 13056 : i64, space = "arena"} : () -> memref<1xf32>
    exec.collective %24, %25, %26, %27 {group = "world", id = 6 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<1xf32>, memref<1xf32>) -> ()
    exec.wait {id = 6 : i64}
    exec.end
  }
}
