package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hosts makes two network namespaces with a link between them, which stand for two hosts, and gives their names. Nothing outside of them
// is touched but a pair of interfaces that ends in them.
func hosts(t *testing.T) (names [2]string) {
	t.Helper()
	if os.Getuid() != 0 {
		required(t, "only root can make network namespaces")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		required(t, "ip is not installed (Debian package iproute2)")
	}
	for i := range names {
		names[i] = fmt.Sprintf("blutrain%d-%d", os.Getpid(), i)
		if out, err := exec.Command("ip", "netns", "add", names[i]).CombinedOutput(); err != nil {
			required(t, fmt.Sprintf("network namespaces can't be made here: %s", out))
		}
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "delete", names[i]).Run() })
	}
	ip(t, "link", "add", "eth0", "netns", names[0], "type", "veth", "peer", "name", "eth0", "netns", names[1])
	for i, name := range names {
		ip(t, "-n", name, "address", "add", address(i)+"/24", "dev", "eth0")
		ip(t, "-n", name, "link", "set", "eth0", "up")
		ip(t, "-n", name, "link", "set", "lo", "up")
	}
	return names
}

// address of a host, in TEST-NET-1, which is nobody's.
func address(host int) string { return fmt.Sprintf("192.0.2.%d", host+1) }

func ip(t *testing.T, args ...string) {
	t.Helper()
	out, err := exec.Command("ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %v: %s", args, out)
}

// across starts two ranks on each of two hosts, by hand.
func (w work) across(names [2]string, command ...string) (ranks [4]*process) {
	for r := range ranks {
		env := []string{fmt.Sprint("RANK=", r), "WORLD_SIZE=4", "MASTER_ADDR=" + address(0), "MASTER_PORT=29511", "BLUTRAIN_TOKEN=secret"}
		ranks[r] = w.start(env, append([]string{"ip", "netns", "exec", names[r/2]}, command...)...)
	}
	return ranks
}

// TestTwoHosts: four ranks on two hosts take the steps of one. Their names of the hosts tell them how many share the cores: all, here.
func TestTwoHosts(t *testing.T) {
	names := hosts(t)
	w := setUp(t)
	command := w.train("--steps", "4")
	ranks := w.across(names, command...)
	for r, p := range ranks {
		require.Zero(t, p.end(t, time.Minute), "rank %d: %s", r, &p.stderr)
	}
	require.Equal(t, "launcher: RANK and WORLD_SIZE, rank 0 of 4, rank 0 at 192.0.2.1:29511\n", ranks[0].stderr.String())
	require.InEpsilonSlice(t, losses(t, w.ok("blurun", append(command[1:], "--accumulate", "4")...)), losses(t, ranks[0].stdout.String()), 1e-6, "one rank adds up in another order")
}

// TestCutLink: when the cable between the hosts is cut, each side names the ranks of the other, and all end with an error.
func TestCutLink(t *testing.T) {
	if testing.Short() {
		t.Skip("ten seconds pass before ranks that give no sign of life are given up")
	}
	names := hosts(t)
	w := setUp(t)
	ranks := w.across(names, w.train("--steps", "1000000")...)
	require.Eventually(t, func() bool { return strings.Count(ranks[0].stdout.String(), "grad_norm") > 3 }, time.Minute, 5*time.Millisecond)
	ip(t, "-n", names[1], "link", "set", "eth0", "down")
	begun := time.Now()
	for r, p := range ranks {
		require.Equal(t, 1, p.end(t, 40*time.Second))
		other := "rank 2 .*rank 3 "
		if r >= 2 {
			other = "rank 0 .*rank 1 "
		}
		require.Regexp(t, fmt.Sprintf(`blurun: error: rank %d: .*%s(gives no sign of life|died)`, r, other), p.stderr.String())
	}
	t.Logf("all had ended %s after the cut", time.Since(begun).Round(100*time.Millisecond))
}
