"""Single operations: values and gradients in float64, and the same by PyTorch's float32.

Each case CASE stores in ops.inputs    CASE.in.NAME (what float32 represents), CASE.ct (the cotangent)
                  and in ops.float64, ops.torch32    CASE.out, and CASE.grad.NAME for each floating input.
The metadata says for each case which operation it is and with what attributes.

Where PyTorch has no defined answer, the project's is used and computed by plain formulas here:
  softmax of a row that is all -inf      zeros, and zero gradients
  cross entropy with every row ignored   sum 0, count 0, zero gradients
  norm at zero                           zero gradient (PyTorch agrees)
  max at ties                            the gradient is shared equally (PyTorch's amax agrees)
"""

import math

import torch
import torch.nn.functional as F

import common
import llama_small as llama

INF = float("inf")
g = common.generator(4)
normal = lambda *shape, **k: common.normal(g, *shape, **k)
f32 = lambda *rows: torch.tensor(rows, dtype=torch.float32)
index = lambda *rows: torch.tensor(rows, dtype=torch.int32)


def softmax(x):
    empty = torch.isneginf(x).all(-1, keepdim=True)
    return torch.where(empty, 0.0, torch.where(empty, 0.0, x).softmax(-1))


def layernorm(x, gain, bias):
    """In float64 by two passes: PyTorch's kernel leaves a rounding error where a row is constant."""
    if x.dtype == torch.float64:
        d = x - x.mean(-1, keepdim=True)
        return d * torch.rsqrt(d.square().mean(-1, keepdim=True) + 1e-5) * gain + bias
    return F.layer_norm(x, x.shape[-1:], gain, bias, eps=1e-5)


def cross_entropy(x, targets):
    return F.cross_entropy(x, targets.long(), ignore_index=-1, reduction="sum")


def attention(causal):
    def run(q, k, v):
        group = q.shape[1] // k.shape[1]
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
            scores = scores.masked_fill(~mask, -INF)
        return scores.softmax(-1) @ v

    return run


def einsum(equation):
    return lambda a, b: torch.einsum(equation, a, b)


def where_guarded(x):
    """sqrt is evaluated only where it is taken: PyTorch needs that, a language need not ask for it."""
    taken = x > 0.5
    return torch.where(taken, torch.where(taken, x, 1.0).sqrt(), 1.0)


