"""GPT-2 in PyTorch, as a person would write it for speed, with the names of examples/gpt2.blu for its weights."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.ln1, self.ln2 = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.qkv, self.proj = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.fc, self.out = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        b, s, c = x.shape
        q, k, v = (t.view(b, s, self.heads, c // self.heads).transpose(1, 2) for t in self.qkv(self.ln1(x)).split(c, 2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, s, c))
        return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, vocabulary=50257, positions=1024, layers=12, heads=12, channels=768):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, channels), nn.Embedding(positions, channels)
        self.h = nn.ModuleList(Block(channels, heads) for _ in range(layers))
        self.lnf = nn.LayerNorm(channels)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                last = name.endswith(("proj.weight", "out.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if last else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, tokens, targets, reduction="mean"):
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.h:
            x = block(x)
        logits = F.linear(self.lnf(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1).long(), reduction=reduction)


def weights(model):
    """Parameters by the names that .blu files have for them: h.0.ln1_g, h.0.fc_b, wte. A parameter that no layer of PyTorch owns has its own name."""
    named = {}
    for owner, module in model.named_modules():
        suffix = {nn.Embedding: {"weight": ""}, nn.Linear: {"weight": "_w", "bias": "_b"}}.get(type(module), {})
        if isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
            suffix = {"weight": "_g", "bias": "_b"}
        for name, p in module.named_parameters(recurse=False):
            named[owner + suffix[name] if name in suffix else name] = p
    return named


def load(model, tensors):
    """Copies tensors of the .blu file's names into the model."""
    own = weights(model)
    missing = set(own) - set(tensors)
    if missing:
        raise KeyError(f"weights that are missing: {sorted(missing)[:3]}")
    with torch.no_grad():
        for name, p in own.items():
            p.copy_(tensors[name])


def optimizer(model, lr):
    """AdamW as the examples have it: weights of two dimensions and more decay."""
    recipe = {"betas": (0.9, 0.95), "weight_decay": 0.1, **getattr(model, "recipe", {})}
    decays = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decays, "weight_decay": recipe["weight_decay"]}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=recipe["betas"], eps=1e-8, fused=next(model.parameters()).is_cuda)


def precision(name):
    """Sets how float32 products are computed; says whether to work under autocast to bfloat16."""
    torch.set_float32_matmul_precision("high" if name == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = name == "tf32"
    return torch.autocast("cuda" if torch.cuda.is_available() else "cpu", torch.bfloat16, enabled=name == "bf16")
