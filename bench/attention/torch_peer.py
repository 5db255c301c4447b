"""The other side of bench/attention: PyTorch's scaled_dot_product_attention, causal, forward and backward.

Reads one JSON object a line and answers each with one. Tensors are [batch, positions, heads, features] in memory. Times:
milliseconds of each repetition between two events, L2 filled with something else before each. Data: keeps the results in
float64 on inputs from files and tells PyTorch's own errors; compare: the errors of results in files.
"""
import json
import math
import os
import sys

import torch
import torch.nn.functional as F

dev = "cuda"
exact = {}


def precision(name):
    torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
    return torch.bfloat16 if name == "bf16" else torch.float32


def heads(x):
    """[batch, positions, heads, features] as [batch, heads, positions, features]."""
    return x.transpose(1, 2)


def attend(q, k, v, do):
    """Results of attention and its gradients."""
    q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
    o = F.scaled_dot_product_attention(heads(q), heads(k), heads(v), is_causal=True)
    dq, dk, dv = torch.autograd.grad(o, (q, k, v), heads(do))
    return {"o": heads(o.detach()), "dq": dq, "dk": dk, "dv": dv}


def wide(q, k, v, do):
    """The same in float64, one head after the other, and lse."""
    out = {n: torch.empty_like(x, dtype=torch.float64) for n, x in (("o", q), ("dq", q), ("dk", k), ("dv", v))}
    lse = torch.empty(q.shape[0], q.shape[2], q.shape[1], dtype=torch.float64, device=q.device)
    mask = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool, device=q.device).tril()
    scale = 1 / math.sqrt(q.shape[3])
    for b in range(q.shape[0]):
        for h in range(q.shape[2]):
            qh, kh, vh, gh = (x[b, :, h].double() for x in (q, k, v, do))
            scores = (qh @ kh.T * scale).masked_fill_(~mask, -math.inf)
            lse[b, h] = scores.logsumexp(1)
            p = scores.sub_(lse[b, h][:, None]).exp_()
            o = p @ vh
            ds = p * (gh @ vh.T - (gh * o).sum(1, keepdim=True)) * scale
            for n, x in (("o", o), ("dq", ds @ kh), ("dk", ds.T @ qh), ("dv", p.T @ gh)):
                out[n][b, :, h] = x
    return {**out, "lse": lse}


def error(name, got):
    want = exact[name]
    return ((got.double() - want).norm() / want.norm()).item()


def read(q, name):
    dtype = torch.float32 if name == "lse" else precision(q["precision"])
    shape = (q["batch"], q["heads"], q["positions"]) if name == "lse" else (q["batch"], q["positions"], q["heads"], q["features"])
    raw = torch.from_file(os.path.join(q["folder"], name), size=math.prod(shape), dtype=dtype)
    return raw.view(shape).to(dev)


def data(q):
    precision(q["precision"])
    inputs = [read(q, name) for name in ("q", "k", "v", "do")]
    exact.clear()
    exact.update(wide(*inputs))
    return {"errors": {name: error(name, x) for name, x in attend(*inputs).items()}}


def compare(q):
    return {"errors": {name: error(name, read(q, name)) for name in q["names"]}}


def timed(q):
    dtype = precision(q["precision"])
    flush = torch.empty(64 << 20, dtype=torch.int32, device=dev)
    shape = (q["batch"], q["positions"], q["heads"], q["features"])
    xs = [torch.randn(shape, device=dev).to(dtype).requires_grad_() for _ in range(3)]
    do = heads(torch.randn(shape, device=dev).to(dtype))
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    out = {"Forward": [], "Backward": []}
    for i in range(q["reps"] + 3):
        for what in ("Forward", "Backward"):
            flush.fill_(i)
            begin.record()
            if what == "Forward":
                o = F.scaled_dot_product_attention(*map(heads, xs), is_causal=True)
            else:
                torch.autograd.grad(o, xs, do)
            end.record()
            end.synchronize()
            if i >= 3:
                out[what].append(begin.elapsed_time(end))
    return out


def main():
    for line in sys.stdin:
        q = json.loads(line)
        try:
            answer = {"time": timed, "data": data, "compare": compare}[q["do"]](q)
        except (RuntimeError, OSError) as e:
            answer = {"failure": str(e)}
        if dev == "cuda":
            torch.cuda.empty_cache()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
