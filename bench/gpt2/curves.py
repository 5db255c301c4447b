"""Trains GPT-2 for many steps with blurun and with PyTorch, and draws the curves of their losses.

    python3 bench/gpt2/curves.py --blurun bin/blurun --artifacts DIR --json FILE --plot FILE.png

DIR holds gpt2-PRECISION-curves.blx of that batch, tokens.bin to train on and held.bin to validate on (token files), and the windows that
blurun's loader gives of them (go run ./bench/gpt2): curves.u16, those of the steps of seed 7, and held.u16, those of the evaluations.
`make device-bundle` makes all of it.

All go on from the first step of the first of --precisions: the same weights and optimizer state, the same windows and learning rates. PyTorch
trains in float32 without TF32, and in bf16 under autocast, as it is and with weights that were moved to a neighbouring float32 first, which
says how far rounding alone leads runs apart. Held to it is the loss on held-out windows after the last step: blurun's must lie where one more
of PyTorch's runs in the same precision would lie in 95 of 100 cases (Student's prediction interval from their mean and standard deviation).
Runs of PyTorch that do not fit into --limit are left out, those in bf16 first; with fewer than three there is no verdict, which for fp32 is a failure.
"""
import argparse
import json
import math
import os
import queue
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from bench import Peer

# Quantiles 0.975 of Student's distribution with 1, 2, ... degrees of freedom.
student = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]
counterpart = {"fp32": "fp32", "fp32-strict": "fp32", "bf16": "bf16"}


