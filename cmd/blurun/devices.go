package main

import (
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"

	"blutrain/runtime/cuda"
	"blutrain/runtime/host/prim"
)

type devicesCmd struct {
	JSON bool `help:"Print one JSON object for each device."`
}

// Run implements the command.
func (c *devicesCmd) Run(e *env) error {
	cpu := struct {
		Device      string   `json:"device"`
		Name        string   `json:"name"`
		Workers     int      `json:"workers"`
		Instruction []string `json:"instruction_sets"`
	}{"cpu", strings.TrimSpace(cpuid.CPU.BrandName), goruntime.GOMAXPROCS(0), prim.ISAs()}
	if c.JSON {
		if err := json.NewEncoder(e.stdout).Encode(cpu); err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(e.stdout, "cpu  %s, %d workers, kernels for %s\n", cpu.Name, cpu.Workers, strings.Join(cpu.Instruction, ", ")); err != nil {
		return err
	}
	return c.gpus(e)
}

// gpus lists the NVIDIA GPUs. That a machine has none which could be used, for want of a driver, a GPU or a newer driver, is no fault, and is
// said on the standard error.
func (c *devicesCmd) gpus(e *env) error {
	devices, version, err := openGPUs()
	if none(err) {
		_, err = fmt.Fprintf(e.stderr, "note: %v\n", err)
	}
	if err != nil {
		return err
	}
	for _, d := range devices {
		gpu := struct {
			Device     string `json:"device"`
			Name       string `json:"name"`
			Memory     int64  `json:"memory_bytes"`
			SMs        int    `json:"multiprocessors"`
			Capability string `json:"compute_capability"`
			CUDA       string `json:"driver_cuda"`
		}{fmt.Sprintf("cuda:%d", d.Ordinal), d.Name, d.Memory, d.SMs, fmt.Sprintf("%d.%d", d.Major, d.Minor), fmt.Sprintf("%d.%d", version/1000, version%1000/10)}
		if c.JSON {
			err = json.NewEncoder(e.stdout).Encode(gpu)
		} else {
			_, err = fmt.Fprintf(e.stdout, "%s  %s, %.1f GiB, %d multiprocessors, compute capability %s, driver for CUDA %s\n",
				gpu.Device, gpu.Name, float64(gpu.Memory)/(1<<30), gpu.SMs, gpu.Capability, gpu.CUDA)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// none reports whether an error says that there is no GPU to use, and not that one fails.
func none(err error) bool {
	return errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoGPU) || errors.Is(err, cuda.ErrOldDriver)
}

// openGPUs lists the GPUs, and says which CUDA their driver knows.
func openGPUs() ([]*cuda.Device, int, error) {
	driver, err := cuda.Open()
	if err != nil {
		return nil, 0, err
	}
	version, err := driver.Version()
	if err != nil {
		return nil, 0, err
	}
	devices, err := driver.Devices()
	return devices, version, errors.Join(cuda.TooOld(version), err)
}
