"""CuPy's memory pool under the requests of a workload, for scripts/gpu-check.

    pool_cupy.py TRACE.pickle...     as `tarn convert --to pytorch` writes them
    pool_cupy.py --rehearse ...      with bytes of Python's instead of the pool

The requests are made from Python, as CuPy's users make them; what the same loop
takes without requests is subtracted. Writes one object of JSON.
"""

import json
import pickle
import statistics
import sys
import time


def requests_of(path):
    """(slot, size) in order; a size of 0 gives the block of the slot back."""
    with open(path, "rb") as file:
        events = pickle.load(file)["device_traces"][0]
    slots, requests, count = {}, [], 0
    for event in events:
        if event["action"] == "alloc":
            slots[event["addr"]] = count
            requests.append((count, event["size"]))
            count += 1
        elif event["action"] == "free_completed":
            requests.append((slots.pop(event["addr"]), 0))
    return requests, count


def one_pass(requests, count, malloc):
    blocks = [None] * count
    begin = time.perf_counter()
    for slot, size in requests:
        blocks[slot] = malloc(size) if size else None
    return time.perf_counter() - begin


def one_pass_empty(requests, count):
    blocks = [None] * count
    begin = time.perf_counter()
    for slot, size in requests:
        blocks[slot] = size if size else None
    return time.perf_counter() - begin


def held_over_live(requests, count, malloc, held):
    blocks, sizes, live, top, peak = [None] * count, [0] * count, 0, 0, 0
    for slot, size in requests:
        blocks[slot] = malloc(size) if size else None
        live += size - sizes[slot]
        sizes[slot] = size
        top, peak = max(top, live), max(peak, held())
    return peak / top


def measure(path, malloc, held):
    requests, count = requests_of(path)
    passes = max(5, min(51, 400000 // len(requests)))
    for _ in range(2):
        one_pass(requests, count, malloc)
    busy = statistics.median(one_pass(requests, count, malloc) for _ in range(passes))
    idle = statistics.median(one_pass_empty(requests, count) for _ in range(passes))
    pairs = sum(1 for _, size in requests if size)
    return {
        "pair_ns": (busy - idle) / pairs * 1e9,
        "reserved_over_live": held_over_live(requests, count, malloc, held),
    }


def main():
    paths = sys.argv[1:]
    if paths[0] == "--rehearse":
        print(json.dumps({p: measure(p, lambda n: bytearray(1), lambda: 1) for p in paths[1:]}))
        return
    import cupy

    results = {}
    for path in paths:
        pool = cupy.cuda.MemoryPool()
        results[path] = measure(path, pool.malloc, pool.total_bytes)
        pool.free_all_blocks()
    print(json.dumps(results))


main()
