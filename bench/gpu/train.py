"""One program of PyTorch's that trains a small GPT, for scripts/gpu-check.

    train.py MODE DEVICE LIBRARY SIZE

MODE: torch, expandable (the environment has said so), tarn (the allocator of
the whole process) or mempool (that of a pool). LIBRARY: libtarn_torch.so. SIZE:
small or tiny. On a device of PyTorch's other than cuda no allocator is changed.

It reads a command from each line of stdin and answers with a line of JSON, so
that several of these programs can make their steps by turns.
"""

import contextlib
import ctypes
import json
import os
import sys
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # the same sums each time

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZES = {  # layers, width, heads, length, batch, words
    "small": (8, 768, 12, 512, 8, 8192),
    "tiny": (2, 64, 2, 32, 2, 128),
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.norm2 = nn.LayerNorm(width)
        self.attend = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.attend(self.norm1(x)).chunk(3, dim=-1)
        q, k, v = (
            p.view(batch, length, self.heads, -1).transpose(1, 2) for p in parts
        )
        # Written out: the fused kernels add up in an order of their own.
        scores = q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device)
        scores = scores.masked_fill(later.triu(1), float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        x = x + self.join(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Net(nn.Module):
    def __init__(self, layers, width, heads, length, words):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        at = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.places(at)
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


class Stats(ctypes.Structure):  # tarn_torch_stats
    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "reserved reserved_peak live live_peak asleep blocks allocs frees"
            " failures device_allocs"
        ).split()
    ]


class Tarn:
    """libtarn_torch.so, as docs/torch.md has it used."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.path = path
        self.lib.tarn_torch_last_error.restype = ctypes.c_char_p

    def did(self, status, what):
        if status != 0:
            text = self.lib.tarn_torch_last_error().decode()
            raise RuntimeError(f"{what}: {text}")

    def allocator(self, alloc):
        made = torch.cuda.memory.CUDAPluggableAllocator(
            self.path, alloc, "tarn_torch_free"
        )
        for hook, function in (
            ("set_record_stream_fn", "tarn_torch_record_stream"),
            ("set_reset_fn", "tarn_torch_reset"),
            ("set_base_alloc_fn", "tarn_torch_base_alloc"),
        ):
            address = ctypes.cast(getattr(self.lib, function), ctypes.c_void_p)
            getattr(made.allocator(), hook)(address.value)
        return made

    def stats(self):
        stats = Stats()
        self.did(self.lib.tarn_torch_query(0, ctypes.byref(stats)), "statistics")
        return {name: getattr(stats, name) for name, _ in Stats._fields_}

    @contextlib.contextmanager
    def tagged(self, name):
        self.did(self.lib.tarn_torch_tag_push(name.encode()), "tag")
        try:
            yield
        finally:
            self.did(self.lib.tarn_torch_tag_pop(), "tag")


class Program:
    def __init__(self, mode, device, library, size):
        self.mode = mode
        self.on_card = device.startswith("cuda")
        self.tarn = None
        self.scope = contextlib.nullcontext
        if self.on_card and mode in ("tarn", "mempool"):
            self.use_tarn(mode, library)
        torch.manual_seed(1)
        torch.use_deterministic_algorithms(True)
        self.device = device
        layers, width, heads, length, self.batch, words = SIZES[size]
        self.length, self.vocabulary = length, words
        with self.scope(), self.tag("weights"):
            self.net = Net(layers, width, heads, length, words).to(device)
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=1e-4)
        self.random = torch.Generator().manual_seed(2)

    def use_tarn(self, mode, library):
        self.tarn = Tarn(library)
        if mode == "tarn":
            self.allocator = self.tarn.allocator("tarn_torch_alloc")
            torch.cuda.memory.change_current_allocator(self.allocator)
            return
        self.allocator = self.tarn.allocator("tarn_torch_alloc_or_null")
        self.pool = torch.cuda.MemPool(self.allocator.allocator())
        self.scope = lambda: torch.cuda.use_mem_pool(self.pool)

    def tag(self, name):
        return self.tarn.tagged(name) if self.tarn else contextlib.nullcontext()

    def wait(self):
        if self.on_card:
            torch.cuda.synchronize()

    def draw(self):
        shape = (self.batch, self.length + 1)
        tokens = torch.randint(self.vocabulary, shape, generator=self.random)
        return tokens.to(self.device)

    def loss_of(self, tokens):
        out = self.net(tokens[:, :-1])
        return F.cross_entropy(out.flatten(0, 1), tokens[:, 1:].flatten())

    def step(self):
        loss = self.loss_of(self.draw())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def steps(self, count):
        with self.scope():
            self.wait()
            begin = time.perf_counter()
            losses = [self.step() for _ in range(count)]
            self.wait()
            ms = (time.perf_counter() - begin) * 1e3 / count
        return {"ms": ms, "losses": [loss.item() for loss in losses]}

    def memory(self):
        """Bytes that are held of the device, by PyTorch and by Tarn."""
        has_own = self.on_card and self.mode != "tarn"
        return {
            "torch_reserved": torch.cuda.max_memory_reserved() if has_own else 0,
            "tarn": self.tarn.stats() if self.tarn else None,
        }

    def sleep(self):
        """The weights give up their memory and come back."""
        tokens = self.draw()
        with torch.no_grad(), self.scope():
            before = self.loss_of(tokens).item()
        self.wait()
        free = torch.cuda.mem_get_info()[0]
        begin = time.perf_counter()
        self.tarn.did(self.tarn.lib.tarn_torch_sleep(0, b"weights", 1), "sleep")
        asleep = time.perf_counter()
        given = torch.cuda.mem_get_info()[0] - free
        self.tarn.did(self.tarn.lib.tarn_torch_wake(0, b"weights"), "wake")
        awake = time.perf_counter()
        with torch.no_grad(), self.scope():
            after = self.loss_of(tokens).item()
        weights = sum(p.numel() * 4 for p in self.net.parameters())
        return {
            "same": before == after,
            "given_back": given,
            "weights": weights,
            "sleep_ms": (asleep - begin) * 1e3,
            "wake_ms": (awake - asleep) * 1e3,
        }

    def snapshot(self, path):
        self.tarn.did(self.tarn.lib.tarn_torch_snapshot(0, path.encode()), "snapshot")
        return {}

    def empty(self):
        """torch.cuda.empty_cache: bytes that Tarn holds before and after."""
        before = self.tarn.stats()["reserved"]
        torch.cuda.empty_cache()
        return {"before": before, "after": self.tarn.stats()["reserved"]}


def main():
    program = Program(*sys.argv[1:5])
    print(json.dumps({"ready": torch.__version__}), flush=True)
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = getattr(program, name)(*arguments)
        except Exception as error:  # told to the program that has asked
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


main()
