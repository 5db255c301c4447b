"""Times single matrix products with NumPy's OpenBLAS, one per line of standard input.

A line "m n k layout threads" prepares operands; a line "run" multiplies them once
and prints the seconds it took. The first line printed describes the library.
Needs numpy and threadpoolctl; OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE must be unset,
or a slower kernel than the processor's own may be measured.
"""

import os
import sys
import time

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    if name in os.environ:
        sys.exit(f"baseline.py: unset {name}")

import numpy as np
import threadpoolctl

info = [i for i in threadpoolctl.threadpool_info() if i["internal_api"] == "openblas"]
if not info:
    sys.exit("baseline.py: this numpy does not use OpenBLAS")
print(f"numpy {np.__version__}, OpenBLAS {info[0]['version']}, core {info[0]['architecture']}", flush=True)

rng = np.random.default_rng(1)


def matrix(rows, cols, transposed):
    shape = (cols, rows) if transposed else (rows, cols)
    x = rng.standard_normal(shape, dtype=np.float32)
    return x.T if transposed else x


for line in sys.stdin:
    if line.strip() == "run":
        start = time.perf_counter()
        np.dot(a, b, out=c)
        print(time.perf_counter() - start, flush=True)
        continue
    m, n, k, layout, threads = line.split()
    m, n, k = int(m), int(n), int(k)
    a = matrix(m, k, layout[0] == "T")
    b = matrix(k, n, layout[1] == "T")
    c = np.zeros((m, n), dtype=np.float32)
    limit = threadpoolctl.threadpool_limits(int(threads), user_api="blas")
    print("ready", flush=True)
