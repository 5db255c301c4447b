package cluster

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// launchers is what they set, on one host, for rank r of 2.
var launchers = map[string]func(r int, port string) []string{
	"torchrun": func(r int, port string) []string {
		return []string{fmt.Sprint("RANK=", r), "WORLD_SIZE=2", fmt.Sprint("LOCAL_RANK=", r), "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port,
			"TORCHELASTIC_RUN_ID=none", "GROUP_RANK=0"}
	},
	"Open MPI": func(r int, port string) []string {
		return []string{fmt.Sprint("OMPI_COMM_WORLD_RANK=", r), "OMPI_COMM_WORLD_SIZE=2", fmt.Sprint("OMPI_COMM_WORLD_LOCAL_RANK=", r), "OMPI_COMM_WORLD_LOCAL_SIZE=2",
			"MASTER_PORT=" + port}
	},
	"Slurm": func(r int, port string) []string {
		return []string{fmt.Sprint("SLURM_PROCID=", r), "SLURM_STEP_NUM_TASKS=2", fmt.Sprint("SLURM_LOCALID=", r), "SLURM_NODEID=0", "SLURM_STEP_TASKS_PER_NODE=2",
			"SLURM_JOB_ID=77", "SLURM_STEP_NODELIST=localhost", "BLUTRAIN_MASTER_PORT=" + port}
	},
	"Kubernetes": func(r int, port string) []string {
		return []string{fmt.Sprint("JOB_COMPLETION_INDEX=", r), "WORLD_SIZE=2", "MASTER_ADDR=localhost", "BLUTRAIN_MASTER_PORT=" + port, "BLUTRAIN_TOKEN=secret"}
	},
	"RANK and WORLD_SIZE": func(r int, port string) []string {
		return []string{fmt.Sprint("RANK=", r), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}
	},
}

// TestLaunchers: whoever starts the ranks, rank 0 says who it was, and alone prints; and the run is the same to the bit.
func TestLaunchers(t *testing.T) {
	w := setUp(t)
	command := w.train("--steps", "4")
	said := w.ok("blurun", append(command[1:], "--nproc-per-node", "2")...)
	want := losses(t, said[strings.Index(said, "{"):]) // behind who started the ranks
	require.InEpsilonSlice(t, losses(t, w.ok("blurun", append(command[1:], "--accumulate", "2")...)), want, 1e-6, "one rank, which adds up in another order")
	for name, variables := range launchers {
		t.Run(name, func(t *testing.T) {
			w := work{t, w.dir}
			port := freePort(t)
			var ranks [2]*process
			for r := range ranks {
				ranks[r] = w.start(variables(r, port), command...)
			}
			for r, p := range ranks {
				require.Zero(t, p.end(t, time.Minute), "rank %d: %s", r, &p.stderr)
			}
			require.Regexp(t, fmt.Sprintf(`^launcher: %s, rank 0 of 2.*, rank 0 at (127.0.0.1|localhost):%s\n$`, name, port), ranks[0].stderr.String())
			require.Empty(t, ranks[1].stdout.String()+ranks[1].stderr.String())
			require.Equal(t, want, losses(t, ranks[0].stdout.String()))
		})
	}
}

// TestMPIExec: MPICH starts four ranks, which talk through it.
func TestMPIExec(t *testing.T) {
	mpiexec, err := exec.LookPath("mpiexec.mpich")
	if err != nil {
		required(t, "mpiexec.mpich is not installed (Debian package mpich)")
	}
	w := setUp(t)
	command := w.train("--steps", "4")
	p := w.start(nil, append([]string{mpiexec, "-n", "4"}, command...)...)
	require.Zero(t, p.end(t, 2*time.Minute), &p.stderr)
	require.Contains(t, p.stderr.String(), "launcher: PMI, rank 0 of 4 (0 of 4 on this host)")
	want := losses(t, w.ok("blurun", append(command[1:], "--accumulate", "4")...))
	require.InEpsilonSlice(t, want, losses(t, p.stdout.String()), 1e-6, "one rank adds up in another order")
}

