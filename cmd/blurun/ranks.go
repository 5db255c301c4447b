package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	goruntime "runtime"
	"strings"
	"time"

	"blutrain/artifact"
	"blutrain/dtms"
	"blutrain/dtms/connect"
	"blutrain/dtms/launch"
	"blutrain/runtime"
)

// rankFlags are for commands that several ranks run together.
type rankFlags struct {
	NprocPerNode      *int          `placeholder:"N" help:"Start N ranks of this command on this machine. Other launchers are recognized: see docs/cluster.md."`
	CollectiveTimeout time.Duration `placeholder:"TIME" default:"10m" help:"Longest that ranks wait for one of them (${default})."`
	Engine            string        `enum:",tcp,mpi" default:"" placeholder:"NAME" help:"What connects the ranks: tcp or mpi. Default: what suits the launcher."`
	GPUEngine         string        `name:"gpu-engine" enum:"auto,nccl,peer" default:"auto" placeholder:"NAME" help:"What moves memory between GPUs: nccl, peer for sums and gathers by copies into each other's memory, of GPUs of one machine, or what suits each: auto (${default})."`
}

// mostLocalRanks is more than a machine has cores or GPUs for.
const mostLocalRanks = 1024

// Validate implements kong's interface, for all commands that have these flags.
func (f rankFlags) Validate() error {
	if n := f.NprocPerNode; n != nil && (*n < 1 || *n > mostLocalRanks) {
		return fmt.Errorf("--nproc-per-node must be from 1 to %d", mostLocalRanks)
	}
	if f.CollectiveTimeout <= 0 {
		return errors.New("--collective-timeout must be above 0")
	}
	return nil
}

// job is this process's part in a job of one or more ranks.
type job struct {
	rank, size           int
	localRank, localSize int                // on this host
	world                *dtms.Communicator // nil: one rank
	mesh                 *dtms.Mesh         // nil: one rank, or not known yet
	between              runtime.GPUEngine  // what was asked for between GPUs
	artifact             *artifact.Artifact
}

// asRanks runs a command as one rank of a job: of as many as --nproc-per-node says, which it starts, or of those that a
// launcher has started. A rank that fails tells the others why. Errors have the rank's number in front.
func (e *env) asRanks(f rankFlags, command func(j *job) error) error {
	place, err := launch.Detect(e.environ)
	if err != nil {
		return err
	}
	if f.NprocPerNode != nil && place.Launcher != launch.Spawned {
		return e.startRanks(*f.NprocPerNode, place)
	}
	if place.Rank == 0 && (place.Launcher != launch.None || place.Note != "") {
		fmt.Fprintln(e.stderr, place)
	}
	if place.Size == 1 {
		return command(&job{size: 1, localSize: 1})
	}
	return ofRank(place.Rank, e.asRank(f, place, command))
}

// asRank meets the other ranks and runs a command with them.
func (e *env) asRank(f rankFlags, place launch.Place, command func(j *job) error) (err error) {
	world, err := connect.Connect(e.ctx, place, connect.Options{Engine: f.Engine, Deadline: f.CollectiveTimeout})
	if err != nil {
		if place.Rank != 0 {
			fmt.Fprintln(e.stderr, place)
		}
		return err
	}
	defer func() {
		var known settled
		if err != nil && !errors.As(err, &known) {
			world.Abort(err)
		}
		err = errors.Join(err, world.Close())
	}()
	j := &job{rank: place.Rank, size: place.Size, localRank: place.LocalRank, localSize: place.LocalSize, world: world, between: runtime.GPUEngine(f.GPUEngine)}
	if err := j.count(e.ctx); err != nil {
		return err
	}
	return command(j)
}

// settled is an error that the other ranks know of, or need not know of: they have done their part, or are about to.
type settled struct{ error }

func (s settled) Unwrap() error { return s.error }

