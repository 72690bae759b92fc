"""Computes with NumPy: arrays of many sizes, and the ones in between.

    arrays.py STEPS

After each step it writes "step SECONDS FAULTS", as train.py does.
"""
import resource
import sys
import time

import numpy as np


def step(chance, grid):
    """One step of a made-up simulation on a grid, and sums over parts of it."""
    edges = (np.roll(grid, 1, 0) + np.roll(grid, -1, 0) + np.roll(grid, 1, 1) +
             np.roll(grid, -1, 1))
    grid = np.sqrt(grid * 0.6 + edges * 0.1 + 0.01)
    total = 0.0
    for rows in chance.integers(50, 700, 12):
        part = grid[:rows].astype(np.float64)
        total += float(np.sort(part.ravel() - part.mean())[::7].sum())
    counts = np.zeros((int(chance.integers(100, 900)), 1000))
    counts[::2] += total
    picked = grid[chance.permutation(len(grid))[:400]]
    return np.concatenate([picked, grid])[:len(grid)], float(counts.sum())


def main():
    chance = np.random.default_rng(1)
    grid = chance.random((1000, 1000), dtype=np.float32)
    for _ in range(int(sys.argv[1])):
        begin = time.process_time()
        grid, total = step(chance, grid)
        assert total == total  # no NaN
        taken = time.process_time() - begin
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        print("step %.6f %d" % (taken, faults), flush=True)


main()
