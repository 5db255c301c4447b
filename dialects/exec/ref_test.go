package exec_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/ir"
)

// A reference that contradicts itself is refused; of one to a constant the value and its size are known.
func TestRef(t *testing.T) {
	for _, x := range []struct{ attrs, elem, want string }{
		{`offset = 0 : i64, space = "const", value = dense<1.0e+00> : tensor<4xf32>`, "4xf32", ""},
		{`offset = 0 : i64, space = "const", value = dense<1> : tensor<4xi64>`, "8xf32", "a constant of i64, referred to as one of f32"},
		{`offset = 0 : i64, space = "const", value = dense<[1.0, 2.0]> : tensor<2xbf16>`, "2xf16", "a constant of bf16, referred to as one of f16"},
		{`offset = 0 : i64, space = "const"`, "4xf32", "a value belongs to space const alone"},
		{`offset = 0 : i64, space = "arena", value = dense<1.0> : tensor<4xf32>`, "4xf32", "a value belongs to space const alone"},
		{`name = "x", offset = 0 : i64, space = "arena"`, "4xf32", "name given where there is none, or missing"},
		{`offset = 2 : i64, space = "arena"`, "4xf32", "offset 2 is not a multiple of the element size"},
		{`offset = 0 : i64, space = "moon"`, "4xf32", `no space "moon"`},
	} {
		c := dialects.NewContext()
		m, err := ir.Parse(c, "m.mlir", []byte("builtin.module {\n  %x = exec.ref {"+x.attrs+"} : () -> memref<"+x.elem+">\n}\n"))
		require.NoError(t, err, x.attrs)
		if err := ir.Verify(c, m); x.want != "" {
			require.ErrorContains(t, err, x.want)
			require.ErrorContains(t, err, "m.mlir:2:")
		} else {
			require.NoError(t, err)
		}
	}
}

func TestConstant(t *testing.T) {
	for value, bytes := range map[string]int64{
		"dense<1.0> : tensor<3x5xf32>": 60, "dense<[1.0, 2.0]> : tensor<2xbf16>": 4, "dense<true> : tensor<7xi1>": 7, "dense<1> : tensor<1099511627776xi64>": 1 << 43,
		"dense_resource<__elided__> : tensor<4xf32>": -1,
	} {
		m, err := ir.Parse(dialects.NewContext(), "m.mlir", []byte("builtin.module {\n  %x = exec.ref {offset = 0 : i64, space = \"const\", value = "+value+"} : () -> memref<1xf32>\n}\n"))
		require.NoError(t, err)
		_, n, err := exec.Constant(m.Body().First())
		if bytes < 0 {
			require.ErrorContains(t, err, "the constant's value was left out")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, bytes, n, value)
	}
}
