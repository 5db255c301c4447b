"""The Llama-style decoder of examples/llama.blu in PyTorch, as a person would write it for speed, with that file's names for its weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def turn(x, cos, sin):
    """Rotary positions: pairs (i, i + D/2), as in Hugging Face's Llama."""
    low, high = x.chunk(2, -1)
    return x * cos + torch.cat((-high, low), -1) * sin


def attend(q, k, v):
    """Heads of queries share those of keys and values. In float32 PyTorch's fused kernels have no such heads, so they are repeated."""
    if q.dtype in (torch.bfloat16, torch.float16):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    k, v = (t.repeat_interleave(q.shape[1] // k.shape[1], 1) for t in (k, v))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class Block(nn.Module):
    def __init__(self, channels, heads, groups, inner):
        super().__init__()
        self.heads, self.groups, small = heads, groups, channels // heads * groups
        self.attn, self.mlp = nn.RMSNorm(channels, eps=1e-5), nn.RMSNorm(channels, eps=1e-5)
        self.q, self.k, self.v, self.o = (nn.Linear(a, b, bias=False) for a, b in ((channels, channels), (channels, small), (channels, small), (channels, channels)))
        self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((channels, inner), (channels, inner), (inner, channels)))

    def forward(self, x, cos, sin):
        b, s, c = x.shape
        h = self.attn(x)
        q, k, v = (t.view(b, s, n, c // self.heads).transpose(1, 2) for t, n in ((self.q(h), self.heads), (self.k(h), self.groups), (self.v(h), self.groups)))
        a = attend(turn(q, cos, sin).to(v.dtype), turn(k, cos, sin).to(v.dtype), v)
        x = x + self.o(a.transpose(1, 2).reshape(b, s, c))
        h = self.mlp(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Llama(nn.Module):
    def __init__(self, vocabulary=50257, positions=1024, layers=12, heads=12, groups=4, channels=768, inner=2048, theta=10000.0):
        super().__init__()
        self.positions, self.width, self.theta = positions, channels // heads, theta
        self.embed = nn.Embedding(vocabulary, channels)
        self.h = nn.ModuleList(Block(channels, heads, groups, inner) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(channels, eps=1e-5), nn.Linear(channels, vocabulary, bias=False)
        self.angles(torch.float32)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if name.endswith(("o.weight", "down.weight")) else 0.02)

    def angles(self, dtype):
        """The table of turns, [S, D], made in float64."""
        at = torch.arange(self.width // 2, dtype=torch.float64)
        table = torch.arange(self.positions, dtype=torch.float64)[:, None] * self.theta ** (-2 * at / self.width)
        table = torch.cat((table, table), -1)
        for name, t in (("cos", table.cos()), ("sin", table.sin())):
            self.register_buffer(name, t.to(self.embed.weight.device, dtype), persistent=False)

    def double(self):
        super().double()
        self.angles(torch.float64)
        return self

    def forward(self, tokens, targets, reduction="mean"):
        s = tokens.shape[1]
        x = self.embed(tokens)
        for block in self.h:
            x = block(x, self.cos[:s], self.sin[:s])
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1).long(), reduction=reduction)
