"""Trains steps of GPT-2 124M with PyTorch on the CPU, one for each line of standard input.

    step.py ROWS TOKENS THREADS

Prints a line of JSON before there is a model, then one for each step: its wall-clock and processor time in seconds, and the
process's peak resident memory (VmHWM) in bytes. Forward, backward, clipping to norm 1, AdamW; float32. Run it from the
repository's root; OPENBLAS_ and MKL_ variables must be unset.
"""
import json
import sys
import time

sys.path.insert(0, "bench/gpt2")

import torch

import model as gpt2


def peak():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


rows, tokens, threads = map(int, sys.argv[1:])
torch.set_num_threads(threads)
torch.zeros(1)
print(json.dumps({"about": f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", "peak": peak()}), flush=True)
torch.manual_seed(0)
net = gpt2.GPT2()
optimizer = gpt2.optimizer(net, 1e-4)
x, y = (torch.randint(0, 50257, (rows, tokens)) for _ in range(2))
for _ in sys.stdin:
    wall, cpu = time.perf_counter(), time.process_time()
    net(x, y).backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak()}), flush=True)
