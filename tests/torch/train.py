#!/usr/bin/env python3
"""A small GPT trains under PyTorch on a card, with and without Tarn's pool.

  train.py LIBRARY TARN [--out FILE.json] [--steps N] [--rounds N] [--layers N]
           [--width N] [--batch N] [--length N]

LIBRARY is libtarn_torch.so, TARN the tool. An allocator can be changed only
before the first allocation, so each way of allocating is a process of its own:

  torch       PyTorch's caching allocator
  expandable  the same with expandable segments
  tarn        Tarn's pool, by change_current_allocator
  mempool     Tarn's pool under PyTorch's caching allocator, by MemPool

The losses of all have to be the same. Under `tarn` also: later steps ask the
driver for nothing, weights sleep by their tag and come back, `tarn why` reads
the snapshot, empty_cache gives memory back, a request without room raises
Tarn's text, record_stream holds memory, and a captured graph keeps its own.
The time of a step is the median of the later half of all rounds, which take
turns. Exit status: 0 all so, 1 something is not, 77 there is no card.
"""
import argparse
import contextlib
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

WAYS = ("torch", "expandable", "tarn", "mempool")
VOCABULARY = 512


def skip(reason):
    print(f"SKIPPED: torch/train.py: {reason}")
    sys.exit(77)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("tool")
    parser.add_argument("--out")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    return parser.parse_args()


# --- the net ----------------------------------------------------------------

def make_net(torch, options):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv = nn.Linear(width, 3 * width)
            self.out = nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                     nn.Linear(4 * width, width))

        def attend(self, x):
            batch, length, width = x.shape
            q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                       for part in self.qkv(x).chunk(3, dim=-1))
            scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
            ahead = torch.ones(length, length, dtype=torch.bool,
                               device=x.device).triu(1)
            weights = scores.masked_fill(ahead, float("-inf")).softmax(-1)
            return self.out((weights @ v).transpose(1, 2).reshape(x.shape))

        def forward(self, x):
            x = x + self.attend(self.before(x))
            return x + self.mlp(self.between(x))

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            width = options.width
            self.token = nn.Embedding(VOCABULARY, width)
            self.place = nn.Embedding(options.length, width)
            self.blocks = nn.Sequential(
                *(Block(width, 4) for _ in range(options.layers)))
            self.norm = nn.LayerNorm(width)
            self.head = nn.Linear(width, VOCABULARY, bias=False)

        def forward(self, tokens):
            place = torch.arange(tokens.shape[1], device=tokens.device)
            x = self.blocks(self.token(tokens) + self.place(place))
            return self.head(self.norm(x))

    torch.manual_seed(1)
    return Net()


class Training:
    """The same batches and weights in each process."""

    def __init__(self, torch, options, tagged):
        self.torch, self.options = torch, options
        with tagged("weights"):
            self.net = make_net(torch, options).to(options.device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-3)
        shape = (options.steps, options.batch, options.length + 1)
        source = torch.Generator().manual_seed(2)
        # A sequence that can be learned: each token follows from the one before.
        first = torch.randint(VOCABULARY, shape[:2], generator=source)
        tokens = [first]
        for _ in range(options.length):
            tokens.append((tokens[-1] * 5 + 1) % VOCABULARY)
        self.batches = torch.stack(tokens, dim=-1)
        self.losses, self.times, self.after_step = [], [], None

    def step(self, number):
        torch, device = self.torch, self.options.device
        tokens = self.batches[number].to(device)
        begin = time.perf_counter()
        logits = self.net(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(
            logits.reshape(-1, VOCABULARY), tokens[:, 1:].reshape(-1))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())  # waits for the card
        self.times.append(time.perf_counter() - begin)

    def run(self):
        for number in range(self.options.steps):
            self.step(number)
            if self.after_step is not None:
                self.after_step()


# --- what only Tarn's pool has ----------------------------------------------

class Checks:
    def __init__(self):
        self.all = []

    def add(self, name, is_so, detail=""):
        self.all.append({"check": name, "ok": bool(is_so), "detail": str(detail)})

    @contextlib.contextmanager
    def named(self, name):
        """A check that raises is one that failed, and the others go on."""
        try:
            yield
        except Exception as error:  # whatever it is, it is the result
            self.add(name, False, f"{type(error).__name__}: {error}")


