package recompute

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

func parse(t *testing.T, src string) (*ir.Context, *ir.Op) {
	t.Helper()
	c := dialects.NewContext()
	m, err := ir.Parse(c, "test.mlir", []byte(src))
	require.NoError(t, err)
	require.NoError(t, ir.Verify(c, m))
	return c, m
}

// Bytes of tensors are counted in units of a 16x16 matrix of f32: 1 KiB.
func TestEstimate(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		want       int64 // KiB
	}{
		{"results of the function have storage", `
			%y = blu.exp %x : ($M) -> $M
			func.return %y : ($M) -> ()`, 0},
		{"elementwise operations between are fused", `
			%a = blu.exp %x : ($M) -> $M
			%b = blu.neg %a : ($M) -> $M
			%c = blu.dot %b, %x $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 1},
		{"a product's operands are in memory", `
			%a = blu.exp %x : ($M) -> $M
			%b = blu.neg %x : ($M) -> $M
			%c = blu.dot %a, %b $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 2},
		{"what follows a product is its epilogue", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.exp %a : ($M) -> $M
			%c = blu.dot %b, %x $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 1},
		{"a product that is used otherwise too is kept", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.exp %a : ($M) -> $M
			%c = blu.dot %b, %a $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 2},
		{"a chain of products needs two places", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.dot %a, %x $D : ($M, $M) -> $M
			%c = blu.dot %b, %x $D : ($M, $M) -> $M
			%d = blu.dot %c, %x $D : ($M, $M) -> $M
			func.return %d : ($M) -> ()`, 2},
		{"an elementwise result takes over an operand", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.dot %a, %x $D : ($M, $M) -> $M
			%c:3 = blu.layernorm_grad %a, %g, %s, %s, %b : ($M, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, $M) -> ($M, tensor<16xf32>, tensor<16xf32>)
			%d = blu.dot %c#0, %x $D : ($M, $M) -> $M
			func.return %d, %c#1, %c#2 : ($M, tensor<16xf32>, tensor<16xf32>) -> ()`, 2},
		{"a product's epilogue doesn't, but for a sum", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.dot %x, %x $D : ($M, $M) -> $M
			%c = blu.mul %a, %b : ($M, $M) -> $M
			%d = blu.dot %c, %x $D : ($M, $M) -> $M
			func.return %d : ($M) -> ()`, 2},
		{"a sum does", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.dot %x, %x $D : ($M, $M) -> $M
			%c = blu.add %a, %b : ($M, $M) -> $M
			%d = blu.dot %c, %x $D : ($M, $M) -> $M
			func.return %d : ($M) -> ()`, 1},
		{"views are no memory", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%t = blu.transpose %a {perm = array<i64: 1, 0>} : ($M) -> $M
			%b = blu.dot %t, %a $D : ($M, $M) -> $M
			func.return %b : ($M) -> ()`, 1},
		{"parts are written into their concatenation", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.exp %x : ($M) -> $M
			%t = blu.transpose %b {perm = array<i64: 1, 0>} : ($M) -> $M
			%c = blu.concat %t, %a {axis = 0 : i64} : ($M, $M) -> tensor<32x16xf32>
			%d = blu.dot %c, %x $D : (tensor<32x16xf32>, $M) -> tensor<32x16xf32>
			func.return %d : (tensor<32x16xf32>) -> ()`, 2},
		{"a part that is used otherwise too is copied", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%b = blu.dot %a, %x $D : ($M, $M) -> $M
			%c = blu.concat %b, %a {axis = 0 : i64} : ($M, $M) -> tensor<32x16xf32>
			%d = blu.dot %c, %x $D : (tensor<32x16xf32>, $M) -> tensor<32x16xf32>
			func.return %d : (tensor<32x16xf32>) -> ()`, 3},
		{"a sum over rows ends a group", `
			%a = blu.exp %x : ($M) -> $M
			%r = blu.reduce_sum %a {axes = array<i64: 1>} : ($M) -> tensor<16xf32>
			%w = blu.broadcast %r {axes = array<i64: 0>} : (tensor<16xf32>) -> $M
			%b = blu.div %a, %w : ($M, $M) -> $M
			%c = blu.dot %b, %x $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 1},
		{"a sum over columns is known afterwards", `
			%a = blu.dot %x, %x $D : ($M, $M) -> $M
			%r = blu.reduce_sum %a {axes = array<i64: 0>} : ($M) -> tensor<16xf32>
			%w = blu.broadcast %r {axes = array<i64: 1>} : (tensor<16xf32>) -> $M
			%b = blu.div %a, %w : ($M, $M) -> $M
			%c = blu.dot %b, %a $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 2},
		{"constants are no memory", `
			%k = blu.constant {value = dense<1.0> : $M} : () -> $M
			%a = blu.add %x, %k : ($M, $M) -> $M
			%c = blu.dot %a, %k $D : ($M, $M) -> $M
			func.return %c : ($M) -> ()`, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, m := parse(t, source(tc.body))
			got, ok := Estimate(m.Body().First(), TargetFor("cpu", ""))
			require.True(t, ok)
			require.InDelta(t, tc.want<<10, got, 256, "small vectors aside")
		})
	}
}

// matrices stands for what is used often: the type of a matrix, and the attributes of an ordinary product.
var matrices = strings.NewReplacer("$M", "tensor<16x16xf32>",
	"$D", "{lhs_batch = array<i64>, rhs_batch = array<i64>, lhs_contract = array<i64: 1>, rhs_contract = array<i64: 0>}")

// source is a function @f of a matrix %x and vectors %g and %s.
func source(body string) string {
	body = matrices.Replace(body)
	results := regexp.MustCompile(`func.return .* : (\(.*\)) -> `).FindStringSubmatch(body)[1]
	return matrices.Replace("func.func @f(%x: $M, %g: tensor<16xf32>, %s: tensor<16xf32>) -> "+results+" {") + body + "\n}"
}
