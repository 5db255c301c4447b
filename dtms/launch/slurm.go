package launch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// taskCounts reads Slurm's number of tasks on each node: 4(x2),3 means 4, 4, 3.
func taskCounts(text string) ([]int, error) {
	const most = 1 << 20
	var counts []int
	for part := range strings.SplitSeq(text, ",") {
		number, rest, repeated := strings.Cut(part, "(x")
		times := 1
		n, err := strconv.Atoi(number)
		if err == nil && repeated {
			times, err = strconv.Atoi(strings.TrimSuffix(rest, ")"))
		}
		if err != nil || n < 0 || times < 1 || len(counts)+times > most || repeated && !strings.HasSuffix(rest, ")") {
			return nil, fmt.Errorf("%q is not a list of task counts", text)
		}
		for range times {
			counts = append(counts, n)
		}
	}
	return counts, nil
}

// firstHost is the host of Slurm's first task: the first name of the step's node list.
func firstHost(env map[string]string) (string, error) {
	for _, name := range []string{"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"} {
		if list := env[name]; list != "" {
			host, err := firstName(list)
			if err != nil {
				return "", fmt.Errorf("%s: %w", name, err)
			}
			return host, nil
		}
	}
	return "", errors.New("neither MASTER_ADDR nor SLURM_STEP_NODELIST is set, so rank 0's host is not known")
}

// firstName is the first host of a list in Slurm's notation: node[003-010,12]-ib,other means node003-ib, node004-ib, ...
func firstName(list string) (string, error) {
	var name strings.Builder
	for rest := list; rest != ""; {
		at := strings.IndexAny(rest, "[,")
		if at < 0 {
			name.WriteString(rest)
			break
		}
		name.WriteString(rest[:at])
		if rest[at] == ',' {
			break
		}
		ranges, after, closed := strings.Cut(rest[at+1:], "]")
		first := ranges[:strings.IndexAny(ranges+",", ",-")]
		if _, err := strconv.ParseUint(first, 10, 64); err != nil || !closed {
			return "", fmt.Errorf("%q is not a list of hosts", list)
		}
		name.WriteString(first)
		rest = after
	}
	if name.Len() == 0 {
		return "", fmt.Errorf("%q is not a list of hosts", list)
	}
	return name.String(), nil
}
