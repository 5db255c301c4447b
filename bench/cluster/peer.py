"""PyTorch's side of bench/cluster: what the ranks of one job are asked to measure, in turn.

    torchrun --nproc-per-node N bench/cluster/peer.py FILE

FILE holds questions, a JSON object a line. Rank 0 answers each on standard output with a line of JSON that starts with ANSWER. A
question that says "ranks": 1 is rank 0's alone; the others wait. Without a GPU the ranks are processes that use gloo.
"""
import contextlib
import ctypes
import datetime
import gc
import json
import os
import shutil
import signal
import sys
import time

if __name__ == "__main__":  # ranks don't outlive torchrun, which starts them in sessions of their own (1: PR_SET_PDEATHSIG)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if os.getppid() == 1:
        sys.exit(1)

import torch
import torch.distributed as dist
import torch.nn.functional as F

here = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.join(here, "..", "gpt2"), os.path.join(here, "..")]  # beside this folder, or in the one above
import model as gpt2

MARK = "ANSWER "
cuda = torch.cuda.is_available()


class Ranks:
    """The job's ranks: this one's number, its device, and a group that talks beside what is measured."""

    def __init__(self):
        self.rank, self.size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(self.device)
        dist.init_process_group("cpu:gloo,cuda:nccl" if cuda else "gloo", timeout=datetime.timedelta(minutes=10))
        self.control = dist.new_group(backend="gloo", timeout=datetime.timedelta(seconds=300))
        self.mesh = None

    def all_agree(self, mine):
        """What every rank has to say."""
        everyone = [None] * self.size
        dist.all_gather_object(everyone, mine, group=self.control)
        return everyone


def synchronize():
    if cuda:
        torch.cuda.synchronize()


def clean():
    """Gives back all memory, and forgets what was compiled."""
    torch._dynamo.reset()
    gc.collect()
    if cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def memory():
    """Bytes in use on the device with everything that comes with the process, and the most that tensors took."""
    if not cuda:
        return {}
    free, total = torch.cuda.mem_get_info()
    return {"memory_bytes": total - free, "peak_bytes": torch.cuda.max_memory_allocated()}


# exchange


def fill(rank, n, device):
    """Values whose sums over ranks are exact."""
    return (torch.arange(n, device=device) % 7 + (rank + 1)).float()


class Exchange:
    """One operation on a number of MiB of float32, of which the larger of its buffers has all."""

    def __init__(self, ranks, op, mib):
        self.ranks, self.op, n = ranks, op, ranks.size
        self.count = max(1, (mib << 20) // 4 // n) * n
        part = self.count // n
        inputs = {"all_gather": part}.get(op, self.count)
        outputs = {"reduce_scatter": part}.get(op, self.count)
        self.data = fill(ranks.rank, inputs, ranks.device)
        self.out = self.data.clone() if op == "all_reduce" else torch.empty(outputs, device=ranks.device)

    def call(self):
        rank, n = self.ranks.rank, self.ranks.size
        if self.op == "all_reduce":
            dist.all_reduce(self.out)
        elif self.op == "reduce_scatter":
            dist.reduce_scatter_tensor(self.out, self.data)
        elif self.op == "all_gather":
            dist.all_gather_into_tensor(self.out, self.data)
        else:
            for request in dist.batch_isend_irecv([dist.P2POp(dist.isend, self.data, (rank + 1) % n), dist.P2POp(dist.irecv, self.out, (rank - 1) % n)]):
                request.wait()

    def right(self):
        rank, n, count, device = self.ranks.rank, self.ranks.size, self.count, self.ranks.device
        each = [fill(r, count, device) for r in range(n)]
        part = count // n
        want = {"all_reduce": lambda: sum(each), "reduce_scatter": lambda: sum(each)[rank * part : (rank + 1) * part],
                "all_gather": lambda: torch.cat([e[:part] for e in each]), "send_recv": lambda: each[(rank - 1) % n]}[self.op]()
        return torch.equal(self.out, want)

    def share(self):
        """Of the bytes, what each rank has to send."""
        n = self.ranks.size
        return {"all_reduce": 2 * (n - 1) / n, "send_recv": 1}.get(self.op, (n - 1) / n)


def exchange(q, ranks):
    """Times calls one after the other on the GPU, several a measurement. All-reduce works in place, so its sums grow: the first is checked."""
    x = Exchange(ranks, q["op"], q["mib"])
    x.call()
    synchronize()
    right = all(ranks.all_agree(x.right()))
    x.out.zero_()
    calls, millis = q["calls"], []
    for i in range(q["repeats"] + 1):
        synchronize()
        dist.barrier(group=ranks.control)
        if cuda:
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
        begun = time.time()
        for _ in range(calls):
            x.call()
        if cuda:
            end.record()
            synchronize()
        took = start.elapsed_time(end) if cuda else 1e3 * (time.time() - begun)
        if i:
            millis.append(took / calls)
    slowest = sorted(max(m) for m in zip(*ranks.all_agree(millis)))
    median = slowest[len(slowest) // 2]
    return {"bytes": 4 * x.count, "median_ms": median, "bus_gb_per_s": x.share() * 4 * x.count / median / 1e6, "right": right}


# training


class Positions(gpt2.GPT2):
    """GPT-2 on a part of each sequence, at positions that are given."""

    def forward(self, tokens, targets, positions):
        x = self.wte(tokens) + self.wpe(positions)
        for block in self.h:
            x = block(x)
        logits = F.linear(self.lnf(x), self.wte.weight)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))


