package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"blutrain/formats/atomicfile"
	"blutrain/formats/atomicfile/crashfs"
)

func writes(parts ...string) func(io.Writer) error {
	return func(w io.Writer) error {
		for _, p := range parts {
			if _, err := io.WriteString(w, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// versions replaces one file three times.
func versions(f *crashfs.FS) (acknowledged int, err error) {
	for i := 1; i <= 3; i++ {
		if err := atomicfile.WriteFile(f, "dir.txt", writes(content(i))); err != nil {
			return acknowledged, err
		}
		acknowledged = i
	}
	return acknowledged, nil
}

func content(i int) string { return strings.Repeat(fmt.Sprint(i), 10) }

// wholeVersion: the file is one of the versions, whole, and not older than the one acknowledged.
func wholeVersion(f *crashfs.FS, acknowledged int) error {
	b, err := atomicfile.ReadAll(f, "dir.txt", 100)
	if errors.Is(err, os.ErrNotExist) && acknowledged == 0 {
		return nil
	}
	for i := max(1, acknowledged); i <= 3; i++ {
		if string(b) == content(i) {
			return nil
		}
	}
	return fmt.Errorf("version %d was acknowledged, found %q (%v)", acknowledged, b, err)
}

func TestFileSurvivesEveryCrash(t *testing.T) {
	checked, err := crashfs.Explore(versions, wholeVersion)
	require.NoError(t, err)
	require.Greater(t, checked, 50)
}

func TestEverySyncAndRenameOfAFileIsNeeded(t *testing.T) {
	mutants, unnoticed, err := crashfs.Mutants(versions, wholeVersion)
	require.NoError(t, err)
	require.Equal(t, 9, mutants)
	require.Empty(t, unnoticed)
}

// folders commits two folders of two files.
func folders(f *crashfs.FS) (acknowledged int, err error) {
	for i := 1; i <= 2; i++ {
		folder, err := atomicfile.NewFolder(f, fmt.Sprint("v", i), "me")
		if err != nil {
			return acknowledged, err
		}
		for _, name := range []string{"a", "b"} {
			if err := folder.Write(name, writes(content(i))); err != nil {
				return acknowledged, err
			}
		}
		if err := folder.Commit(); err != nil {
			return acknowledged, err
		}
		acknowledged = i
	}
	return acknowledged, nil
}

func wholeFolders(f *crashfs.FS, acknowledged int) error {
	for i := 1; i <= 2; i++ {
		entries, err := f.ReadDir(fmt.Sprint("v", i))
		if errors.Is(err, os.ErrNotExist) && acknowledged < i {
			continue
		}
		if err != nil || len(entries) != 2 {
			return fmt.Errorf("v%d has %d entries (%v)", i, len(entries), err)
		}
		for _, e := range entries {
			b, err := atomicfile.ReadAll(f, fmt.Sprint("v", i, "/", e.Name()), 100)
			if string(b) != content(i) {
				return fmt.Errorf("v%d/%s is %q (%v)", i, e.Name(), b, err)
			}
		}
	}
	return nil
}

func TestFolderSurvivesEveryCrash(t *testing.T) {
	checked, err := crashfs.Explore(folders, wholeFolders)
	require.NoError(t, err)
	require.Greater(t, checked, 50)
	mutants, unnoticed, err := crashfs.Mutants(folders, wholeFolders)
	require.NoError(t, err)
	require.Equal(t, 10, mutants)
	require.Empty(t, unnoticed)
}

func TestFullDiskLeavesTheOldFile(t *testing.T) {
	space := int64(15)
	f := &crashfs.FS{Space: &space}
	require.NoError(t, atomicfile.WriteFile(f, "x", writes("0123456789")))
	err := atomicfile.WriteFile(f, "x", writes("abcdefghij"))
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "x: ")
	b, err := atomicfile.ReadAll(f, "x", 100)
	require.NoError(t, err)
	require.Equal(t, "0123456789", string(b))
	entries, _ := f.ReadDir(".")
	require.Len(t, entries, 1, "the temporary file is gone")
}

func TestRealFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "x.bin")
	require.NoError(t, atomicfile.WriteFile(atomicfile.OS{}, name, writes("old")))
	require.ErrorContains(t, atomicfile.WriteFile(atomicfile.OS{}, name, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half of the n")
		return errors.New("device lost")
	}), "x.bin: device lost")
	b, err := atomicfile.ReadAll(atomicfile.OS{}, name, 3)
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
	_, err = atomicfile.ReadAll(atomicfile.OS{}, name, 2)
	require.ErrorContains(t, err, "3 bytes are more than the 2 expected")
	require.NoError(t, atomicfile.WriteFile(atomicfile.OS{}, name, writes("ne", "w")))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	_, err = atomicfile.OS{}.Open(dir)
	require.Error(t, err)
	require.Error(t, atomicfile.WriteFile(atomicfile.OS{}, filepath.Join(dir, "no", "x"), writes("")))
	require.Error(t, atomicfile.OS{}.SyncDir(filepath.Join(dir, "no")))
}

