"""One program of PyTorch's that trains the GPT of tests/torch/train.py, for
scripts/gpu-check.

    train.py WAY DEVICE LIBRARY SIZE

WAY: torch, expandable (the environment has said so), tarn (the allocator of
the whole process) or mempool (that of a pool). LIBRARY: libtarn_torch.so. SIZE:
small or tiny. On a device of PyTorch's other than cuda no allocator is changed.

It reads a command from each line of stdin and answers with a line of JSON, so
that several of these programs can make their steps by turns.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import sys
import time

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # the same sums each time

import torch  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TESTS = os.path.join(ROOT, "tests", "torch")

SIZES = {
    "small": {"layers": 8, "width": 768, "batch": 8, "length": 512},
    "tiny": {"layers": 2, "width": 64, "batch": 2, "length": 32},
}


def module_of(name):
    """A file of tests/torch, of which one has the name of this one."""
    path = os.path.join(TESTS, name + ".py")
    spec = importlib.util.spec_from_file_location("torch_tests_" + name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Program:
    def __init__(self, way, device, library, size):
        self.way = way
        self.on_card = device.startswith("cuda")
        self.library = None
        self.scope = contextlib.nullcontext
        if self.on_card and way in ("tarn", "mempool"):
            self.use_tarn(library)
        torch.use_deterministic_algorithms(True)
        options = argparse.Namespace(device=device, steps=64, **SIZES[size])
        with self.scope():
            self.training = module_of("train").Training(
                torch, options, lambda tag: contextlib.nullcontext()
            )

    def use_tarn(self, path):
        self.library = module_of("library").Library(path)
        if self.way == "tarn":
            allocator = self.library.allocator(torch)
            torch.cuda.memory.change_current_allocator(allocator)
            return
        self.allocator = self.library.allocator(torch, "tarn_torch_alloc_or_null")
        self.pool = torch.cuda.MemPool(self.allocator.allocator())
        self.scope = lambda: torch.cuda.use_mem_pool(self.pool)

    def steps(self, count):
        """Each step waits for the card at its end."""
        done = len(self.training.losses)
        with self.scope():
            begin = time.perf_counter()
            for number in range(done, done + count):
                self.training.step(number % self.training.options.steps)
            ms = (time.perf_counter() - begin) * 1e3 / count
        return {"ms": ms, "losses": self.training.losses[done:]}

    def memory(self):
        """Bytes that were held of the device at most, by PyTorch and by Tarn."""
        has_own = self.on_card and self.way != "tarn"
        return {
            "torch": torch.cuda.max_memory_reserved() if has_own else 0,
            "tarn": self.library.stats().reserved_peak if self.library else 0,
        }


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
