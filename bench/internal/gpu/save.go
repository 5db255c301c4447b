package gpu

import (
	"encoding/json"
	"errors"
	"os"
)

// Save writes what a run measured as JSON, that of a run which broke off too. It returns the run's error, and its own. Without a
// file's name nothing is written.
func Save[T any](file string, measured []T, run error) error {
	if file == "" || len(measured) == 0 {
		return run
	}
	data, err := json.MarshalIndent(measured, "", " ")
	if err == nil {
		err = os.WriteFile(file, data, 0o644)
	}
	return errors.Join(run, err)
}
