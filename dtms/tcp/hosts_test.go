package tcp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"blutrain/dtms"
	"blutrain/internal/upstream"
)

// hosts makes two network namespaces with a link between them, which stand for two hosts, and returns their names. It
// needs to be root and iproute2; nothing outside the namespaces is touched but a pair of interfaces that ends in them.
func hosts(t *testing.T) [2]string {
	t.Helper()
	missing := ""
	if os.Getuid() != 0 {
		missing = "only root can make network namespaces"
	} else if _, err := exec.LookPath("ip"); err != nil {
		missing = "ip is not installed (Debian package iproute2)"
	}
	if missing != "" {
		if os.Getenv(upstream.RequireVariable) == "1" {
			t.Fatalf("%s; %s=1 requires it", missing, upstream.RequireVariable)
		}
		t.Skip(missing)
	}
	var names [2]string
	for i := range names {
		names[i] = fmt.Sprintf("dtms%d-%d", os.Getpid(), i)
		if out, err := exec.Command("ip", "netns", "add", names[i]).CombinedOutput(); err != nil {
			if i == 0 && os.Getenv(upstream.RequireVariable) != "1" {
				t.Skipf("network namespaces can't be made here: %s", out)
			}
			require.NoError(t, err, "%s", out)
		}
		t.Cleanup(func() { exec.Command("ip", "netns", "delete", names[i]).Run() })
	}
	ip(t, "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
	for i, name := range names {
		ip(t, "-n", name, "address", "add", fmt.Sprintf("192.0.2.%d/24", i+1), "dev", "eth0") // TEST-NET-1: nobody's
		ip(t, "-n", name, "link", "set", "eth0", "up")
		ip(t, "-n", name, "link", "set", "lo", "up")
	}
	return names
}

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %v: %s", args, out)
}

// across starts two ranks on each of two hosts. Rank 0's neighbour comes to it by the address of the host, as all do.
func across(t *testing.T, names [2]string, role string) *job {
	return start(t, settings{role: role, size: 4, master: "192.0.2.1:29511", wrap: func(rank int) []string {
		return []string{"ip", "netns", "exec", names[rank/2]}
	}})
}

func TestTwoHosts(t *testing.T) {
	names := hosts(t)
	j := across(t, names, "suite")
	_, first := j.end(0, 3*time.Minute)
	require.NotEmpty(t, first.Digest, first.Error)
	for r := range j.ranks {
		status, report := j.end(r, 3*time.Minute)
		require.Zero(t, status, report.Error)
		require.Equal(t, first.Digest, report.Digest)
	}
}

// TestCutLink cuts the cable between two hosts: each side names the ranks of the other.
func TestCutLink(t *testing.T) {
	names := hosts(t)
	j := across(t, names, "work")
	j.connected()
	time.Sleep(200 * time.Millisecond)
	ip(t, "-n", names[1], "link", "set", "eth0", "down")
	begun := time.Now()
	for r := range j.ranks {
		other := []int{2, 3}
		if r >= 2 {
			other = []int{0, 1}
		}
		report := j.requireNamed(r, silence+20*time.Second, other...)
		for _, f := range report.Faults {
			require.Contains(t, []dtms.Fault{dtms.Silent, dtms.Dead}, f.Fault, report.Error)
		}
	}
	t.Logf("each side named the other's ranks within %s, silence is %s", time.Since(begun).Round(time.Millisecond), silence)
}

// TestOwnName holds that a rank is found by the others when its host calls itself 127.0.1.1, as Debian has it in /etc/hosts.
func TestOwnName(t *testing.T) {
	names := hosts(t)
	for i, line := range []string{"127.0.1.1 master\n", "192.0.2.1 master\n"} {
		folder := filepath.Join("/etc/netns", names[i]) // what ip shows as /etc within the namespace
		require.NoError(t, os.MkdirAll(folder, 0o755))
		t.Cleanup(func() {
			os.RemoveAll(folder)
			os.Remove("/etc/netns") // if nothing else is in it
		})
		require.NoError(t, os.WriteFile(filepath.Join(folder, "hosts"), []byte(line), 0o644))
	}
	j := start(t, settings{role: "suite", size: 4, master: "master:29511", wrap: func(rank int) []string {
		return []string{"ip", "netns", "exec", names[rank/2]}
	}})
	for r := range j.ranks {
		status, report := j.end(r, 3*time.Minute)
		require.Zero(t, status, report.Error)
	}
}
