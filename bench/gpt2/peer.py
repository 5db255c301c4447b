"""PyTorch's side of bench/gpt2. `peer.py --serve` reads one JSON question a line and answers each with one line;
`peer.py --first QUESTION` trains one step and says so: what a person waits for, imports and all."""
import gc
import json
import math
import sys
import time

import torch
import torch._functorch.config
from safetensors.torch import load_file, save_file

import llama
import mlp
import model as gpt2

device = "cuda" if torch.cuda.is_available() else "cpu"


def synchronize():
    if device == "cuda":
        torch.cuda.synchronize()


def clean():
    gc.collect()
    if device == "cuda":
        torch.cuda.empty_cache()


models = {"gpt2": gpt2.GPT2, "llama": llama.Llama, "mlp": mlp.MLP}


def network(q, multiple=1):
    """The model that is asked for, its vocabulary padded to a multiple of that many."""
    with torch.device(device):
        return models[q.get("model", "gpt2")](vocabulary=-(-q.get("vocabulary", 50257) // multiple) * multiple, **q.get("size", {}))


class Steps:
    """Whole steps of training on random tokens. The vocabulary is padded to a multiple of 128, as is usual."""

    def __init__(self, q, backend="inductor"):
        torch.manual_seed(0)
        self.cast = gpt2.precision(q["precision"])
        self.q, self.model = q, network(q, 128)
        if hasattr(torch._functorch.config, "force_non_lazy_backward_lowering"):  # the backward pass is compiled with the forward pass, not when it first runs
            torch._functorch.config.force_non_lazy_backward_lowering = True
        self.call = torch.compile(self.model, backend=backend) if q["mode"] == "compile" else self.model
        self.optimizer = gpt2.optimizer(self.model, 1e-4)
        self.inputs(q["batch"])

    def inputs(self, batch):
        shape = (batch, self.q.get("tokens", 1024))
        self.tokens, self.targets = (torch.randint(0, self.q.get("vocabulary", 50257), shape, device=device) for _ in range(2))

    def any_batch(self, backend="inductor"):
        """From now on the compiled step is one for any number of rows."""
        torch._dynamo.reset()
        self.call = torch.compile(self.model, backend=backend)
        for t in (self.tokens, self.targets):
            torch._dynamo.mark_dynamic(t, 0)

    def loss(self):
        with self.cast:
            return self.call(self.tokens, self.targets)

    def step(self):
        loss = self.loss()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def times(self, warm, steps):
        """Milliseconds of steps, after one more than warm that aren't timed."""
        loss, millis = self.step().item(), []
        for i in range(warm + steps):
            synchronize()
            begun = time.time()
            self.step()
            synchronize()
            if i >= warm:
                millis.append(1e3 * (time.time() - begun))
        return loss, millis


def timed(q):
    torch._dynamo.reset()
    clean()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    steps = Steps(q)
    begun = time.time()
    loss = steps.step().item()
    first = time.time() - begun
    _, millis = steps.times(q.get("warm", 3) - 1, q["steps"])
    reserved = torch.cuda.max_memory_reserved() if device == "cuda" else 0
    return {"step_ms": millis, "first_step_s": first, "loss": loss, "reserved_bytes": reserved}


class Compiled(Exception):
    """All is compiled that was to be."""


def compiled(q):
    """Fills the caches with the code of a step of this batch, or of any; nothing is run."""
    from torch._inductor.compile_fx import compile_fx

    def backend(graph, inputs):
        compile_fx(graph, inputs)
        raise Compiled

    begun = time.time()
    steps = Steps(q, backend)
    if q["any"]:
        steps.any_batch(backend)
    try:
        steps.loss()
    except Exception as e:
        if not isinstance(e, Compiled) and "Compiled" not in str(e):
            raise
    return {"seconds": time.time() - begun}


def largest(q):
    """Times steps of the largest batch that fits. Memory says what to try after a step of the batch in question; then each try is a little smaller."""
    torch._dynamo.reset()
    clean()
    torch.cuda.reset_peak_memory_stats()
    steps = Steps(q)
    steps.any_batch()
    fixed = 12 * sum(p.numel() for p in steps.model.parameters())  # weights and AdamW's state: gradients are not there yet when memory is fullest
    guess, tried = q["batch"], []
    begun = time.time()
    try:
        steps.step()
        steps.step()
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved()
        guess = int(1.02 * (free - fixed) / (torch.cuda.max_memory_allocated() - fixed) * q["batch"])
    except torch.OutOfMemoryError:
        tried.append(q["batch"])
    first = time.time() - begun
    for batch in range(guess, guess // 2, -max(1, guess // 50)):
        if batch in tried:
            continue
        steps.optimizer.zero_grad(set_to_none=True)
        clean()
        steps.inputs(batch)
        try:
            loss, millis = steps.times(0, q["steps"])
            return {"batch": batch, "step_ms": millis, "loss": loss, "too_large": tried, "first_step_s": first, "reserved_bytes": torch.cuda.max_memory_reserved()}
        except torch.OutOfMemoryError:
            tried.append(batch)
    raise RuntimeError(f"out of memory with each batch of {tried}")


def relative(got, want):
    norm = want.norm().item()
    return ((got.double() - want).norm().item() / norm) if norm > 0 else got.double().norm().item()


def gradients(net, tokens, targets, cast, rows):
    """The loss, summed, and its gradients, a few rows of the batch at a time."""
    net.zero_grad(set_to_none=True)
    total = 0.0
    for i in range(0, tokens.shape[0], rows):
        with cast:
            loss = net(tokens[i : i + rows], targets[i : i + rows], "sum")
        loss.backward()
        total += loss.item()
    return total, {name: p.grad for name, p in gpt2.weights(net).items()}


def anchors(q):
    """Random weights and tokens to files; the loss and gradients in float64; how far float32, tf32 and bf16 are off."""
    torch.manual_seed(q["seed"])
    net = network(q)
    with torch.no_grad():  # biases and gains as they may be after a while, so that every gradient says something
        for name, p in net.named_parameters():
            if p.dim() == 1:
                p.add_(0.05 * torch.randn_like(p))
    shape = (q["batch"], q["tokens"])
    tokens, targets = (torch.randint(0, q["vocabulary"], shape, device=device) for _ in range(2))
    save_file({name: p.detach().cpu().contiguous() for name, p in gpt2.weights(net).items()}, q["weights"])
    save_file({"tokens": tokens.int().cpu(), "targets": targets.int().cpu()}, q["inputs"])
    answer = {"errors": {}}
    results = {}
    for name in ("fp32", "tf32", "bf16"):
        results[name] = gradients(net, tokens, targets, gpt2.precision(name), q["batch"])
    wide = network(q).double()
    wide.load_state_dict({k: v.double() for k, v in net.state_dict().items()})
    loss, exact = gradients(wide, tokens, targets, gpt2.precision("fp32"), q["rows"])
    save_file({**{name: g.cpu().contiguous() for name, g in exact.items()}, "loss": torch.tensor([loss], dtype=torch.float64)}, q["exact"])
    for name, (got, grads) in results.items():
        answer["errors"][name] = {"loss": abs(got - loss) / abs(loss), **{n: relative(g, exact[n]) for n, g in grads.items()}}
    answer["loss"] = loss
    return answer


def compare(q):
    """How far the gradients in a file are from those in float64."""
    exact, got = load_file(q["exact"], device), load_file(q["got"], device)
    errors = {"loss": abs(got[q["loss"]].double().item() - exact["loss"].item()) / abs(exact["loss"].item())}
    for name, want in exact.items():
        if name != "loss":
            errors[name] = relative(got["grads/" + name].view(want.shape), want)
    return {"errors": errors}


def windows(file, shape):
    """Tokens that bench/gpt2 wrote as uint16."""
    return torch.from_file(file, size=math.prod(shape), dtype=torch.int16).view(shape).to(device).long() & 0xFFFF


def validation(net, held, rows, cast):
    """The mean loss on windows, some of them at a time."""
    total = 0.0
    with torch.no_grad(), cast:
        for i in range(0, len(held), rows):
            total += net(held[i : i + rows, :-1], held[i : i + rows, 1:], "sum").item()
    return total / held[:, 1:].numel()


def continued(q):
    """Goes on with a run from its weights and optimizer state, on the batches of a file; validates every so many steps, and after the last."""
    state = {}
    for file in q["checkpoint"]:
        state.update(load_file(file, device))
    cast = gpt2.precision(q["precision"])
    net = network(q)
    gpt2.load(net, state)
    if q.get("perturb"):
        torch.manual_seed(q["perturb"])
        with torch.no_grad():
            for p in net.parameters():  # to a neighbouring float, up or down
                away = torch.where(torch.rand_like(p) < 0.5, torch.full_like(p, -torch.inf), torch.full_like(p, torch.inf))
                p.copy_(torch.nextafter(p, away))
    optimizer = gpt2.optimizer(net, 1e-4)
    for name, p in gpt2.weights(net).items():
        optimizer.state[p] = {"step": torch.tensor(float(q["step"]), device=device if device == "cuda" else "cpu"),
                              "exp_avg": state["adamw.m/" + name].view(p.shape).clone(), "exp_avg_sq": state["adamw.v/" + name].view(p.shape).clone()}
    b, s, steps, held = q["batch"], q["tokens"], q["steps"], q.get("held")
    batches = windows(q["batches"], (steps, b, s + 1))
    if held:
        held = {**held, "windows": windows(held["file"], (held["batches"] * b, s + 1))}
    losses, values = [], {}
    begun = time.time()
    for i in range(q["step"], steps):
        for group in optimizer.param_groups:
            group["lr"] = q["lr"][i]
        with cast:
            loss = net(batches[i, :, :-1], batches[i, :, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())  # read at the end: no step waits for it
        if held and ((i + 1) % held["every"] == 0 or i + 1 == steps):
            values[i + 1] = validation(net, held["windows"], held["rows"], cast)
    losses = torch.stack(losses).tolist()
    return {"losses": losses, "validation": values, "seconds": time.time() - begun}


def serve():
    if device == "cuda":
        torch.zeros(1, device=device)
        synchronize()
    for line in sys.stdin:
        q = json.loads(line)
        try:
            answer = {"time": timed, "compile": compiled, "largest": largest, "anchors": anchors, "compare": compare, "continue": continued, "hello": lambda q: {"torch": torch.__version__, "device": device}}[q["do"]](q)
        except (RuntimeError, KeyError, OSError) as e:
            answer = {"failure": f"{type(e).__name__}: {e}"}
        clean()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--first"]:
        steps = Steps(json.loads(sys.argv[2]))
        print(json.dumps({"step": 1, "loss": steps.step().item()}), flush=True)
    else:
        serve()