def optimizer(net, zero):
    """AdamW as everywhere here; with zero its state is spread over the ranks."""
    if not zero:
        return gpt2.optimizer(net, 1e-4)
    from torch.distributed.optim import ZeroRedundancyOptimizer

    params = list(net.parameters())
    return ZeroRedundancyOptimizer([{"params": [p for p in params if p.dim() >= 2], "weight_decay": 0.1}, {"params": [p for p in params if p.dim() < 2], "weight_decay": 0.0}],
                                   optimizer_class=torch.optim.AdamW, lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=cuda)


def shared(net, ranks, q):
    """The model of all ranks, whose gradients are averaged; on one rank the model itself."""
    if q["ranks"] == 1:
        return net
    return torch.nn.parallel.DistributedDataParallel(net, device_ids=[ranks.device.index] if cuda else None, gradient_as_bucket_view=True)


def timed(q, step, ranks):
    """Times steps after some that are not timed. The slowest rank's time counts."""
    together = q["ranks"] > 1
    begun, millis = time.time(), []
    loss = step().item()
    first = time.time() - begun
    for i in range(q["warm"] + q["steps"]):
        synchronize()
        if together:
            dist.barrier(group=ranks.control)
        begun = time.time()
        step()
        synchronize()
        if i >= q["warm"]:
            millis.append(1e3 * (time.time() - begun))
    if together:
        millis = [max(m) for m in zip(*ranks.all_agree(millis))]
    return {"step_ms": millis, "median_ms": sorted(millis)[len(millis) // 2], "first_step_s": first, "loss": loss, **memory()}


def data(q, ranks):
    """Whole steps on random tokens, each rank's its own, with torch.compile. The vocabulary is padded to a multiple of 128, as is usual."""
    torch.manual_seed(0)
    cast = gpt2.precision(q["precision"])
    net = gpt2.GPT2(vocabulary=-(-q["vocabulary"] // 128) * 128, positions=q["tokens"], **q["size"]).to(ranks.device)
    whole = shared(net, ranks, q)
    call = torch.compile(whole) if q["compile"] else whole
    tokens, targets = (torch.randint(0, q["vocabulary"], (q["batch"], q["tokens"]), device=ranks.device) for _ in range(2))

    def step():
        with cast:
            loss = call(tokens, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        way.step()
        way.zero_grad(set_to_none=True)
        return loss

    results = {}
    for name in q["ways"]:  # the compiled step serves all
        way = optimizer(net, name == "zero")
        results[name] = timed(q, step, ranks)
        del way
        gc.collect()
        if cuda:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
    return results


class Turn(torch.autograd.Function):
    """All ranks give each other parts: cut along one dimension, joined along another."""

    @staticmethod
    def forward(ctx, x, cut, join, n):
        ctx.way = join, cut, n
        parts = torch.stack(x.chunk(n, cut))
        got = torch.empty_like(parts)
        dist.all_to_all_single(got, parts)
        return torch.cat(got.unbind(0), join)

    @staticmethod
    def backward(ctx, grad):
        cut, join, n = ctx.way
        return Turn.apply(grad, cut, join, n), None, None, None


@contextlib.contextmanager
def ulysses(n):
    """Attention on whole sequences of a part of the heads."""
    usual = F.scaled_dot_product_attention

    def attention(q, k, v, **how):
        q, k, v = (Turn.apply(t, 1, 2, n) for t in (q, k, v))
        return Turn.apply(usual(q, k, v, **how), 2, 1, n)

    F.scaled_dot_product_attention = attention
    try:
        yield
    finally:
        F.scaled_dot_product_attention = usual


@contextlib.contextmanager
def ring(ranks, buffers, precision):
    """PyTorch's own context parallelism. It cuts the buffers in place, as long as it lasts."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel
    from torch.nn.attention import SDPBackend, sdpa_kernel

    ranks.mesh = ranks.mesh or init_device_mesh(ranks.device.type, (ranks.size,))
    backend = SDPBackend.FLASH_ATTENTION if precision == "bf16" else SDPBackend.EFFICIENT_ATTENTION
    with sdpa_kernel([backend]), context_parallel(ranks.mesh, buffers=buffers, buffer_seq_dims=[1, 1, 0]):
        yield


def context(q, ranks):
    """Whole steps on one sequence that the ranks share."""
    torch.manual_seed(0)
    cast = gpt2.precision(q["precision"])
    n, length = q["ranks"], q["tokens"]
    net = Positions(vocabulary=-(-q["vocabulary"] // 128) * 128, positions=length, **q["size"]).to(ranks.device)
    call, way = shared(net, ranks, q), optimizer(net, False)
    everything = torch.randint(0, q["vocabulary"], (1, length + 1), generator=torch.Generator().manual_seed(1)).to(ranks.device)

    def step():
        tokens, targets, positions = everything[:, :-1].clone(), everything[:, 1:].clone(), torch.arange(length, device=ranks.device)
        if q["way"] == "ulysses":
            mine = slice(ranks.rank * length // n, (ranks.rank + 1) * length // n)
            tokens, targets, positions = tokens[:, mine], targets[:, mine], positions[mine]
        how = {"one": contextlib.nullcontext, "ulysses": lambda: ulysses(n), "ring": lambda: ring(ranks, [tokens, targets, positions], q["precision"])}[q["way"]]
        with how():
            with cast:
                loss = call(tokens, targets, positions)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=True)
        way.step()
        way.zero_grad(set_to_none=True)
        return loss.detach()

    answer = timed(q, step, ranks)
    if n > 1:
        answer["loss"] = sum(ranks.all_agree(answer["loss"])) / n
    return answer


# checkpoints


def checkpoint(q, ranks):
    """Saves model and optimizer beside the steps of training. Blocked is how long the call kept training; done is when all is written."""
    import torch.distributed.checkpoint as dcp

    torch.manual_seed(0)
    net = gpt2.GPT2(vocabulary=-(-q["vocabulary"] // 128) * 128, positions=q["tokens"], **q["size"]).to(ranks.device)
    whole, way = shared(net, ranks, q), optimizer(net, False)
    cast = gpt2.precision(q["precision"])
    tokens = torch.randint(0, q["vocabulary"], (q["batch"], q["tokens"]), device=ranks.device)

    def step():
        with cast:
            loss = whole(tokens, tokens)
        loss.backward()
        way.step()
        way.zero_grad(set_to_none=True)

    step()
    blocked, done, size = [], [], 0
    for i in range(q["saves"]):
        folder = os.path.join(q["folder"], f"torch-{i}")
        synchronize()
        dist.barrier(group=ranks.control)
        begun = time.time()
        future = dcp.async_save({"model": net.state_dict(), "optimizer": way.state_dict()}, checkpoint_id=folder, process_group=ranks.control)
        blocked.append(1e3 * (time.time() - begun))
        for _ in range(q["between"]):
            step()
        future.result()
        done.append(1e3 * (time.time() - begun))
        dist.barrier(group=ranks.control)
        if ranks.rank == 0:
            size = sum(os.path.getsize(os.path.join(at, f)) for at, _, files in os.walk(folder) for f in files)
            shutil.rmtree(folder)
    blocked, done = ([max(m) for m in zip(*ranks.all_agree(x))] for x in (blocked, done))
    return {"blocked_ms": blocked, "done_ms": done, "bytes": size}


work = {"exchange": exchange, "data": data, "context": context, "checkpoint": checkpoint, "hello": lambda q, ranks: {"torch": torch.__version__, "device": str(ranks.device)}}


def main():
    ranks = Ranks()
    with open(sys.argv[1]) as f:
        questions = [json.loads(line) for line in f]
    for q in questions:
        answer = {}
        if q["ranks"] > 1 or ranks.rank == 0:
            try:
                answer = work[q["do"]](q, ranks)
            except Exception as e:  # whatever it was, the next question may be answered
                answer = {"failure": f"{type(e).__name__}: {e}"[:400]}
        clean()
        everyone = ranks.all_agree(answer.get("failure"))  # a rank that failed alone leaves the others in a call: the job ends when this takes too long
        wrong = next((f for f in everyone if f), None)
        if ranks.rank == 0:
            print(MARK + json.dumps({"failure": wrong} if wrong else answer), flush=True)
        if wrong and q.get("way") == "ring":
            break  # context_parallel leaves its hand on attention when it fails: the rest is for other processes
    dist.barrier(group=ranks.control)
    sys.stdout.flush()
    os._exit(0)  # taking groups down has been seen to wait for ranks that were gone


if __name__ == "__main__":
    main()
