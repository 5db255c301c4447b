"""Times single matrix products with NumPy's OpenBLAS, one per line of standard input.

A line "m n k layout threads copies" prepares operands, B in some copies that are used in turn; a line "run" multiplies
once and prints the seconds it took, by the clock and of the processor. The first line printed describes the library.
Needs numpy and threadpoolctl. OPENBLAS_CORETYPE, where it is set, must be Haswell: what an AVX2 kernel is compared with.
"""

import os
import sys
import time

if os.environ.get("OPENBLAS_CORETYPE", "Haswell") != "Haswell" or "OPENBLAS_L2_SIZE" in os.environ:
    sys.exit("baseline.py: unset OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE")

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


turn = 0
for line in sys.stdin:
    if line.strip() == "run":
        turn += 1
        wall, cpu = time.perf_counter(), time.process_time()
        np.dot(a, b[turn % len(b)], out=c)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        print(wall, cpu, flush=True)
        continue
    m, n, k, layout, threads, copies = line.split()
    m, n, k = int(m), int(n), int(k)
    a = matrix(m, k, layout[0] == "T")
    b = [matrix(k, n, layout[1] == "T") for _ in range(int(copies))]
    c = np.zeros((m, n), dtype=np.float32)
    limit = threadpoolctl.threadpool_limits(int(threads), user_api="blas")
    print("ready", flush=True)
