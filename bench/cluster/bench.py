"""Measures blurun on several GPUs of one machine, and PyTorch beside it.

    python3 bench/cluster/bench.py --bin DIR --models DIR --tokens FILE --out DIR [--ranks N] PART...

  exchange     all-reduce, reduce-scatter, all-gather and send/receive: time and bus bandwidth; every result is checked
  buckets      data parallelism with several sizes of buckets and settings of NCCL: what it costs beside ranks that have nothing to exchange
  data         data parallelism, plain and with the optimizer's state shared (ZeRO-1): tokens a second, scaling, memory
  scaling      one GPU each and all together in turns, with steps enough to tell differences of half a percent; power and clock of each GPU beside them
  context      one sequence shared by the ranks: tokens a second and memory, and the losses of one rank
  checkpoints  how long training waits for checkpoints that are written beside it, and when they are complete
  resume       a run of all ranks that goes on with one: the same losses, and the same bits as from a checkpoint that one rank had saved
  death        a rank is killed: how long until the others say so and have ended

DIR of --bin has bluc, blurun and (test/cluster's) join, that of --models gpt2.blu; FILE is a token file. Every result is a line of JSON in
OUT/cluster-PART.jsonl as soon as there is one; a table of them is printed last. What is late or fails is left out and said.
PyTorch is DistributedDataParallel with torch.compile for data, its context_parallel (ring) and an exchange of heads (ulysses) without
torch.compile for context, and torch.distributed.checkpoint.async_save. Memory is what is in use on the first GPU, as the driver
says. --target cpu --size small --compile 0 tries all of it without GPUs.
"""
import argparse
import filecmp
import json
import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import typing
from concurrent.futures import ThreadPoolExecutor

here = os.path.dirname(os.path.abspath(__file__))
MARK = "ANSWER "
sizes = {
    "124m": {"settings": {"L": 12, "H": 12, "C": 768}, "torch": {"layers": 12, "heads": 12, "channels": 768}, "vocabulary": 50257, "batch": 16, "tokens": 1024,
             "lengths": [8192, 32768, 131072], "steps": 200, "mib": [1, 25, 100, 512], "buckets": [6, 12, 25, 50, 100]},
    "small": {"settings": {"L": 2, "H": 4, "C": 64}, "torch": {"layers": 2, "heads": 4, "channels": 64}, "vocabulary": 256, "batch": 2, "tokens": 64,
              "lengths": [128, 256, 512], "steps": 20, "mib": [1, 2], "buckets": [1, 2]},
}
operations = ["all_reduce", "reduce_scatter", "all_gather", "send_recv"]


class Run(typing.NamedTuple):
    """What training said."""

    steps: list
    saves: list
    val: float | None


class Late(Exception):
    """There is no time left."""


class Failed(Exception):
    """A command failed; its text says how."""


def watched(query, options, each, work):
    """What work gives; meanwhile each line that nvidia-smi says of a query is given to each. Without nvidia-smi that is none, and said."""
    command = ["nvidia-smi", "--query-gpu=" + query, "--format=csv,noheader,nounits", *options]
    try:
        watch = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError as e:
        print(f"not measured: {query}: {e}", file=sys.stderr)
        return work()

    def read():
        for line in watch.stdout:
            each(line)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        return work()
    finally:
        watch.terminate()
        watch.wait()
        reader.join()


class Memory:
    """The first GPU's memory in use, as nvidia-smi says, and the most of it while something runs."""

    def __init__(self, cuda):
        self.cuda = cuda

    def peak(self, work):
        """What work gives, and the most bytes that were in use meanwhile; 0 where nobody knows."""
        if not self.cuda:
            return work(), 0
        most = [0]

        def each(line):
            if line.strip().isdigit():
                most[0] = max(most[0], int(line) << 20)

        return watched("memory.used", ["--id=0", "-lms", "50"], each, work), most[0]


class Power:
    """What every GPU takes while something runs, as nvidia-smi says every 20 ms, and at which clock."""

    query = "index,power.draw.instant,clocks.sm,clocks_event_reasons.active"
    capped = 0x4  # that the power limit set the clock (nvmlClocksEventReasonSwPowerCap)

    def __init__(self, cuda):
        self.cuda = cuda

    def during(self, work):
        """What work gives, and by GPU its watts, MHz and how often power limited the clock, of the last two thirds of the time in which it worked; none where nobody knows."""
        if not self.cuda:
            return work(), {}
        lines = []
        return watched(self.query, ["-lms", "20"], lines.append, work), self.means(lines)

    def means(self, lines):
        readings = {}
        for line in lines:
            try:
                gpu, watts, mhz, why = (x.strip() for x in line.split(","))
                readings.setdefault(int(gpu), []).append((float(watts), float(mhz), float(int(why, 16) & self.capped != 0)))
            except ValueError:  # a line that was cut off, or a GPU that doesn't say
                continue
        means = {}
        for gpu, all in readings.items():
            most = max(r[0] for r in all)
            busy = [r for r in all if r[0] > most / 2]
            if most > 2 * min(r[0] for r in all):  # else it did not work meanwhile
                late = busy[len(busy) // 3 :]
                means[gpu] = dict(zip(("watts", "mhz", "capped"), (sum(x) / len(late) for x in zip(*late))))
        return means


class Process:
    """A command with all that it starts, which ends when told, when its time is up, or with this program."""

    alive = set()

    def __init__(self, command, env, log):
        log.write(f"+ {' '.join(command)}\n")
        log.flush()
        self.errors = tempfile.NamedTemporaryFile("ab")  # read by another handle: one handle has one place in a file
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.errors, text=True, env=env, start_new_session=True)
        self.log, self.lines, self.more = log, [], threading.Condition()
        self.ended = False
        Process.alive.add(self)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(line)
                self.more.notify_all()
        with self.more:
            self.ended = True
            self.more.notify_all()

    def line(self, limit):
        """The next line of its output; None at its end. Late when there is none in time."""
        with self.more:
            if not self.more.wait_for(lambda: self.lines or self.ended, limit):
                raise Late()
            return self.lines.pop(0) if self.lines else None

    def said(self):
        """What it wrote to standard error so far."""
        with open(self.errors.name, errors="replace") as f:
            return f.read()

    def end(self):
        """Ends it if it hasn't ended; its status."""
        Process.alive.discard(self)
        if self.process.poll() is None and not self.ended:
            self.kill()
        try:
            status = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
            status = self.process.wait()
        text = self.said()
        self.log.write(text if len(text) < 200000 else text[:100000] + "\n...\n" + text[-100000:])
        self.log.flush()
        return status

    def ask(self):
        """Has it say what its threads wait for, as programs in Go do, and end."""
        try:
            os.killpg(self.process.pid, signal.SIGQUIT)
            time.sleep(1)
        except ProcessLookupError:
            pass

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def leave(signum, frame):
    for p in list(Process.alive):
        p.kill()
    os._exit(128 + signum)


