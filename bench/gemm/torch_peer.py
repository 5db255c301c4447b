"""The other side of bench/gemm: runs products through PyTorch (cuBLAS) for the command beside it.

Reads one JSON object a line and answers each with one. Times: milliseconds of each repetition between two events around
one launch, L2 filled with something else before each. Data: writes random operands and float64 results of some rows to
files, with the errors of PyTorch's own products.
"""
import json
import sys

import torch

dev = "cuda"
flush = torch.empty(64 << 20, dtype=torch.int32, device=dev)


def operands(layout, m, n, k, dtype, fill):
    """A and B as they lie in memory, and as m x k and k x n views."""
    a = fill(k, m) if layout == "TN" else fill(m, k)
    b = fill(n, k) if layout == "NT" else fill(k, n)
    a, b = a.to(dtype), b.to(dtype)
    return a, b, (a.t() if layout == "TN" else a), (b.t() if layout == "NT" else b)


def precision(name):
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    return torch.bfloat16 if name == "bf16" else torch.float32


def timed(q):
    dtype = precision(q["precision"])
    fill = lambda r, c: torch.randn(r, c, device=dev)
    _, _, a, b = operands(q["layout"], q["m"], q["n"], q["k"], dtype, fill)
    out = torch.empty(q["m"], q["n"], device=dev, dtype=dtype)
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    ms = []
    for i in range(q["reps"] + 3):
        flush.fill_(i)
        begin.record()
        for _ in range(q["chain"]):
            torch.mm(a, b, out=out)
        end.record()
        end.synchronize()
        if i >= 3:
            ms.append(begin.elapsed_time(end) / q["chain"])
    return {"millis": ms}


def make(dist):
    def fill(r, c):
        if dist == "uniform":
            return torch.rand(r, c, device=dev)
        x = torch.randn(r, c, device=dev)
        if dist == "lognormal":
            return torch.exp(2 * x)
        if dist == "rows":
            return x * torch.exp2(torch.randint(-20, 20, (r, 1), device=dev).float())
        return x

    return fill


def errors(got, want, scale):
    diff = got.double() - want
    rows = diff.norm(dim=1) / scale.norm(dim=1)
    return (diff.norm() / want.norm()).item(), rows.max().item()


def data(q):
    a_mem, b_mem, a, b = operands(q["layout"], q["m"], q["n"], q["k"], torch.float32, make(q["dist"]))
    a_mem.cpu().numpy().tofile(q["a"])
    b_mem.cpu().numpy().tofile(q["b"])
    rows = torch.randperm(q["m"], device=dev)[: q["rows"]].sort().values
    wide_a = a[rows].double()
    want, scale = [], []
    for j in range(0, q["n"], 4096):
        part = b[:, j : j + 4096].double()
        want.append(wide_a @ part)
        scale.append(wide_a.abs() @ part.abs())
    want, scale = torch.cat(want, 1), torch.cat(scale, 1)
    want.cpu().numpy().tofile(q["want"])
    scale.norm(dim=1).cpu().numpy().tofile(q["scale"])
    result = {"rows": rows.tolist(), "errors": {}}
    for name in ("fp32", "tf32", "bf16"):
        dtype = precision(name)
        got = (a.to(dtype) @ b.to(dtype))[rows]
        result["errors"][name] = errors(got, want, scale)
    return result


for line in sys.stdin:
    q = json.loads(line)
    try:
        answer = {"time": timed, "data": data}[q["do"]](q)
    except RuntimeError as e:
        answer = {"failure": str(e)}
    torch.cuda.empty_cache()
    print(json.dumps(answer), flush=True)
