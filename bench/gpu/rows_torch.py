"""PyTorch's gather and scatter of rows, for scripts/gpu-check.

    rows_torch.py DEVICE BYTES BATCH [ROW...]

A table of BYTES, batches of BATCH bytes of rows by uniform indices; each
measured beside a copy of as many bytes. Writes one object of JSON.
"""

import json
import statistics
import sys
import time

import torch


def timed(work, wait, passes=15):
    """Median seconds of one call; enough calls at a time to outlast a launch."""
    work()
    wait()
    times = []
    calls = 8
    for _ in range(passes):
        begin = time.perf_counter()
        for _ in range(calls):
            work()
        wait()
        times.append((time.perf_counter() - begin) / calls)
    return statistics.median(times)


def main():
    device, size, batch = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    random = torch.Generator(device=device).manual_seed(1)
    figures = {}
    for row in map(int, sys.argv[4:]):
        width, rows, count = row // 4, size // row, min(size, batch) // row
        table = torch.zeros(rows, width, device=device)
        out = torch.empty(count, width, device=device)
        index = torch.randint(rows, (count,), device=device, generator=random)
        select = timed(lambda: torch.index_select(table, 0, index, out=out), wait)
        copy = timed(lambda: out.copy_(table[:count]), wait)
        add = timed(lambda: table.index_add_(0, index, out), wait)
        gbs = count * row / 1e9
        figures[row] = {
            "index_select": gbs / select,
            "index_add": gbs / add,
            "copy": gbs / copy,
        }
        del table, out, index
    print(json.dumps({"torch": torch.__version__, "rows": figures}))


main()
