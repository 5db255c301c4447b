"""Trains models of a few hundred million to a thousand million weights with blurun and with PyTorch, torch.compile, and prints both.

    python3 bench/gpt2/larger.py --blurun bin/blurun --artifacts DIR --json FILE [--limit 150]

DIR holds NAME-PRECISION-B.blx for the models of the table below: with the batch that both sides are given and with the largest batches that fit by plan, of
which the largest that runs counts (`make device-bundle` says which). PyTorch's largest batch is tried for, with a step that torch.compile made for any
number of rows; its step of the common batch is compiled for that one. Memory is what the driver says is in use, less what was before.

torch.compile takes about a minute for one of these. So all are compiled beside each other into PyTorch's caches first, on the last GPU, while blurun runs on
the others; then each GPU takes one model after the other, the first of the table first. What is late or fails is left out and said.
"""
import argparse
import glob
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from bench import Memory, Peer

gpt2 = {"model": "gpt2", "tokens": 1024, "vocabulary": 50257}
models = {
    "gpt2-355m": {**gpt2, "size": {"layers": 24, "heads": 16, "channels": 1024}},
    "gpt2-774m": {**gpt2, "size": {"layers": 36, "heads": 20, "channels": 1280}},
    # The layers of Llama 3.2 1B, and Llama 2's vocabulary: with 128256 tokens and a head of its own it would be 1.5 thousand million weights.
    "llama-1b": {"model": "llama", "tokens": 2048, "vocabulary": 32000, "size": {"positions": 2048, "layers": 16, "heads": 32, "groups": 8, "channels": 2048, "inner": 8192, "theta": 500000.0}},
    "llama-tiny": {"model": "llama", "tokens": 32, "vocabulary": 256, "size": {"positions": 32, "layers": 2, "heads": 4, "groups": 2, "channels": 32, "inner": 48}},  # to try this program
}
# What is measured, the most important first: model, precision, and the batch that PyTorch's is judged by, which should fit.
rows = [("gpt2-355m", "bf16", 48), ("gpt2-774m", "bf16", 44), ("llama-1b", "bf16", 24), ("gpt2-355m", "fp32", 44), ("gpt2-774m", "fp32", 24)]


