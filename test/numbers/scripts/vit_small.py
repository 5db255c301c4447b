"""examples/vit.blu at a small size, without dropout: loss and gradients in float64 and in PyTorch's float32."""

import torch
import torch.nn.functional as F

import common

BATCH, IN, N, P, CLASSES, L, H, C = 4, 3, 8, 2, 5, 2, 2, 12


def parameters():
    g = common.generator(63)
    normal = lambda *shape, std=0.3, mean=0.0: common.normal(g, *shape, std=std, mean=mean)
    p = {"patch_w": normal(C, IN, P, P), "patch_b": normal(C), "place": normal((N // P) ** 2, C)}
    for i in range(L):
        h = f"h.{i}."
        p |= {
            h + "ln1_g": normal(C, mean=1.0), h + "ln1_b": normal(C), h + "qkv_w": normal(3 * C, C), h + "qkv_b": normal(3 * C),
            h + "proj_w": normal(C, C), h + "proj_b": normal(C), h + "ln2_g": normal(C, mean=1.0), h + "ln2_b": normal(C),
            h + "fc_w": normal(4 * C, C), h + "fc_b": normal(4 * C), h + "out_w": normal(C, 4 * C), h + "out_b": normal(C),
        }
    return p | {"ln_g": normal(C, mean=1.0), "ln_b": normal(C), "head_w": normal(CLASSES, C), "head_b": normal(CLASSES)}


def layer(p, h, x):
    norm = lambda x, n: F.layer_norm(x, (C,), p[h + n + "_g"], p[h + n + "_b"], eps=1e-6)
    heads = lambda x: x.unflatten(2, (H, C // H)).transpose(1, 2)
    q, k, v = F.linear(norm(x, "ln1"), p[h + "qkv_w"], p[h + "qkv_b"]).split(C, dim=2)
    a = F.scaled_dot_product_attention(heads(q), heads(k), heads(v)).transpose(1, 2).flatten(2)
    y = x + F.linear(a, p[h + "proj_w"], p[h + "proj_b"])
    return y + F.linear(F.gelu(F.linear(norm(y, "ln2"), p[h + "fc_w"], p[h + "fc_b"])), p[h + "out_w"], p[h + "out_b"])


def loss(p, images, labels):
    x = F.conv2d(images.to(p["ln_g"].dtype), p["patch_w"], p["patch_b"], stride=P).flatten(2).transpose(1, 2) + p["place"]
    for i in range(L):
        x = layer(p, f"h.{i}.", x)
    z = F.linear(F.layer_norm(x, (C,), p["ln_g"], p["ln_b"], eps=1e-6).mean(1), p["head_w"], p["head_b"])
    return F.cross_entropy(z, labels.long(), ignore_index=-1, reduction="sum"), (labels >= 0).sum(), z


if __name__ == "__main__":
    g = common.generator(64)
    images = common.normal(g, BATCH, IN, N, N)
    labels = torch.randint(CLASSES, (BATCH,), generator=g).int()
    labels[1] = -1
    common.save_model(
        "vit-small",
        parameters(),
        {"images": images, "labels": labels},
        lambda p: loss(p, images, labels),
        script="vit_small.py",
        sizes=f"BATCH={BATCH} IN={IN} N={N} P={P} CLASSES={CLASSES} L={L} H={H} C={C}",
        gradients="of loss_sum / count",
    )
