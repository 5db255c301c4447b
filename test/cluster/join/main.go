// Command join writes what several ranks saved as if one rank had saved it:
//
//	join FROM/step-00000003 TO
//
// makes TO/step-00000003. It puts the pieces of tensors together by itself, from the ranks' files and the manifest alone, so that a run
// that goes on from the one can be compared with a run that goes on from the other.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"blutrain/formats/atomicfile"
	"blutrain/formats/safetensors"
	"blutrain/train/checkpoint"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: join FROM/step-NUMBER TO")
		os.Exit(2)
	}
	if err := join(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "join: error:", err)
		os.Exit(1)
	}
}

func join(from, to string) (err error) {
	c, err := checkpoint.Open(atomicfile.OS{}, from)
	if err != nil {
		return err
	}
	m := c.Manifest
	snap := &checkpoint.Snapshot{Step: m.Step, Model: m.Model, Artifact: m.Artifact, Seed: m.Seed, Loader: m.Loader}
	for _, info := range m.Tensors {
		t, err := whole(from, info)
		if err != nil {
			return fmt.Errorf("%s: %w", info.Name, err)
		}
		snap.Tensors = append(snap.Tensors, t)
	}
	s, err := checkpoint.Create(to, 0, checkpoint.Single{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Fresh(); err != nil {
		return err
	}
	_, err = s.Save(snap)
	return err
}

// whole puts a tensor's pieces together, which come in order and leave no gaps.
func whole(folder string, info checkpoint.Info) (t checkpoint.Tensor, err error) {
	t.Info = info
	t.Info.Pieces = nil
	for _, p := range info.Pieces {
		data, err := piece(filepath.Join(folder, fmt.Sprintf("rank-%05d.safetensors", p.Rank)), info.Name)
		if err != nil {
			return t, err
		}
		if want := (p.End - p.Begin) * int64(info.DType.Size()); int64(len(data)) != want {
			return t, fmt.Errorf("rank %d has %d bytes, not %d", p.Rank, len(data), want)
		}
		t.Data, t.End = append(t.Data, data...), p.End
	}
	return t, nil
}

// piece reads a tensor of one rank's file.
func piece(path, name string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stat, err := f.Stat()
	if err != nil {
		return nil, err
	}
	file, err := safetensors.Open(f, stat.Size())
	if err != nil {
		return nil, err
	}
	t, err := file.Read(name)
	return t.Data, err
}
