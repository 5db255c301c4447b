"""Trains GPT-2, or another model of the examples, with PyTorch and with blurun side by side, on one GPU, and prints both.

    python3 bench/gpt2/bench.py --blurun bin/blurun --artifacts DIR --json FILE [--parts start,time,gradients,train]

DIR holds gpt2-PRECISION-B.blx for every precision and batch, tokens.bin (a token file) and batches.u16 (the windows that
blurun's loader gives in the first steps of seed 7: `go run ./bench/gpt2 --help`). `make device-bundle` makes all of it.
--model has the same done with another of the examples, --size says its size, --data and --windows which files it trains on.

  start      seconds from starting a process to its first finished step, with empty caches and with full ones
  time       tokens a second and the device's memory in use, each variant in every round, in turn
  gradients  loss and gradients at random weights, in relation to float64, beside PyTorch's own errors
  train      losses of the steps after a first one, beside PyTorch's and those of runs whose weights were perturbed

Memory is what the driver says is in use on the device, less what was before the process (and its context) came. PyTorch's
vocabulary is padded to 50304 for start and time.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))
precisions = ["fp32", "fp32-strict", "tf32", "bf16"]
counterpart = {"fp32": "fp32", "fp32-strict": "fp32", "tf32": "tf32", "bf16": "bf16"}


def first_gpu():
    """The number of the GPU that CUDA takes for the first."""
    try:
        return int(os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0])
    except ValueError:
        return 0


class Memory:
    """The device's memory in use, as the driver says."""

    def __init__(self, gpu=None):
        self.handle = None
        try:
            import pynvml

            pynvml.nvmlInit()
            self.nvml, self.handle = pynvml, pynvml.nvmlDeviceGetHandleByIndex(first_gpu() if gpu is None else gpu)
        except Exception as e:  # whatever is wrong with the library, there are no figures then
            print(f"memory is not measured: {e}", file=sys.stderr)

    def used(self):
        return self.nvml.nvmlDeviceGetMemoryInfo(self.handle).used if self.handle else 0

    def settled(self):
        """What is in use once that of a process that has ended is free again."""
        last = self.used()
        for _ in range(20):
            time.sleep(0.1)
            now = self.used()
            if now == last:
                break
            last = now
        return last

    def peak(self, work):
        """What work returns, and the most that was in use meanwhile."""
        most, stop = [self.used()], threading.Event()

        def watch():
            while not stop.wait(0.01):
                most[0] = max(most[0], self.used())

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            return work(), most[0]
        finally:
            stop.set()
            watcher.join()


