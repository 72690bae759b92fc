"""Runs what a page of docs/start shows, in an empty folder, as it stands there.

    starts.py PAGE BUILD_DIR CMAKE [PYTHON_DIR]

A block ```console has commands behind "$ " and what they print: "..." stands for
any text, and on a line of its own for any lines. Other blocks whose first line
names a file ("// name.c", "# name.py") are that file. "needs=NAME" says what a
block cannot do without; where that is missing, it is skipped by name.
"""
import os
import re
import subprocess
import sys
import tempfile

page, build, cmake = map(os.path.abspath, sys.argv[1:4])
python_dir = os.path.abspath(sys.argv[4]) if len(sys.argv) > 4 else None
name = os.path.basename(page)


def imports(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"],
                          stderr=subprocess.DEVNULL).returncode == 0


NEEDS = {"cuda": lambda: imports("torch.cuda") and subprocess.run(
             [sys.executable, "-c", "import torch, sys;"
              "sys.exit(not torch.cuda.is_available())"]).returncode == 0,
         "torch": lambda: imports("torch"),
         "numpy": lambda: imports("numpy")}


def blocks(text):
    """(kind, needs, lines) of each block that is run."""
    for head, body in re.findall(r"^```([^\n]+)\n(.*?)^```$", text,
                                 re.MULTILINE | re.DOTALL):
        kind, *more = head.split()
        needs = [m[len("needs="):] for m in more if m.startswith("needs=")]
        yield kind, needs, body.splitlines()


def pattern(lines):
    """Of the whole output."""
    made = ""
    for line in lines:
        if line == "...":
            made += r"(?:.*\n)*"
        else:
            made += re.escape(line).replace(r"\.\.\.", ".*") + "\n"
    return re.compile(made)


def commands(lines):
    """[(command, lines that it prints)]"""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            sys.exit(f"{name}: {line!r} is printed by no command")
    return found


def run(command, expected):
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=100)
    if done.returncode != 0 or not pattern(expected).fullmatch(done.stdout):
        sys.exit(f"{name}: $ {command}\nended with {done.returncode}, printed\n"
                 f"{done.stdout}{done.stderr}\nand the page has\n"
                 + "\n".join(expected))


def write(lines):
    """Returns whether the block is a file."""
    named = re.fullmatch(r"(?://|#) ([\w.]+)", lines[0])
    if named:
        with open(named[1], "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return bool(named)


def install(prefix):
    done = subprocess.run([cmake, "--install", build, "--prefix", prefix],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True)
    if done.returncode != 0:
        sys.exit(done.stdout)
    for folder, _, files in os.walk(prefix):
        if "tarn.pc" in files:
            os.environ["PKG_CONFIG_PATH"] = folder
            os.environ["LD_LIBRARY_PATH"] = os.path.dirname(folder)
    with open(f"{prefix}/bin/python3", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    os.chmod(file.name, 0o755)
    os.environ["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
    if python_dir:
        os.environ["PYTHONPATH"] = python_dir


def main():
    with open(page, encoding="utf-8") as file:
        found = list(blocks(file.read()))
    ran = 0
    with tempfile.TemporaryDirectory() as work:
        install(work + "/prefix")
        os.mkdir(work + "/here")
        os.chdir(work + "/here")
        shown = []
        for number, (kind, needs, lines) in enumerate(found, 1):
            missing = [n for n in needs if not NEEDS[n]()]
            if missing:
                print(f"SKIPPED: {name}, block {number}: no {missing[0]} here")
            elif kind == "console":
                shown += commands(lines)
            elif not write(lines):
                sys.exit(f"{name}, block {number}: no file and no console")
        for command, expected in shown:
            run(command, expected)
            ran += 1
    print(f"{name}: {ran} commands")
    if ran == 0:
        sys.exit(77)


main()
