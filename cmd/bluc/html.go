package main

import (
	"errors"
	"os"
	"path/filepath"

	"blutrain/driver"
	"blutrain/passes/irhtml"
)

// recorder records what --dump-html shows; it is nil without that flag.
func (f passFlags) recorder(file string, src []byte, print printFlags) *irhtml.Recorder {
	if f.DumpHTML == "" {
		return nil
	}
	r := irhtml.New(inputName(file), print.options())
	r.Source(inputName(file), src)
	return r
}

// page writes what was recorded, also when the compilation ended with an error, which it gives back. A module's
// locations may point into models: those are shown where they can be read.
func (f passFlags) page(r *irhtml.Recorder, err error) error {
	if r.Empty() {
		return err
	}
	if err != nil {
		r.Stop(err.Error())
	}
	for _, file := range r.Missing() {
		if filepath.Ext(file) != ".blu" {
			continue
		}
		if src, err := os.ReadFile(file); err == nil {
			r.Source(file, src)
		}
	}
	text, failed := r.Page()
	if failed == nil {
		failed = driver.WriteFile(f.DumpHTML, text)
	}
	if failed != nil {
		return errors.Join(err, failed)
	}
	return err
}