# name: (what it is, function, inputs by name)
CASES = {
    "softmax": ("softmax axis=1", softmax, {"x": normal(6, 37, std=3.0)}),
    "softmax_huge": (
        "softmax axis=1",
        softmax,
        {"x": f32([1e30, 1e30, -1e30, 0], [3e38, 1, 2, 3], [88.7, 88.8, 90, -104], [-3e38, -3e38, -3e38, -3e38])},
    ),
    "softmax_masked": ("softmax axis=1", softmax, {"x": f32([-INF, -INF, -INF], [-INF, 1, 2], [0, -INF, -INF])}),
    "softmax_middle": ("softmax axis=1", lambda x: x.softmax(1), {"x": normal(3, 5, 4)}),
    "layernorm": (
        "layernorm eps=1e-5 over the last axis",
        layernorm,
        {"x": normal(2, 5, 48, mean=0.3), "gain": normal(48, mean=1.0), "bias": normal(48)},
    ),
    "layernorm_offset": (
        "layernorm eps=1e-5 over the last axis",
        layernorm,
        {
            "x": f32([40000, 40001, 40002, 40003], [-1e6, -1e6 + 1, -1e6 - 1, -1e6 + 0.5], [1, 2, 3, 4]),
            "gain": f32(1, 0.5, 2, -1),
            "bias": f32(0, 0.25, -1, 3),
        },
    ),
    "layernorm_constant": (
        "layernorm eps=1e-5 over the last axis",
        layernorm,
        {"x": f32([7, 7, 7, 7], [0, 0, 0, 0], [3e4, 3e4, 3e4, 3e4]), "gain": normal(4), "bias": normal(4)},
    ),
    "rmsnorm": (
        "rmsnorm eps=1e-5 over the last axis",
        llama.rms_norm,
        {"x": normal(2, 5, 48), "gain": normal(48, mean=1.0)},
    ),
    "rmsnorm_zero": (
        "rmsnorm eps=1e-5 over the last axis",
        llama.rms_norm,
        {"x": f32([0, 0, 0], [1e-4, 0, 0]), "gain": normal(3)},
    ),
    "gelu_tanh": ("gelu tanh", lambda x: F.gelu(x, approximate="tanh"), {"x": torch.linspace(-9, 9, 73)}),
    "gelu_erf": ("gelu erf", F.gelu, {"x": torch.linspace(-9, 9, 73)}),
    "silu": ("silu", F.silu, {"x": torch.linspace(-100, 100, 81)}),
    "sigmoid": ("sigmoid", torch.sigmoid, {"x": torch.linspace(-100, 100, 81)}),
    "tanh": ("tanh", torch.tanh, {"x": torch.linspace(-20, 20, 81)}),
    "relu": ("relu", torch.relu, {"x": f32(-2, -0.0, 0.0, 1e-30, 3)}),
    "cross_entropy": (
        "cross_entropy ignore=-1, the sum",
        cross_entropy,
        {"x": normal(7, 19, std=2.0), "targets": index(3, -1, 0, 18, -1, 7, 7)},
    ),
    "cross_entropy_huge": (
        "cross_entropy ignore=-1, the sum",
        cross_entropy,
        {"x": f32([1e4, -1e4, 0], [1e30, 0, 0], [0, 100, 200]), "targets": index(0, 0, 1)},
    ),
    "cross_entropy_ignored": (
        "cross_entropy ignore=-1, the sum",
        cross_entropy,
        {"x": normal(3, 5), "targets": index(-1, -1, -1)},
    ),
    "attention_causal": (
        "attention causal [B, H, S, D]",
        attention(True),
        {"q": normal(2, 3, 17, 8), "k": normal(2, 3, 17, 8), "v": normal(2, 3, 17, 8)},
    ),
    "attention_full": (
        "attention not causal, 9 queries, 13 keys",
        attention(False),
        {"q": normal(2, 2, 9, 8), "k": normal(2, 2, 13, 8), "v": normal(2, 2, 13, 8)},
    ),
    "attention_grouped": (
        "attention causal, 6 query heads, 2 key heads: head h reads h // 3",
        attention(True),
        {"q": normal(1, 6, 11, 4), "k": normal(1, 2, 11, 4), "v": normal(1, 2, 11, 4)},
    ),
    "attention_sharp": (
        "attention causal, scores in the hundreds",
        attention(True),
        {"q": normal(1, 1, 8, 4, std=30.0), "k": normal(1, 1, 8, 4, std=30.0), "v": normal(1, 1, 8, 4)},
    ),
    "rope": ("rope half-split theta=10000 [B, H, S, D]", llama.rope, {"x": normal(2, 3, 19, 8)}),
    "linear": ("linear x wT + b", F.linear, {"x": normal(2, 5, 7), "w": normal(11, 7), "b": normal(11)}),
    "matmul_batched": ("matmul", torch.matmul, {"a": normal(3, 5, 7), "b": normal(3, 7, 4)}),
    "einsum_matmul": ("einsum ij,jk->ik", einsum("ij,jk->ik"), {"a": normal(5, 7), "b": normal(7, 3)}),
    "einsum_scores": (
        "einsum bshd,bthd->bhst",
        einsum("bshd,bthd->bhst"),
        {"a": normal(2, 5, 3, 4), "b": normal(2, 6, 3, 4)},
    ),
    "einsum_outer": ("einsum i,j->ji", einsum("i,j->ji"), {"a": normal(4), "b": normal(5)}),
    "einsum_summed": ("einsum ijk,kl->il", einsum("ijk,kl->il"), {"a": normal(3, 4, 5), "b": normal(5, 2)}),
    "einsum_dot": ("einsum ij,ij->", einsum("ij,ij->"), {"a": normal(3, 4), "b": normal(3, 4)}),
    "sum": ("sum axes=0,2", lambda x: x.sum((0, 2)), {"x": normal(3, 4, 5)}),
    "mean": ("mean axes=1", lambda x: x.mean(1), {"x": normal(3, 4, 5)}),
    "max": ("max axes=1", lambda x: x.amax(1), {"x": normal(3, 4, 5)}),
    "max_ties": ("max axes=1", lambda x: x.amax(1), {"x": f32([1, 3, 3, 2], [5, 5, 5, 5], [-1, -2, -3, -1])}),
    "min": ("min axes=0,1", lambda x: x.amin((0, 1)), {"x": normal(3, 4, 5)}),
    "norm": ("sqrt of the sum of squares, axes=1", lambda x: x.norm(dim=1), {"x": f32([3, 4], [0, 0], [1e-3, 0])}),
    "logsumexp": ("logsumexp axes=1", lambda x: x.logsumexp(1), {"x": f32([1000, 1000, 0], [-1000, -1001, -999])}),
    "where": (
        "where(c, a, b)",
        lambda c, a, b: torch.where(c > 0, a, b),
        {"c": index([1, 0, 1], [0, 0, 1]), "a": normal(2, 3), "b": normal(1, 3)},
    ),
    "where_sqrt": ("where(x > 0.5, sqrt(x), 1)", where_guarded, {"x": f32(0, 0.25, 0.5, 0.75, 4, -1)}),
    "pow": ("pow(a, b)", torch.pow, {"a": f32(0.5, 2, 3, 1, 1e-3), "b": f32(2, -1.5, 0.5, 7, 2)}),
    "square_at_zero": ("pow(x, 2)", lambda x: x**2, {"x": f32(-3, 0, 2)}),
    "gather_rows": (
        "table[indices]: rows, one repeated",
        lambda table, indices: table[indices.long()],
        {"table": normal(6, 3), "indices": index([0, 5, 2], [2, 2, 1])},
    ),
    "broadcast_bias": ("x + b", torch.add, {"x": normal(3, 4, 5), "b": normal(1, 1, 5)}),
    "broadcast_mul": ("a * b", torch.mul, {"a": normal(3, 1, 5), "b": normal(1, 4, 1)}),
    "div": ("a / b", torch.div, {"a": normal(3, 4), "b": normal(3, 1, mean=3.0)}),
    "concat": ("concat axis=1", lambda a, b: torch.cat([a, b], 1), {"a": normal(2, 3, 2), "b": normal(2, 1, 2)}),
    "slice": ("x[:, 1:5:2]", lambda x: x[:, 1:5:2], {"x": normal(3, 6)}),
    "conv2d": (
        "conv2d stride=2 padding=1 [N, C, H, W] * [O, C, KH, KW]",
        lambda x, w: F.conv2d(x, w, stride=2, padding=1),
        {"x": normal(2, 3, 7, 6), "w": normal(4, 3, 3, 3)},
    ),
    "conv2d_unit": (
        "conv2d stride=1 padding=0",
        lambda x, w: F.conv2d(x, w),
        {"x": normal(1, 2, 5, 5), "w": normal(3, 2, 2, 3)},
    ),
    "max_pool2d": ("max pooling, window 2, stride 2", lambda x: F.max_pool2d(x, 2), {"x": normal(2, 3, 6, 4)}),
    "avg_pool2d": ("mean pooling, window 2, stride 2", lambda x: F.avg_pool2d(x, 2), {"x": normal(2, 3, 6, 4)}),
}


