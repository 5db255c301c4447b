"""Twenty optimizer steps of gpt2-small: the float64 trajectory, and the spread of PyTorch float32 runs around it.

Each step has its own batch of two rows, given as two micro-batches of one row with unequal numbers of ignored
targets; the gradient is of (sum over both) / (count over both).
  clip      g *= clip / norm where norm > clip = 1
  schedule  step s from 0: max (s + 1) / warmup while s < warmup, then
            min + (max - min) (1 + cos(pi (s - warmup) / (steps - warmup))) / 2
  adamw     torch.optim.AdamW: betas 0.9 0.95, eps 1e-8, weight decay 0.1 on tensors of rank >= 2
  sgd       torch.optim.SGD: momentum 0.9, no dampening; weight decay 0.1 (added to the gradient) on rank >= 2
The spread: nine float32 runs; run 0 has the given weights, in the others each weight moved by one unit in the last
place, up or down at random. Compare a float32 target's losses with their minimum and maximum.
"""

import math

import torch

import common
import gpt2_small as gpt2

STEPS, WARMUP, CLIP = 20, 5, 1.0
RUNS = 9
MAX_LR = {"adamw": 6e-3, "sgd": 6e-2}


def batches():
    """tokens and targets [STEPS, B, S]: four batches over and over, each time with other targets ignored."""
    pairs = []
    for s in range(STEPS):
        ignored = [(7 * s + 3 * i) % (gpt2.B * gpt2.S) for i in range(s % 5)] + [gpt2.S + (s * s) % gpt2.S]
        pairs.append(common.tokens_and_targets(common.generator(100 + s % 4), gpt2.B, gpt2.S, gpt2.V, ignored))
    return [torch.stack(x) for x in zip(*pairs)]


def learning_rate(kind, s):
    high = MAX_LR[kind]
    low = high / 10
    if s < WARMUP:
        return high * (s + 1) / WARMUP
    return low + (high - low) * (1 + math.cos(math.pi * (s - WARMUP) / (STEPS - WARMUP))) / 2


def optimizer(kind, p):
    groups = [
        {"params": [v for v in p.values() if v.dim() >= 2], "weight_decay": 0.1},
        {"params": [v for v in p.values() if v.dim() < 2], "weight_decay": 0.0},
    ]
    if kind == "adamw":
        return torch.optim.AdamW(groups, lr=1.0, betas=(0.9, 0.95), eps=1e-8)
    return torch.optim.SGD(groups, lr=1.0, momentum=0.9)


def train(kind, params, dtype, tokens, targets):
    """Losses and gradient norms of every step, and the parameters after the last."""
    p = common.leaves(params, dtype)
    opt = optimizer(kind, p)
    losses, norms = [], []
    for s in range(STEPS):
        total, count, _ = gpt2.loss(p, tokens[s], targets[s])
        opt.zero_grad()
        (total / count).backward()
        norm = torch.stack([v.grad.norm() for v in p.values()]).norm()
        if norm > CLIP:
            for v in p.values():
                v.grad.mul_(CLIP / norm)
        for group in opt.param_groups:
            group["lr"] = learning_rate(kind, s)
        opt.step()
        losses.append((total / count).detach())
        norms.append(norm)
    return torch.stack(losses), torch.stack(norms), p


def perturbed(params, run):
    """Every weight one unit in the last place up or down, at random; run 0 as given."""
    if run == 0:
        return params
    g = common.generator(1000 + run)
    up = lambda v: torch.rand(v.shape, generator=g) < 0.5
    inf = torch.tensor(float("inf"))
    return {k: torch.where(up(v), torch.nextafter(v, inf), torch.nextafter(v, -inf)) for k, v in params.items()}


if __name__ == "__main__":
    tokens, targets = batches()
    params = gpt2.parameters()
    for kind in ["adamw", "sgd"]:
        losses, norms, p = train(kind, params, torch.float64, tokens, targets)
        out = {"tokens": tokens, "targets": targets, "losses": losses, "grad_norms": norms}
        out["learning_rates"] = torch.tensor([learning_rate(kind, s) for s in range(STEPS)], dtype=torch.float64)
        out.update({"final." + k: v for k, v in p.items()})
        runs = [train(kind, perturbed(params, r), torch.float32, tokens, targets)[:2] for r in range(RUNS)]
        out["torch32.losses"] = torch.stack([r[0] for r in runs])
        out["torch32.grad_norms"] = torch.stack([r[1] for r in runs])
        common.save(f"train-{kind}", out, script="training.py", start="gpt2-small.inputs.safetensors")
        print(f"  losses {losses[0]:.4f} .. {losses[-1]:.4f}, norms {norms.max():.3f} .. {norms.min():.3f}")
        print(f"  float32 runs: largest deviation {(out['torch32.losses'] - losses).abs().max():.2e}")
