package gpu

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/singleflight"

	"blutrain/artifact"
	"blutrain/dialects/ptx"
	"blutrain/driver"
	"blutrain/internal/upstream"
)

var update = flag.Bool("update", false, "write the golden table of what the assembler says of each kernel")

const ptxasTable = "testdata/ptxas.txt"

// spillLimit is the bytes of registers that a thread may spill: a few words that live across a kernel's loops, where the
// assembler is told to leave room for two blocks on a multiprocessor or chooses so itself. Nothing within a loop's reach
// spills as little as that.
const spillLimit = 32

// The kernels of every example, as they are in every precision and small, are assembled for every arch without errors, warnings or
// performance that the assembler says is lost, keep what they work on in registers, and take as many as the golden table says. What was found of a text is kept for the next run,
// under a hash of it and of the assembler's version. Registers are those of the assembler that the table names; another
// version is held to the rest.
func TestAssembler(t *testing.T) {
	tool := upstream.PTXAS(t)
	version, err := exec.Command(tool, "--version").Output()
	require.NoError(t, err)
	found := results{folder: filepath.Join(cacheFolder(t), "blutrain", "ptxas"), tool: tool, version: string(version), running: &singleflight.Group{}}
	require.NoError(t, os.MkdirAll(found.folder, 0o777))
	var cases []assembled
	for _, file := range examples(t) {
		for _, arch := range ptx.Targets {
			cases = append(cases, assembled{file, arch, "fp32", "small", small(t, file)})
			for _, precision := range []string{"fp32", "fp32-strict", "tf32", "bf16"} {
				cases = append(cases, assembled{file, arch, precision, "full", nil})
			}
		}
	}
	tables := make([]string, len(cases))
	t.Run("examples", func(t *testing.T) {
		for i, c := range cases {
			if testing.Short() && (c.size == "full" || c.arch != ptx.SM90A) {
				continue
			}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				tables[i] = found.table(t, c)
			})
		}
	})
	if !testing.Short() && !t.Failed() {
		golden(t, "ptxas "+regexp.MustCompile(`V[\d.]+`).FindString(string(version))+"\n"+strings.Join(tables, ""))
	}
}

// assembled is an example for an arch.
type assembled struct {
	file, arch, precision, size string
	set                         map[string]float64
}

func (c assembled) String() string {
	return strings.Join([]string{c.file, c.arch, c.precision, c.size}, " ")
}

// table is the part of the golden table about one example.
func (r results) table(t *testing.T, c assembled) string {
	table := c.String() + "\n"
	for _, k := range kernelFiles(t, c) {
		said := r.of(t, c.arch, k)
		m := spilled.FindStringSubmatch(said)
		require.NotNil(t, m, "%s: %s", k.Name, said)
		spill, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		require.LessOrEqual(t, spill, spillLimit, k.Name)
		require.NotContains(t, said, ";", k.Name)
		table += fmt.Sprintf("  %s: %s\n", strings.TrimSuffix(strings.TrimPrefix(k.Name, "kernels/"), ".ptx"), said)
	}
	return table
}

// golden compares the table with the one that is kept.
func golden(t *testing.T, got string) {
	if *update {
		require.NoError(t, os.WriteFile(ptxasTable, []byte(got), 0o644))
	}
	raw, err := os.ReadFile(ptxasTable)
	require.NoError(t, err)
	want := string(raw)
	wantVersion, wantRest, _ := strings.Cut(want, "\n")
	if version, rest, _ := strings.Cut(got, "\n"); version != wantVersion {
		registers := regexp.MustCompile(`\d+ registers`)
		want, got = registers.ReplaceAllString(wantRest, ""), registers.ReplaceAllString(rest, "")
	}
	require.Equal(t, want, got, "go test ./test/gpu -run Assembler -update writes the table anew")
}

func cacheFolder(t *testing.T) string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	return folder
}

// kernelFiles compiles an example and gives the code of its kernels.
func kernelFiles(t *testing.T, c assembled) []artifact.File {
	src, err := os.ReadFile(filepath.Join("..", "..", "examples", c.file))
	require.NoError(t, err)
	r, err := driver.Compile(c.file, src, driver.Options{Target: "cuda", Arch: c.arch, Precision: c.precision, Set: c.set})
	require.NoError(t, err)
	var files []artifact.File
	for _, f := range r.Artifact.Files {
		if !strings.HasPrefix(f.Name, "kernels/") {
			continue
		}
		files = append(files, f)
	}
	require.NotEmpty(t, files)
	return files
}

// results is what the assembler said of texts.
type results struct {
	folder, tool, version string
	running               *singleflight.Group // of a text that several examples have
}

var (
	spilled   = regexp.MustCompile(`(\d+) bytes spill`)
	registers = regexp.MustCompile(`Used (\d+) registers`)
)

// of is "40 registers, 0 bytes spilled", and the assembler's warnings, of lost performance too.
func (r results) of(t *testing.T, arch string, k artifact.File) string {
	sum := sha256.Sum256([]byte("registers, losses " + r.version + arch + "\n" + string(k.Data)))
	name := filepath.Join(r.folder, hex.EncodeToString(sum[:]))
	said, _, _ := r.running.Do(name, func() (any, error) { return r.assemble(t, arch, k, name), nil })
	require.NotNil(t, said, k.Name)
	return said.(string)
}

func (r results) assemble(t *testing.T, arch string, k artifact.File, name string) string {
	if said, err := os.ReadFile(name); err == nil && len(said) > 0 {
		return string(said)
	}
	file := filepath.Join(t.TempDir(), "kernel.ptx")
	require.NoError(t, os.WriteFile(file, k.Data, 0o666))
	out, err := exec.Command(r.tool, "-v", "-arch="+arch, "-o", os.DevNull, file).CombinedOutput()
	require.NoError(t, err, "%s\n%s", k.Name, out)
	spill, used := spilled.FindSubmatch(out), registers.FindSubmatch(out)
	require.NotNil(t, spill, "%s", out)
	require.NotNil(t, used, "%s", out)
	said := fmt.Sprintf("%s registers, %s bytes spilled", used[1], spill[1])
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "warning") || strings.Contains(line, "Potential Performance Loss") { // products one after the other, say
			said += "; " + strings.TrimSpace(line)
		}
	}
	require.NoError(t, driver.WriteFile(name, []byte(said)))
	return said
}