def evaluate(run, inputs, cotangent, dtype):
    """The value, and the gradients of <cotangent, value> by every floating input."""
    floating = {k: v for k, v in inputs.items() if v.is_floating_point()}
    p = common.leaves(floating, dtype)
    out = run(*[p.get(k, v) for k, v in inputs.items()])
    out.backward(cotangent.to(dtype))
    return {"out": out, **{"grad." + k: v.grad for k, v in p.items()}}


if __name__ == "__main__":
    inputs, exact, single, notes = {}, {}, {}, {}
    for name, (what, run, ins) in CASES.items():
        shape = run(*ins.values()).shape
        ct = normal(*shape)
        inputs.update({f"{name}.in.{k}": v for k, v in ins.items()}, **{f"{name}.ct": ct})
        for store, dtype in [(exact, torch.float64), (single, torch.float32)]:
            values = evaluate(run, ins, ct, dtype)
            store.update({f"{name}.{k}": v for k, v in values.items()})
            for k, v in values.items():
                assert v.isfinite().all(), f"{name}.{k} is not finite in {dtype}: {v}"
        notes[name] = what
    common.save("ops.inputs", inputs, script="ops.py", **notes)
    common.save("ops.float64", exact, script="ops.py", **notes)
    common.save("ops.torch32", single, script="ops.py", **notes)
