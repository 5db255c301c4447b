package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"blutrain/formats/atomicfile"
)

// cubins is a folder of assembled kernels. A file is a checksum and a cubin; its name says what was assembled for what.
type cubins struct {
	folder string // "": nothing is kept
	target string // driver and GPU
	warn   func(text string)
}

// newCubins uses the user's cache folder.
func newCubins(c *Context, driver int, warn func(string)) *cubins {
	cache := &cubins{target: fmt.Sprintf("driver %d, %s, %d.%d", driver, c.Device.Name, c.Device.Major, c.Device.Minor), warn: warn}
	if folder, err := os.UserCacheDir(); err == nil {
		cache.folder = filepath.Join(folder, "blutrain", "cubin")
	}
	return cache
}

func (c *cubins) file(ptx []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%d\n", c.target, len(ptx))
	h.Write(ptx)
	return filepath.Join(c.folder, hex.EncodeToString(h.Sum(nil))+".cubin")
}

// get is the cubin for a kernel's PTX, from the folder or from assemble, which it is then kept of. A damaged file is
// assembled again.
func (c *cubins) get(ptx []byte, assemble func() ([]byte, error)) ([]byte, error) {
	if c.folder == "" {
		return assemble()
	}
	name := c.file(ptx)
	if raw, err := os.ReadFile(name); err == nil {
		if cubin, ok := unseal(raw); ok {
			return cubin, nil
		}
		c.warn(fmt.Sprintf("%s is damaged; the kernel is assembled again", name))
	}
	cubin, err := assemble()
	if err != nil {
		return nil, err
	}
	if err := c.keep(name, cubin); err != nil {
		c.warn(fmt.Sprintf("assembled kernels can't be kept for the next time: %v", err))
		c.folder = ""
	}
	return cubin, nil
}

func (c *cubins) keep(name string, cubin []byte) error {
	if err := os.MkdirAll(c.folder, 0o777); err != nil {
		return err
	}
	sum := sha256.Sum256(cubin)
	return atomicfile.WriteFile(atomicfile.OS{}, name, func(w io.Writer) error {
		_, err := w.Write(append(sum[:], cubin...))
		return err
	})
}

// unseal takes the checksum off a file's bytes.
func unseal(raw []byte) ([]byte, bool) {
	if len(raw) <= sha256.Size {
		return nil, false
	}
	cubin := raw[sha256.Size:]
	sum := sha256.Sum256(cubin)
	return cubin, bytes.Equal(sum[:], raw[:sha256.Size])
}
