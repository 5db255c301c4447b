"""How far PyTorch's own float32 gradients of the small models lie from float64's: the worst of nine runs.

Run 0 has the stored weights, in the others each weight is moved by one unit in the last place, up or down at random, as in training.py.
The error of one run is one draw, which for a tensor of a few elements may happen to be small; where many ways to add up the same gradient
are compared, this is the measure. error.NAME is the largest norm(got - want) / norm(want) with the stored float64 values as want.
"""

import json
import struct

import torch

import common
import convnet_small
import gpt2_small
import llama_small
import training
import vit_small


def load(name):
    """The tensors of testdata/NAME.safetensors."""
    raw = (common.TESTDATA / f"{name}.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    kinds = {"F64": torch.float64, "F32": torch.float32, "I32": torch.int32}
    out = {}
    for k, v in json.loads(raw[8 : 8 + length]).items():
        if k != "__metadata__":
            lo, hi = v["data_offsets"]
            data = bytearray(raw[8 + length + lo : 8 + length + hi])
            out[k] = torch.frombuffer(data, dtype=kinds[v["dtype"]]).reshape(v["shape"])
    return out


def spread(name, model, given, asked):
    inputs, exact = load(f"{name}.inputs"), load(f"{name}.float64")
    x, y = inputs.pop(given), inputs.pop(asked)
    worst = {}
    for run in range(training.RUNS):
        params = training.perturbed(inputs, run)
        got = common.loss_and_gradients(lambda p: model.loss(p, x, y), params, torch.float32)
        for k, v in got.items():
            error = common.relative_error(v, exact[k])
            worst["error." + k] = max(worst.get("error." + k, error), error)
    common.save(f"{name}.spread", worst, script="spread.py", runs=training.RUNS)


if __name__ == "__main__":
    spread("gpt2-small", gpt2_small, "tokens", "targets")
    spread("llama-small", llama_small, "tokens", "targets")
    spread("convnet-small", convnet_small, "images", "labels")
    spread("vit-small", vit_small, "images", "labels")
