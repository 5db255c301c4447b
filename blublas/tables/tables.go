// Package tables holds the choices between kernels that were measured on devices, in files that `blurun tune` wrote, one for each
// arch: what programs are compiled with where no other table is given. bench/NOTES.md says when and how they were measured.
package tables

import (
	"embed"
	"io/fs"
)

//go:embed *.json
var files embed.FS

// For is the table for an arch (package formats/tuning reads it), and its file's name; ok is false where there is none.
func For(arch string) (name string, text []byte, ok bool) {
	name = arch + ".json"
	text, err := fs.ReadFile(files, name)
	return name, text, err == nil
}
