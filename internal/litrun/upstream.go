package litrun

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// UpstreamVerdicts runs the suite with LLVM's lit instead, with the same programs and features. The suite's folder must
// have the lit.cfg.py of test/lit. LLVM's lit runs commands with a shell of its own.
func (r *Runner) UpstreamVerdicts(lit string) (map[string]Verdict, error) {
	report := filepath.Join(r.Output, "verdicts.json")
	cmd := exec.Command(lit, "--quiet", "--show-all", "--output", report, r.Root)
	cmd.Env = append(os.Environ(),
		"BLUTRAIN_LIT_OUTPUT="+filepath.Join(r.Output, "upstream"),
		"BLUTRAIN_LIT_PATH="+strings.Join(r.Path, string(filepath.ListSeparator)),
		"BLUTRAIN_LIT_FEATURES="+strings.Join(r.Features, ","),
		"PYTHONDONTWRITEBYTECODE=1")
	output, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 { // 1 says that a test failed
		return nil, fmt.Errorf("%s: %w\n%s", lit, err, output)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, output)
	}
	var parsed struct {
		Tests []struct{ Name, Code string }
	}
	if err := json.Unmarshal(text, &parsed); err != nil {
		return nil, fmt.Errorf("%s: %w", report, err)
	}
	verdicts := map[string]Verdict{}
	for _, t := range parsed.Tests {
		_, name, _ := strings.Cut(t.Name, " :: ")
		verdicts[name] = Verdict(t.Code)
	}
	return verdicts, nil
}
