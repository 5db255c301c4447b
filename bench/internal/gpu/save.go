package gpu

import (
	"encoding/json"
	"errors"
	"io"

	"blutrain/formats/atomicfile"
)

// Save writes what a run has measured as JSON, that of a run which broke off too: all of it or, if that fails, nothing, and what was
// there stays. It returns the run's error, and its own. Without a file's name nothing is written.
func Save[T any](file string, measured []T, run error) error {
	if file == "" || len(measured) == 0 {
		return run
	}
	data, err := json.MarshalIndent(measured, "", " ")
	if err == nil {
		err = atomicfile.WriteFile(atomicfile.OS{}, file, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	return errors.Join(run, err)
}
