"""A small Llama: RMSNorm, RoPE, SwiGLU, grouped-query attention, untied head; float64 and PyTorch's float32.

RoPE is the half-split kind (rotate_half, as in Hugging Face's Llama): with D channels a head, channel i < D/2 pairs
with channel i + D/2, angle = position * theta^(-2i/D), theta = 10000.
Query head h reads key head h // (HEADS / KV_HEADS). Weights are [out, in]. Names are those of examples/llama.blu.
"""

import math

import torch
import torch.nn.functional as F

import common

V, L, C, HIDDEN = 97, 2, 32, 48
HEADS, KV_HEADS, D = 4, 2, 8
THETA, EPS = 10000.0, 1e-5
B, S = 2, 24
IGNORED = [3, 23, 24, 25, 26, 40]


def parameters():
    g = common.generator(2718)
    weight = lambda *shape: common.normal(g, *shape, std=0.15)
    gain = lambda: common.normal(g, C, std=0.1, mean=1.0)
    p = {"embed": weight(V, C)}
    for i in range(L):
        p[f"h.{i}.attn_g"] = gain()
        p[f"h.{i}.q_w"] = weight(HEADS * D, C)
        p[f"h.{i}.k_w"] = weight(KV_HEADS * D, C)
        p[f"h.{i}.v_w"] = weight(KV_HEADS * D, C)
        p[f"h.{i}.o_w"] = weight(C, HEADS * D)
        p[f"h.{i}.mlp_g"] = gain()
        p[f"h.{i}.gate_w"] = weight(HIDDEN, C)
        p[f"h.{i}.up_w"] = weight(HIDDEN, C)
        p[f"h.{i}.down_w"] = weight(C, HIDDEN)
    p["norm_g"] = gain()
    p["head_w"] = weight(V, C)
    return p


def rms_norm(x, gain):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS) * gain


def rope(x):
    """x: [B, H, S, D]. The table of sines and cosines is made in float64 and rounded to x's precision."""
    half = x.shape[-1] // 2
    frequency = THETA ** (-2 * torch.arange(half, dtype=torch.float64) / x.shape[-1])
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * frequency
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def heads(x, n):
    return x.view(x.shape[0], x.shape[1], n, D).transpose(1, 2)


def attention(q, k, v):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v


def logits(p, tokens):
    x = p["embed"][tokens]
    for i in range(L):
        w = lambda name: p[f"h.{i}.{name}"]
        h = rms_norm(x, w("attn_g"))
        q, k, v = heads(h @ w("q_w").T, HEADS), heads(h @ w("k_w").T, KV_HEADS), heads(h @ w("v_w").T, KV_HEADS)
        a = attention(rope(q), rope(k), v).transpose(1, 2).reshape(x.shape[0], x.shape[1], HEADS * D)
        x = x + a @ w("o_w").T
        h = rms_norm(x, w("mlp_g"))
        x = x + (F.silu(h @ w("gate_w").T) * (h @ w("up_w").T)) @ w("down_w").T
    return rms_norm(x, p["norm_g"]) @ p["head_w"].T


def loss(p, tokens, targets):
    z = logits(p, tokens.long())
    total = F.cross_entropy(z.view(-1, V), targets.long().view(-1), ignore_index=-1, reduction="sum")
    return total, (targets >= 0).sum(), z


if __name__ == "__main__":
    tokens, targets = common.tokens_and_targets(common.generator(2), B, S, V, IGNORED)
    common.save_model(
        "llama-small",
        parameters(),
        {"tokens": tokens, "targets": targets},
        lambda p: loss(p, tokens, targets),
        script="llama_small.py",
        sizes=f"V={V} L={L} C={C} HIDDEN={HIDDEN} HEADS={HEADS} KV_HEADS={KV_HEADS} B={B} S={S}",
        rope="half-split, theta 10000",
        gradients="of loss_sum / count",
    )
