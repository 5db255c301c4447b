package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"blutrain/artifact"
	"blutrain/driver"
	"blutrain/formats/atomicfile"
	"blutrain/train/checkpoint"
	"blutrain/train/logs"
)

// disk is a small file system of its own.
type disk struct {
	t   *testing.T
	dir string
}

func newDisk(t *testing.T, size string) disk {
	d := disk{t, t.TempDir()}
	if err := unix.Mount("tmpfs", d.dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(d.dir, unix.MNT_DETACH)) })
	return d
}

func (d disk) path(name string) string { return filepath.Join(d.dir, name) }

func (d disk) remount(flags uintptr, options string) {
	require.NoError(d.t, unix.Mount("tmpfs", d.dir, "tmpfs", unix.MS_REMOUNT|flags, options))
}

// unfinished are the files on the disk that somebody would have to clean up.
func (d disk) unfinished() (list []string) {
	require.NoError(d.t, filepath.WalkDir(d.dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && atomicfile.IsTemp(e.Name()) {
			list = append(list, path)
		}
		return err
	}))
	return list
}

// wide is a model whose checkpoint is 600 KB, for some ranks.
func (w work) wide(name string, ranks int) *artifact.Artifact {
	options := driver.Options{Target: "cpu"}
	if ranks > 1 {
		options.Sharding = driver.Sharding{Mesh: fmt.Sprintf("dp=%d", ranks), Zero: 1}
	}
	r, err := driver.Compile("tiny.blu", []byte(strings.Replace(source, "C = 8", "C = 96", 1)), options)
	require.NoError(w.t, err)
	require.NoError(w.t, r.Artifact.Write(w.path(name)))
	return r.Artifact
}

// TestFullDisk: a run whose disk fills up goes on to its end, says so, and keeps the checkpoints that it has; with space again it is
// resumed from the newest, and ends as if nothing had been. On one rank and on two.
func TestFullDisk(t *testing.T) {
	for ranks := 1; ranks <= 2; ranks++ {
		w := setUp(t)
		tr := &trial{work: w, losses: map[int64]logs.Number{}}
		w.wide("wide.blx", ranks)
		d := newDisk(t, "2m")
		run := func(dir string) []string {
			args := []string{"train", w.path("wide.blx"), "--data", w.path("text.bin"), "--json", "--threads", "1", "--keep", "0", "--steps", "12", "--checkpoint-every", "2",
				"--checkpoint-dir", filepath.Join(dir, "ckpt"), "--log-dir", filepath.Join(dir, "logs"), "--resume"}
			if ranks > 1 {
				args = append(args, "--nproc-per-node", fmt.Sprint(ranks))
			}
			return args
		}
		out, err := tr.process(run(d.dir)...)
		require.ErrorContains(t, err, "no space left on device")
		require.ErrorContains(t, err, "checkpoint of step 12: ")
		require.Contains(t, string(out), `{"step":12,"loss":`, "it went on")
		require.Regexp(t, `"note":"checkpoint of step \d+: .*no space left on device"`, string(out))
		require.Empty(t, d.unfinished(), "what did not fit is removed")
		c, skipped, err := checkpoint.Latest(atomicfile.OS{}, d.path("ckpt"))
		require.NoError(t, err)
		require.Empty(t, skipped)
		require.Less(t, c.Manifest.Step, int64(12))

		d.remount(0, "size=64m")
		resumed, err := tr.process(run(d.dir)...)
		require.NoError(t, err)
		require.Contains(t, string(resumed), fmt.Sprintf(`{"step":%d,"loss":`, c.Manifest.Step+1))
		require.NotContains(t, string(resumed), fmt.Sprintf(`{"step":%d,"loss":`, c.Manifest.Step))
		_, err = tr.process(run(w.path("alone"))...)
		require.NoError(t, err)
		for r := range ranks {
			name := fmt.Sprintf("ckpt/step-00000012/rank-%05d.safetensors", r)
			want, err := os.ReadFile(w.path("alone/" + name))
			require.NoError(t, err)
			got, err := os.ReadFile(d.path(name))
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		history, err := logs.ReadHistory(d.path("logs/log.jsonl"))
		require.NoError(t, err, "the log goes on behind what was cut short")
		require.Equal(t, int64(12), history.Steps[len(history.Steps)-1].Step)
	}
}

// TestFullDiskForArtifacts: the compiled model that was there stays, and nothing is left lying about.
func TestFullDiskForArtifacts(t *testing.T) {
	w := setUp(t)
	a := w.wide("wide.blx", 1)
	d := newDisk(t, "64k")
	require.NoError(t, a.Write(d.path("x.blx")))
	before, err := os.ReadFile(d.path("x.blx"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.path("filler"), make([]byte, 1<<16-len(before)-4096*5/2), 0o644))
	a.Files = append(a.Files, artifact.File{Name: "source/padding.blu", Data: randomText(1 << 16)})
	require.ErrorIs(t, a.Write(d.path("x.blx")), syscall.ENOSPC)
	require.Empty(t, d.unfinished())
	after, err := os.ReadFile(d.path("x.blx"))
	require.NoError(t, err)
	require.Equal(t, before, after)
}

// randomText is what no compression makes short.
func randomText(n int) []byte {
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// TestReadOnlyDisk: where nothing can be written, a run says so before its first step, and what is there can be read.
func TestReadOnlyDisk(t *testing.T) {
	w := setUp(t)
	a := w.wide("wide.blx", 1)
	d := newDisk(t, "8m")
	args := []string{"train", w.path("wide.blx"), "--data", w.path("text.bin"), "--json", "--steps", "3"}
	w.ok(append(args, "--checkpoint-dir", d.path("ckpt"))...)
	d.remount(unix.MS_RDONLY, "")
	for _, flags := range [][]string{
		{"--checkpoint-dir", d.path("ckpt"), "--resume"}, {"--checkpoint-dir", d.path("new")}, {"--log-dir", d.path("logs")},
	} {
		status, out, stderr := w.run(append(args, flags...)...)
		require.Equal(t, 1, status)
		require.Empty(t, out)
		require.Regexp(t, `^blurun: error: .*`+d.dir+`.*: read-only file system\n$`, stderr)
	}
	require.ErrorIs(t, a.Write(d.path("x.blx")), syscall.EROFS)
	w.ok("eval", w.path("wide.blx"), "--data", w.path("text.bin"), "--params", d.path("ckpt"))
	d.remount(0, "")
	status, _, stderr := w.run(append(args, "--checkpoint-dir", d.path("ckpt"), "--log-dir", d.path("logs"), "--resume", "--seed", "9")...)
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "its run had seed 0, this one 9")
}