func TestRealFolders(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "step")
	folder, err := atomicfile.NewFolder(atomicfile.OS{}, name, "me")
	require.NoError(t, err)
	require.NoError(t, folder.Write("a", writes("1")))
	require.NoError(t, folder.Discard())
	require.NoDirExists(t, name)
	folder, err = atomicfile.NewFolder(atomicfile.OS{}, name, "me")
	require.NoError(t, err)
	require.NoError(t, folder.Write("a", writes("1")))
	require.NoError(t, folder.Commit())
	require.FileExists(t, filepath.Join(name, "a"))
	require.Error(t, folder.Write("b", writes("1")), "committed")
	require.Error(t, atomicfile.JoinFolder(atomicfile.OS{}, name, "other").Write("a", writes("1")), "nobody of that name began it")
	require.NoError(t, atomicfile.RemoveFolder(atomicfile.OS{}, name))
	require.Error(t, atomicfile.RemoveFolder(atomicfile.OS{}, name))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
	require.True(t, atomicfile.IsTemp(".tmp-1-step"))
	require.False(t, atomicfile.IsTemp("step"))
}

// TestWhatIsThere: what a name leads to decides what is written, and a name that can't be written is refused as itself.
func TestWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	read := func(name string) string {
		b, err := os.ReadFile(path(name))
		require.NoError(t, err)
		return string(b)
	}
	write := func(name, text string) error { return atomicfile.WriteFile(atomicfile.OS{}, path(name), writes(text)) }

	require.NoError(t, os.WriteFile(path("private"), []byte("old"), 0o600))
	require.NoError(t, write("private", "new"))
	info, err := os.Stat(path("private"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode(), "permissions stay")

	require.NoError(t, os.Mkdir(path("elsewhere"), 0o755))
	require.NoError(t, os.Symlink("elsewhere/to-come", path("link")))
	for _, text := range []string{"first", "second"} {
		require.NoError(t, write("link", text))
		require.Equal(t, text, read("elsewhere/to-come"))
	}
	link, err := os.Readlink(path("link"))
	require.NoError(t, err)
	require.Equal(t, "elsewhere/to-come", link)

	require.NoError(t, os.Symlink("loop", path("loop")))
	require.ErrorIs(t, write("loop", "x"), syscall.ELOOP)
	require.EqualError(t, write("elsewhere", "x"), "write "+path("elsewhere")+": is a directory")
	require.EqualError(t, write("no/x", "x"), "create "+path("no/x")+": no such file or directory")
	_, err = atomicfile.OS{}.Open(dir)
	require.ErrorIs(t, err, syscall.EISDIR)

	long := strings.Repeat("n", 255)
	require.NoError(t, write(long, "long"))
	require.Equal(t, "long", read(long))
	require.ErrorIs(t, write(long+"n", "x"), syscall.ENAMETOOLONG)

	// A temporary name that is taken, here by a link to a file of somebody's, is not written into.
	taken := fmt.Sprintf(".tmp-%d-x", os.Getpid())
	require.NoError(t, os.Symlink("private", path(taken)))
	require.NoError(t, write("x", "mine"))
	require.Equal(t, "new", read("private"))
	require.Equal(t, "mine", read("x"))
	require.NoFileExists(t, path(taken))
}

// TestStreams: a pipe is written to, and never replaced by a file; so is a device.
func TestStreams(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	got := make(chan string)
	go func() {
		b, err := os.ReadFile(pipe)
		if err != nil {
			b = []byte(err.Error())
		}
		got <- string(b)
	}()
	require.NoError(t, atomicfile.WriteFile(atomicfile.OS{}, pipe, writes("through")))
	require.Equal(t, "through", <-got)
	info, err := os.Stat(pipe)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeNamedPipe)

	full := filepath.Join(t.TempDir(), "full") // a link, so that a fault here harms no device
	require.NoError(t, os.Symlink("/dev/full", full))
	if info, err := os.Stat(full); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Skip("no /dev/full")
	}
	require.ErrorIs(t, atomicfile.WriteFile(atomicfile.OS{}, full, writes("x")), syscall.ENOSPC)
	info, err = os.Stat(full)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeCharDevice)

	spool, err := atomicfile.NewSpool(atomicfile.OS{}, full)
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Dir(full))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is put beside a device")
	require.NoError(t, spool.Remove())
}

func TestDistinct(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("a", nil, 0o644))
	require.NoError(t, os.WriteFile("b", nil, 0o644))
	require.NoError(t, os.Symlink("a", "link"))
	require.NoError(t, os.Link("a", "hard"))
	for _, c := range []struct {
		in, out []string
		reason  string
	}{
		{[]string{"a"}, []string{"b", "c", "", "-"}, ""},
		{[]string{"b", "a"}, []string{"a"}, "a is both input and output"},
		{[]string{"a"}, []string{"link"}, "link is both input and output"},
		{[]string{"hard"}, []string{"./a"}, "./a is both input and output"},
		{nil, []string{"c", "./c"}, "./c is the place of two outputs"},
		{nil, []string{"link", "hard"}, "hard is the place of two outputs"},
		{[]string{"", "-", "/dev/null"}, []string{"", "-", "-", "/dev/null", "/dev/null"}, ""},
	} {
		err := atomicfile.Distinct(c.in, c.out)
		if c.reason == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.reason)
		}
	}
}
