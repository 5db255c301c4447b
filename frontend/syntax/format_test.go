package syntax

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// sample uses every construct of the grammar.
const sample = `// GPT-2 in small.
model gpt(V = 50_257, C = 4*H, H = 3 * 1) {
  param wte: f32[V, C] = normal(std: 0.02)  // tied

  module block {
    param g: f32[C] = ones
    param b: f32[] = constant(-1e-5)
    layers inner: leaf
    fn forward(x: f32[B, S, C], n: int) -> (f32[B, S, C], bool) {
      let (q, _) = split(linear(x, g, b), axis: 2)
      let y = where(q > 0.0 && !(q >= 1), -q, q % 2)
      return (y, n == 1 || true)
    }
  }
  layers h: block[2*H]

  // The loss.
  fn loss(tokens: i32[B, S]) -> (f32, f32) {
    let x = wte[tokens, 0:S, :, 1:, :H] + inner.p
    for layer in h { x = layer.forward(x, n: 3) }
    for i in 0..H - 1 {
      if i == 2 {
        x = transpose(x, perm: [0, 2, 1])
      } else if i > 2 {
        x = einsum("bsc,oc->bso \"q\"", x, wte) *
            2
      } else {}
    }
    return f(
      x,
      (1 + 2) * 3,  // kept
    )
  }
}

train gpt {
  minimize loss
  batch B = 16, S = 1024, accumulate = 1
  optimizer adamw(lr: cosine(max: 6e-4, min: 6e-5),
                  betas: (0.9, 0.95), weight_decay: 0.1 where rank >= 2)
  clip global_norm 1.0
}
`

func parseClean(t testing.TB, src string) *File {
	t.Helper()
	file, diags := Parse("t.blu", src)
	require.NoError(t, diags.Err(), "%s", src)
	return file
}

// sameTree compares two files but for positions.
func sameTree(t testing.TB, a, b *File) {
	t.Helper()
	a.Src, b.Src = "", ""
	same := cmp.Comparer(func(x, y Span) bool { return true })
	if d := cmp.Diff(a, b, same); d != "" {
		t.Fatalf("the trees differ:\n%s", d)
	}
}

// checkFormat holds the formatter's promises on a text without errors, and returns the formatted text.
func checkFormat(t testing.TB, src string) string {
	t.Helper()
	once, diags := Format("t.blu", src)
	require.NoError(t, diags.Err(), "%s", src)
	sameTree(t, parseClean(t, src), parseClean(t, once))
	twice, diags := Format("t.blu", once)
	require.NoError(t, diags.Err(), "%s", once)
	require.Equal(t, once, twice, "formatting twice differs from formatting once")
	require.Equal(t, comments(src), comments(once))
	for line := range strings.SplitSeq(once, "\n") {
		require.Equal(t, strings.TrimRight(line, " \t"), line, "blanks at the end of a line")
	}
	return once
}

func comments(src string) (out []string) {
	for _, t := range lex(src, func(Span, string, ...any) {}) {
		if t.kind == kComment {
			out = append(out, t.text)
		}
	}
	return out
}

func TestFormatLeavesFormattedTextAlone(t *testing.T) {
	require.Equal(t, sample, checkFormat(t, sample))
}

func TestFormat(t *testing.T) {
	tests := []struct{ name, src, want string }{
		{"empty", "", ""},
		{"only a comment", "  // hi  \r\n", "// hi\n"},
		{"spaces", "fn f(x:f32[ B,C ])->f32{\nlet y=x[0 : 1] *-(2)\n  return   y}",
			"fn f(x: f32[B, C]) -> f32 {\n  let y = x[0:1] * -(2)\n  return y\n}\n"},
		{"one blank line between items", "fn f() -> f32 {\n\n\nreturn 1\n\n}\nfn g() -> f32 { return 1 }\n",
			"fn f() -> f32 {\n  return 1\n}\n\nfn g() -> f32 { return 1 }\n"},
		{"comments", "fn f() -> f32 {   // head\n// own\nlet y = // mid\n1 // tail\n\n\n// last\n}",
			"fn f() -> f32 {  // head\n  // own\n  let y =  // mid\n      1  // tail\n\n  // last\n}\n"},
		{"a comma leaves a list that closes in line", "fn f() -> f32 {\n  return g(a,b,)\n}\n", "fn f() -> f32 {\n  return g(a, b)\n}\n"},
		{"a comma joins a list that closes on its own line", "fn f() -> f32 {\n  return g(\na,b // why\n)\n}\n",
			"fn f() -> f32 {\n  return g(\n    a, b,  // why\n  )\n}\n"},
		{"items line up with the first", "fn f() -> f32 {\n  return g(a,\nh(b,\nc))\n}\n",
			"fn f() -> f32 {\n  return g(a,\n           h(b,\n             c))\n}\n"},
		{"a line ends after or before an operator", "fn f() -> f32 {\n  return a +\nb\n- c\n}\n",
			"fn f() -> f32 {\n  return a +\n      b\n      - c\n}\n"},
		{"other line ends in a statement go", "fn\nf(\n)\n->\nf32\n{\nlet\na\n=\n1\n}\n", "fn f() -> f32 {\n  let a =\n      1\n}\n"},
		{"empty block", "model m {\n}\n", "model m {}\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { require.Equal(t, test.want, checkFormat(t, test.src)) })
	}
}

func TestFormatRefusesSyntaxErrors(t *testing.T) {
	out, diags := Format("t.blu", "model {")
	require.Empty(t, out)
	require.Error(t, diags.Err())
}

// TestFormatAnyLayout lays the sample out at random, wherever the grammar lets a line end, and puts comments there.
func TestFormatAnyLayout(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := newParser("t.blu", sample)
	p.parseFile()
	require.NoError(t, p.diags.Err())
	for range 50 {
		checkFormat(t, scatter(rng, p.toks))
	}
}

func scatter(rng *rand.Rand, toks []token) string {
	var b strings.Builder
	for i, t := range toks {
		if t.kind == kComment || t.kind == kEOF {
			continue
		}
		mayEnd := i > 0 && t.role != rolePostfix && t.kind != "."
		if mayEnd && toks[i-1].kind == "return" {
			mayEnd = false
		}
		switch r := rng.IntN(20); {
		case i > 0 && t.role == roleStart, mayEnd && r == 0:
			b.WriteString("\n")
		case mayEnd && r == 1:
			b.WriteString(" // between\n\n\n")
		case mayEnd && r == 2:
			b.WriteString("\n\n//alone\n")
		case r < 12 || !utf8.ValidString(t.text):
			b.WriteString(" ")
		default:
			b.WriteString("\t ")
		}
		b.WriteString(t.text)
	}
	return b.String()
}