// TestRanksThatDiffer: a rank with another model, data or setting is named on all, at once.
func TestRanksThatDiffer(t *testing.T) {
	w := setUp(t)
	w.compile("other.blx", "--mesh", "dp", "--bucket-size", "1KiB")
	w.ok("blurun", "data", "prepare", root+"/ARCHITECTURE.md", "-o", w.path("other.bin"), "--tokenizer", "byte")
	for name, c := range map[string]struct{ old, new, want string }{
		"model": {w.path("model.blx"), w.path("other.blx"), `rank 2 has artifact [0-9a-f]{64}, where [0-9a-f]{64} is expected`},
		"data":  {w.path("text.bin"), w.path("other.bin"), `rank 2 has training data of \d+ tokens, fingerprint [0-9a-f]{16}, where of \d+ tokens`},
		"steps": {"4", "5", "rank 2 has steps 5, where 4 is expected"},
	} {
		t.Run(name, func(t *testing.T) {
			w := work{t, w.dir}
			port := freePort(t)
			var ranks [3]*process
			for r := range ranks {
				command := w.train("--steps", "4")
				if r == 2 {
					for i := range command {
						if command[i] == c.old {
							command[i] = c.new
						}
					}
				}
				ranks[r] = w.start([]string{fmt.Sprint("RANK=", r), "WORLD_SIZE=3", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, command...)
			}
			for r, p := range ranks {
				require.Equal(t, 1, p.end(t, 30*time.Second))
				require.Regexp(t, fmt.Sprintf("blurun: error: rank %d: .*%s", r, c.want), p.stderr.String())
				require.False(t, strings.Contains(p.stdout.String(), "loss"))
			}
		})
	}
}

// TestEvaluationsThatDiffer: a rank with other parameters is named on all.
func TestEvaluationsThatDiffer(t *testing.T) {
	w := setUp(t)
	for _, steps := range []string{"1", "2"} {
		w.ok("blurun", w.train("--steps", steps, "--checkpoint-dir", w.path("ckpt"+steps))[1:]...)
	}
	port := freePort(t)
	var ranks [2]*process
	for r := range ranks {
		command := []string{bin + "/blurun", "eval", w.path("model.blx"), "--data", w.path("text.bin"), "--params", w.path(fmt.Sprint("ckpt", r+1))}
		ranks[r] = w.start([]string{fmt.Sprint("RANK=", r), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}, command...)
	}
	for r, p := range ranks {
		require.Equal(t, 1, p.end(t, 30*time.Second))
		require.Regexp(t, fmt.Sprintf("blurun: error: rank %d: .*rank 1 has parameters with fingerprint [0-9a-f]{16}, where [0-9a-f]{16} is expected", r), p.stderr.String())
		require.Empty(t, p.stdout.String())
	}
}

// TestStoppedRank: a rank that is stopped is named by the others, which end; so does it.
func TestStoppedRank(t *testing.T) {
	if testing.Short() {
		t.Skip("ten seconds pass before a rank that gives no sign of life is given up")
	}
	w := setUp(t)
	p := w.start(nil, w.train("--steps", "1000000", "--nproc-per-node", "3")...)
	require.Eventually(t, func() bool { return strings.Count(p.stdout.String(), "grad_norm") > 3 }, time.Minute, 5*time.Millisecond)
	pid := rankOf(t, p.Process.Pid, 1)
	signal(t, pid, "STOP")
	begun := time.Now()
	require.Equal(t, 1, p.end(t, time.Minute))
	t.Logf("ended after %s", time.Since(begun).Round(100*time.Millisecond))
	for _, r := range []int{0, 2} {
		require.Regexp(t, fmt.Sprintf(`(?m)^\[%d\] blurun: error: rank %d: .*rank 1 gives no sign of life for 1\d`, r, r), p.stderr.String())
	}
	require.NoDirExists(t, fmt.Sprintf("/proc/%d", pid))
}

// TestInterrupted: all ranks finish the step at hand and save what they have; the status is the signal's.
func TestInterrupted(t *testing.T) {
	w := setUp(t)
	p := w.start(nil, w.train("--steps", "1000000", "--nproc-per-node", "3", "--checkpoint-dir", w.path("ckpt"))...)
	require.Eventually(t, func() bool { return strings.Count(p.stdout.String(), "grad_norm") > 3 }, time.Minute, 5*time.Millisecond)
	signal(t, p.Process.Pid, "TERM")
	require.Equal(t, 128+15, p.end(t, time.Minute), &p.stderr)
	for r := range 3 {
		require.Regexp(t, fmt.Sprintf(`(?m)^\[%d\] blurun: error: rank %d: interrupted after step \d+ of 1000000$`, r, r), p.stderr.String())
	}
	command := w.train("--steps", "1000000", "--checkpoint-dir", w.path("ckpt"), "--resume", "--nproc-per-node", "2")
	q := w.start(nil, command...)
	require.Eventually(t, func() bool { return strings.Count(q.stdout.String(), "grad_norm") > 1 }, time.Minute, 5*time.Millisecond)
	signal(t, q.Process.Pid, "INT")
	require.Equal(t, 128+2, q.end(t, time.Minute), &q.stderr)
	took := len(losses(t, p.stdout.String()))
	require.Contains(t, q.stdout.String(), fmt.Sprintf(`"step":%d,`, took+1), "it goes on where the first run stopped")
}
