package gpu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/artifact"
	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/internal/upstream"
)

// spillLimit is the bytes of registers that a thread may spill: a few words that live across a kernel's loops, where the
// assembler is told to leave room for two blocks on a multiprocessor or chooses so itself. Nothing within a loop's reach
// spills as little as that.
const spillLimit = 32

// The kernels of every example, as they are and small, are assembled for every arch without errors or warnings, and keep
// what they work on in registers. What was found of a text is kept for the next run, under a hash of it and of the
// assembler's version.
func TestAssembler(t *testing.T) {
	tool := upstream.PTXAS(t)
	version, err := exec.Command(tool, "--version").Output()
	require.NoError(t, err)
	found := results{folder: filepath.Join(cacheFolder(t), "blutrain", "ptxas"), tool: tool, version: string(version)}
	require.NoError(t, os.MkdirAll(found.folder, 0o777))
	small := map[string]map[string]float64{
		"gpt2.blu":  {"V": 97, "T": 32, "L": 2, "H": 2, "C": 32, "B": 2, "S": 24},
		"llama.blu": {"V": 97, "L": 2, "H": 4, "K": 2, "C": 32, "F": 48, "B": 2, "S": 24},
		"mlp.blu":   {"V": 13, "W": 3, "E": 7, "M": 18, "B": 3, "S": 10},
	}
	for file, sizes := range small {
		for _, arch := range ptx.Targets {
			for name, set := range map[string]map[string]float64{"small": sizes, "full": nil} {
				if testing.Short() && (name == "full" || arch != ptx.SM90A) {
					continue
				}
				t.Run(fmt.Sprint(file, " ", arch, " ", name), func(t *testing.T) {
					for _, k := range kernelFiles(t, file, arch, set) {
						said := found.of(t, arch, k)
						spill, err := strconv.Atoi(strings.TrimSuffix(said, " bytes spilled"))
						require.NoError(t, err, "%s: %s", k.Name, said)
						require.LessOrEqual(t, spill, spillLimit, k.Name)
					}
				})
			}
		}
	}
}

func cacheFolder(t *testing.T) string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	return folder
}

// kernelFiles compiles an example and gives its kernels; of those that differ in a random stream only, one.
func kernelFiles(t *testing.T, file, arch string, set map[string]float64) []artifact.File {
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
	require.NoError(t, err)
	r, err := driver.Compile(file, src, driver.Options{Target: "cuda", Arch: arch, Set: set})
	require.NoError(t, err)
	var files []artifact.File
	random := map[string]bool{}
	for _, f := range r.Artifact.Files {
		if !strings.HasPrefix(f.Name, "kernels/") {
			continue
		}
		if base, _, ok := strings.Cut(strings.TrimPrefix(f.Name, "kernels/random_normal_"), "_"); ok {
			if random[base] {
				continue
			}
			random[base] = true
		}
		files = append(files, f)
	}
	require.NotEmpty(t, files)
	return files
}

// results is what the assembler said of texts.
type results struct{ folder, tool, version string }

var spilled = regexp.MustCompile(`(\d+) bytes spill stores`)

// of is "0 bytes spilled", and the assembler's warnings.
func (r results) of(t *testing.T, arch string, k artifact.File) string {
	sum := sha256.Sum256([]byte(r.version + arch + "\n" + string(k.Data)))
	name := filepath.Join(r.folder, hex.EncodeToString(sum[:]))
	if said, err := os.ReadFile(name); err == nil && len(said) > 0 {
		return string(said)
	}
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	require.NoError(t, os.WriteFile(file, k.Data, 0o666))
	out, err := exec.Command(r.tool, "-v", "-arch="+arch, "-o", os.DevNull, file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", k.Name, out)
	m := spilled.FindSubmatch(out)
	require.NotNil(t, m, "%s", out)
	said := string(m[1]) + " bytes spilled"
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "warning") {
			said += "; " + strings.TrimSpace(line)
		}
	}
	require.NoError(t, driver.WriteFile(name, []byte(said)))
	return said
}
