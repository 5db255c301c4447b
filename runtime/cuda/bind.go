package cuda

import (
	"fmt"
	"reflect"

	"github.com/ebitengine/purego"
)

// bind finds every entry point in the library.
func (d *Driver) bind(lib uintptr) error {
	fns := reflect.ValueOf(&d.fn).Elem()
	for i := range fns.NumField() {
		symbol := fns.Type().Field(i).Tag.Get("cuda")
		address, err := purego.Dlsym(lib, symbol)
		if err != nil {
			return fmt.Errorf("%w: %s has no %s", ErrOldDriver, LibraryName, symbol)
		}
		purego.RegisterFunc(fns.Field(i).Addr().Interface(), address)
	}
	return nil
}
