"""A two-layer perceptron with relu, and its loss and gradients in float64 and in PyTorch's float32.

logits = relu(x w1T + b1) w2T + b2; cross entropy with two ignored rows.
"""

import torch
import torch.nn.functional as F

import common

BATCH, IN, HIDDEN, OUT = 10, 7, 13, 5
IGNORED = [2, 9]


def parameters():
    g = common.generator(31)
    normal = lambda *shape: common.normal(g, *shape, std=0.4)
    return {"w1": normal(HIDDEN, IN), "b1": normal(HIDDEN), "w2": normal(OUT, HIDDEN), "b2": normal(OUT)}


def loss(p, x, targets):
    z = F.linear(F.relu(F.linear(x.to(p["w1"].dtype), p["w1"], p["b1"])), p["w2"], p["b2"])
    total = F.cross_entropy(z, targets.long(), ignore_index=-1, reduction="sum")
    return total, (targets >= 0).sum(), z


if __name__ == "__main__":
    g = common.generator(32)
    x = common.normal(g, BATCH, IN)
    targets = torch.randint(OUT, (BATCH,), generator=g).int()
    targets[IGNORED] = -1
    common.save_model(
        "mlp-small",
        parameters(),
        {"x": x, "targets": targets},
        lambda p: loss(p, x, targets),
        script="mlp_small.py",
        sizes=f"BATCH={BATCH} IN={IN} HIDDEN={HIDDEN} OUT={OUT}",
        gradients="of loss_sum / count",
    )