class Larger:
    def __init__(self, o):
        self.o, self.begun, self.lock = o, time.time(), threading.Lock()
        self.results = {"about": {"command": sys.argv[1:], "begun": time.strftime("%Y-%m-%d %H:%M:%S")}, "rows": []}
        self.folder = tempfile.mkdtemp(prefix="bench-larger-")
        self.env = {**os.environ, "XDG_CACHE_HOME": self.folder, "TORCHINDUCTOR_CACHE_DIR": self.folder + "/inductor", "TRITON_CACHE_DIR": self.folder + "/triton",
                    "TORCHINDUCTOR_COMPILE_THREADS": "4", "PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
        self.alive, self.ended = set(), False

    def left(self):
        return self.o.limit - (time.time() - self.begun)

    def on(self, gpu):
        return {**self.env, "CUDA_VISIBLE_DEVICES": str(gpu)}

    def keep(self, name, precision, who, what, **values):
        with self.lock:
            if self.ended:
                return
            self.results["rows"].append({"name": name, "precision": precision, "who": who, "what": what, **values})
            with open(self.o.json, "w") as f:
                json.dump(self.results, f, indent=1)
            batch, ms = values.get("batch", 0), values.get("step_ms")
            figures = values.get("failure") or (f"{values['seconds']:.0f} s" if "seconds" in values else f"B={batch} {self.rate(self.results['rows'][-1]):.0f} tokens/s, {values['memory_bytes'] / 2**30:.2f} GiB")
            print(f"{time.time() - self.begun:5.0f} s  {name} {precision} {who} {what}: {figures}", flush=True)

    def rate(self, row):
        ms = sorted(row["step_ms"])
        return 1e3 * row["batch"] * models[row["name"]]["tokens"] / ms[len(ms) // 2]

    # blurun

    def batches(self, name, precision):
        """Batches that there are artifacts for, ascending: the first is the common one."""
        files = glob.glob(os.path.join(glob.escape(self.o.artifacts), f"{name}-{precision}-*.blx"))
        return sorted(int(re.fullmatch(r".*-(\d+)\.blx", f)[1]) for f in files)

    def blurun(self, name, precision, memory, gpu):
        common, *large = self.batches(name, precision)
        self.blurun_steps(name, precision, "common", common, 5, memory, gpu)
        for batch in reversed(large):
            if self.blurun_steps(name, precision, "largest", batch, 3, memory, gpu):
                return

    def blurun_steps(self, name, precision, what, batch, steps, memory, gpu):
        command = [self.o.blurun, "bench", os.path.join(self.o.artifacts, f"{name}-{precision}-{batch}.blx"), "--steps", str(steps + 1), "--json"]
        before = memory.settled()
        r, peak = memory.peak(lambda: subprocess.run(command, capture_output=True, text=True, env=self.on(gpu), timeout=max(1, self.left())))
        if r.returncode:
            self.keep(name, precision, "blurun", what, batch=batch, failure=f"B={batch}: " + r.stderr.strip()[-300:])
            return False
        answer = json.loads(r.stdout)
        self.keep(name, precision, "blurun", what, batch=batch, step_ms=answer["step_ms"][1:], planned_bytes=answer["memory_bytes"], memory_bytes=peak - before)
        return True

    # PyTorch

    def ask(self, peer, **question):
        """A question to a process that ends with this program."""
        answer = peer.ask(**question)
        return answer if answer else {"failure": peer.failure}

    def process(self, gpu, before=0):
        peer = Peer(self.on(gpu), before)
        self.alive.add(peer.process)
        return peer

    def finish(self, peer):
        peer.process.stdin.close()
        peer.process.wait()
        self.alive.discard(peer.process)

    def question(self, name, precision, judged, any):
        return {**models[name], "precision": precision, "mode": "compile", "batch": judged if any else self.batches(name, precision)[0], "any": any}

    def compile(self, name, precision, judged, any):
        peer = self.process(self.o.gpus[-1])
        answer = self.ask(peer, do="compile", **self.question(name, precision, judged, any))
        self.keep(name, precision, "torch", "compiled for any batch" if any else "compiled", **answer)
        self.finish(peer)

    def torch(self, name, precision, judged, memory, gpu):
        peer = self.process(gpu, memory.settled())
        self.results["about"].update(peer.about)
        for what, do, steps, any in (("common", "time", 5, False), ("largest", "largest", 2, True)):
            question = self.question(name, precision, judged, any)
            answer, peak = memory.peak(lambda: self.ask(peer, do=do, steps=steps, warm=2, **question))
            self.keep(name, precision, "torch", what, **{"batch": question["batch"], "memory_bytes": peak - peer.before, **answer})
        self.finish(peer)

    # all

    def of_gpu(self, gpu, memory, ours, theirs, compiled):
        """What one GPU does. PyTorch's models of it are asked for in order, each when it is compiled."""
        while True:
            try:
                name, precision, _ = ours.get_nowait()
            except queue.Empty:
                break
            self.guarded(name, precision, "blurun", lambda: self.blurun(name, precision, memory, gpu))
        while True:
            try:
                row = theirs.get_nowait()
            except queue.Empty:
                return
            for f in compiled[row[:2]]:
                f.exception()
            self.guarded(*row[:2], "torch", lambda: self.torch(*row, memory, gpu))

    def guarded(self, name, precision, who, work):
        """One failure is one line; the rest goes on."""
        try:
            work()
        except (Exception, SystemExit) as e:
            self.keep(name, precision, who, "all", failure=f"{type(e).__name__}: {e}"[:300])

    def run(self):
        chosen = [r for r in self.o.rows if self.batches(*r[:2])]
        for r in self.o.rows:
            if r not in chosen:
                self.keep(*r[:2], "blurun", "all", failure="there is no artifact")
        ours, theirs = queue.Queue(), queue.Queue()
        for r in chosen:
            ours.put(r)
            theirs.put(r)
        memories = {gpu: Memory(gpu if isinstance(gpu, int) else None) for gpu in self.o.gpus}
        with ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 3)) as pool:
            futures = {r[:2]: [pool.submit(self.guarded, *r[:2], "torch", lambda r=r, any=any: self.compile(*r, any)) for any in (False, True)] for r in chosen}
            everything = [f for fs in futures.values() for f in fs]

            def last(gpu):  # where PyTorch compiles nothing is measured meanwhile
                for f in everything:
                    f.exception()
                self.of_gpu(gpu, memories[gpu], ours, theirs, futures)

            threads = [threading.Thread(target=last, args=(self.o.gpus[-1],), daemon=True)]
            threads += [threading.Thread(target=self.of_gpu, args=(gpu, memories[gpu], ours, theirs, futures), daemon=True) for gpu in self.o.gpus[:-1]]
            for t in threads:
                t.start()
            for t in threads:
                t.join(max(0, self.left()))
            late = any(t.is_alive() for t in threads)
            self.report(late)
            for f in everything:
                f.cancel()
            for p in list(self.alive):
                p.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        return not late and not any("failure" in r for r in self.results["rows"])

    def report(self, late):
        with self.lock:
            self.ended = True
        of = lambda *key: next((r for r in self.results["rows"] if (r["name"], r["precision"], r["who"], r["what"]) == key and "failure" not in r), None)
        print(f"\n{'training':18} {'B':>4} {'torch tok/s':>12} {'GiB':>7} {'B':>4} {'blurun tok/s':>12} {'GiB':>7} {'rate':>6} {'memory':>7}")
        for what in ("common", "largest"):
            print(f"the {'same batch' if what == 'common' else 'largest batch of each'}")
            for name, precision, _ in self.o.rows:
                theirs, ours = of(name, precision, "torch", what), of(name, precision, "blurun", what)
                text = f"{name + ' ' + precision:18}"
                for r in (theirs, ours):
                    text += f" {r['batch']:4} {self.rate(r):12.0f} {r['memory_bytes'] / 2**30:7.2f}" if r else f" {'-':>4} {'-':>12} {'-':>7}"
                if ours and theirs:
                    text += f" {self.rate(ours) / self.rate(theirs):6.2f}" + (f" {ours['memory_bytes'] / theirs['memory_bytes']:7.2f}" if theirs["memory_bytes"] else "")
                print(text)
        if late:
            print(f"stopped after {self.o.limit:.0f} s: what is missing was left out")
        sys.stdout.flush()


def visible():
    """Numbers of the GPUs that there are, or one place for a machine without."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given:
        return [int(g) if g.isdigit() else g for g in given.split(",")]
    try:
        r = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
        return list(range(r.stdout.count("GPU "))) or [""]
    except OSError:
        return [""]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--blurun", default="bin/blurun")
    ap.add_argument("--artifacts", required=True)
    ap.add_argument("--json", required=True)
    ap.add_argument("--limit", type=float, default=150, help="seconds after which all ends")
    ap.add_argument("--rows", help="NAME:PRECISION:BATCH,... instead of the table: the batch is the one that PyTorch's largest is judged by")
    o = ap.parse_args()
    o.gpus = visible()
    o.rows = [(n, p, int(b)) for n, p, b in (r.split(":") for r in o.rows.split(","))] if o.rows else rows
    if not Larger(o).run():
        sys.exit("larger: some of the measurements failed or were left out")


if __name__ == "__main__":
    main()