class Bench:
    tells = [("tokens_per_s", 0, "tokens/s"), ("median_ms", 2, "ms"), ("bus_gb_per_s", 1, "GB/s")]  # of a result, as soon as there is one

    def __init__(self, o, part):
        self.o, self.part, self.size = o, part, sizes[o.size]
        self.begun, self.rows, self.failures, self.table = time.time(), [], 0, []
        self.results = open(os.path.join(o.out, f"cluster-{part}.jsonl"), "w")
        self.log = open(os.path.join(o.out, f"cluster-{part}-commands.log"), "w")
        self.folder = tempfile.mkdtemp(prefix="bench-cluster-")
        self.memory, self.compiled = Memory(o.target == "cuda"), {}
        self.runs = {}  # of losses, by way
        self.env = {**os.environ, **environment(o)}

    # what is measured with

    def left(self):
        left = self.o.limit - (time.time() - self.begun)
        if left < 1:
            raise Late()
        return left

    def keep(self, who, what, **values):
        row = {"part": self.part, "who": who, "what": what, **values}
        self.rows.append(row)
        self.results.write(json.dumps(row) + "\n")
        self.results.flush()
        told = [f"{values[key]:,.{digits}f} {unit}" for key, digits, unit in self.tells if values.get(key)]
        if told:
            print(f"{self.part}, {time.time() - self.begun:.0f} s: {who} {what}: {', '.join(told)}", flush=True)
        return row

    def fail(self, who, what, why):
        self.failures += 1
        why = [line for line in str(why).strip().splitlines() if line.strip()]
        self.keep(who, what, failure=" / ".join(why[-3:])[:600])
        print(f"{self.part}: {who} {what}: {' / '.join(why[-3:])[:400] or 'failed'}", flush=True)

    def attempt(self, who, what, work):
        """What work gives; None and a row that says why if it failed."""
        try:
            return work()
        except Failed as e:
            self.fail(who, what, e)

    def say(self, text):
        self.table.append(text)

    def find(self, who, what):
        """The row of that name that has figures."""
        return next((r for r in self.rows if r["who"] == who and r["what"] == what and "failure" not in r), None)

    def command(self, *command, env={}, limit=math.inf):
        """The output of a command that ends well, within a number of seconds."""
        p = Process(list(command), {**self.env, **env}, self.log)
        left = self.left()
        out, deadline = [], time.time() + min(left, limit)
        try:
            while (line := p.line(deadline - time.time())) is not None:
                out.append(line)
        except Late:
            p.ask()
            if limit < left:
                raise Failed(f"no end within {limit:.0f} s, after {len(out)} lines: {out[-1] if out else ''} {p.said()[-200:]}")
            raise
        finally:
            status = p.end()
        self.log.write("".join(out[-200:]))
        if status:
            raise Failed(p.said() or f"status {status}")
        return "".join(out)

    def compile(self, name, **how):
        """Begins to compile a variant of the model; artifact waits for it."""
        o, size = self.o, self.size
        settings = {**size["settings"], "V": size["vocabulary"], "T": how["tokens"], "S": how["tokens"], "B": how["batch"], "WARMUP": 2, "STEPS": 100000, **how.get("settings", {})}
        command = [os.path.join(o.bin, "bluc"), "compile", os.path.join(o.models, "gpt2.blu"), "--target", o.target, "--precision", how["precision"],
                   "--set", ",".join(f"{k}={v}" for k, v in settings.items()), "-o", os.path.join(self.folder, name + ".blx")]
        if o.target == "cuda":
            command += ["--arch", o.arch] + (["--ptxas", o.ptxas] if o.ptxas else [])
        for flag in ("mesh", "zero", "context", "bucket_size"):
            if how.get(flag):
                command += ["--" + flag.replace("_", "-"), str(how[flag])]
        self.compiled[name] = self.pool.submit(self.command, *command)

    def artifact(self, name):
        self.compiled[name].result()
        return os.path.join(self.folder, name + ".blx")

    def everything_compiled(self):
        """Compiles before anything is timed. What could not be is reported where it is used."""
        for f in self.compiled.values():
            f.exception()

    def blurun(self, ranks, *args, env={}, limit=math.inf, by="auto"):
        ranked = ["--nproc-per-node", str(ranks), "--gpu-engine", by] if ranks > 1 else []
        return self.command(os.path.join(self.o.bin, "blurun"), *args, *ranked, env=env, limit=limit)

    def bench(self, name, ranks, warm, steps, env={}, limit=60, by="auto"):
        """blurun bench: its result, with the device's memory. One more step comes before those that warm up."""
        text, peak = self.memory.peak(lambda: self.blurun(ranks, "bench", self.artifact(name), "--steps", str(warm + steps), "--json", env=env, limit=limit, by=by))
        r = json.loads(text)
        millis = sorted(r["step_ms"][warm:])
        return {"step_ms": r["step_ms"], "median_ms": millis[len(millis) // 2], "planned_bytes": r["memory_bytes"], "memory_bytes": peak} | {"by": by for by in [r.get("between_gpus")] if by}

    def train(self, name, ranks, *args, limit=math.inf):
        """blurun train: its steps, its checkpoints and its last validation loss, if it has one."""
        text = self.blurun(ranks, "train", self.artifact(name), "--data", self.o.tokens, "--json", "--val-every", "0", "--seed", "1", *args, limit=limit)
        rows = [json.loads(line) for line in text.splitlines()]
        val = [r["val_loss"] for r in rows if r.get("val_loss") is not None]
        return Run([r for r in rows if "grad_norm" in r], [r for r in rows if "checkpoint_stall_ms" in r], val[-1] if val else None)

    def torch(self, questions, limit, got=None):
        """Asks PyTorch's ranks, and tells got the name and the answer of each question. Who answers one too late, or ends, is started again for the rest."""
        got = got or (lambda name, answer: self.keep("torch", name, **answer))
        todo = list(questions.items())
        while todo:
            p = self.peer([q for _, q in todo])
            wait, answered = limit + 60, 0  # to start
            try:
                while todo:
                    line = p.line(min(wait, self.left()))
                    if line is None:
                        break
                    if not line.startswith(MARK):
                        continue
                    (name, _), answer, wait, answered = todo.pop(0), json.loads(line[len(MARK):]), limit, answered + 1
                    if "failure" in answer:
                        self.fail("torch", name, answer["failure"])
                    else:
                        got(name, answer)
                why = p.said()
            except Late:
                self.left()  # when time is up for all, it ends here
                why, answered = f"no answer within {limit} s", 0
            finally:
                status = p.end()
            if todo and not (answered and status == 0):  # it ends well where it must begin anew for the rest
                self.fail("torch", todo.pop(0)[0], why or "PyTorch's ranks ended")

    def peer(self, questions):
        """Starts PyTorch's ranks."""
        file = os.path.join(self.folder, "questions")
        with open(file, "w") as f:
            f.writelines(json.dumps(q) + "\n" for q in questions)
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = s.getsockname()[1]
        return Process([sys.executable, "-m", "torch.distributed.run", "--nnodes", "1", "--nproc-per-node", str(self.o.ranks), "--master-addr", "127.0.0.1",
                        "--master-port", str(port), os.path.join(here, "peer.py"), file], self.env, self.log)

    def question(self, do, ranks, **more):
        return {"do": do, "ranks": ranks, "vocabulary": self.size["vocabulary"], "size": self.size["torch"], **more}

    def run(self):
        """The part, as far as time goes; then its table."""
        with ThreadPoolExecutor(max(2, (os.cpu_count() or 2) // 2)) as self.pool:
            try:
                measure[self.part](self)
            except Late:
                self.failures += 1
                print(f"{self.part}: stopped after {self.o.limit:.0f} s: what is missing was left out", flush=True)
            for f in self.compiled.values():
                f.cancel()
        try:
            tables[self.part](self)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
        with open(os.path.join(self.o.out, f"cluster-{self.part}.txt"), "w") as f:
            f.write("\n".join(self.table) + "\n")
        print("\n".join(self.table), flush=True)
        return self.failures == 0


def environment(o):
    """NVLink multicast is off, in all libraries. blurun loads the NCCL that PyTorch has."""
    env = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1", "CUDA_CACHE_MAXSIZE": str(4 << 30), "OMP_NUM_THREADS": str(max(1, min(4, (os.cpu_count() or 1) // o.ranks))), "TOKENIZERS_PARALLELISM": "0"}
    if o.target == "cuda" and "BLUTRAIN_NCCL_LIBRARY" not in os.environ:
        library = nccl()
        if library:
            env["BLUTRAIN_NCCL_LIBRARY"] = library
    return env


def nccl():
    """The libnccl.so.2 that PyTorch's packages have, if they have one."""
    for folder in sys.path:
        at = os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.2")
        if os.path.exists(at):
            return at
    return None


# exchange


def exchange(b):
    o = b.o
    device = ["--device", "cuda"] if o.target == "cuda" else []
    for by in o.by:
        text = b.attempt(who(by), "all", lambda: b.blurun(o.ranks, "bench", "--collectives", "--json", "--steps", "10", "--sizes", ",".join(map(str, b.size["mib"])), *device, by=by))
        for line in (text or "").splitlines():
            r = json.loads(line)
            b.keep(who(by), f"{r['op']} {r['bytes'] >> 20}", bytes=r["bytes"], median_ms=r["median_ms"], bus_gb_per_s=r["bus_gb_per_s"], by=r.get("by"), right=True)  # blurun fails otherwise
    b.torch({"about": b.question("hello", o.ranks)} | {f"{op} {mib}": b.question("exchange", o.ranks, op=op, mib=mib, calls=20 if o.target == "cuda" else 2, repeats=10) for op in operations for mib in b.size["mib"]}, 30)


def who(by):
    """blurun, and what its GPUs sum and gather by unless that is its own choice."""
    return "blurun" if by == "auto" else "blurun " + by


def chosen(rows):
    """What the rows of blurun's own choice went by, for a table."""
    engines = sorted({r["by"] for r in rows if r and r.get("by")})
    return f"; blurun's GPUs went by {', '.join(engines)}" if engines else ""


def exchange_table(b):
    others = [by for by in b.o.by if by != "auto"]
    b.say(f"{'MiB, ' + str(b.o.ranks) + ' ranks':20} {'blurun ms':>10} {'bus GB/s':>9} {'torch ms':>10} {'bus GB/s':>9} {'ratio':>6} {'by':>5}" + "".join(f" {by + ' ms':>10} {'bus GB/s':>9}" for by in others))
    for op in operations:
        for mib in b.size["mib"]:
            what = f"{op} {mib}"
            ours, theirs = b.find("blurun", what), b.find("torch", what)
            wrong = " WRONG" if theirs and not theirs["right"] else ""
            b.say(f"{what:20} {cell(ours, 'median_ms', 10, 3)} {cell(ours, 'bus_gb_per_s', 9, 1)} {cell(theirs, 'median_ms', 10, 3)} {cell(theirs, 'bus_gb_per_s', 9, 1)} {ratio(ours, theirs, 'bus_gb_per_s')} {ours and ours.get('by') or '-':>5}"
                  + "".join(f" {cell(b.find(who(by), what), 'median_ms', 10, 3)} {cell(b.find(who(by), what), 'bus_gb_per_s', 9, 1)}" for by in others) + wrong)


def cell(row, key, width, digits, scale=1.0):
    return f"{row[key] / scale:{width}.{digits}f}" if row and row.get(key) else f"{'-':>{width}}"


def ratio(ours, theirs, key):
    return f"{ours[key] / theirs[key]:6.2f}" if ours and theirs and ours.get(key) and theirs.get(key) else f"{'-':>6}"


# buckets


def buckets(b):
    n, size, p = b.o.ranks, b.size, b.o.precisions[0]
    plain = dict(precision=p, batch=size["batch"], tokens=size["tokens"])
    b.compile("alone", **plain)
    for mib in size["buckets"]:
        b.compile(f"{mib} MiB", mesh=f"dp={n}", bucket_size=f"{mib}MiB", **plain)
    b.everything_compiled()

    def measure(what, name, ranks, env={}):
        r = b.attempt("blurun", what, lambda: b.bench(name, ranks, 3, b.o.steps, env))
        if r:
            b.keep("blurun", what, **r)

    def beside(gpu):
        return b.attempt("blurun", "alone on each", lambda: b.bench("alone", 1, 3, b.o.steps, {"CUDA_VISIBLE_DEVICES": str(gpu)}))

    measure("alone", "alone", 1)
    with ThreadPoolExecutor(n) as each:  # the same load of the machine, and nothing to exchange
        runs = [r for r in each.map(beside, range(n)) if r]
    if runs:
        b.keep("blurun", "alone on each", **max(runs, key=lambda r: r["median_ms"]))
    for mib in size["buckets"]:
        measure(f"{mib} MiB", f"{mib} MiB", n)
    if b.o.target == "cuda":
        for mib in size["buckets"][1::2]:
            for ctas in (4, 8, 16):
                measure(f"{mib} MiB, {ctas} blocks", f"{mib} MiB", n, {"NCCL_MAX_CTAS": str(ctas)})


def buckets_table(b):
    alone = b.find("blurun", "alone")
    b.say(f"{b.o.precisions[0] + ', B=%d a rank, %d ranks' % (b.size['batch'], b.o.ranks):26} {'step ms':>9} {'scaling':>8}")
    for r in b.rows:
        if "failure" not in r:
            scaling = f"{alone['median_ms'] / r['median_ms']:8.1%}" if alone and r is not alone else f"{'-':>8}"
            b.say(f"{r['what']:26} {r['median_ms']:9.2f} {scaling}")


# data


def data(b):
    n, size = b.o.ranks, b.size
    for p in b.o.precisions:
        b.compile(f"{p} 1", precision=p, batch=size["batch"], tokens=size["tokens"])
        b.compile(f"{p} dp", precision=p, batch=size["batch"], tokens=size["tokens"], mesh=f"dp={n}")
        b.compile(f"{p} zero", precision=p, batch=size["batch"], tokens=size["tokens"], mesh=f"dp={n}", zero=1)
    b.everything_compiled()
    rate = lambda ranks, r: 1e3 * ranks * size["batch"] * size["tokens"] / r["median_ms"]
    for p in b.o.precisions:
        for what in (f"{p} 1", f"{p} dp", f"{p} zero"):
            ranks = 1 if what.endswith(" 1") else n
            for by in b.o.by if ranks > 1 else ["auto"]:
                r = b.attempt(who(by), what, lambda: b.bench(what, ranks, 2, b.o.steps, by=by))
                if r:
                    b.keep(who(by), what, tokens_per_s=rate(ranks, r), **r)

    def got(name, answer):
        for way, r in answer.items():
            b.keep("torch", name.split()[0] + " " + way, tokens_per_s=rate(1 if way == "1" else n, r), **r)

    # All ranks before one, the first precision before the others, since time may not be enough for all.
    ask = lambda p, ranks, ways: b.question("data", ranks, ways=ways, precision=p, batch=size["batch"], tokens=size["tokens"], warm=3, steps=b.o.steps, compile=b.o.compile)
    questions = {f"{p} dp, zero": ask(p, n, ["dp", "zero"]) for p in b.o.precisions} | {f"{p} 1": ask(p, 1, ["1"]) for p in b.o.precisions}
    b.torch(questions, b.o.patience, got)


def data_table(b):
    n = b.o.ranks
    b.say(f"{'B=%d a rank, %d ranks' % (b.size['batch'], n):22} {'blurun tok/s':>12} {'scaling':>8} {'GiB':>6} {'torch tok/s':>12} {'scaling':>8} {'GiB':>6} {'ratio':>6}")
    for p in b.o.precisions:
        for what in (f"{p} 1", f"{p} dp", f"{p} zero"):
            text = f"{what:22}"
            for side in ("blurun", "torch"):
                r, one = b.find(side, what), b.find(side, f"{p} 1")
                scaling = f"{r['tokens_per_s'] / one['tokens_per_s'] / n:8.1%}" if r and one and r is not one else f"{'-':>8}"
                text += f" {cell(r, 'tokens_per_s', 12, 0)} {scaling} {cell(r, 'memory_bytes', 6, 2, 2**30)}"
            b.say(text + f" {ratio(b.find('blurun', what), b.find('torch', what), 'tokens_per_s')}" + chosen([b.find("blurun", what)]))
            for by in b.o.by:
                r = by != "auto" and b.find(who(by), what)
                if r:
                    b.say(f"{what + ', ' + by:22} {cell(r, 'tokens_per_s', 12, 0)} {' ' * 8} {cell(r, 'memory_bytes', 6, 2, 2**30)}")
        text = ""
        for side in ("blurun", "torch"):
            plain, shared = b.find(side, f"{p} dp"), b.find(side, f"{p} zero")
            if plain and shared and plain.get("memory_bytes"):
                text += f"; {side} {(plain['memory_bytes'] - shared['memory_bytes']) / 2**20:.0f} MiB"
        if text:
            b.say(f"{p}: ZeRO-1 saves a rank{text[1:]}")


# scaling


def scaling(b):
    """Turns of the same load of the machine: every GPU by itself, all at once, and then all together. Cards differ, and are faster while they are cool: the steps that count come after those."""
    n, size, p = b.o.ranks, b.size, b.o.precisions[0]
    plain = dict(precision=p, batch=size["batch"], tokens=size["tokens"])
    b.compile("alone", **plain)
    b.compile("together", mesh=f"dp={n}", **plain)
    b.everything_compiled()
    warm, steps = (20, 40) if b.o.target == "cuda" else (1, 3)
    power = Power(b.o.target == "cuda")

    def by_itself(turn):
        with ThreadPoolExecutor(n) as each:
            return list(each.map(lambda gpu: b.attempt("blurun", f"{turn} GPU {gpu}", lambda: b.bench("alone", 1, warm, steps, {"CUDA_VISIBLE_DEVICES": str(gpu)}, 25)), range(n)))

    for turn in range(3):
        runs, alone = power.during(lambda: by_itself(turn))
        keep = lambda what, r, took: r and b.keep("blurun", f"{turn} {what}", power=[p for p in took if p], **r)
        for gpu, r in enumerate(runs):
            keep(f"GPU {gpu}", r, [alone.get(gpu)])
        for by in b.o.by:
            r, took = power.during(lambda: b.attempt("blurun", f"{turn} {together(by)}", lambda: b.bench("together", n, warm, steps, limit=25, by=by)))
            keep(together(by), r, [took.get(gpu) for gpu in range(n)])


def together(by):
    return "together" if by == "auto" else "together by " + by


def scaling_table(b):
    whats = [f"GPU {gpu}" for gpu in range(b.o.ranks)] + [together(by) for by in b.o.by]
    millis = {what: [b.find("blurun", f"{turn} {what}") for turn in range(3)] for what in whats}
    millis = {what: [r["median_ms"] for r in rows if r] for what, rows in millis.items()}
    b.say(f"{b.o.precisions[0] + ', B=%d a rank, ms a step' % b.size['batch']:26}   " + "".join(f"{f'turn {turn + 1}':>9}" for turn in range(3)) + f"{'median':>9} {'scaling':>8}")
    for what in whats:
        xs = millis[what]
        if xs:
            scales = "".join(f"{middle(xs) / middle(millis[together(by)]):8.1%}" for by in b.o.by if millis[together(by)] and not what.startswith("together"))
            b.say(f"{what:26}   " + "".join(f"{x:9.2f}" for x in xs) + " " * 9 * (3 - len(xs)) + f"{middle(xs):9.2f} {scales}")
    b.say("scaling: of that GPU by itself, while the others are as busy" + chosen([b.find("blurun", f"{turn} together") for turn in range(3)]))
    power_table(b, whats)


def power_table(b, whats):
    def of_run(r):
        """Watts, MHz, how often power set the clock, and joules a step: the mean of the GPUs."""
        late = r["step_ms"][len(r["step_ms"]) // 3 :]
        means = [sum(p[key] for p in r["power"]) / len(r["power"]) for key in ("watts", "mhz", "capped")]
        return means + [means[0] * sum(late) / len(late) / 1e3]

    runs = {what: [of_run(r) for turn in range(3) if (r := b.find("blurun", f"{turn} {what}")) and r["power"]] for what in whats}
    if not any(runs.values()):
        return
    b.say(f"{'of a GPU':26}   {'W':>9}{'MHz':>9}{'limited':>9}{'J a step':>9}")
    for what, rows in runs.items():
        if rows:
            watts, mhz, capped, joules = (sum(x) / len(rows) for x in zip(*rows))
            b.say(f"{what:26}   {watts:9.0f}{mhz:9.0f}{capped:9.0%}{joules:9.2f}")
    b.say("in the last two thirds of each run; limited: how often power set the clock")


# context


# Of each run: its way and the number of its length, the most important first; then PyTorch's.
ours = [("ring", 0), ("ulysses", 0), ("one", 0), ("ring", 1), ("ulysses", 1), ("one", 1), ("ring", 2), ("ulysses", 2)]
theirs = [("ring", 0), ("ring", 1), ("ulysses", 0), ("ulysses", 1), ("one", 0), ("ring", 2), ("one", 1), ("ulysses", 2)]


def contexts(b):
    """Name, length and way of each run of blurun."""
    p = b.o.precisions[0]
    return [(f"{p} {b.size['lengths'][i]} {way}", b.size["lengths"][i], way) for way, i in ours]


def context(b):
    n, heads, p = b.o.ranks, b.size["torch"]["heads"], b.o.precisions[0]
    how = lambda way: {} if way == "one" else {"mesh": f"cp={n}", "context": way}
    possible = lambda way: way != "ulysses" or heads % n == 0
    for way in ("one", "ring", "ulysses"):
        if possible(way):
            b.compile(f"losses {way}", precision="fp32", batch=1, tokens=b.size["lengths"][0], settings={"L": 2, "LR": 1e-3, "WARMUP": 20, "STEPS": b.size["steps"]}, **how(way))
    for what, length, way in contexts(b):
        if possible(way):
            b.compile(what, precision=p, batch=1, tokens=length, **how(way))
    b.everything_compiled()
    losses(b, n, ["ring"])
    for what, length, way in contexts(b):
        context_of(b, what, length, way)
    losses(b, n, ["ulysses"])
    questions, lengths = {}, {}
    for way, i in theirs:
        if possible(way):
            lengths[f"{p} {b.size['lengths'][i]} {way}"] = b.size["lengths"][i]
            questions[f"{p} {b.size['lengths'][i]} {way}"] = b.question("context", 1 if way == "one" else n, precision=p, tokens=b.size["lengths"][i], way=way, **repeats(b, b.size["lengths"][i]))
    b.torch(questions, 25, lambda what, r: b.keep("torch", what, tokens_per_s=1e3 * lengths[what] / r["median_ms"], **r))


def repeats(b, length):
    """Steps that warm up, after a first one, and steps that are timed: steps of the longest take seconds."""
    warm, steps = {0: (2, 5), 1: (1, 3)}.get(b.size["lengths"].index(length), (0, 1))
    return {"warm": warm, "steps": steps}


def context_of(b, what, length, way):
    """blurun's part of a run."""
    if what not in b.compiled:
        b.fail("blurun", what, f"{b.size['torch']['heads']} heads can't be shared by {b.o.ranks} ranks")
        return
    r = b.attempt("blurun", what, lambda: b.bench(what, 1 if way == "one" else b.o.ranks, **repeats(b, length), limit=20))
    if r:
        b.keep("blurun", what, tokens_per_s=1e3 * length / r["median_ms"], **r)


early, late = 1e-5, 1e-3  # how far losses of the first five steps, and the validation loss after all, may differ from one rank's, relatively


def losses(b, n, ways):
    """Losses of training, and at its end that of other data, in float32, beside those of one rank."""
    steps = ["--steps", str(b.size["steps"])]
    if b.o.held:
        steps += ["--val-data", b.o.held, "--val-batches", "8", "--val-every", "0"]

    def run(way):
        r = b.attempt("blurun", f"losses {way}", lambda: b.train(f"losses {way}", 1 if way == "one" else n, *steps, limit=25))
        if r:
            b.runs[way] = r
        return r

    for way in ways:
        base = b.runs.get("one") or run("one")
        if base and f"losses {way}" in b.compiled and run(way):
            d = difference(b.runs[way].steps[:5], base.steps[:5])
            v = abs(b.runs[way].val - base.val) / base.val if b.o.held else 0
            b.failures += not (d <= early and v <= late)
            b.keep("blurun", f"losses {way}", difference=d, limit=early, val_loss=b.runs[way].val, val_loss_one=base.val, val_difference=v, val_limit=late, steps=b.size["steps"],
                   losses=[r["loss"] for r in b.runs[way].steps])
            print(f"{b.part}: losses of {way} and one rank differ by {d:.1e}, after {b.size['steps']} steps by {v:.1e}", flush=True)


def difference(got, want):
    """The largest relative difference of losses."""
    return max((abs(x["loss"] - y["loss"]) / abs(y["loss"]) for x, y in zip(got, want, strict=True)), default=math.inf)


def context_table(b):
    n = b.o.ranks
    b.say(f"{'B=1, %d ranks' % n:22} {'blurun tok/s':>12} {'speedup':>8} {'GiB':>6} {'torch tok/s':>12} {'speedup':>8} {'GiB':>6} {'ratio':>6}")
    for what, length, way in contexts(b):
        text = f"{what:22}"
        for who in ("blurun", "torch"):
            r, one = b.find(who, what), b.find(who, f"{b.o.precisions[0]} {length} one")
            speedup = f"{r['tokens_per_s'] / one['tokens_per_s']:8.2f}" if r and one and r is not one else f"{'-':>8}"
            text += f" {cell(r, 'tokens_per_s', 12, 0)} {speedup} {cell(r, 'memory_bytes', 6, 2, 2**30)}"
        b.say(text + f" {ratio(b.find('blurun', what), b.find('torch', what), 'tokens_per_s')}")
    for way in ("ring", "ulysses"):
        r = b.find("blurun", f"losses {way}")
        if r:
            beyond = lambda d, limit: f"{d:.1e} of {limit:.0e}{'' if d <= limit else ' BEYOND'}"
            b.say(f"fp32, S={b.size['lengths'][0]}, L=2: losses of 5 steps with {way} and with one rank differ by {beyond(r['difference'], r['limit'])}")
            if r["val_loss"] is not None:
                b.say(f"after {r['steps']} steps the validation loss is {r['val_loss']:.5f}, with one rank {r['val_loss_one']:.5f}: {beyond(r['val_difference'], r['val_limit'])}")


# checkpoints


def checkpoints(b):
    n, size, p = b.o.ranks, b.size, b.o.precisions[0]
    for zero in (0, 1):
        b.compile(f"zero {zero}" if zero else "plain", precision=p, batch=size["batch"], tokens=size["tokens"], mesh=f"dp={n}", zero=zero)
    b.everything_compiled()
    every = 40 if b.o.target == "cuda" else 10  # steps, long enough that the one before is written
    for name in ("plain", "zero 1"):
        at = os.path.join(b.folder, "saved")
        run = b.attempt("blurun", name, lambda: b.train(name, n, "--steps", str(3 * every), "--checkpoint-every", str(every), "--checkpoint-dir", at))
        shutil.rmtree(at, ignore_errors=True)
        if run:
            saves = run.saves
            b.keep("blurun", name, blocked_ms=[r["checkpoint_stall_ms"] for r in saves], done_ms=[r["checkpoint_stall_ms"] + r["checkpoint_ms"] for r in saves], bytes=saves[-1]["checkpoint_bytes"],
                   step_ms=[r["step_ms"] for r in run.steps])
    b.torch({"plain": b.question("checkpoint", n, precision=p, batch=size["batch"], tokens=size["tokens"], saves=3, between=5, folder=b.folder)}, 90)


def middle(xs):
    return sorted(xs)[len(xs) // 2]


def checkpoints_table(b):
    b.say(f"{'%d ranks' % b.o.ranks:22} {'blocked ms':>11} {'first':>8} {'complete ms':>12} {'GiB':>6}")
    for who, what in (("blurun", "plain"), ("blurun", "zero 1"), ("torch", "plain")):
        r = b.find(who, what)
        if r:
            b.say(f"{who + ' ' + what:22} {middle(r['blocked_ms'][1:]):11.1f} {r['blocked_ms'][0]:8.1f} {middle(r['done_ms'][1:]):12.0f} {r['bytes'] / 2**30:6.2f}")
    b.say("medians after the first; blurun's files are synchronized to the disk before they count as complete")


# resume


def resume(b):
    n, size = b.o.ranks, b.size
    for p in b.o.precisions[:1]:
        b.compile("many", precision=p, batch=size["batch"], tokens=size["tokens"], mesh=f"dp={n}", zero=1)
        b.compile("one", precision=p, batch=size["batch"], tokens=size["tokens"])
    b.everything_compiled()
    at = os.path.join(b.folder, "many")
    whole = b.attempt("blurun", "whole", lambda: b.train("many", n, "--steps", "6", "--checkpoint-every", "3", "--checkpoint-dir", at))
    if not whole:
        return
    half = os.path.join(b.folder, "half")
    os.mkdir(half)
    shutil.move(os.path.join(at, "step-00000003"), half)
    joined = os.path.join(b.folder, "joined")
    b.attempt("blurun", "join", lambda: b.command(os.path.join(b.o.bin, "join"), os.path.join(half, "step-00000003"), joined))
    runs = [b.attempt("blurun", f"rest of {os.path.basename(d)}", lambda: b.train("one", 1, "--steps", "6", "--checkpoint-dir", d, "--resume", "--accumulate", str(n))) for d in (half, joined)]
    if not runs[0]:
        return
    rest = runs[0].steps
    if [r["step"] for r in rest] != [4, 5, 6]:
        b.fail("blurun", "rest of half", f"steps {[r['step'] for r in rest]} instead of 4 to 6")
        return
    # What one rank makes of the shards, and of the same state in one file: the same bits after three more steps.
    same = bool(runs[1]) and filecmp.cmp(*(os.path.join(d, "step-00000006", "rank-00000.safetensors") for d in (half, joined)), shallow=False)
    limit = {"fp32": 1e-5, "fp32-strict": 1e-5, "tf32": 1e-3, "bf16": 5e-3}[b.o.precisions[0]]
    first, d = difference(rest[:1], whole.steps[3:4]), difference(rest, whole.steps[3:])
    b.failures += not d <= limit or not same
    b.keep("blurun", "resume", precision=b.o.precisions[0], same_bits=same, first_difference=first, difference=d, limit=limit, losses=[r["loss"] for r in rest], whole=[r["loss"] for r in whole.steps])


def resume_table(b):
    r = b.find("blurun", "resume")
    if r:
        b.say(f"{r['precision']}, ZeRO-1 on {b.o.ranks} ranks for 3 steps, then 1 rank: the first loss differs by {r['first_difference']:.1e}, those of steps 4 to 6 by "
              f"{r['difference']:.1e} of {r['limit']:.0e}{'' if r['difference'] <= r['limit'] else ' BEYOND'}; from shards and from one file {'the same bits' if r['same_bits'] else 'OTHER BITS'}")


# death


def death(b):
    n, size, p = b.o.ranks, b.size, b.o.precisions[0]
    b.compile("model", precision=p, batch=size["batch"], tokens=size["tokens"], mesh=f"dp={n}")
    for by in b.o.by:
        b.attempt(who(by), "kill", lambda: kill(b, b.artifact("model"), n, by))


def kill(b, model, n, by):
    """Kills the last rank in the middle of a run. The others must say which, and end."""
    victim = n - 1
    p = Process([os.path.join(b.o.bin, "blurun"), "train", model, "--data", b.o.tokens, "--json", "--val-every", "0", "--steps", "90000", "--nproc-per-node", str(n), "--gpu-engine", by], b.env, b.log)
    try:
        for _ in range(5):
            if p.line(b.left()) is None:
                raise Failed("the ranks ended by themselves: " + p.said())
        os.kill(rank_of(p.process.pid, victim), signal.SIGKILL)
        begun, named = time.time(), None
        while not p.ended and time.time() - begun < 60:
            if named is None and f"rank {victim} died" in p.said():
                named = time.time() - begun
            time.sleep(0.005)
        took = time.time() - begun
        if not p.ended:
            raise Failed("the ranks had not ended after 60 s: " + p.said())
    finally:
        status = p.end()
    said = p.said()
    silent = [r for r in range(victim) if not any(f"rank {r}: " in line and f"rank {victim} died" in line for line in said.splitlines())]
    if silent or not status:
        raise Failed(f"ranks {silent} did not say that rank {victim} died, status {status}: {said}")
    b.keep(who(by), "kill", named_s=named or took, ended_s=took, status=status)


def rank_of(parent, rank):
    """The process of a rank among those that a command started."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as f:
                of = int(f.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{pid}/environ") as f:
                environ = f.read().split("\0")
        except (OSError, UnicodeDecodeError):  # gone meanwhile, or another's
            continue
        if of == parent and f"RANK={rank}" in environ:
            return int(pid)
    raise Failed(f"there is no process of rank {rank}")


def death_table(b):
    for by in b.o.by:
        r = b.find(who(by), "kill")
        if r:
            b.say(f"{by}: rank {b.o.ranks - 1} of {b.o.ranks} killed: named after {r['named_s']:.2f} s, all had ended after {r['ended_s']:.2f} s with status {r['status']}")


measure = {"exchange": exchange, "buckets": buckets, "data": data, "scaling": scaling, "context": context, "checkpoints": checkpoints, "resume": resume, "death": death}
tables = {"exchange": exchange_table, "buckets": buckets_table, "data": data_table, "scaling": scaling_table, "context": context_table, "checkpoints": checkpoints_table, "resume": resume_table, "death": death_table}


def options():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("parts", nargs="+", choices=list(measure), metavar="PART", help="what to measure: " + ", ".join(measure))
    a.add_argument("--bin", required=True, help="folder of bluc, blurun and join")
    a.add_argument("--models", required=True, help="folder of gpt2.blu")
    a.add_argument("--tokens", required=True, help="file of tokens")
    a.add_argument("--held", default="", help="file of tokens that losses are validated with")
    a.add_argument("--out", required=True, help="folder for results and logs")
    a.add_argument("--ranks", type=int, default=2, help="ranks, one a GPU (2)")
    a.add_argument("--target", choices=["cuda", "cpu"], default="cuda")
    a.add_argument("--arch", default="sm_90a")
    a.add_argument("--ptxas", default="", help="NVIDIA's assembler; without it the driver assembles kernels, at the first step")
    a.add_argument("--size", choices=list(sizes), default="124m", help="GPT-2's size (124m)")
    a.add_argument("--precisions", default="bf16,tf32,fp32", help="most important first (bf16,tf32,fp32)")
    a.add_argument("--by", default="auto", help="what GPUs sum and gather by, of auto, nccl and peer: exchange, data, scaling and death measure each (auto)")
    a.add_argument("--steps", type=int, default=15, help="steps that are timed (15)")
    a.add_argument("--compile", type=int, default=1, help="0: PyTorch without torch.compile")
    a.add_argument("--patience", type=float, default=120, help="seconds for PyTorch to compile and time one variant (120)")
    a.add_argument("--limit", type=float, default=180, help="seconds for each part (180)")
    o = a.parse_args()
    o.precisions, o.by = o.precisions.split(","), o.by.split(",")
    for name in ("bin", "models", "tokens", "held", "out"):
        setattr(o, name, os.path.abspath(getattr(o, name)) if getattr(o, name) else "")
    if o.ranks < 2 or o.steps < 1:
        a.error("--ranks must be at least 2, --steps at least 1")
    return o


def main():
    o = options()
    os.makedirs(o.out, exist_ok=True)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    well = [Bench(o, part).run() for part in o.parts]
    sys.exit(0 if all(well) else 1)


if __name__ == "__main__":
    main()