// startRanks starts ranks of this very command and waits for them.
func (e *env) startRanks(n int, place launch.Place) error {
	if place.Size > 1 {
		return usagef("--nproc-per-node starts the ranks itself, but %s has started this process as rank %d of %d", place.Launcher, place.Rank, place.Size)
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	return launch.Spawn(e.ctx, launch.Spec{
		Ranks: n, Program: program, Args: e.args, Env: e.environ, Stdout: e.stdout, Stderr: e.stderr,
		Plain: true, // rank 0 alone writes to it
	})
}

// count finds out which ranks share this host where the launcher doesn't say.
func (j *job) count(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	hosts, err := dtms.Gather(ctx, j.world, []byte(host), 1<<10)
	if err != nil || j.localSize > 0 && j.localRank >= 0 {
		return err
	}
	j.localRank, j.localSize = 0, 0
	for r, h := range hosts {
		if string(h) != host {
			continue
		}
		if j.localSize++; r < j.rank {
			j.localRank++
		}
	}
	return nil
}

// open reads a compiled model, which must be the same on all ranks, arranges the ranks as it wants them, and opens it on this rank's
// device.
func (j *job) open(e *env, path string, d deviceFlags) (*artifact.Artifact, runtime.Program, error) {
	a, err := artifact.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if err := j.arrange(e.ctx, path, a); err != nil {
		return nil, nil, err
	}
	d.Device = j.device(a, d.Device)
	if err := j.forGPUs(cmp.Or(d.Device, a.Manifest.Target)); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := e.openOn(a, d, runtime.Options{Threads: j.threads(d.Threads), Helpers: e.helpers(j.localSize), Mesh: j.mesh, Between: j.between})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if by := links(p); by != "" && j.first() {
		fmt.Fprintln(e.stderr, "between GPUs:", by)
	}
	return a, p, nil
}

// forGPUs refuses what was asked for between GPUs where there are none.
func (j *job) forGPUs(device string) error {
	if asked := j.between == runtime.PeerEngine || j.between == runtime.NCCLEngine; asked && !strings.HasPrefix(device, "cuda") {
		return fmt.Errorf("--gpu-engine %s is for GPUs, and this runs on %s", j.between, device)
	}
	return nil
}

// links says what moves memory between the devices of the program's ranks, "" where nothing does that it could say something of.
func links(p runtime.Program) string {
	if l, ok := p.(runtime.Linked); ok {
		return l.Links()
	}
	return ""
}

// arrange makes the mesh that a model was compiled for.
func (j *job) arrange(ctx context.Context, path string, a *artifact.Artifact) (err error) {
	m := a.Manifest.Mesh
	if j.size > 1 {
		if err := dtms.Agree(ctx, j.world, []dtms.Fact{{Name: "artifact", Value: a.Hash}}); err != nil {
			return err
		}
	}
	if j.size == 1 {
		return nil // a program for more says so when it is opened
	}
	dp, cp := 0, 1
	if m != nil {
		dp, cp = m.DP, m.CP
	}
	if j.mesh, err = dtms.NewMesh(ctx, j.world, dp, cp); err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return err
}

// device is where this rank runs: of several GPUs the one with its number on this host.
func (j *job) device(a *artifact.Artifact, flag string) string {
	if a.Manifest.Target == "cuda" && j.localSize > 1 && (flag == "" || flag == "cuda") {
		return fmt.Sprintf("cuda:%d", j.localRank)
	}
	return flag
}

// threads is this rank's share of the cores, unless a flag says otherwise.
func (j *job) threads(flag int) int {
	if flag > 0 || j.localSize <= 1 {
		return flag
	}
	return max(1, goruntime.GOMAXPROCS(0)/j.localSize)
}

// first reports whether this is the rank that prints.
func (j *job) first() bool { return j.rank == 0 }

// rankError is an error with the number of its rank in front of every line.
type rankError struct {
	rank int
	err  error
}

func ofRank(rank int, err error) error {
	if err == nil {
		return nil
	}
	return rankError{rank, err}
}

func (r rankError) Error() string {
	prefix := fmt.Sprintf("rank %d: ", r.rank)
	return prefix + strings.ReplaceAll(r.err.Error(), "\n", "\n"+prefix)
}

func (r rankError) Unwrap() error { return r.err }
