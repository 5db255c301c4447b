"""GPT-2, small enough to store: loss and every gradient in float64, and PyTorch's float32 beside it.

V is odd, S is shorter than T (some position rows get no gradient), nine targets are ignored (-1).
Matrices have a larger standard deviation than GPT-2's 0.02, so that attention is not uniform; biases are
not zero and layer-norm gains not one, so that every gradient counts. Weights are [out, in].
"""

import math

import torch
import torch.nn.functional as F

import common

V, T, L, H, C = 97, 32, 2, 2, 32
B, S = 2, 24
IGNORED = [0, 5, 6, 23, 24, 30, 31, 32, 47]


def parameters():
    g = common.generator(1729)
    weight = lambda *shape: common.normal(g, *shape, std=0.1)
    bias = lambda n: common.normal(g, n, std=0.05)
    gain = lambda: common.normal(g, C, std=0.1, mean=1.0)
    p = {"wte": weight(V, C), "wpe": weight(T, C)}
    for i in range(L):
        p[f"h.{i}.ln1_g"], p[f"h.{i}.ln1_b"] = gain(), bias(C)
        p[f"h.{i}.qkv_w"], p[f"h.{i}.qkv_b"] = weight(3 * C, C), bias(3 * C)
        p[f"h.{i}.proj_w"], p[f"h.{i}.proj_b"] = weight(C, C), bias(C)
        p[f"h.{i}.ln2_g"], p[f"h.{i}.ln2_b"] = gain(), bias(C)
        p[f"h.{i}.fc_w"], p[f"h.{i}.fc_b"] = weight(4 * C, C), bias(4 * C)
        p[f"h.{i}.out_w"], p[f"h.{i}.out_b"] = weight(C, 4 * C), bias(C)
    p["lnf_g"], p["lnf_b"] = gain(), bias(C)
    return p


def heads(x):
    return x.view(x.shape[0], x.shape[1], H, C // H).transpose(1, 2)


def attention(q, k, v):
    """Causal: softmax(q kT / sqrt(D)) v over [B, H, S, D]."""
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def logits(p, tokens):
    x = p["wte"][tokens] + p["wpe"][: tokens.shape[1]]
    for i in range(L):
        w = lambda name: p[f"h.{i}.{name}"]
        h = F.layer_norm(x, (C,), w("ln1_g"), w("ln1_b"), eps=1e-5)
        q, k, v = F.linear(h, w("qkv_w"), w("qkv_b")).split(C, dim=2)
        a = attention(heads(q), heads(k), heads(v)).transpose(1, 2).reshape(x.shape)
        x = x + F.linear(a, w("proj_w"), w("proj_b"))
        h = F.layer_norm(x, (C,), w("ln2_g"), w("ln2_b"), eps=1e-5)
        x = x + F.linear(F.gelu(F.linear(h, w("fc_w"), w("fc_b")), approximate="tanh"), w("out_w"), w("out_b"))
    return F.linear(F.layer_norm(x, (C,), p["lnf_g"], p["lnf_b"], eps=1e-5), p["wte"])


def loss(p, tokens, targets):
    """(sum of the cross entropies, number of targets that count, logits)."""
    z = logits(p, tokens.long())
    total = F.cross_entropy(z.view(-1, V), targets.long().view(-1), ignore_index=-1, reduction="sum")
    return total, (targets >= 0).sum(), z


if __name__ == "__main__":
    tokens, targets = common.tokens_and_targets(common.generator(1), B, S, V, IGNORED)
    common.save_model(
        "gpt2-small",
        parameters(),
        {"tokens": tokens, "targets": targets},
        lambda p: loss(p, tokens, targets),
        script="gpt2_small.py",
        sizes=f"V={V} T={T} L={L} H={H} C={C} B={B} S={S}",
        gradients="of loss_sum / count",
    )
