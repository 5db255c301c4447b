package launch

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// source is one launcher's variables.
type source struct {
	launcher Launcher
	rank     string // variable of the rank: the launcher is present if it is set
	size     string
	local    string // rank and size on this host; "" if there are none
	locals   string
	read     func(d *detection, p *Place) error // what else there is to know
}

// sources are in the order of nesting, the innermost first: torchrun and mpiexec are started within Slurm or Kubernetes
// jobs, not the reverse, so where several are present the first is taken.
var sources = [...]source{
	{Variables, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", nil}, // torchrun's and Spawn's too
	{OpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", nil},
	{PMI, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nil},
	{Slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", (*detection).readSlurm},
	{Kubernetes, "JOB_COMPLETION_INDEX", "WORLD_SIZE", "", "", nil},
}

// detection reads one environment.
type detection struct {
	env map[string]string
}

// Detect finds this process's place from its environment, as os.Environ gives it.
func Detect(environ []string) (Place, error) {
	d := detection{env: map[string]string{}}
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && value != "" {
			d.env[name] = value
		}
	}
	var found []Place
	for _, s := range sources {
		if !d.present(s) {
			continue
		}
		var err error
		if s.launcher == Variables {
			if s.launcher, err = d.rankLauncher(); err != nil {
				return Place{}, err
			}
		}
		p, err := d.read(s)
		if err != nil {
			return Place{}, fmt.Errorf("%s: %w", s.launcher, err)
		}
		found = append(found, p)
	}
	if len(found) == 0 {
		return d.alone()
	}
	found = d.withoutSrunsPMI(found)
	if err := d.contradiction(found); err != nil {
		return Place{}, err
	}
	p := found[0]
	if err := d.address(&p, found); err != nil {
		return Place{}, fmt.Errorf("%s: %w", p.Launcher, err)
	}
	d.token(&p)
	return p, nil
}

// present reports whether a launcher's variables are there.
func (d *detection) present(s source) bool {
	_, rank := d.env[s.rank]
	_, size := d.env[s.size]
	switch s.launcher {
	case Variables: // a WORLD_SIZE alone belongs to Kubernetes' indexed jobs
		_, index := d.env["JOB_COMPLETION_INDEX"]
		return rank || size && !index
	case Slurm: // a batch script has SLURM_PROCID too, but it is no step of several tasks
		return rank && size
	}
	return rank
}

// alone is the place of a process that no launcher started.
func (d *detection) alone() (Place, error) {
	p := Place{Launcher: None, Rank: 0, Size: 1, LocalRank: 0, LocalSize: 1}
	if job := d.env["SLURM_JOB_ID"]; job != "" {
		p.Note = fmt.Sprintf("this is Slurm's job %s but not started by srun, which starts one process a rank", job)
	}
	return p, nil
}

// read takes a launcher's numbers.
func (d *detection) read(s source) (Place, error) {
	p := Place{Launcher: s.launcher, LocalRank: -1}
	var err error
	if p.Rank, err = d.number(s.rank); err != nil {
		return p, err
	}
	if p.Size, err = d.number(s.size); err != nil {
		return p, err
	}
	if p.Rank >= p.Size {
		return p, fmt.Errorf("%s=%d, but %s=%d: ranks are numbered from 0", s.rank, p.Rank, s.size, p.Size)
	}
	if _, ok := d.env[s.local]; ok {
		if p.LocalRank, err = d.number(s.local); err != nil {
			return p, err
		}
		if p.LocalRank > p.Rank {
			return p, fmt.Errorf("%s=%d, but %s=%d: a rank's number on its host can't be larger than in the job", s.local, p.LocalRank, s.rank, p.Rank)
		}
	}
	if _, ok := d.env[s.locals]; ok {
		if p.LocalSize, err = d.number(s.locals); err != nil {
			return p, err
		}
		if p.LocalRank >= p.LocalSize || p.LocalSize > p.Size {
			return p, fmt.Errorf("%s=%d, but %s=%s and %s=%d", s.locals, p.LocalSize, s.local, d.env[s.local], s.size, p.Size)
		}
	}
	if s.read != nil {
		err = s.read(d, &p)
	}
	return p, err
}

// number reads a variable that must be there and must not be negative.
func (d *detection) number(name string) (int, error) {
	text, ok := d.env[name]
	if !ok {
		return 0, fmt.Errorf("%s is not set", name)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%q is not a number from 0 on", name, text)
	}
	return n, nil
}

// rankLauncher tells whose RANK and WORLD_SIZE are.
func (d *detection) rankLauncher() (Launcher, error) {
	switch own := d.env[launcherVariable]; {
	case own == string(Spawned):
		return Spawned, nil
	case own != "":
		return "", fmt.Errorf("%s=%q is not one that this program sets", launcherVariable, own)
	case d.env["TORCHELASTIC_RUN_ID"] != "":
		return Torchrun, nil
	}
	return Variables, nil
}

// readSlurm counts the tasks on this host.
func (d *detection) readSlurm(p *Place) error {
	tasks, node := d.env["SLURM_STEP_TASKS_PER_NODE"], d.env["SLURM_NODEID"]
	if tasks == "" || node == "" {
		return nil
	}
	n, err := d.number("SLURM_NODEID")
	if err != nil {
		return err
	}
	counts, err := taskCounts(tasks)
	if err != nil {
		return fmt.Errorf("SLURM_STEP_TASKS_PER_NODE: %w", err)
	}
	if n >= len(counts) || p.LocalRank >= counts[n] {
		return fmt.Errorf("SLURM_NODEID=%s and SLURM_LOCALID=%s, but SLURM_STEP_TASKS_PER_NODE=%s", node, d.env["SLURM_LOCALID"], tasks)
	}
	p.LocalSize = counts[n]
	return nil
}

// withoutSrunsPMI drops the PMI variables that srun sets besides its own: no mpiexec is there, and whether an MPI library
// can talk to Slurm is its builder's affair.
func (d *detection) withoutSrunsPMI(found []Place) []Place {
	for i, p := range found {
		if p.Launcher != PMI || d.env["MPI_LOCALRANKID"] != "" {
			continue
		}
		for _, o := range found[i+1:] {
			if o.Launcher == Slurm && o.Rank == p.Rank && o.Size == p.Size {
				return slices.Delete(found, i, i+1)
			}
		}
	}
	return found
}

// contradiction says where launchers that don't start each other disagree. Of those that do, the inner one counts: torchrun
// or mpiexec within Slurm or Kubernetes.
func (d *detection) contradiction(found []Place) error {
	inner := found[0]
	for _, outer := range found[1:] {
		nested := (inner.Launcher == Torchrun || inner.Launcher == Spawned || inner.Launcher == OpenMPI || inner.Launcher == PMI) &&
			(outer.Launcher == Slurm || outer.Launcher == Kubernetes)
		if nested || inner.Rank == outer.Rank && inner.Size == outer.Size {
			continue
		}
		return fmt.Errorf("contradicting launchers: %s says rank %d of %d, %s says rank %d of %d; unset the variables of one",
			inner.Launcher, inner.Rank, inner.Size, outer.Launcher, outer.Rank, outer.Size)
	}
	return nil
}

// address finds where rank 0 listens.
func (d *detection) address(p *Place, found []Place) error {
	p.MasterHost = d.env["MASTER_ADDR"]
	if p.MasterHost == "" && p.LocalSize == p.Size {
		p.MasterHost = "127.0.0.1"
	}
	if p.MasterHost == "" && p.Launcher == Slurm {
		host, err := firstHost(d.env)
		if err != nil {
			return err
		}
		p.MasterHost = host
	}
	var err error
	switch {
	case d.env[PortVariable] != "":
		p.MasterPort, err = d.port(PortVariable)
	case d.env["MASTER_PORT"] != "":
		if p.MasterPort, err = d.port("MASTER_PORT"); err == nil && p.Launcher == Torchrun && d.env["TORCHELASTIC_USE_AGENT_STORE"] == "True" {
			p.MasterPort++
			p.Note = fmt.Sprintf("torchrun itself listens at MASTER_PORT, so this is the port after it (%s changes that)", PortVariable)
			if p.MasterPort > 65535 {
				err = errors.New("MASTER_PORT=65535 is torchrun's own, and there is no port after it")
			}
		}
	case p.Launcher == Slurm && d.env["SLURM_JOB_ID"] != "":
		// Jobs that share a host get ports of their own.
		var job int
		if job, err = d.number("SLURM_JOB_ID"); err == nil {
			p.MasterPort = 20000 + job%10000
		}
	default:
		p.MasterPort = DefaultPort
	}
	return err
}

func (d *detection) port(name string) (int, error) {
	n, err := d.number(name)
	if err == nil && (n < 1 || n > 65535) {
		err = fmt.Errorf("%s=%d is not a port", name, n)
	}
	return n, err
}

// tokenVariables are where a job's token is taken from. A launcher's name for the job keeps jobs apart; only this program's
// own variable can be a secret.
var tokenVariables = [...]string{TokenVariable, "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid"}

func (d *detection) token(p *Place) {
	for _, name := range tokenVariables {
		if d.env[name] != "" {
			p.Token, p.TokenFrom = d.env[name], name
			return
		}
	}
}
