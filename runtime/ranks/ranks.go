// Package ranks runs a program on several ranks within this process: for tests, and where a mesh is to be compared with one rank
// without starting processes. It knows how ranks within a process are connected and how artifacts are opened.
package ranks

import (
	"context"
	"errors"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/dtms/local"
	"blutrain/runtime"
	"blutrain/runtime/device"
)

// Rank is one rank's program and its place in the mesh.
type Rank struct {
	runtime.Program
	Mesh *dtms.Mesh
}

// Run opens an artifact on every rank of a mesh of dp rows of cp ranks, on the device of that name ("": the artifact's), and runs f
// as each of them. Options' mesh is set, and its context to ctx. The error is that of the rank that failed first; the others' calls
// have ended then, too.
func Run(ctx context.Context, a *artifact.Artifact, name string, dp, cp int, opts runtime.Options, f func(r *Rank) error) error {
	return local.Run(ctx, dp*cp, func(ctx context.Context, world *dtms.Communicator) (err error) {
		mesh, err := dtms.NewMesh(ctx, world, dp, cp)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, mesh.Close()) }()
		opts := opts
		opts.Mesh, opts.Context = mesh, ctx
		p, err := device.Open(a, name, opts)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		return f(&Rank{p, mesh})
	})
}
