package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// death kills a rank in the middle of a run, and takes the time until all others have said which, and ended.
func (j *job) death() error {
	size := sizes[j.Model]
	model, err := j.compile(compiled{mesh: fmt.Sprintf("dp=%d", j.most), precision: j.Precisions[0], b: size.b, s: size.s})
	if err != nil {
		return err
	}
	c := j.command("blurun", "train", model, "--data", j.Data, "--json", "--steps", "1000000000", "--nproc-per-node", fmt.Sprint(j.most))
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for range 3 {
		if !lines.Scan() {
			c.Wait()
			return fmt.Errorf("the ranks ended by themselves:\n%s", stderr.Bytes())
		}
	}
	victim := j.most - 1
	pid, err := rankOf(c.Process.Pid, victim)
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		c.Process.Kill()
		c.Wait()
		return err
	}
	begun := time.Now()
	for lines.Scan() {
	}
	err = c.Wait()
	took := time.Since(begun)
	if err == nil {
		return fmt.Errorf("a rank was killed, and the run ended well")
	}
	for r := range victim {
		said := fmt.Sprintf("rank %d: ", r)
		if !says(stderr.String(), said, fmt.Sprintf("rank %d died", victim)) {
			return fmt.Errorf("rank %d did not say that rank %d died:\n%s", r, victim, stderr.Bytes())
		}
	}
	return j.add(row{Stage: "death", What: fmt.Sprintf("rank %d killed, all others named it and ended", victim), Ranks: j.most,
		Value: map[string]float64{"s": took.Seconds()}})
}

// says reports whether a line has all of the parts.
func says(text string, parts ...string) bool {
	for line := range strings.Lines(text) {
		all := true
		for _, p := range parts {
			all = all && strings.Contains(line, p)
		}
		if all {
			return true
		}
	}
	return false
}

// rankOf is the process of a rank among the children of the one that started them.
func rankOf(parent, rank int) (int, error) {
	folders, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, f := range folders {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		stat, _ := os.ReadFile("/proc/" + f.Name() + "/stat") // gone meanwhile: not a rank
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after)
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		environ, _ := os.ReadFile("/proc/" + f.Name() + "/environ")
		if strings.Contains("\x00"+string(environ), fmt.Sprintf("\x00RANK=%d\x00", rank)) {
			return pid, nil
		}
	}
	return 0, fmt.Errorf("there is no process of rank %d", rank)
}
