package checkpoint

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"blutrain/formats"
	"blutrain/formats/atomicfile"
)

// A flag is set before the tests run and never after.
var benchMiB = flag.Int64("checkpoint-mib", 256, "size of the checkpoints of benchmarks")

// state is a snapshot of some bytes in a hundred tensors.
func state(step int64) *Snapshot {
	s := &Snapshot{Step: step}
	n := *benchMiB << 20 / 400
	for i := range 100 {
		data := make([]byte, 4*n)
		for j := 0; j < len(data); j += 64 {
			data[j] = byte(j>>6) + byte(i)
		}
		s.Tensors = append(s.Tensors, Tensor{Info{Name: fmt.Sprint("t", i), DType: formats.F32, Shape: []int64{n}}, 0, n, data})
	}
	return s
}

// dropped takes a file out of the page cache, so that it is read from the disk.
func dropped(b *testing.B, name string) {
	f, err := os.Open(name)
	require.NoError(b, err)
	defer f.Close()
	require.NoError(b, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
}

// BenchmarkSave times saves, and in turn a plain sequential write and fsync of as many bytes.
func BenchmarkSave(b *testing.B) {
	dir := b.TempDir()
	s, err := Create(filepath.Join(dir, "ckpt"), 1, Single{})
	require.NoError(b, err)
	defer s.Close()
	snap := state(0)
	var saving, writing time.Duration
	bytes := int64(0)
	for b.Loop() {
		begin := time.Now()
		name := filepath.Join(dir, "plain")
		f, err := os.Create(name)
		require.NoError(b, err)
		for _, t := range snap.Tensors {
			_, err := f.Write(t.Data)
			require.NoError(b, err)
		}
		require.NoError(b, f.Sync())
		require.NoError(b, f.Close())
		writing += time.Since(begin)
		require.NoError(b, os.Remove(name))

		snap.Step++
		begin = time.Now()
		n, err := s.Save(snap)
		require.NoError(b, err)
		saving += time.Since(begin)
		bytes += n
	}
	b.ReportMetric(float64(bytes)/1e6/saving.Seconds(), "save-MB/s")
	b.ReportMetric(float64(bytes)/1e6/writing.Seconds(), "plain-MB/s")
	b.ReportMetric(saving.Seconds()/writing.Seconds(), "times-plain")
}

// BenchmarkLoad times reading a checkpoint into memory, from the disk and from the page cache, and in turn reading its file with one
// read after the other.
func BenchmarkLoad(b *testing.B) {
	for _, cold := range []bool{true, false} {
		b.Run(map[bool]string{true: "disk", false: "cache"}[cold], func(b *testing.B) {
			dir := b.TempDir()
			s, err := Create(dir, 1, Single{})
			require.NoError(b, err)
			defer s.Close()
			snap := state(1)
			_, err = s.Save(snap)
			require.NoError(b, err)
			name := filePath(filepath.Join(dir, stepFolder(1)), 0)
			buffer := make([]byte, 4<<20)
			var loading, reading time.Duration
			bytes := int64(0)
			for b.Loop() {
				if cold {
					dropped(b, name)
				}
				begin := time.Now()
				f, err := os.Open(name)
				require.NoError(b, err)
				n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{f}, buffer)
				require.NoError(b, err)
				require.NoError(b, f.Close())
				reading += time.Since(begin)
				bytes += n

				if cold {
					dropped(b, name)
				}
				begin = time.Now()
				_, err = Read(atomicfile.OS{}, filepath.Dir(name), func(m *Manifest) (list []Want, err error) {
					for _, t := range snap.Tensors {
						list = append(list, t.Whole(t.Data))
					}
					return list, nil
				})
				require.NoError(b, err)
				loading += time.Since(begin)
			}
			b.ReportMetric(float64(bytes)/1e6/loading.Seconds(), "load-MB/s")
			b.ReportMetric(float64(bytes)/1e6/reading.Seconds(), "read-MB/s")
			b.ReportMetric(loading.Seconds()/reading.Seconds(), "times-plain")
		})
	}
}
