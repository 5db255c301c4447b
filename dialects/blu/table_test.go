package blu

import (
	"strings"
	"testing"

	"blutrain/ir"
	"github.com/stretchr/testify/require"
)

// What a person must be able to look up about every operation.
func TestTableIsComplete(t *testing.T) {
	given := map[string]bool{ // the result's type is given where the operation is made, so that Verify checks it
		"get": true, "iota": true, "cast": true, "broadcast": true, "reshape": true, "random_uniform": true, "random_normal": true,
	}
	declarations := map[string]bool{"param": true, "state": true}
	ir.NewContext(Dialect)
	for _, def := range Dialect.Ops {
		require.NotEmpty(t, def.Summary, def.Name)
		require.False(t, strings.HasSuffix(def.Summary, "."), "%s: a summary is no sentence", def.Name)
		require.NotEmpty(t, def.Description, def.Name)
		if declarations[def.Name] {
			continue
		}
		if given[def.Name] {
			require.NotNil(t, def.Verify, def.Name)
		} else {
			require.NotNil(t, def.Infer, def.Name)
		}
		require.True(t, def.Traits&ir.Pure != 0, def.Name)
	}
}
