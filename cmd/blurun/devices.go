package main

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"strings"

	"github.com/klauspost/cpuid/v2"

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
		return json.NewEncoder(e.stdout).Encode(cpu)
	}
	_, err := fmt.Fprintf(e.stdout, "cpu  %s, %d workers, kernels for %s\n", cpu.Name, cpu.Workers, strings.Join(cpu.Instruction, ", "))
	return err
}