def check_sleep(torch, library, training, checks):
    def weights():
        return [p.detach().cpu() for p in training.net.parameters()]

    before, free = weights(), None
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    library.sleep("weights")
    asleep, freed = library.stats().asleep, torch.cuda.mem_get_info()[0] - free
    library.wake("weights")
    same = all(map(torch.equal, before, weights()))
    checks.add("weights sleep and come back", asleep > 0 and same,
               f"{asleep} bytes asleep, {freed} more free on the card, "
               f"contents {'as before' if same else 'changed'}")


def check_snapshot(library, tool, checks):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.tarn")
        library.snapshot(path)
        why = subprocess.run([tool, "why", path], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
    checks.add("tarn why reads the snapshot",
               why.returncode == 0 and "weights" in why.stdout,
               why.stdout.partition("\n")[0])


def check_full(torch, checks):
    try:
        torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
        checks.add("no room raises", False, "1 PiB was given")
    except RuntimeError as error:
        checks.add("no room raises", True, error)


def check_streams(torch, checks):
    """Memory that another stream still reads is not written meanwhile."""
    side, wrong = torch.cuda.Stream(), 0
    for number in range(20):
        source = torch.full((1 << 20,), float(number), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(2_000_000)
            copy = source.clone()
        source.record_stream(side)
        del source
        other = torch.full((1 << 20,), -1.0, device="cuda")
        torch.cuda.synchronize()
        wrong += int((copy != number).sum().item())
        del other, copy
    checks.add("record_stream holds memory", wrong == 0, f"{wrong} wrong values")


def check_graph(torch, library, checks):
    x = torch.ones(256, 256, device="cuda")
    (x @ x).sum()  # what the library of kernels needs is there
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x @ x) @ x
    torch.cuda.empty_cache()
    between = [torch.zeros(256, 256, device="cuda") for _ in range(32)]
    graph.replay()
    torch.cuda.synchronize()
    is_right = bool((y == 256.0 ** 2).all()) and all(
        bool((z == 0).all()) for z in between)
    held = library.stats().reserved
    del y, graph
    torch.cuda.empty_cache()
    checks.add("a captured graph keeps its memory", is_right,
               f"{held} bytes held, {library.stats().reserved} when it was gone")


def check_empty_cache(torch, library, training, checks):
    before = library.stats().reserved
    training.net = training.optimizer = None
    torch.cuda.empty_cache()
    after = library.stats().reserved
    checks.add("empty_cache gives memory back", after < before / 2,
               f"{before} bytes, then {after}")


def check_tarn(torch, library, options, training, seen, checks):
    half = len(seen) // 2
    asked = seen[-1][1] - seen[half][1]
    checks.add("later steps ask the driver for nothing", asked == 0,
               f"{seen[-1][0] - seen[half][0]} requests, {asked} of the driver")
    for name, check in (
            ("sleep", lambda: check_sleep(torch, library, training, checks)),
            ("snapshot", lambda: check_snapshot(library, options.tool, checks)),
            ("full", lambda: check_full(torch, checks)),
            ("streams", lambda: check_streams(torch, checks)),
            ("graph", lambda: check_graph(torch, library, checks)),
            ("empty_cache", lambda: check_empty_cache(
                torch, library, training, checks))):
        with checks.named(name):
            check()


# --- one way ----------------------------------------------------------------

def train(torch, options):
    """Trains in this process, by options.way; what is to be reported."""
    from library import Library
    way, checks, seen = options.way, Checks(), []
    on_card = options.device == "cuda"
    library, scope, tagged = None, contextlib.nullcontext(), None
    if way in ("tarn", "mempool"):
        library = Library(options.library)
    if way == "tarn":
        torch.cuda.memory.change_current_allocator(library.allocator(torch))
    if way == "mempool":
        allocator = library.allocator(torch, "tarn_torch_alloc_or_null")
        pool = torch.cuda.MemPool(allocator.allocator())
        scope = torch.cuda.use_mem_pool(pool)

    @contextlib.contextmanager
    def tag(name):
        library.push(name)
        yield
        library.pop()

    tagged = tag if way == "tarn" else lambda _: contextlib.nullcontext()
    torch.use_deterministic_algorithms(True)
    with scope:
        training = Training(torch, options, tagged)
        if library is not None:
            def look():
                stats = library.stats()
                seen.append((stats.allocs, stats.device_allocs))
            training.after_step = look
        training.run()
    report = {"way": way, "losses": training.losses,
              "times": training.times[len(training.times) // 2:]}
    if on_card and way != "tarn":
        report["reserved"] = torch.cuda.max_memory_reserved()
    if library is not None:
        report["tarn_reserved"] = library.stats().reserved_peak
        report["tarn_live"] = library.stats().live_peak
    if way == "tarn":
        report["reserved"] = report["tarn_reserved"]
        check_tarn(torch, library, options, training, seen, checks)
    if way == "mempool":
        checks.add("Tarn's pool served MemPool", seen[-1][0] > 0,
                   f"{seen[-1][0]} requests")
        training = scope = None  # before their pool
        gc.collect()
        torch.cuda.empty_cache()
    report["checks"] = checks.all
    return report


def run_way(way, options):
    environment = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        environment.pop(name, None)
    if way == "expandable":
        environment["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:],
               "--way", way]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:
        return {"way": way, "losses": [], "times": [], "checks": [
            {"check": "trains", "ok": False,
             "detail": f"exit status {done.returncode}"}]}
    return json.loads(done.stdout.splitlines()[-1])


# --- all ways ---------------------------------------------------------------

def merge(runs):
    """The rounds of one way: all times, the checks of the first."""
    merged = dict(runs[0])
    merged["times"] = [t for run in runs for t in run["times"]]
    merged["checks"] = [c for i, run in enumerate(runs) for c in run["checks"]
                        if i == 0 or not c["ok"]]
    merged["step_ms"] = (statistics.median(merged.pop("times")) * 1e3
                         if merged["times"] else None)
    return merged


def compare(ways, checks):
    wanted = ways["torch"]["losses"]
    checks.add("the losses fall", wanted and wanted[-1] < wanted[0],
               f"{wanted[:1]} to {wanted[-1:]}")
    for way, result in ways.items():
        losses = result["losses"]
        furthest = max((abs(a - b) for a, b in zip(losses, wanted)), default=None)
        checks.add(f"{way}: the losses are those of torch",
                   len(losses) == len(wanted) and furthest == 0,
                   f"largest difference {furthest}")
        checks.all += [dict(c, check=f"{way}: {c['check']}")
                       for c in result.pop("checks")]


def main():
    options = arguments()
    try:
        import torch
    except ImportError as error:
        skip(f"no PyTorch here: {error}")
    if options.way is not None:
        print(json.dumps(train(torch, options)))
        return 0
    if not torch.cuda.is_available():
        skip(f"PyTorch {torch.__version__} finds no card")
    runs = {way: [] for way in WAYS}
    for _ in range(options.rounds):
        for way in WAYS:
            runs[way].append(run_way(way, options))
    ways = {way: merge(of) for way, of in runs.items()}
    checks = Checks()
    compare(ways, checks)
    report = {"card": torch.cuda.get_device_name(), "torch": torch.__version__,
              "ways": ways, "checks": checks.all,
              "step_over_torch": {way: result["step_ms"] / ways["torch"]["step_ms"]
                                  for way, result in ways.items()
                                  if result["step_ms"] and ways["torch"]["step_ms"]}}
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
    for way, result in ways.items():
        print(f"{way:11} step {result['step_ms']} ms, "
              f"reserved {result.get('reserved')}, last loss {result['losses'][-1:]}")
    for check in checks.all:
        print(f"{'ok' if check['ok'] else 'NOT SO':7}{check['check']}: {check['detail']}")
    return 0 if all(check["ok"] for check in checks.all) else 1


if __name__ == "__main__":
    sys.exit(main())
