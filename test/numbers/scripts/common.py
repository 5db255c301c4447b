"""What every script here shared: seeds, tensors of a fixed stream, and the writing of .safetensors files."""

import json
import pathlib
import platform
import struct

import torch

TESTDATA = pathlib.Path(__file__).resolve().parent.parent / "testdata"

torch.set_num_threads(1)  # one summation order, whatever the machine
torch.use_deterministic_algorithms(True)


def generator(seed):
    """A stream of its own, so that one file can change without changing the others."""
    g = torch.Generator()
    g.manual_seed(seed)
    return g


def normal(g, *shape, std=1.0, mean=0.0):
    """Normal values that float32 represents: float64 and float32 runs start from the same numbers."""
    return (torch.randn(shape, generator=g, dtype=torch.float64) * std + mean).float()


def save(name, tensors, **notes):
    """Writes testdata/NAME.safetensors; the metadata says what made it."""
    metadata = {
        "script": "test/numbers/scripts/" + notes.pop("script"),
        "torch": torch.__version__.split("+")[0],
        "python": platform.python_version(),
        **{k: str(v) for k, v in notes.items()},
    }
    path = TESTDATA / f"{name}.safetensors"
    path.write_bytes(encode({k: v.detach().contiguous() for k, v in tensors.items()}, metadata))
    print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


def encode(tensors, metadata):
    """The safetensors format, tensors by name. Not the usual package's writer: it orders the header by a random hash."""
    kinds = {torch.float64: "F64", torch.float32: "F32", torch.int32: "I32"}
    header, data = {"__metadata__": metadata}, b""
    for k in sorted(tensors):
        v = tensors[k]
        raw = v.numpy().tobytes()
        header[k] = {"dtype": kinds[v.dtype], "shape": list(v.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def relative_error(got, want):
    """norm(got - want) / norm(want), in float64; the plain norm of the difference where want is zero."""
    got, want = got.double(), want.double()
    scale = want.norm()
    return ((got - want).norm() / (scale if scale > 0 else 1.0)).reshape(())


def tokens_and_targets(g, batch, length, vocabulary, ignored):
    """Tokens of a noisy chain (each mostly follows the last by a fixed map), targets shifted by one.

    `ignored` fixed positions of the flattened targets are -1, in unequal numbers per row.
    """
    step = torch.randperm(vocabulary, generator=g)
    tokens = torch.empty(batch, length + 1, dtype=torch.int64)
    tokens[:, 0] = torch.randint(vocabulary, (batch,), generator=g)
    for t in range(length):
        jump = torch.rand(batch, generator=g) < 0.25
        fresh = torch.randint(vocabulary, (batch,), generator=g)
        tokens[:, t + 1] = torch.where(jump, fresh, step[tokens[:, t]])
    targets = tokens[:, 1:].clone()
    targets.view(-1)[torch.tensor(ignored, dtype=torch.int64)] = -1
    return tokens[:, :-1].int().contiguous(), targets.int().contiguous()


def leaves(params, dtype):
    """Copies of the parameters that gradients are asked for."""
    return {k: v.detach().to(dtype, copy=True).requires_grad_() for k, v in params.items()}


def loss_and_gradients(loss, params, dtype):
    """Evaluates loss(params) = (sum, count, logits) in dtype, and the gradient of sum / count by every parameter."""
    p = leaves(params, dtype)
    total, count, logits = loss(p)
    (total / count).backward()
    out = {"loss_sum": total, "count": count.to(dtype), "logits": logits}
    out.update({"grad." + k: v.grad for k, v in p.items()})
    return out


def save_model(name, params, inputs, loss, **notes):
    """Writes NAME.inputs, NAME.float64 and NAME.torch32 (values and, as error.*, their relative errors)."""
    save(f"{name}.inputs", {**params, **inputs}, **notes)
    exact = loss_and_gradients(loss, params, torch.float64)
    single = loss_and_gradients(loss, params, torch.float32)
    errors = {"error." + k: relative_error(single[k], exact[k]) for k in exact}
    save(f"{name}.float64", exact, **notes)
    save(f"{name}.torch32", {**single, **errors}, **notes)
    worst = max(errors, key=lambda k: errors[k])
    print(f"  loss {exact['loss_sum'] / exact['count']:.6f}, worst float32 error {worst} {errors[worst]:.2e}")
