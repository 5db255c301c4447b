"""Fits the polynomials of functions.go: python3 minimax.py (needs mpmath).

Each is the minimax polynomial of Remez's exchange algorithm under a weight, in 50
digits. Coefficients are rounded to float32 one by one, from the lowest on, and
those that remain are fitted again each time, so that they make up for the rounding.
"""

import struct

from mpmath import mp, mpf, mp as m

mp.dps = 50


def remez(f, weight, lo, hi, powers):
    """Coefficients of the given powers that minimize max |weight * (p - f)| on [lo, hi]."""
    n = len(powers) + 1
    nodes = [lo + (hi - lo) * (1 - m.cos(m.pi * (2 * i + 1) / (2 * n))) / 2 for i in range(n)]
    grid = [lo + (hi - lo) * (1 - m.cos(m.pi * i / 600)) / 2 for i in range(601)]
    values = [(x, f(x), weight(x)) for x in grid]
    for _ in range(30):
        a = m.matrix(n, n)
        b = m.matrix(n, 1)
        for i, x in enumerate(nodes):
            for j, p in enumerate(powers):
                a[i, j] = x**p
            a[i, n - 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        c = m.lu_solve(a, b)
        err = [w * (sum(c[j] * x**p for j, p in enumerate(powers)) - y) for x, y, w in values]
        peaks = []  # the largest error of each run of one sign
        for x, e in zip(grid, err):
            if peaks and (e > 0) == (peaks[-1][1] > 0):
                if abs(e) > abs(peaks[-1][1]):
                    peaks[-1] = (x, e)
            else:
                peaks.append((x, e))
        while len(peaks) > n:
            peaks.pop(0 if abs(peaks[0][1]) < abs(peaks[-1][1]) else -1)
        worst = max(abs(e) for e in err)
        if len(peaks) < n or worst < abs(c[n - 1]) * mpf("1.001"):
            break
        nodes = [x for x, _ in peaks]
    return [c[j] for j in range(len(powers))], worst


def round32(x):
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def fit(name, f, weight, lo, hi, powers):
    lo, hi = mpf(lo), mpf(hi)
    done, rest = [], list(powers)
    while rest:
        known = list(zip(done, powers))
        c, worst = remez(lambda x: f(x) - sum(a * x**p for a, p in known), weight, lo, hi, rest)
        done.append(round32(c[0]))
        rest = rest[1:]
    grid = [lo + (hi - lo) * i / 1000 for i in range(1001)]
    worst = max(abs(weight(x) * (sum(a * x**p for a, p in zip(done, powers)) - f(x))) for x in grid)
    print(f"{name}: error {m.nstr(worst, 3)} ({m.nstr(worst * 2**24, 3)} half units in the last place)")
    print("    " + ", ".join(m.nstr(a, 9) for a in done))


def near(f, a, at):
    """f with its removable singularity at a point filled in."""
    return lambda x: mpf(at) if abs(x - a) < mpf("1e-12") else f(x)


half_ln2 = m.log(2) / 2 * mpf("1.0002")
fit("exp", near(lambda r: (m.exp(r) - 1 - r) / r**2, 0, 0.5), lambda r: r**2 / m.exp(r) + mpf("1e-9"), -half_ln2, half_ln2, range(5))
fit("expm1", near(lambda r: (m.expm1(r) - r) / r**2, 0, 0.5), lambda r: abs(r) + mpf("0.02"), -half_ln2, half_ln2 * mpf("1.02"), range(6))
fit("log", near(lambda x: (m.log1p(x) - x + x * x / 2) / x**3, 0, mpf(1) / 3), lambda x: x * x + mpf("0.001"),
    m.sqrt(mpf(1) / 2) - 1, m.sqrt(2) - 1, range(10))
fit("sin", lambda t: mpf(-1) / 6 if t < mpf("1e-12") else (m.sin(m.sqrt(t)) / m.sqrt(t) - 1) / t, lambda t: t + mpf("1e-9"), 0, 0.68, range(4))
fit("cos", lambda t: mpf(1) / 24 if t < mpf("1e-12") else (m.cos(m.sqrt(t)) - 1 + t / 2) / t**2, lambda t: t**2 + mpf("1e-9"), 0, 0.68, range(3))
fit("erf", lambda t: (m.erf(m.sqrt(t)) / m.sqrt(t) if t > 0 else 2 / m.sqrt(m.pi)) - 1, lambda t: mpf(1), 0, 1, range(8))
fit("-log erfc on [1, 4]", lambda z: -m.log(m.erfc(z)), lambda z: m.erfc(z), 1, 4, range(7))
fit("-log erfc on [1, 10.1]", lambda z: -m.log(m.erfc(z)), lambda z: m.erfc(z) / m.erfc(1) + mpf("0.01"), 1, 10.1, range(12))
