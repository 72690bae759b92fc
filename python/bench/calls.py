"""What the Python package costs: an import, a call, gathers of 1,024 rows.

  calls.py [-o table|json]

The package is the one that Python finds. All calls take turns, and times are
the least of many rounds, since others of the machine can only add to them. The
time of C is that of the bare call less that of a call which does nothing with
as many arguments. `tarn bench whole` times it from C. Needs NumPy.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import timeit

import numpy as np

import libtarn
from libtarn._library import lib

ROWS, SIZES = 1024, (64, 256, 1024)  # all of them are in the caches


def least(calls, number, rounds=200):
    """Microseconds of each of |calls|, which take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for at, call in enumerate(calls):
            best[at] = min(best[at], timeit.timeit(call, number=number))
    return [time / number * 1e6 for time in best]


# --- imports -----------------------------------------------------------------

def run_ms(code, environment):
    times = []
    for _ in range(15):
        begun = timeit.default_timer()
        subprocess.run([sys.executable, "-c", code], check=True,
                       env=environment)
        times.append(timeit.default_timer() - begun)
    return min(times) * 1e3


def import_ms():
    """Over bare Python, with the library loaded."""
    code = "import libtarn; libtarn.version()"
    environment = dict(os.environ)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        run_ms(code, environment)  # writes bytecode, as an installation does
        return run_ms(code, environment) - run_ms("pass", environment)


# --- gathers -----------------------------------------------------------------

def nothing_of(count):
    """A function of the library that does nothing with |count| pointers."""
    function = lib.handle["tarn_counted_release"]  # reads the first, NULL
    function.restype = ctypes.c_int
    function.argtypes = [ctypes.c_void_p] * count
    return function


def gathers(size):
    """(C, by gather with out=, prepared, np.take): microseconds."""
    random = np.random.default_rng(1)
    ids = random.integers(0, ROWS, ROWS)
    out = np.empty((ROWS, size // 4), np.float32)
    with libtarn.Table((ROWS, size // 4), "f32") as t:
        values = random.random((ROWS, size // 4), np.float32)
        t[:] = values
        t.gather(ids, out=out)
        prepared, nothing = t.prepare(ids, out), nothing_of(3)
        function, (table, rows, _) = prepared._gather, prepared._arguments
        call, empty, *others = least((
            lambda: function(table, rows, None),
            lambda: nothing(None, rows, None),
            lambda: t.gather(ids, out=out), prepared,
            lambda: np.take(values, ids, axis=0, out=out, mode="clip")), 50)
        t.gather(ids, out=out)
        assert (out == values[ids]).all()
    return call - empty, *others


# --- all ---------------------------------------------------------------------

def figure(name, value, unit, goal):
    return {"name": name, "value": value, "unit": unit, "goal": goal,
            "met": None if goal is None else value <= goal}


def measure():
    nothing = lib.tarn_counted_release
    call, bare = least((lambda: nothing(None), lambda: None), 1000)
    yield figure("import_over_python", import_ms(), "ms", 10)
    yield figure("call_of_nothing", call - bare, "us", .3)
    for size in SIZES:
        c, gather, prepared, take = gathers(size)
        yield figure(f"gather_{size}_c_over_take", c / take, "", 1)
        yield figure(f"gather_{size}_over_c", gather - c, "us", 3)
        yield figure(f"prepared_{size}_over_c", prepared / c, "",
                     1.1 if size == 256 else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", choices=("table", "json"), default="table")
    asked = parser.parse_args()
    results = list(measure())
    if asked.o == "json":
        print(json.dumps({"results": results, "machine": {
            "python": sys.version.split()[0], "numpy": np.__version__,
            "processors": os.cpu_count()}}))
        return
    for told in results:
        met = {None: "", True: "met", False: "missed"}[told["met"]]
        print(f"{told['name']:24} {told['value']:8.3f} {told['unit']:3} "
              f"{told['goal'] or '':5} {met}")


if __name__ == "__main__":
    main()
