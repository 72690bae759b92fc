#!/usr/bin/env python3
"""Prints the structure of the library, one line for each room.

  structure.py SOURCE_DIR BUILD_DIR [--check]

Columns: sources, headers, lines of code (neither blank nor comment), and the
largest knot: the most sources of which each calls every other one, directly or
through others, by the symbols of the object files. With --check the exit status
is 1 where a knot is larger than LIMITS allows: knots grow unseen, since no
compiler minds them.
"""
import re
import subprocess
import sys
from pathlib import Path

# The largest knot that a room may have; 1, no knot, where a room is not named.
LIMITS = {
    "src/device": 7, "plugins/sim": 7,
}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'",
                     re.S)


def lines_of_code(path):
    text = COMMENT.sub(lambda m: m.group() if m.group()[0] in "\"'" else "",
                       path.read_text())
    return sum(1 for line in text.splitlines() if line.strip())


def symbols(objects):
    """What each object defines, and what it needs."""
    defined, needed = {}, {path: set() for path in objects}
    if not objects:
        return defined, needed
    out = subprocess.run(["nm", "-A", *map(str, objects)], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    for line in out.splitlines():
        path, _, entry = line.partition(".o:")
        kind, name = entry.split()[-2:]
        if kind in "Uu":
            needed[Path(path + ".o")].add(name)
        elif kind in "TDBRVWC":
            defined[name] = Path(path + ".o")
    return defined, needed


def largest_knot(nodes, arrows):
    """The largest strongly connected component (Tarjan), as a list."""
    index, low, stack, best = {}, {}, [], []

    def visit(node):
        nonlocal best
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            at = stack.index(node)
            knot, stack[at:] = stack[at:], []
            best = max(best, knot, key=len)

    for node in nodes:
        if node not in index:
            visit(node)
    return best


def objects_of(build, room, code):
    """The object file of each source, of one target of those that have it. A
    room may be built by its own CMakeLists.txt, or not at all on this machine.
    """
    top, _, inner = room.partition("/")
    def find(name):
        return (next(iter(sorted((build / top).glob(f"**/{inner}/{name}.o"))), None)
                or next(iter(sorted((build / room).glob(f"**/{name}.o"))), None))
    return [f for f in (find(c.name) for c in code) if f]


def main():
    sys.setrecursionlimit(10000)
    source, build = Path(sys.argv[1]), Path(sys.argv[2])
    failed = False
    print(f"{'room':16} {'sources':>7} {'headers':>7} {'lines':>6} {'knot':>5}")
    rooms = [p for top in ("src", "plugins") for p in sorted((source / top).iterdir())
             if p.is_dir()]
    rooms += [source / top for top in ("record", "preload", "conform", "kit", "bench", "tool")
              if (source / top).is_dir()]
    for room in rooms:
        name = str(room.relative_to(source))
        code = sorted(room.glob("*.c"))
        objects = objects_of(build, name, code)
        defined, needed = symbols(objects)
        arrows = {o: {defined[n] for n in needed[o]
                      if n in defined and defined[n] != o} for o in objects}
        knot = largest_knot(objects, arrows)
        files = code + sorted(room.glob("*.h"))
        print(f"{name:16} {len(code):7} {len(files) - len(code):7} "
              f"{sum(map(lines_of_code, files)):6} {len(knot):5}")
        if "--check" in sys.argv and len(knot) > LIMITS.get(name, 1):
            failed = True
            print(f"{name}: {len(knot)} sources call each other, "
                  f"{LIMITS.get(name, 1)} may:",
                  ", ".join(sorted(o.name.removesuffix(".o") for o in knot)))
    return failed


sys.exit(main())
