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


def operands(q, dtype, fill):
    """A and B as they lie in memory, and as m x k and k x n views; of a batch one matrix after the other."""
    layout, m, n, k = q["layout"], q["m"], q["n"], q["k"]
    a = fill(*many(q), k, m) if layout == "TN" else fill(*many(q), m, k)
    b = fill(*many(q), n, k) if layout == "NT" else fill(*many(q), k, n)
    a, b = a.to(dtype), b.to(dtype)
    return a, b, (a.mT if layout == "TN" else a), (b.mT if layout == "NT" else b)


def many(q):
    return (q["batch"],) if q["batch"] else ()


def precision(name):
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    return torch.bfloat16 if name == "bf16" else torch.float32


def timed(q):
    dtype = precision(q["precision"])
    fill = lambda *shape: torch.randn(*shape, device=dev)
    _, _, a, b = operands(q, dtype, fill)
    out = torch.empty(*many(q), q["m"], q["n"], device=dev, dtype=dtype)
    multiply = torch.bmm if q["batch"] else torch.mm
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    ms = []
    for i in range(q["reps"] + 3):
        flush.fill_(i)
        begin.record()
        for _ in range(q["chain"]):
            multiply(a, b, out=out)
        end.record()
        end.synchronize()
        if i >= 3:
            ms.append(begin.elapsed_time(end) / q["chain"])
    return {"millis": ms}


def make(dist):
    def fill(*shape):
        if dist == "uniform":
            return torch.rand(*shape, device=dev)
        x = torch.randn(*shape, device=dev)
        if dist == "lognormal":
            return torch.exp(2 * x)
        if dist == "rows":
            return x * torch.exp2(torch.randint(-20, 20, (*shape[:-1], 1), device=dev).float())
        return x

    return fill


def errors(got, want, scale):
    diff = got.double() - want
    rows = diff.norm(dim=1) / scale.norm(dim=1)
    return (diff.norm() / want.norm()).item(), rows.max().item()


def exact(a, b, rows):
    """Some rows of all products, numbered through, in float64, and of the products of absolute values."""
    m, n = a.shape[-2], b.shape[-1]
    want, scale = [], []
    for i, (x, y) in enumerate(zip(a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]))):
        wide, sums, absolute = x[rows[rows // m == i] % m].double(), [], []
        for j in range(0, n, 4096):
            part = y[:, j : j + 4096].double()
            sums.append(wide @ part)
            absolute.append(wide.abs() @ part.abs())
        want.append(torch.cat(sums, 1))
        scale.append(torch.cat(absolute, 1))
    return torch.cat(want), torch.cat(scale)


def data(q):
    a_mem, b_mem, a, b = operands(q, torch.float32, make(q["dist"]))
    a_mem.cpu().numpy().tofile(q["a"])
    b_mem.cpu().numpy().tofile(q["b"])
    rows = torch.randperm(max(1, q["batch"]) * q["m"], device=dev)[: q["rows"]].sort().values
    want, scale = exact(a, b, rows)
    want.cpu().numpy().tofile(q["want"])
    scale.norm(dim=1).cpu().numpy().tofile(q["scale"])
    result = {"rows": rows.tolist(), "errors": {}}
    for name in ("fp32", "tf32", "bf16"):
        dtype = precision(name)
        got = (a.to(dtype) @ b.to(dtype)).reshape(-1, q["n"])[rows]
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
