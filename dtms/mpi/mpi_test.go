package mpi

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/internal/enginetest"
	"blutrain/dtms/local"
	"blutrain/internal/upstream"
)

// TestMain is also what the ranks of these tests run: mpiexec starts this binary with DTMS_ROLE set.
func TestMain(m *testing.M) {
	role := os.Getenv("DTMS_ROLE")
	if role == "" {
		os.Exit(m.Run())
	}
	if err := play(role); err != nil {
		fmt.Println("error:", err)
		for _, e := range dtms.Faults(err) {
			fmt.Printf("fault: %s %d\n", e.Fault, e.Rank)
		}
		os.Exit(1)
	}
}

func play(role string) (err error) {
	ctx := context.Background()
	facts := []dtms.Fact{{Name: "artifact", Value: "ab12"}}
	if role == "artifact" && os.Getenv("PMI_RANK") == "1" {
		facts[0].Value = "cd34"
	}
	c, err := Connect(ctx, Config{Facts: facts, Join: time.Minute})
	if err != nil {
		return err
	}
	defer func() {
		if e := c.Close(); err == nil {
			err = e
		}
	}()
	c = c.WithDeadline(30 * time.Second)
	ones := dtms.Of(make([]float32, 1000))
	switch role {
	case "suite":
		digest, err := enginetest.Run(ctx, c)
		fmt.Println("digest:", digest)
		return err
	case "other":
		if c.Rank() == 2 {
			return c.Barrier(ctx)
		}
		return c.AllReduce(ctx, ones, ones)
	case "late":
		if c.Rank() == 0 {
			time.Sleep(3 * time.Second)
		}
		return c.WithDeadline(time.Second).AllReduce(ctx, ones, ones)
	case "dead":
		if c.Rank() == 1 {
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			time.Sleep(200 * time.Millisecond)
			return p.Kill()
		}
		for {
			if err := c.AllReduce(ctx, ones, ones); err != nil {
				return err
			}
		}
	case "left":
		if c.Rank() == 0 {
			time.Sleep(500 * time.Millisecond) // the others wait for it in Close
			return nil
		}
	}
	return nil
}

// mpiexec runs a job and returns its output and exit status.
func mpiexec(t *testing.T, role string, size int) (string, int) {
	t.Helper()
	program, err := exec.LookPath("mpiexec.mpich")
	if err != nil {
		if os.Getenv(upstream.RequireVariable) == "1" {
			t.Fatalf("mpiexec.mpich is not installed (Debian package mpich); %s=1 requires it", upstream.RequireVariable)
		}
		t.Skip("mpiexec.mpich is not installed (Debian package mpich)")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-n", fmt.Sprint(size), os.Args[0])
	cmd.Env = append(os.Environ(), "DTMS_ROLE="+role)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err(), "%s", out)
	if err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

func TestEverything(t *testing.T) {
	for size := 1; size <= 4; size++ {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			out, code := mpiexec(t, "suite", size)
			require.Zero(t, code, out)
			want := make([]string, size)
			require.NoError(t, local.Run(context.Background(), size, func(ctx context.Context, c *dtms.Communicator) (err error) {
				want[c.Rank()], err = enginetest.Run(ctx, c)
				return err
			}))
			require.Equal(t, size, strings.Count(out, "digest: "+want[0]), "the results of mpi are not those of local:\n%s", out)
		})
	}
}

func TestFaults(t *testing.T) {
	for role, want := range map[string]string{"other": "fault: mismatched 2", "late": "fault: late 0", "artifact": "fault: mismatched 1"} {
		t.Run(role, func(t *testing.T) {
			out, code := mpiexec(t, role, 3)
			require.NotZero(t, code, out)
			require.Contains(t, out, want)
			require.Equal(t, strings.Count(out, "fault: "), strings.Count(out, want), out)
		})
	}
}

func TestDead(t *testing.T) {
	begun := time.Now()
	out, code := mpiexec(t, "dead", 3)
	require.NotZero(t, code, out)
	t.Logf("mpiexec ended with status %d after %s", code, time.Since(begun))
}

func TestLastRank(t *testing.T) {
	out, code := mpiexec(t, "left", 3)
	require.Zero(t, code, out)
}

func TestLibrary(t *testing.T) {
	_, err := Connect(context.Background(), Config{Library: "libnowhere.so"})
	require.ErrorContains(t, err, "MPICH can't be loaded (tried libnowhere.so; Debian's package is libmpich12; BLUTRAIN_MPI_LIBRARY names another file)")
	_, err = Connect(context.Background(), Config{Library: "libc.so.6"})
	require.ErrorContains(t, err, "libc.so.6 is not an MPI library")
}

// TestWhyMPIHasNotStarted: a rank that is told to end while it waits doesn't say that its time was over.
func TestWhyMPIHasNotStarted(t *testing.T) {
	c := Config{Join: 5 * time.Minute}
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	<-ctx.Done()
	require.EqualError(t, c.notStarted(context.Cause(ctx)), "MPI did not start within 5m0s")
	require.EqualError(t, c.notStarted(fmt.Errorf("terminated")), "before MPI had started: terminated")
}
