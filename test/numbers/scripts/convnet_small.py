"""examples/convnet.blu at a small size, without dropout: loss and gradients in float64 and in PyTorch's float32."""

import torch
import torch.nn.functional as F

import common

BATCH, IN, N, CLASSES, C, M = 6, 2, 12, 5, 4, 9


def parameters():
    g = common.generator(61)
    normal = lambda *shape, std=0.3: common.normal(g, *shape, std=std)
    flat = 2 * C * (N // 4) ** 2
    return {
        "conv1_w": normal(C, IN, 3, 3), "conv1_b": normal(C),
        "conv2_w": normal(2 * C, C, 3, 3), "conv2_b": normal(2 * C),
        "hidden_w": normal(M, flat), "hidden_b": normal(M),
        "out_w": normal(CLASSES, M), "out_b": normal(CLASSES),
    }


def loss(p, images, labels):
    x = images.to(p["out_w"].dtype)
    x = F.max_pool2d(F.relu(F.conv2d(x, p["conv1_w"], p["conv1_b"], padding=1)), 2)
    x = F.max_pool2d(F.relu(F.conv2d(x, p["conv2_w"], p["conv2_b"], padding=1)), 2)
    z = F.linear(F.relu(F.linear(x.flatten(1), p["hidden_w"], p["hidden_b"])), p["out_w"], p["out_b"])
    return F.cross_entropy(z, labels.long(), ignore_index=-1, reduction="sum"), (labels >= 0).sum(), z


if __name__ == "__main__":
    g = common.generator(62)
    images = common.normal(g, BATCH, IN, N, N)
    labels = torch.randint(CLASSES, (BATCH,), generator=g).int()
    labels[3] = -1
    common.save_model(
        "convnet-small",
        parameters(),
        {"images": images, "labels": labels},
        lambda p: loss(p, images, labels),
        script="convnet_small.py",
        sizes=f"BATCH={BATCH} IN={IN} N={N} CLASSES={CLASSES} C={C} M={M}",
        gradients="of loss_sum / count",
    )
