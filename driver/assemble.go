package driver

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"blutrain/artifact"
)

// FindAssembler finds NVIDIA's assembler, ptxas, by its path or by a name to look for in PATH.
func FindAssembler(ptxas string) (tool string, err error) {
	if tool, err = exec.LookPath(ptxas); err != nil {
		return "", fmt.Errorf("--ptxas %s: %w", ptxas, errors.Unwrap(err))
	}
	return tool, nil
}

// Assemble adds machine code to an artifact for GPUs, beside the text of each kernel: what an assembler makes
// of it for the artifact's arch. The text stays what counts: a device that can't use the code assembles that. The artifact is
// the same for the same text and assembler.
func Assemble(a *artifact.Artifact, tool string) error {
	if a.Manifest.Target != "cuda" {
		return optionErrorf("--ptxas is for --target cuda: the target %s has no kernels to assemble", a.Manifest.Target)
	}
	folder, err := os.MkdirTemp("", "bluc-ptxas-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	cubins := make([]artifact.File, len(a.Files))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, f := range a.Files {
		if name, ok := strings.CutSuffix(f.Name, artifact.TextSuffix); ok {
			cubins[i].Name = name + artifact.CodeSuffix
			group.Go(func() (err error) {
				cubins[i].Data, err = assembled(tool, a.Manifest.Arch, f.Data, filepath.Join(folder, fmt.Sprint(i)))
				if err != nil {
					return fmt.Errorf("%s: %w", f.Name, err)
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	a.Files = append(a.Files, slices.DeleteFunc(cubins, func(f artifact.File) bool { return f.Name == "" })...)
	return nil
}

func assembled(tool, arch string, text []byte, file string) ([]byte, error) {
	if err := os.WriteFile(file+".ptx", text, 0o600); err != nil {
		return nil, err
	}
	c := exec.Command(tool, "-arch", arch, "-o", file+".cubin", file+".ptx")
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	if err := c.Run(); err != nil {
		if words := strings.TrimSpace(said.String()); words != "" {
			return nil, fmt.Errorf("%s: %w: %s", tool, err, words)
		}
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	code, err := os.ReadFile(file + ".cubin")
	if err != nil || !bytes.HasPrefix(code, []byte("\x7fELF")) {
		return nil, fmt.Errorf("%s ended well and wrote no machine code: is it ptxas?", tool)
	}
	return code, nil
}
