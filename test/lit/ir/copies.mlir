// RUN: bluc opt %s --split-input-file --verify-diagnostics
// A copy is of a parameter that there is, has its shape and is in no checkpoint.

blu.param @w {init = {kind = "ones", text = "ones"}, type = tensor<2x3xf32>}
blu.state @c {of = @w, persist = false, role = "copy", type = tensor<2x3xbf16>}
// expected-error@+1 {{state @d: there is no parameter @c}}
blu.state @d {of = @c, persist = false, role = "copy", type = tensor<2x3xbf16>}
// expected-error@+1 {{state @e of type tensor<3x2xbf16> is no copy of parameter @w, a tensor<2x3xf32>}}
blu.state @e {of = @w, persist = false, role = "copy", type = tensor<3x2xbf16>}
// expected-error@+1 {{state @f: a copy, and nothing else, says of which parameter it is one, and doesn't persist}}
blu.state @f {of = @w, persist = true, role = "copy", type = tensor<2x3xbf16>}
// expected-error@+1 {{state @g: a copy, and nothing else, says of which parameter it is one, and doesn't persist}}
blu.state @g {persist = false, role = "copy", type = tensor<2x3xbf16>}
// expected-error@+1 {{state @h: a copy, and nothing else, says of which parameter it is one, and doesn't persist}}
blu.state @h {of = @w, persist = false, role = "gradient", type = tensor<2x3xf32>}
