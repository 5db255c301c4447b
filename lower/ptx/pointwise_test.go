package ptx

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/dialects/exec"
	"blutrain/dialects/ptx"
	"blutrain/ir"
)

// A function of single numbers becomes a part of the product that alone reads its results, if what they are computed of is there by then.
func TestPointwise(t *testing.T) {
	for name, c := range map[string]struct{ launches, want []string }{
		"read once":                     {[]string{"neg x 0", "nt 0 w y"}, []string{"neg_nt x w y"}},
		"in place":                      {[]string{"neg 0 0", "tn x 0 y"}, []string{"neg_tn x 0 y"}},
		"both operands":                 {[]string{"neg x 0", "neg 2 1", "nt 0 1 y"}, []string{"neg_neg_nt x 2 y"}},
		"something between":             {[]string{"neg x 0", "neg u v", "nt 0 w y"}, []string{"neg u v", "neg_nt x w y"}},
		"written anew":                  {[]string{"neg x 0", "nt 0 w y", "neg u 0", "nt 0 w z"}, []string{"neg_nt x w y", "neg_nt u w z"}},
		"read by two products":          {[]string{"neg x 0", "nt 0 w y", "nn 0 w z"}, []string{"neg x 0", "nt 0 w y", "nn 0 w z"}},
		"read by something else":        {[]string{"neg x 0", "nt 0 w y", "neg 0 z"}, []string{"neg x 0", "nt 0 w y", "neg 0 z"}},
		"read before":                   {[]string{"neg x 0", "neg 0 z", "nt 0 w y"}, []string{"neg x 0", "neg 0 z", "nt 0 w y"}},
		"a state":                       {[]string{"neg x u", "nt u w y"}, []string{"neg x u", "nt u w y"}},
		"beside what it is of":          {[]string{"two x w 0 1", "nn 1 v y", "neg 0 z"}, []string{"two.without1 x w 0", "neg_nn 0 v y", "neg 0 z"}},
		"beside, read twice":            {[]string{"two x w 0 1", "nn 1 v y", "neg 1 z"}, []string{"two x w 0 1", "nn 1 v y", "neg 1 z"}},
		"beside, what it is of is over": {[]string{"two x w 0 1", "neg x 0", "nn 1 v y"}, []string{"two x w 0 1", "neg x 0", "nn 1 v y"}},
		"its own is written":            {[]string{"neg x 0", "neg y x", "nt 0 w z"}, []string{"neg x 0", "neg y x", "nt 0 w z"}},
		"its own is where results go":   {[]string{"neg 1 0", "nt 0 w 1"}, []string{"neg 1 0", "nt 0 w 1"}},
		"the product reads it both way": {[]string{"neg x 0", "nt 0 0 y"}, []string{"neg x 0", "nt 0 0 y"}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := dialects.NewContext()
			module, err := ir.Parse(ctx, "pointwise.mlir", []byte(squares(c.launches...)))
			require.NoError(t, err)
			o := Options{Target: ptx.SM90A, Products: "templates"}
			_, err = fusePointwise(ctx, module, o)
			require.NoError(t, err)
			require.NoError(t, ir.Verify(ctx, module))
			var got []string
			for op := range ir.LookupSymbol(module, "f").Body().Ops() {
				if !op.Is(exec.Launch) {
					continue
				}
				line := op.Attrs().Sym("kernel")
				for _, v := range op.Operands() {
					at := v.Op().Attrs()
					if line += " " + at.Str("name"); at.Str("name") == "" {
						line += fmt.Sprint(at.IntOr("offset", 0) / (4 * edge * edge))
					}
				}
				got = append(got, line)
			}
			require.Equal(t, c.want, got)
		})
	}
}
