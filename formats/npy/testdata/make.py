"""Writes the arrays of npy_test.go with NumPy (2.4.6) and ml_dtypes (0.6.0): python3 make.py, in this folder.

Element i of every array of shape (2, 3), counted in C order, is i for unsigned types, i - 3 for signed ones,
1.5 * i - 4 for floats and i % 2 for booleans.
"""
import ml_dtypes
import numpy as np

i = np.arange(6).reshape(2, 3)
for name in ["|b1", "|u1", "<u2", "<u4", "<u8", ">u2", ">u4", ">u8", "|i1", "<i2", "<i4", "<i8", ">i2", ">i4", ">i8",
             "<f2", "<f4", "<f8", ">f2", ">f4", ">f8"]:
    kind = name[1]
    value = {"b": i % 2, "u": i, "i": i - 3, "f": 1.5 * i - 4}[kind]
    end = "big" if name[0] == ">" else "little"
    np.save(f"{name[1:]}_{end}.npy", value.astype(name))
np.save("bf16_little.npy", (1.5 * i - 4).astype(ml_dtypes.bfloat16))
np.save("f4_fortran.npy", np.asfortranarray((1.5 * i - 4).astype("<f4")))
np.save("i4_fortran3.npy", np.asfortranarray(np.arange(24, dtype="<i4").reshape(2, 3, 4)))
np.save("f4_rank0.npy", np.float32(2.5))
np.save("f4_empty.npy", np.zeros((2, 0, 3), "<f4"))
for version in [(2, 0), (3, 0)]:
    with open(f"f4_version{version[0]}.npy", "wb") as f:
        np.lib.format.write_array(f, (1.5 * i - 4).astype("<f4"), version=version)