class Curves:
    def __init__(self, o, folder):
        self.o, self.begun, self.start = o, time.time(), os.path.join(folder, "start")
        self.rates, self.longest, self.failures = {}, {}, 0
        self.points = [p for p in range(2, o.steps + 1) if p % o.val_every == 0 or p == o.steps]  # steps with a validation
        self.results = {"about": {"command": sys.argv[1:], "begun": time.strftime("%Y-%m-%d %H:%M:%S")}, "runs": []}

    def at(self, name):
        return os.path.join(self.o.artifacts, name)

    def head(self):
        """The head of the table whose rows keep prints."""
        o = self.o
        print(f"{o.steps} steps of {o.batch} x {o.tokens} tokens; loss on {o.val_batches * o.batch} held-out windows after step")
        print(f"{'':22}" + "".join(f"{p:>10}" for p in self.points) + f"{'s':>8}", flush=True)

    def check(self):
        """Windows of another batch would be taken for these without a word."""
        row = 2 * self.o.batch * (self.o.tokens + 1)
        for name, batches in (("curves.u16", self.o.steps), ("held.u16", self.o.val_batches)):
            size = os.path.getsize(self.at(name))
            if size % row or size < row * batches or name == "held.u16" and size != row * batches:
                sys.exit(f"curves: {self.at(name)} has {size} bytes: not {batches} batches of {self.o.batch} x {self.o.tokens + 1} tokens")

    def keep(self, **run):
        """A run that has ended: into the file and the table at once, for the next may be cut short."""
        self.results["runs"].append(run)
        self.save()
        name = f"{run['who']} {run['precision']}" + (f" perturbed {run['perturbed']}" if run.get("perturbed") else "")
        print(f"{name:22}" + "".join(f"{run['validation'][p]:10.5f}" for p in self.points) + f"{run['seconds']:8.1f}", flush=True)

    def save(self):
        with open(self.o.json, "w") as f:
            json.dump(self.results, f, indent=1)

    # runs

    def blurun(self, precision, steps, folder, *flags):
        """Objects that a run prints, and its seconds."""
        command = [self.o.blurun, "train", self.at(f"gpt2-{precision}-curves.blx"), "--data", self.at("tokens.bin"), "--seed", "7", "--json", "--steps", str(steps), "--checkpoint-dir", folder]
        begun = time.time()
        r = subprocess.run([*command, *flags], capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"curves: blurun {precision}: {r.stderr.strip()}")
        return [json.loads(line) for line in r.stdout.splitlines()], time.time() - begun

    def ours(self, precision):
        """Goes on from the first step, which is saved in the folder start."""
        folder = f"{self.start}-{precision}"
        shutil.copytree(self.start, folder, copy_function=os.link)  # checkpoints are not changed, only removed
        rows, seconds = self.blurun(precision, self.o.steps, folder, "--resume", "--val-data", self.at("held.bin"), "--val-every", str(self.o.val_every), "--val-batches", str(self.o.val_batches))
        shutil.rmtree(folder)
        steps = [r for r in rows if "lr" in r]
        self.rates.update((r["step"], r["lr"]) for r in steps)
        self.keep(who="blurun", precision=precision, losses=[r["loss"] for r in steps], seconds=seconds,
                  validation={r["step"]: r["val_loss"] if r["val_loss"] is not None else math.nan for r in rows if "step" in r and "val_loss" in r})

    def theirs(self):
        """PyTorch's runs, in a process for each GPU."""
        o, step = self.o, os.path.join(self.start, "step-00000001")
        question = dict(do="continue", step=1, steps=o.steps, batch=o.batch, tokens=o.tokens, vocabulary=o.vocabulary, size=o.size, batches=self.at("curves.u16"),
                        lr=[self.rates.get(i + 1, 0) for i in range(o.steps)], checkpoint=[os.path.join(step, f) for f in sorted(os.listdir(step)) if f.endswith(".safetensors")],
                        held={"file": self.at("held.u16"), "batches": o.val_batches, "every": o.val_every, "rows": o.val_rows})
        peers = queue.SimpleQueue()
        for i in range(o.gpus):
            peers.put(Peer(os.environ if o.gpus == 1 else {**os.environ, "CUDA_VISIBLE_DEVICES": str(i)}))

        def run(precision, n):
            peer, begun = peers.get(), time.time()
            try:
                expected = self.longest.get(precision) or max(self.longest.values(), default=0)
                if begun - self.begun + expected > o.limit:
                    print(f"torch {precision}, run {n}, was left out: it might end later than {o.limit:.0f} s")
                    return None
                self.results["about"].update(peer.about)
                answer = peer.ask(**question, precision=precision, perturb=n)
            finally:
                peers.put(peer)
            if not answer:
                self.failures += 1
                return None
            seconds = time.time() - begun
            self.longest[precision] = max(self.longest.get(precision, 0), seconds)
            return dict(who="torch", precision=precision, perturbed=n, losses=answer["losses"], seconds=seconds, validation={int(k): v for k, v in answer["validation"].items()})

        runs = [("fp32", n) for n in range(o.perturbed + 1)] + [("bf16", n) for n in range(o.bf16)]
        with ThreadPoolExecutor(o.gpus) as pool:
            for done in [pool.submit(run, *r) for r in runs]:
                if answer := done.result():
                    self.keep(**answer)

    # what comes of them

    def of(self, who, precision=None):
        return [r for r in self.results["runs"] if r["who"] == who and precision in (None, r["precision"])]

    def report(self):
        self.results["verdicts"] = [self.judge(r) for r in self.of("blurun")]
        self.save()

    def judge(self, run):
        """Whether a run of blurun ends where PyTorch's do."""
        precision, last = run["precision"], self.o.steps
        ends = [r["validation"][last] for r in self.of("torch", counterpart[precision])]
        n = len(ends)
        if n < 3:
            self.failures += counterpart[precision] == "fp32"
            print(f"blurun {precision}: no verdict, since PyTorch has {n} runs")
            return {"precision": precision, "runs": n}
        mean, deviation = statistics.fmean(ends), statistics.stdev(ends)
        off = run["validation"][last] - mean
        limit = max(student[n - 2] * deviation * math.sqrt(1 + 1 / n), 4 * 2**-24 * mean)  # at least what a loss itself is rounded to
        fits = abs(off) <= limit  # false for what is no number
        self.failures += not fits
        print(f"blurun {precision}: {off:+.1e} from torch's mean, of {limit:.1e}{'' if fits else ': BEYOND'}; torch {min(ends):.5f} to {max(ends):.5f}, deviation {deviation:.1e}")
        return {"precision": precision, "runs": n, "mean": mean, "deviation": deviation, "difference": off, "limit": limit, "fits": fits}

    def plot(self):
        """Above, losses: of steps in pale, averaged, and as points those on held-out windows. Below, their differences from the mean of PyTorch's fp32; last, those in fp32 alone."""
        os.environ.setdefault("MPLCONFIGDIR", os.path.dirname(self.start))
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
        import numpy as np

        base, last = self.of("torch", "fp32"), self.o.steps
        width = max(1, last // 50)
        averaged = lambda xs: np.convolve(xs, np.ones(width) / width, "valid")
        x = np.arange(2, last + 1)
        middle = averaged(x)
        points = self.points
        mean = np.mean([averaged(r["losses"]) for r in base], axis=0)
        held = np.mean([[r["validation"][p] for p in points] for r in base], axis=0)
        colors = {"blurun fp32": "tab:blue", "blurun fp32-strict": "tab:green", "blurun bf16": "tab:red",
                  "PyTorch fp32": "black", "PyTorch fp32, weights perturbed": "0.65", "PyTorch bf16": "tab:orange", "PyTorch bf16, weights perturbed": "navajowhite"}
        figure, (above, below, close) = plt.subplots(3, 1, sharex=True, figsize=(10, 12), height_ratios=[3, 2, 2], layout="constrained")
        labelled = set()
        for r in sorted(self.results["runs"], key=lambda r: (r["who"] == "blurun", r["precision"] == "fp32", not r.get("perturbed"))):  # what is drawn last lies on top
            mine = r["who"] == "blurun"
            name = f"{'blurun' if mine else 'PyTorch'} {r['precision']}{', weights perturbed' if r.get('perturbed') else ''}"
            values, checks = averaged(r["losses"]), np.array([r["validation"][p] for p in points])
            line = {"color": colors[name], "linewidth": 1.2 if mine else 2.2}
            marks = {"color": colors[name], "linestyle": "none", "marker": "o" if mine else "s", "markersize": 4 if mine else 6}
            if not r.get("perturbed"):
                above.plot(x, r["losses"], color=colors[name], linewidth=0.4, alpha=0.25)
            above.plot(middle, values, label=None if name in labelled else name, **line)
            labelled.add(name)
            above.plot(points, checks, **marks)
            for axes in (below, close) if counterpart[r["precision"]] == "fp32" else (below,):
                axes.plot(middle, values - mean, **line)
                axes.plot(points, checks - held, **marks)
        above.set_ylabel("loss, nats a token")
        above.set_title(f"GPT-2, {last} steps of {self.o.batch} x {self.o.tokens} tokens, losses averaged over {width} steps; points: held out")
        above.legend()
        below.set_ylabel("difference from the mean of PyTorch fp32")
        close.set_ylabel("the same, runs in fp32 alone")
        close.set_xlabel("step")
        for axes in (above, below, close):
            axes.grid(alpha=0.3)
        figure.savefig(self.o.plot, dpi=130)


def flags():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--blurun", default="bin/blurun")
    ap.add_argument("--artifacts", required=True)
    ap.add_argument("--json", required=True)
    ap.add_argument("--plot", required=True)
    ap.add_argument("--precisions", default="fp32,bf16", help="of blurun")
    ap.add_argument("--steps", type=int, default=1000, help="the last step")
    ap.add_argument("--batch", type=int, default=4)
    ap.add_argument("--tokens", type=int, default=256)
    ap.add_argument("--perturbed", type=int, default=3, help="runs of PyTorch in fp32 with perturbed weights, 2 to 9")
    ap.add_argument("--bf16", type=int, default=3, help="runs of PyTorch in bf16, all but the first with perturbed weights")
    ap.add_argument("--val-every", type=int, default=200)
    ap.add_argument("--val-batches", type=int, default=64)
    ap.add_argument("--val-rows", type=int, default=16, help="of an evaluation, at one time in PyTorch")
    ap.add_argument("--gpus", type=int, default=1, help="that PyTorch's runs are dealt to")
    ap.add_argument("--limit", type=float, default=math.inf, help="seconds by which PyTorch's runs shall have ended")
    ap.add_argument("--vocabulary", type=int, default=50257)
    ap.add_argument("--size", type=json.loads, default={}, help="of the network in PyTorch, where it isn't 124M")
    o = ap.parse_args()
    if not 2 <= o.perturbed < len(student) + 1 or o.bf16 > len(student) + 1 or o.gpus < 1 or o.steps < 2 or o.val_every < 1:
        ap.error(f"--perturbed must be 2 to {len(student)}, --bf16 at most {len(student) + 1}, --gpus and --val-every at least 1, --steps at least 2")
    o.precisions = o.precisions.split(",")
    if unknown := set(o.precisions) - set(counterpart):
        ap.error(f"no precision {', '.join(sorted(unknown))} here")
    return o


def roomy():
    """A folder in memory, where there is one for some checkpoints of 1.5 GB: how fast a disk is doesn't matter here."""
    memory = "/dev/shm"
    return memory if os.path.isdir(memory) and shutil.disk_usage(memory).free > 8 << 30 else None


def main():
    o = flags()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("curves: cut short"))  # so that the folder is removed
    with tempfile.TemporaryDirectory(prefix="bench-curves-", dir=roomy()) as folder:
        curves = Curves(o, folder)
        curves.check()
        curves.head()
        curves.blurun(o.precisions[0], 1, curves.start)
        for precision in o.precisions:
            curves.ours(precision)
        curves.theirs()
        curves.report()
        if curves.of("torch", "fp32"):
            curves.plot()
    if curves.failures:
        sys.exit(f"curves: {curves.failures} of the runs failed or are beyond their limits")


if __name__ == "__main__":
    main()
