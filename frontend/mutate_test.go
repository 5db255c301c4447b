package frontend

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/dialects"
	"blutrain/ir"
)

var word = regexp.MustCompile(`[\pL_][\pL\d_]*|\d[\d.]*\d|\d|"[^"\n]*"|\s+|.`)

// TestMutatedPrograms replaces, drops, doubles and swaps words of correct programs: whatever comes of it is checked
// without a panic, and what is still correct gives a valid module.
func TestMutatedPrograms(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	var programs [][]string
	var all []string
	for _, pattern := range []string{"../examples/*.blu", "../test/lit/frontend/*.blu"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, p := range paths {
			src, err := os.ReadFile(p)
			require.NoError(t, err)
			words := word.FindAllString(string(src), -1)
			programs, all = append(programs, words), append(all, words...)
		}
	}
	rounds, valid := 4000, 0
	if testing.Short() {
		rounds = 400
	}
	set := map[string]float64{"L": 2, "C": 8, "V": 16, "B": 2, "S": 8}
	for range rounds {
		words := append([]string(nil), programs[rng.IntN(len(programs))]...)
		for range 1 + rng.IntN(3) {
			i := rng.IntN(len(words))
			switch rng.IntN(4) {
			case 0:
				words[i] = all[rng.IntN(len(all))]
			case 1:
				words[i] = ""
			case 2:
				words[i] += " " + words[i]
			case 3:
				j := rng.IntN(len(words))
				words[i], words[j] = words[j], words[i]
			}
		}
		src := strings.Join(words, "")
		own := map[string]float64{}
		for k, v := range set {
			if strings.Contains(src, k+" = ") {
				own[k] = v
			}
		}
		program, diags := Check("t.blu", []byte(src), Options{Set: own})
		require.Equal(t, program == nil, diags.HasErrors(), src)
		if program == nil || len(program.Params) > 500 {
			continue
		}
		c := dialects.NewContext()
		module, _ := Compile(c, "t.blu", []byte(src), Options{Set: own})
		require.NoError(t, ir.Verify(c, module), src)
		valid++
	}
	require.Greater(t, valid, rounds/20, "too few mutations stay correct to test anything")
}
