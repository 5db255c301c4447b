package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"blutrain/artifact"
	"blutrain/internal/peak"
	"blutrain/runtime"
	"blutrain/runtime/device"
	"blutrain/runtime/host/prim"
	"blutrain/runtime/synthetic"
)

// A stepResult is what was measured of whole steps of training: forward, backward, clipping, optimizer.
type stepResult struct {
	Shape       string    `json:"shape"`
	Threads     int       `json:"threads"`
	Ours        []sample  `json:"ours"`
	Torch       []sample  `json:"torch"`
	TorchAbout  string    `json:"torch_about"`
	Ratio       float64   `json:"ratio"`
	BestRatio   float64   `json:"best_ratio"`
	CPURatio    float64   `json:"cpu_ratio"`
	GFlops      float64   `json:"gflops"`
	PeakPercent float64   `json:"peak_percent"` // by processor time
	Planned     int64     `json:"planned_bytes"`
	Memory      [2]memory `json:"memory"` // ours, PyTorch's
}

// memory is a process's peak resident size (VmHWM): before there was a model, and at the end.
type memory struct {
	Empty int64 `json:"empty_bytes"`
	Peak  int64 `json:"peak_bytes"`
}

func (m memory) used() float64 { return float64(m.Peak-m.Empty) / (1 << 20) }

// steps measures whole steps beside PyTorch's.
func steps(o options, report *report) error {
	folder, err := os.MkdirTemp("", "bench-cpu-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	most := peak.Flops(prim.Detect().ISA())
	report.ISA = prim.Detect().ISA()
	fmt.Printf("\nwhole steps, %s; peak of one core %.1f Gflop/s; memory: MiB above an empty process\n\n", filepath.Base(o.Model), most/1e9)
	fmt.Printf("%8s %3s %10s %10s %7s %7s %7s %7s %8s %8s %8s %7s\n", "rows x", "thr", "ms", "PyTorch", "ratio", "best", "CPU", "CPU %", "memory", "planned", "PyTorch", "share")
	for _, s := range o.Shapes {
		rows, tokens, ok := strings.Cut(s, "x")
		if !ok {
			return fmt.Errorf("--shapes: %q isn't rows x tokens", s)
		}
		file := filepath.Join(folder, s+".blx")
		compile := exec.Command(filepath.Join(o.Bin, "bluc"), "compile", o.Model, "-o", file, "--set", "B="+rows+",S="+tokens)
		if out, err := compile.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", compile, err, out)
		}
		for _, threads := range o.Threads {
			r := stepResult{Shape: s, Threads: threads}
			flops, err := r.measure(o, file, rows, tokens)
			if err != nil {
				return err
			}
			r.summarize(flops, most)
			report.Steps = append(report.Steps, r)
			if err := report.save(o.JSON); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure runs steps on both sides, in turn. It returns the operations of a step.
func (r *stepResult) measure(o options, file, rows, tokens string) (flops float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	python, threads := o.Torch, strconv.Itoa(r.Threads)
	if python == "" {
		python = o.Python
	}
	ours, err := startPeer(exec.Command(self, serveStep, file, threads))
	if err != nil {
		return 0, err
	}
	defer ours.close()
	torch, err := startPeer(exec.Command(python, "bench/cpu/step.py", rows, tokens, threads))
	if err != nil {
		return 0, err
	}
	defer torch.close()
	r.TorchAbout = torch.hello.About
	for i := range o.Reps + 1 {
		a, err := ours.step()
		if err != nil {
			return 0, err
		}
		b, err := torch.step()
		if err != nil {
			return 0, err
		}
		if i > 0 { // the first makes pages, threads and the optimizer's state
			r.Ours, r.Torch = append(r.Ours, a.sample), append(r.Torch, b.sample)
		}
		r.Memory = [2]memory{{ours.hello.Peak, a.Peak}, {torch.hello.Peak, b.Peak}}
		r.Planned = a.Planned
		flops = a.Flops
	}
	return flops, nil
}

func (r *stepResult) summarize(flops, peak float64) {
	wall, theirs := median(walls(r.Ours)), median(walls(r.Torch))
	r.Ratio, r.BestRatio = theirs/wall, slices.Min(walls(r.Torch))/slices.Min(walls(r.Ours))
	r.CPURatio = median(cpus(r.Torch)) / median(cpus(r.Ours))
	r.GFlops = flops / wall / 1e9
	if peak > 0 {
		r.PeakPercent = 100 * flops / median(cpus(r.Ours)) / peak
	}
	fmt.Printf("%8s %3d %10.0f %10.0f %7.2f %7.2f %7.2f %6.1f%% %8.0f %8.0f %8.0f %7.2f\n", r.Shape, r.Threads, 1e3*wall, 1e3*theirs, r.Ratio, r.BestRatio, r.CPURatio,
		r.PeakPercent, r.Memory[0].used(), float64(r.Planned)/(1<<20), r.Memory[1].used(), r.Memory[0].used()/r.Memory[1].used())
}

// A stepAnswer is what a peer says after a step, or before the first.
type stepAnswer struct {
	sample
	About   string  `json:"about,omitempty"`
	Peak    int64   `json:"peak"`
	Planned int64   `json:"planned,omitempty"`
	Flops   float64 `json:"flops,omitempty"`
}

// A peer is a process that trains a step for each line it gets.
type peer struct {
	*process
	hello stepAnswer
}

func startPeer(cmd *exec.Cmd) (*peer, error) {
	p, err := startProcess(cmd)
	if err != nil {
		return nil, err
	}
	t := &peer{process: p}
	line, err := p.line()
	if err == nil {
		err = json.Unmarshal([]byte(line), &t.hello)
	}
	return t, err
}

func (p *peer) step() (a stepAnswer, err error) {
	line, err := p.ask("step")
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal([]byte(line), &a)
}

// serveStep is the first argument of this program where it is the peer that trains a compiled model.
const serveStep = "serve-step"

// trainSteps is that peer.
func trainSteps(file, threads string) error {
	out := json.NewEncoder(os.Stdout)
	hwm, err := residentPeak()
	if err != nil {
		return err
	}
	if err := out.Encode(stepAnswer{About: "blurun", Peak: hwm}); err != nil {
		return err
	}
	n, err := strconv.Atoi(threads)
	if err != nil {
		return err
	}
	a, err := artifact.Open(file)
	if err != nil {
		return err
	}
	p, err := device.Open(a, "", runtime.Options{Threads: n})
	if err != nil {
		return err
	}
	defer p.Close()
	if _, err := p.Call("init", nil, runtime.Scalars{"seed": 1}); err != nil {
		return err
	}
	work, err := synthetic.NewWork(p.Manifest(), "", 1)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // of what opening took
	var line string
	for {
		if _, err := fmt.Scanln(&line); err != nil {
			return nil // whoever asked has ended
		}
		var failed error
		s := timed(func() {
			failed = work.Run(func(c synthetic.Call) error {
				_, err := p.Call(c.Function, c.In, c.Scalars)
				return err
			})
		})
		if failed != nil {
			return failed
		}
		if hwm, err = residentPeak(); err != nil {
			return err
		}
		if err := out.Encode(stepAnswer{sample: s, Peak: hwm, Planned: p.MemoryInUse(), Flops: work.Flops}); err != nil {
			return err
		}
	}
}

// residentPeak is the most memory this process has had resident: VmHWM.
func residentPeak() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	fields := strings.Fields(rest)
	if !ok || len(fields) == 0 {
		return 0, fmt.Errorf("/proc/self/status has no VmHWM")
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	return kib << 10, err
}