class Peer:
    """A process with PyTorch."""

    def __init__(self, env, before=0):
        self.before, self.failures, self.failure = before, 0, None  # bytes in use before it came; questions that it failed at, and why at the last
        self.process = subprocess.Popen([sys.executable, os.path.join(here, "peer.py"), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.about = self.ask(do="hello")

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("bench: PyTorch's process ended")
        answer = json.loads(line)
        if "failure" in answer:
            print(f"PyTorch: {question['do']} {question.get('precision', '')}: {answer['failure']}", file=sys.stderr)
            self.failures, self.failure = self.failures + 1, answer["failure"][:300]
            return None
        return answer


class Bench:
    def __init__(self, o):
        self.o, self.results, self.table = o, {"about": {}, "start": [], "time": [], "gradients": [], "train": []}, []
        self.memory, self.begun = Memory(), time.time()
        self.folder = tempfile.mkdtemp(prefix="bench-gpt2-")
        self.env = self.caches("warm")
        self.peer, self.failures = None, 0

    def caches(self, name):
        """An environment with caches of its own: blurun's, the driver's, PyTorch's and Triton's."""
        at = os.path.join(self.folder, "cache-" + name)
        os.makedirs(at, exist_ok=True)
        return {**os.environ, "XDG_CACHE_HOME": at, "CUDA_CACHE_PATH": at + "/cuda", "TORCHINDUCTOR_CACHE_DIR": at + "/inductor", "TRITON_CACHE_DIR": at + "/triton"}

    def artifact(self, precision, batch, folder=""):
        return os.path.join(self.o.artifacts, folder, f"{self.o.model}-{precision}-{batch}.blx")

    def variants(self, precision, batch):
        """The folders of artifacts that are timed: the usual one, and with --beside only where there is one of the other kind too."""
        if not self.o.beside:
            return [""]
        return ["", self.o.beside] if os.path.exists(self.artifact(precision, batch, self.o.beside)) else []

    def torch(self):
        if not self.peer:
            self.peer = Peer(self.env, self.memory.settled())
            self.results["about"].update(self.peer.about)
        return self.peer

    def blurun(self, *args, env=None):
        """Runs a command; its output, or None and a line that says what went wrong."""
        r = subprocess.run([self.o.blurun, *args], capture_output=True, text=True, env=env or self.env)
        if r.returncode:
            print(f"blurun {' '.join(args[:2])}: {r.stderr.strip()}", file=sys.stderr)
            self.failures += 1
            return None
        return r.stdout

    def keep(self, part, row):
        self.results[part].append(row)
        with open(self.o.json, "w") as f:
            json.dump(self.results, f, indent=1)

    def say(self, text):
        print(text, flush=True)
        self.table.append(text)

    def late(self):
        """Whether time is up: what is left is left out, and said to be."""
        late = time.time() - self.begun > self.o.limit
        if late and not self.results["about"].get("cut_short"):
            self.results["about"]["cut_short"] = True
            self.say(f"stopped after {self.o.limit} s: what is missing was left out")
        return late

    # start

    def start(self):
        self.say(f"\n{'first step, B=' + str(self.o.batches[0]):28} {'cold s':>8} {'warm s':>8}")
        batch = self.o.batches[0]
        variants = [("blurun", p, "") for p in self.o.precisions]
        variants += [("torch", p, m) for m in self.o.modes for p in ("fp32", "bf16") if p in self.o.precisions]
        for who, precision, mode in variants:
            if who == "blurun":
                command = [self.o.blurun, "train", self.artifact(precision, batch), "--data", os.path.join(self.o.artifacts, self.o.data), "--steps", "1", "--json"]
            else:
                command = [sys.executable, os.path.join(here, "peer.py"), "--first", json.dumps({"precision": precision, "mode": mode, "batch": batch, **self.shape()})]
            if self.late():
                return
            env = self.caches(f"{who}-{precision}-{mode}")
            seconds = [self.first_step(command, env) for _ in ("cold", "warm")]
            self.keep("start", {"who": who, "precision": precision, "mode": mode, "batch": batch, "cold_s": seconds[0], "warm_s": seconds[1]})
            self.say(f"{' '.join((who, mode, precision)):28} " + " ".join(f"{s:8.2f}" if s else f"{'failed':>8}" for s in seconds))

    def first_step(self, command, env):
        begun = time.time()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as p:
            seconds = None
            for line in p.stdout:
                if '"step":1' in line.replace(" ", "") and seconds is None:
                    seconds = time.time() - begun
            rest = p.stderr.read()
        if p.returncode or seconds is None:
            print(f"{' '.join(command[:4])}: {rest.strip()[-500:]}", file=sys.stderr)
            self.failures += 1
            return None
        return seconds

    # time

    def time(self):
        for batch in self.o.batches:
            for round in range(self.o.rounds):
                for precision in self.o.precisions:
                    if precision != "fp32-strict" and not self.late():
                        for mode in self.o.modes:
                            self.time_torch(precision, mode, batch, round)
                    for folder in self.variants(precision, batch):
                        if not self.late():
                            self.time_blurun(precision, batch, round, folder)
            self.report(batch)

    def time_torch(self, precision, mode, batch, round):
        peer = self.torch()
        answer, peak = self.memory.peak(lambda: peer.ask(do="time", precision=precision, mode=mode, batch=batch, steps=self.o.steps, **self.shape()))
        if answer:
            self.keep("time", {"who": "torch", "mode": mode, "precision": precision, "batch": batch, "round": round, "memory_bytes": peak - peer.before, **answer})

    def time_blurun(self, precision, batch, round, folder=""):
        before = self.memory.settled()
        text, peak = self.memory.peak(lambda: self.blurun("bench", self.artifact(precision, batch, folder), "--steps", str(self.o.steps + 3), "--json"))
        if text:
            answer = json.loads(text)
            answer["step_ms"] = answer["step_ms"][3:]
            self.keep("time", {"who": "blurun", "mode": folder, "precision": precision, "batch": batch, "round": round, **answer, "planned_bytes": answer["memory_bytes"], "memory_bytes": peak - before})

    def report(self, batch):
        """The table: medians over all rounds."""
        def of(who, mode, precision):
            rows = [r for r in self.results["time"] if (r["who"], r["mode"], r["precision"], r["batch"]) == (who, mode, precision, batch)]
            if not rows:
                return None
            ms = sorted(x for r in rows for x in r["step_ms"])
            return ms[len(ms) // 2], max(r["memory_bytes"] for r in rows)

        tokens = batch * self.o.tokens
        self.say(f"\n{f'training, B={batch}':14}" + "".join(f"{w:>12}{'GiB':>7}" for w in [f"torch {m}" for m in self.o.modes] + ["blurun"]) + "".join(f"{'/' + m:>10}{'mem':>6}" for m in self.o.modes))
        for precision in self.o.precisions:
            ours, theirs = of("blurun", "", precision), [of("torch", m, counterpart[precision]) for m in self.o.modes]
            text = f"{precision:14}"
            for r in theirs + [ours]:
                text += f"{tokens / r[0] * 1e3:12.0f}{r[1] / 2**30:7.2f}" if r else f"{'-':>12}{'-':>7}"
            for r in theirs:
                text += f"{r[0] / ours[0]:10.2f}{ours[1] / r[1] if r[1] else 0:6.2f}" if r and ours else f"{'-':>10}{'-':>6}"
            other = self.o.beside and of("blurun", self.o.beside, precision)
            if ours or not self.o.beside:
                self.say(text)
            if ours and other:
                self.say(f"{precision + ' ' + self.o.beside:{14 + 19 * len(theirs)}}{tokens / other[0] * 1e3:12.0f}{other[1] / 2**30:7.2f}  {other[0]:.2f} ms a step instead of {ours[0]:.2f}: {ours[0] / other[0]:.4f} times as many")

    def shape(self):
        return {"model": self.o.model, "size": self.o.size, "vocabulary": self.o.vocabulary, "tokens": self.o.tokens}

    # gradients

    def gradients(self):
        at = lambda name: os.path.join(self.folder, name)
        batch = self.o.batches[0]
        theirs = self.torch().ask(do="anchors", seed=1, batch=batch, rows=min(4, batch), weights=at("weights.safetensors"), inputs=at("inputs.safetensors"), exact=at("exact.safetensors"), **self.shape())
        if not theirs:
            return
        self.say(f"\n{'errors to float64':14} {'loss':>9} {'torch':>9} {'worst ratio':>12}  tensor (error, torch's); tensors beyond 1.5 times torch's")
        for precision in self.o.precisions:
            out = at(f"grads-{precision}.safetensors")
            text = self.blurun("exec", self.artifact(precision, batch), "--fn", "loss", "--grad", "--params", at("weights.safetensors"), "--in", at("inputs.safetensors"), "--out", out)
            ours = text is not None and self.torch().ask(do="compare", exact=at("exact.safetensors"), got=out, loss=self.o.loss)
            if not ours:
                self.say(f"{precision:14} failed")
                continue
            mine, other = ours["errors"], theirs["errors"][counterpart[precision]]
            ratios = {name: mine[name] / max(other[name], 1e-30) for name in mine if name != "loss"}
            worst = max(ratios, key=ratios.get)
            self.failures += any(not r <= 1.5 for r in ratios.values())
            beyond = [name for name, r in ratios.items() if not r <= 1.5]
            self.keep("gradients", {"precision": precision, "batch": batch, "errors": mine, "torch": other, "beyond": beyond})
            self.say(f"{precision:14} {mine['loss']:9.2e} {other['loss']:9.2e} {ratios[worst]:12.2f}  {worst} ({mine[worst]:.2e}, {other[worst]:.2e}); {len(beyond)} of {len(ratios)}")

    # train

    def train(self):
        """All go on from the first step of blurun's fp32-strict: the same weights and optimizer state."""
        batch, steps, first = self.o.batches[0], self.o.train_steps, "fp32-strict"
        tokens = os.path.join(self.o.artifacts, self.o.data)
        start = os.path.join(self.folder, "start")
        flags = ["--data", tokens, "--seed", "7", "--json", "--val-every", "0"]
        if self.blurun("train", self.artifact(first, batch), *flags, "--steps", "1", "--checkpoint-dir", start) is None:
            return
        runs, rates = {}, None
        for precision in [first] + [p for p in self.o.precisions if p != first]:
            folder = os.path.join(self.folder, "train-" + precision)
            shutil.copytree(start, folder)
            text = self.blurun("train", self.artifact(precision, batch), *flags, "--steps", str(steps), "--checkpoint-dir", folder, "--resume")
            shutil.rmtree(folder)
            if text is None:
                continue
            rows = [r for r in map(json.loads, text.splitlines()) if "loss" in r and "lr" in r]
            runs[precision], rates = [r["loss"] for r in rows], rates or {r["step"]: r["lr"] for r in rows}
        if not rates:
            return
        step = os.path.join(start, "step-00000001")
        question = dict(do="continue", step=1, steps=steps, batch=batch, lr=[rates.get(i + 1, 0) for i in range(steps)], batches=os.path.join(self.o.artifacts, self.o.windows),
                        checkpoint=[os.path.join(step, f) for f in sorted(os.listdir(step)) if f.endswith(".safetensors")], **self.shape())
        torch = {(p, n): self.torch().ask(**question, precision=p, perturb=n) for p, n in [("fp32", 0), ("tf32", 0), ("bf16", 0)] + [("fp32", i + 1) for i in range(self.o.perturbed)]}
        torch = {k: v["losses"] for k, v in torch.items() if v}
        base = torch.get(("fp32", 0))
        if not base:
            return
        relative = lambda xs: max(abs(x - y) / y for x, y in zip(xs, base, strict=True))
        spread = max((relative(v) for (p, n), v in torch.items() if n), default=math.nan)
        close = max(3 * spread, 4 * 2**-24)  # what a loss itself is rounded to
        self.say(f"\nlosses of steps 2 to {steps}, largest relative difference from torch fp32 (last loss {base[-1]:.4f}; torch with perturbed weights: {spread:.1e})")
        for precision, losses in runs.items():
            limit = {"fp32": close, "fp32-strict": close, "tf32": 1e-3, "bf16": 1e-2}[precision]
            d = relative(losses)
            self.failures += not d <= limit or not losses[-1] < losses[0]
            self.keep("train", {"precision": precision, "losses": losses, "difference": d, "limit": limit})
            other = torch.get((counterpart[precision], 0))
            self.say(f"{precision:14} {d:.1e} of {limit:.1e}{'' if d <= limit else ' BEYOND'}; torch {counterpart[precision]} {relative(other) if other else math.nan:.1e}; from {losses[0]:.4f} to {losses[-1]:.4f}{'' if losses[-1] < losses[0] else ' NOT FALLING'}")
        for (p, n), losses in torch.items():
            self.keep("train", {"torch": p, "perturbed": n, "losses": losses})


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--blurun", default="bin/blurun")
    ap.add_argument("--artifacts", required=True)
    ap.add_argument("--json", required=True)
    ap.add_argument("--parts", default="start,time,gradients,train")
    ap.add_argument("--precisions", default=",".join(precisions))
    ap.add_argument("--modes", default="eager,compile", help="of PyTorch; empty: blurun alone")
    ap.add_argument("--batches", default="16,64")
    ap.add_argument("--beside", default="", help="folder in that of artifacts, whose artifacts are timed in turn with those of the same names; those it lacks are left out")
    ap.add_argument("--rounds", type=int, default=2)
    ap.add_argument("--limit", type=float, default=math.inf, help="seconds after which nothing more is begun")
    ap.add_argument("--steps", type=int, default=10, help="timed in a round, after four that aren't")
    ap.add_argument("--train-steps", type=int, default=50)
    ap.add_argument("--perturbed", type=int, default=3, help="runs of PyTorch from weights moved by a rounding")
    ap.add_argument("--model", default="gpt2", choices=["gpt2", "llama", "mlp"])
    ap.add_argument("--data", default="tokens.bin", help="token file in the folder of artifacts")
    ap.add_argument("--windows", default="batches.u16", help="what blurun's loader gives of it, there too")
    ap.add_argument("--tokens", type=int, default=1024)
    ap.add_argument("--vocabulary", type=int, default=50257)
    ap.add_argument("--size", type=json.loads, default={}, help="of the network in PyTorch, where it isn't 124M")
    ap.add_argument("--loss", default="loss.0", help="name of the loss among blurun's outputs")
    o = ap.parse_args()
    o.precisions, o.modes, o.batches = o.precisions.split(","), [m for m in o.modes.split(",") if m], [int(b) for b in o.batches.split(",")]
    parts = o.parts.split(",")
    if unknown := set(parts) - {"start", "time", "gradients", "train"}:
        ap.error(f"no part {', '.join(sorted(unknown))}")
    bench = Bench(o)
    bench.results["about"].update(command=sys.argv[1:], begun=time.strftime("%Y-%m-%d %H:%M:%S"))
    try:
        for part in parts:
            if not bench.late():
                getattr(bench, part)()
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    failures = bench.failures + (bench.peer.failures if bench.peer else 0) + bool(bench.results["about"].get("cut_short"))
    if failures:
        sys.exit(f"bench: {failures} of the measurements failed, are beyond their limits or were left out")


if __name__ == "__main__":
    main()
