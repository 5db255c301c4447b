builtin.module {
  exec.func @accumulate_last attributes {arena = 69632 : i64} {
    %0 = exec.ref {offset = 0 : i64, space = "arena"} : () -> memref<1xf32>
    %1 = exec.ref {offset = 256 : i64, space = "arena"} : () -> memref<1xf32>
    %2 = exec.ref {offset = 512 : i64, space = "arena"} : () -> memref<16xf32>
    %3 = exec.ref {offset = 768 : i64, space = "arena"} : () -> memref<16xf32>
    %4 = exec.ref {offset = 1024 : i64, space = "arena"} : () -> memref<16xf32>
    %5 = exec.ref {offset = 1280 : i64, space = "arena"} : () -> memref<1024xf32>
    %6 = exec.ref {offset = 5376 : i64, space = "arena"} : () -> memref<64xf32>
    %7 = exec.ref {offset = 5632 : i64, space = "arena"} : () -> memref<1xf32>
    %8 = exec.ref {offset = 5888 : i64, space = "arena"} : () -> memref<1xf32>
    %9 = exec.ref {offset = 6144 : i64, space = "arena"} : () -> memref<16xf32>
    %10 = exec.ref {offset = 6400 : i64, space = "arena"} : () -> memref<16xf32>
    %11 = exec.ref {offset = 6656 : i64, space = "arena"} : () -> memref<16xf32>
    %12 = exec.ref {offset = 6912 : i64, space = "arena"} : () -> memref<1024xf32>
    %13 = exec.ref {offset = 11008 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13 {group = "world", id = 0 : i64, op = "all_reduce"} : (memref<1xf32>, memref<1xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>, memref<1xf32>, memref<1xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    %14 = exec.ref {offset = 11264 : i64, space = "arena"} : () -> memref<1024xf32>
    %15 = exec.ref {offset = 15360 : i64, space = "arena"} : () -> memref<16xf32>
    %16 = exec.ref {offset = 15616 : i64, space = "arena"} : () -> memref<16xf32>
    %17 = exec.ref {offset = 15872 : i64, space = "arena"} : () -> memref<16xf32>
    %18 = exec.ref {offset = 16128 : i64, space = "arena"} : () -> memref<256xf32>
    %19 = exec.ref {offset = 17152 : i64, space = "arena"} : () -> memref<48xf32>
    %20 = exec.ref {offset = 17408 : i64, space = "arena"} : () -> memref<1024xf32>
    %21 = exec.ref {offset = 21504 : i64, space = "arena"} : () -> memref<16xf32>
    %22 = exec.ref {offset = 21760 : i64, space = "arena"} : () -> memref<16xf32>
    %23 = exec.ref {offset = 22016 : i64, space = "arena"} : () -> memref<16xf32>
    %24 = exec.ref {offset = 22272 : i64, space = "arena"} : () -> memref<256xf32>
    %25 = exec.ref {offset = 23296 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25 {group = "world", id = 1 : i64, op = "all_reduce"} : (memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<48xf32>) -> ()
    %26 = exec.ref {offset = 23552 : i64, space = "arena"} : () -> memref<768xf32>
    %27 = exec.ref {offset = 26624 : i64, space = "arena"} : () -> memref<16xf32>
    %28 = exec.ref {offset = 26880 : i64, space = "arena"} : () -> memref<16xf32>
    %29 = exec.ref {offset = 27136 : i64, space = "arena"} : () -> memref<16xf32>
    %30 = exec.ref {offset = 27392 : i64, space = "arena"} : () -> memref<1024xf32>
    %31 = exec.ref {offset = 31488 : i64, space = "arena"} : () -> memref<64xf32>
    %32 = exec.ref {offset = 31744 : i64, space = "arena"} : () -> memref<768xf32>
    %33 = exec.ref {offset = 34816 : i64, space = "arena"} : () -> memref<16xf32>
    %34 = exec.ref {offset = 35072 : i64, space = "arena"} : () -> memref<16xf32>
    %35 = exec.ref {offset = 35328 : i64, space = "arena"} : () -> memref<16xf32>
    %36 = exec.ref {offset = 35584 : i64, space = "arena"} : () -> memref<1024xf32>
    %37 = exec.ref {offset = 39680 : i64, space = "arena"} : () -> memref<64xf32>
    exec.collective %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37 {group = "world", id = 2 : i64, op = "all_reduce"} : (memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>, memref<768xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<64xf32>) -> ()
    %38 = exec.ref {offset = 39936 : i64, space = "arena"} : () -> memref<1024xf32>
    %39 = exec.ref {offset = 44032 : i64, space = "arena"} : () -> memref<16xf32>
    %40 = exec.ref {offset = 44288 : i64, space = "arena"} : () -> memref<16xf32>
    %41 = exec.ref {offset = 44544 : i64, space = "arena"} : () -> memref<16xf32>
    %42 = exec.ref {offset = 44800 : i64, space = "arena"} : () -> memref<1024xf32>
    %43 = exec.ref {offset = 48896 : i64, space = "arena"} : () -> memref<16xf32>
    %44 = exec.ref {offset = 49152 : i64, space = "arena"} : () -> memref<16xf32>
    %45 = exec.ref {offset = 49408 : i64, space = "arena"} : () -> memref<16xf32>
    exec.collective %38, %39, %40, %41, %42, %43, %44, %45 {group = "world", id = 3 : i64, op = "all_reduce"} : (memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>, memref<1024xf32>, memref<16xf32>, memref<16xf32>, memref<16xf32>) -> ()
    %46 = exec.ref {offset = 49664 : i64, space = "arena"} : () -> memref<256xf32>
    %47 = exec.ref {offset = 50688 : i64, space = "arena"} : () -> memref<48xf32>
    %48 = exec.ref {offset = 50944 : i64, space = "arena"} : () -> memref<256xf32>
    %49 = exec.ref {offset = 51968 : i64, space = "arena"} : () -> memref<48xf32>
    exec.collective %46, %47, %48, %49 {group = "world", id = 4 : i64, op = "all_reduce"} : (memref<256xf32>, memref<48xf32>, memref<256xf32>, memref<48xf32>) -> ()
    %50 = exec.ref {offset = 52224 : i64, space = "arena"} : () -> memref<768xf32>
    %51 = exec.ref {offset = 55296 : i64, space = "arena"} : () -> memref<768xf32>
    exec.collective %50, %51 {group = "world", id = 5 : i64, op = "all_reduce"} : (memref<768xf32>, memref<768xf32>) -> ()
    %52 = exec.ref {offset = 58368 : i64, space = "arena"} : () -> memref<16xf32>
    %53 = exec.ref {offset = 58624 : i64, space = "arena"} : () -> memref<16xf32>
    %54 = exec.ref {offset = 58880 : i64, space = "arena"} : () -> memref<256xf32>
    %55 = exec.ref {offset = 59904 : i64, space = "arena"} : () -> memref<16xf32>
    %56 = exec.ref {offset = 60160 : i64, space = "arena"} : () -> memref<16xf32>
    %57 = exec.ref {offset = 60416 : i64, space = "arena"} : () -> memref<256xf32>
    exec.collective %52, %53, %54, %55, %56, %57 {group = "world", id = 6 : i64, op = "all_reduce"} : (memref<16xf32>, memref<16xf32>, memref<256xf32>, memref<16xf32>, memref<16xf32>, memref<256xf32>) -> ()
    %58 = exec.ref {offset = 61440 : i64, space = "arena"} : () -> memref<976xf32>
    %59 = exec.ref {offset = 65536 : i64, space = "arena"} : () -> memref<976xf32>
    exec.collective %58, %59 {group = "world", id = 7 : i64, op = "all_reduce"} : (memref<976xf32>, memref<976xf32>) -> ()
    exec.wait {id = 0 : i64}
    exec.wait {id = 1 : i64}
    exec.wait {id = 2 : i64}
    exec.wait {id = 3 : i64}
    exec.wait {id = 4 : i64}
    exec.wait {id = 5 : i64}
    exec.wait {id = 6 : i64}
    exec.wait {id = 7 : i64}
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
