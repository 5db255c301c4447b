"""Writes reference.safetensors with the format's own library (safetensors 0.8.0, NumPy 2.4.6, ml_dtypes 0.6.0).

Element i of a tensor is i for unsigned types, i - 3 for signed ones, 1.5 * i - 4 for floats and i % 2 for booleans.
"""
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

i = np.arange(6).reshape(2, 3)
value = {"b": i % 2, "u": i, "i": i - 3, "f": 1.5 * i - 4}
tensors = {n: value[n[0]].astype(n) for n in ["u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8"]}
tensors["bool"] = value["b"].astype(bool)
tensors["bf16"] = value["f"].astype(ml_dtypes.bfloat16)
tensors["rank0"] = np.array(2.5, "<f4")
tensors["empty"] = np.zeros((2, 0, 3), "<f4")
tensors['quote " and umlaut ä'] = np.array([1, 2], "<i4")
save_file(tensors, "reference.safetensors", metadata={"format": "np", "π": "3.14"})
