package launch

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDetect(t *testing.T) {
	for name, tc := range map[string]struct{ env, line string }{
		"nothing": {"HOME=/root", "launcher: none, one rank"},
		"torchrun": {"RANK=5 WORLD_SIZE=8 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=host0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=job7",
			"launcher: torchrun, rank 5 of 8 (1 of 4 on this host), rank 0 at host0:29500"},
		"torchrun with a store": {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2 MASTER_ADDR=host0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=x TORCHELASTIC_USE_AGENT_STORE=True",
			"launcher: torchrun, rank 0 of 2 (0 of 2 on this host), rank 0 at host0:29501; torchrun itself listens at MASTER_PORT, so this is the port after it (BLUTRAIN_MASTER_PORT changes that)"},
		"own port": {"RANK=0 WORLD_SIZE=2 MASTER_ADDR=host0 MASTER_PORT=29500 BLUTRAIN_MASTER_PORT=4000 TORCHELASTIC_RUN_ID=x TORCHELASTIC_USE_AGENT_STORE=True",
			"launcher: torchrun, rank 0 of 2, rank 0 at host0:4000"},
		"by hand":     {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=10.0.0.1", "launcher: RANK and WORLD_SIZE, rank 1 of 2, rank 0 at 10.0.0.1:29511"},
		"IPv6":        {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=fe80::1 MASTER_PORT=5", "launcher: RANK and WORLD_SIZE, rank 1 of 2, rank 0 at [fe80::1]:5"},
		"no address":  {"RANK=1 WORLD_SIZE=2", "launcher: RANK and WORLD_SIZE, rank 1 of 2"},
		"empty value": {"RANK= WORLD_SIZE= SLURM_PROCID=", "launcher: none, one rank"},
		"Slurm": {"SLURM_PROCID=9 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=4(x2),3 SLURM_STEP_NODELIST=node[007-009]-ib SLURM_JOB_ID=123456",
			"launcher: Slurm, rank 9 of 11 (1 of 3 on this host), rank 0 at node007-ib:23456"},
		"Slurm, one host": {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_LOCALID=1 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_JOB_ID=5",
			"launcher: Slurm, rank 1 of 2 (1 of 2 on this host), rank 0 at 127.0.0.1:20005"},
		"Slurm, address given": {"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 MASTER_ADDR=login MASTER_PORT=77", "launcher: Slurm, rank 1 of 2, rank 0 at login:77"},
		"Slurm without srun":   {"SLURM_PROCID=0 SLURM_NTASKS=8 SLURM_JOB_ID=42", "launcher: none, one rank; this is Slurm's job 42 but not started by srun, which starts one process a rank"},
		"Open MPI": {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=4",
			"launcher: Open MPI, rank 3 of 4 (3 of 4 on this host), rank 0 at 127.0.0.1:29511"},
		"MPICH":                      {"PMI_RANK=2 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2", "launcher: PMI, rank 2 of 4 (0 of 2 on this host)"},
		"MPICH in Slurm":             {"PMI_RANK=2 PMI_SIZE=4 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2", "launcher: PMI, rank 2 of 4"},
		"torchrun in Slurm":          {"RANK=2 WORLD_SIZE=4 TORCHELASTIC_RUN_ID=a MASTER_ADDR=h SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2", "launcher: torchrun, rank 2 of 4, rank 0 at h:29511"},
		"srun with PMI":              {"PMI_RANK=1 PMI_SIZE=2 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 MASTER_ADDR=h", "launcher: Slurm, rank 1 of 2, rank 0 at h:29511"},
		"MPICH in one task of Slurm": {"PMI_RANK=0 PMI_SIZE=1 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1", "launcher: PMI, rank 0 of 1 (0 of 1 on this host), rank 0 at 127.0.0.1:29511"},
		"RANK from Slurm":            {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2", "launcher: RANK and WORLD_SIZE, rank 1 of 2, rank 0 at h:29511"},
		"Kubernetes":                 {"JOB_COMPLETION_INDEX=3 WORLD_SIZE=4 MASTER_ADDR=train-0.train MASTER_PORT=29500", "launcher: Kubernetes, rank 3 of 4, rank 0 at train-0.train:29500"},
		"Kubeflow in the job":        {"RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1 JOB_COMPLETION_INDEX=1", "launcher: RANK and WORLD_SIZE, rank 1 of 2, rank 0 at h:1"},
		"Spawn":                      {"RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9 BLUTRAIN_LAUNCHER=--nproc-per-node", "launcher: --nproc-per-node, rank 1 of 2 (1 of 2 on this host), rank 0 at 127.0.0.1:9"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Detect(strings.Fields(tc.env))
			require.NoError(t, err)
			require.Equal(t, tc.line, p.String())
		})
	}
}

func TestContradictions(t *testing.T) {
	for env, want := range map[string]string{
		"RANK=2 WORLD_SIZE=2":              "RANK and WORLD_SIZE: RANK=2, but WORLD_SIZE=2: ranks are numbered from 0",
		"RANK=1":                           "WORLD_SIZE is not set",
		"WORLD_SIZE=4":                     "RANK is not set",
		"RANK=one WORLD_SIZE=4":            `RANK="one" is not a number from 0 on`,
		"RANK=-1 WORLD_SIZE=4":             `RANK="-1" is not a number from 0 on`,
		"RANK=1 WORLD_SIZE=4 LOCAL_RANK=2": "LOCAL_RANK=2, but RANK=1",
		"RANK=3 WORLD_SIZE=4 LOCAL_RANK=2 LOCAL_WORLD_SIZE=2":                                                         "LOCAL_WORLD_SIZE=2, but LOCAL_RANK=2",
		"RANK=3 WORLD_SIZE=4 LOCAL_WORLD_SIZE=5":                                                                      "LOCAL_WORLD_SIZE=5",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=65536":                                                         "MASTER_PORT=65536 is not a port",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=0":                                                             "MASTER_PORT=0 is not a port",
		"RANK=1 WORLD_SIZE=2 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2":                                                   "contradicting launchers: RANK and WORLD_SIZE says rank 1 of 2, Slurm says rank 0 of 2",
		"PMI_RANK=1 PMI_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2":                                         "contradicting launchers: Open MPI says rank 0 of 2, PMI says rank 1 of 2",
		"RANK=0 WORLD_SIZE=1 PMI_RANK=1 PMI_SIZE=2":                                                                   "contradicting launchers",
		"JOB_COMPLETION_INDEX=1":                                                                                      "Kubernetes: WORLD_SIZE is not set",
		"JOB_COMPLETION_INDEX=4 WORLD_SIZE=4":                                                                         "JOB_COMPLETION_INDEX=4, but WORLD_SIZE=4",
		"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2":                                                                       "neither MASTER_ADDR nor SLURM_STEP_NODELIST is set",
		"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=a[b":                                               `SLURM_STEP_NODELIST: "a[b" is not a list of hosts`,
		"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2(x":                          "is not a list of task counts",
		"SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=2 SLURM_NODEID=3 SLURM_LOCALID=1 SLURM_STEP_TASKS_PER_NODE=2":            "SLURM_NODEID=3",
		"RANK=0 WORLD_SIZE=1 BLUTRAIN_LAUNCHER=x":                                                                     "BLUTRAIN_LAUNCHER",
		"RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=65535 TORCHELASTIC_RUN_ID=a TORCHELASTIC_USE_AGENT_STORE=True": "no port after it",
	} {
		_, err := Detect(strings.Fields(env))
		require.ErrorContains(t, err, want, env)
	}
	p, err := Detect(strings.Fields("PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2"))
	require.NoError(t, err)
	_, err = p.Master()
	require.ErrorContains(t, err, "PMI does not say where rank 0 is: set MASTER_ADDR")
}

func TestToken(t *testing.T) {
	for env, want := range map[string]string{
		"RANK=0 WORLD_SIZE=1":                                             " ",
		"RANK=0 WORLD_SIZE=1 SLURM_JOB_ID=3":                              "3 SLURM_JOB_ID",
		"RANK=0 WORLD_SIZE=1 SLURM_JOB_ID=3 TORCHELASTIC_RUN_ID=a":        "a TORCHELASTIC_RUN_ID",
		"RANK=0 WORLD_SIZE=1 BLUTRAIN_TOKEN=secret TORCHELASTIC_RUN_ID=a": "secret BLUTRAIN_TOKEN",
	} {
		p, err := Detect(strings.Fields(env))
		require.NoError(t, err)
		require.Equal(t, want, p.Token+" "+p.TokenFrom)
	}
}

func TestHostLists(t *testing.T) {
	for list, want := range map[string]string{
		"node1": "node1", "a,b": "a", "n[1-3]": "n1", "n[001-003,7]": "n001", "n[4,7]": "n4", "r[1-2]n[5-6]-x,other": "r1n5-x", "n-1,n-2": "n-1",
	} {
		got, err := firstName(list)
		require.NoError(t, err)
		require.Equal(t, want, got, list)
	}
	for _, list := range []string{"", ",", "n[", "n[]", "n[a-b]", "n[1-2"} {
		_, err := firstName(list)
		require.Error(t, err, list)
	}
}

func FuzzDetect(f *testing.F) {
	f.Add("SLURM_PROCID=9 SLURM_STEP_NUM_TASKS=11 SLURM_LOCALID=1 SLURM_NODEID=2 SLURM_STEP_TASKS_PER_NODE=4(x2),3 SLURM_STEP_NODELIST=node[007-009]-ib")
	f.Add("RANK=0 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=65535")
	f.Fuzz(func(t *testing.T, env string) {
		p, err := Detect(strings.Fields(env))
		if err == nil {
			require.True(t, 0 <= p.Rank && p.Rank < p.Size && p.LocalRank <= p.Rank)
			require.NotEmpty(t, p.String())
		}
	})
}
