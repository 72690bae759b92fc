#!/usr/bin/env python3
"""What the real PyTorch, without a card, does with libtarn_torch.so.

  hooks.py LIBRARY

PyTorch loads the library, takes its hooks, and calls those of captured graphs
and of empty_cache, which need no CUDA. The devices behind them are those of
TARN_TORCH_DEVICE, without it simulated ones: nothing here says anything of a
card. Exit status 77: there is no PyTorch.
"""
import os
import sys

os.environ.setdefault("TARN_TORCH_DEVICE", "sim")
os.environ.pop("TARN_POOL", None)

try:
    import torch
except ImportError as error:
    print(f"SKIPPED: torch/hooks.py: no PyTorch here: {error}")
    sys.exit(77)

from library import Library  # noqa: E402

SIZE = 3 << 20
ID = (7, 0)


def require(condition, what):
    if not condition:
        sys.exit(f"not so: {what}")


def take(library):
    block = library.c.tarn_torch_alloc_or_null(SIZE, 0, None)
    require(block, "a block")
    return block


def give(library, block):
    library.c.tarn_torch_free(block, SIZE, 0, None)


def graphs_have_pools_of_their_own(library):
    """A thread that allocates to a pool of PyTorch's: its memory stays."""
    begin = getattr(torch._C, "_cuda_beginAllocateCurrentThreadToPool", None)
    if begin is None:
        print("SKIPPED: torch/hooks.py: this PyTorch has no pools of a thread")
        return
    begin(0, ID)
    inside = take(library)
    give(library, inside)
    torch._C._cuda_endAllocateToPool(0, ID)
    held = library.stats().reserved
    require(held >= SIZE, "the pool of the graph holds what it used")
    outside = take(library)
    require(outside != inside, "memory of a graph is not another's")
    give(library, outside)
    torch._C._cuda_emptyCache()
    require(library.stats().reserved == held,
            "empty_cache gives back all but what is the graph's")
    torch._C._cuda_releasePool(0, ID)
    require(library.stats().reserved == 0, "a released pool is given back")


def a_capture_that_cannot_begin_raises():
    try:
        torch._C._cuda_beginAllocateToPool(0, ID)
        torch._C._cuda_beginAllocateToPool(0, ID)
    except RuntimeError as error:
        require("a capture is under way" in str(error), f"the text: {error}")
    else:
        sys.exit("not so: a second capture into a pool raises")
    torch._C._cuda_endAllocateToPool(0, ID)
    torch._C._cuda_releasePool(0, ID)


def main():
    library = Library(sys.argv[1])
    allocator = library.allocator(torch)
    torch.cuda.memory.change_current_allocator(allocator)
    require(not torch.cuda.is_initialized(), "all of this needs no CUDA")
    graphs_have_pools_of_their_own(library)
    a_capture_that_cannot_begin_raises()
    print(f"PyTorch {torch.__version__} calls the hooks, "
          f"over {os.environ['TARN_TORCH_DEVICE']}")


main()
