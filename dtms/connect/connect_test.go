package connect

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/dtms/launch"
	"blutrain/internal/freeport"
	"blutrain/internal/upstream"
)

// TestMain is also what the ranks of these tests run: this binary with DTMS_ROLE set.
func TestMain(m *testing.M) {
	if os.Getenv("DTMS_ROLE") == "" {
		os.Exit(m.Run())
	}
	if err := rank(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func rank() error {
	p, err := launch.Detect(os.Environ())
	if err != nil {
		return err
	}
	ctx := context.Background()
	c, err := Connect(ctx, p, Options{Engine: os.Getenv("DTMS_ENGINE"), Join: time.Minute, Deadline: time.Minute})
	if err != nil {
		return err
	}
	sum := make([]int64, 1)
	if err := c.AllReduce(ctx, dtms.Of([]int64{1 << (8 * c.Rank())}), dtms.Of(sum)); err != nil {
		return err
	}
	fmt.Printf("%s sum %x\n", p.Launcher, sum[0])
	return c.Close()
}

func environment(extra ...string) []string {
	return append(append(os.Environ(), "DTMS_ROLE=rank"), extra...)
}

func TestAlone(t *testing.T) {
	p, err := launch.Detect(nil)
	require.NoError(t, err)
	c, err := Connect(context.Background(), p, Options{})
	require.NoError(t, err)
	require.NoError(t, c.Barrier(context.Background()))
	require.NoError(t, c.Close())

	_, err = Connect(context.Background(), p, Options{Engine: "gloo"})
	require.EqualError(t, err, `there is no engine "gloo" between processes, but tcp and mpi`)
	p.Launcher, p.Size, p.MasterHost = launch.Variables, 2, ""
	_, err = Connect(context.Background(), p, Options{})
	require.ErrorContains(t, err, "set MASTER_ADDR")
	p.MasterHost, p.MasterPort = "node1", 5
	_, err = Connect(context.Background(), p, Options{})
	require.ErrorContains(t, err, "set BLUTRAIN_TOKEN to the same on all")
}

func TestSpawned(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, launch.Spawn(context.Background(), launch.Spec{Ranks: 3, Program: os.Args[0], Env: environment(), Stdout: &out, Stderr: &out}), "%s", &out)
	require.Equal(t, 3, strings.Count(out.String(), "--nproc-per-node sum 10101\n"), "%s", &out)
}

func TestMPIExec(t *testing.T) {
	program, err := exec.LookPath("mpiexec.mpich")
	if err != nil {
		if os.Getenv(upstream.RequireVariable) == "1" {
			t.Fatalf("mpiexec.mpich is not installed (Debian package mpich); %s=1 requires it", upstream.RequireVariable)
		}
		t.Skip("mpiexec.mpich is not installed (Debian package mpich)")
	}
	for _, engine := range []string{"", "tcp"} {
		port, err := freeport.On("127.0.0.1")
		require.NoError(t, err)
		cmd := exec.Command(program, "-n", "3", os.Args[0])
		cmd.Env = environment("DTMS_ENGINE="+engine, launch.PortVariable+"="+strconv.Itoa(port))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, 3, strings.Count(string(out), "PMI sum 10101\n"), "%s", out)
	}
}
