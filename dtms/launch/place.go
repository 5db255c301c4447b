package launch

import (
	"fmt"
	"net"
	"strconv"
)

// Launcher is who started the process.
type Launcher string

// The launchers.
const (
	None       Launcher = "none"             // one process, one rank
	Spawned    Launcher = "--nproc-per-node" // Spawn of this package
	Torchrun   Launcher = "torchrun"
	OpenMPI    Launcher = "Open MPI"
	PMI        Launcher = "PMI" // mpiexec of MPICH, Intel MPI and others
	Slurm      Launcher = "Slurm"
	Kubernetes Launcher = "Kubernetes"
	Variables  Launcher = "RANK and WORLD_SIZE" // set by hand, or by an operator such as Kubeflow's
)

// Variables of this program's own.
const (
	TokenVariable    = "BLUTRAIN_TOKEN"       // shared by the ranks of a job, and by nobody else
	PortVariable     = "BLUTRAIN_MASTER_PORT" // where rank 0 listens, instead of MASTER_PORT
	launcherVariable = "BLUTRAIN_LAUNCHER"    // set by Spawn
)

// DefaultPort is where rank 0 listens if nothing says otherwise.
const DefaultPort = 29511

// Place is a process's place in its job.
type Place struct {
	Launcher   Launcher
	Rank, Size int
	LocalRank  int    // among the job's ranks on this host, -1 if not known
	LocalSize  int    // number of the job's ranks on this host, 0 if not known
	MasterHost string // where rank 0 is; "" if not known (an MPI needs none)
	MasterPort int
	Token      string // of the job
	TokenFrom  string // the variable the token is from
	Note       string // what a person should know about the choice; "" mostly
}

// Master is the address where rank 0 listens, or an error that says how to give it.
func (p Place) Master() (string, error) {
	if p.MasterHost == "" {
		return "", fmt.Errorf("%s does not say where rank 0 is: set MASTER_ADDR to the name of its host", p.Launcher)
	}
	return net.JoinHostPort(p.MasterHost, strconv.Itoa(p.MasterPort)), nil
}

// String is the one line that says which launcher was taken.
func (p Place) String() string {
	if p.Launcher == None {
		return "launcher: none, one rank" + p.note()
	}
	line := fmt.Sprintf("launcher: %s, rank %d of %d", p.Launcher, p.Rank, p.Size)
	if p.LocalRank >= 0 && p.LocalSize > 0 {
		line += fmt.Sprintf(" (%d of %d on this host)", p.LocalRank, p.LocalSize)
	}
	if master, err := p.Master(); err == nil {
		line += ", rank 0 at " + master
	}
	return line + p.note()
}

func (p Place) note() string {
	if p.Note == "" {
		return ""
	}
	return "; " + p.Note
}
