#!/usr/bin/env python3
"""scripts/gpu-check is rehearsed where there is no card: its parts run to their
ends on devices that every machine has, their files have the published keys, and
no page of a card can be made of them. No figure is compared with a time.

  gpu_check.py SCRIPT BUILD PART[,PART]... [DEVICE SHOWN]

DEVICE is sim:0 unless given, and SHOWN what the files call it: of a driver's
stand-in not the name of a card's device.
"""

import json
import os
import subprocess
import sys
import tempfile

SCRIPT, BUILD, PARTS = sys.argv[1:4]
DEVICE, SHOWN = sys.argv[4:6] or ("sim:0", "sim:0")

KEYS = ("part title device rehearsal card driver processor date seconds figures"
        " notes skipped errors").split()
FIGURE_KEYS = ("name value unit goal bound ratio_to_hardware ratio_to_peer"
               " met").split()

# Figures that a part must have, whatever the machine lacks.
WANTED = {
    1: ["conform_checks_passed", "conform_checks_failed", "h2d_64m"],
    2: ["bert-layer: arena_pool", "bert-layer: arena_pool, reserved over live"],
    3: ["gather_64", "gather_1024_of_copy", "host_rows_256_of_link",
        "scatter_add_256", "4 ranks: distributed, host: gather 256",
        "2 ranks, one at a time: gather 64 over one rank's own"],
    4: [],
    5: ["prefetch_over_max", "sleep_save_given_back", "capture_us_per_pair"],
    6: [],
    7: ["bert-layer, 1 threads: arena_pool",
        "1 ranks: continuous, device: gather 64"],
}


def gpu_check(*words, status=0):
    command = [sys.executable, SCRIPT, "--build", BUILD, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{words}: {done.returncode}: {done.stderr}"
    return done.stderr


def pretend_a_card(folder):
    """As on a machine that has a card: what runs on other devices, or on the
    stand-in, is not of that card."""
    path = os.path.join(folder, "nvidia-smi")
    with open(path, "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\necho 'Some card, 1.0'\n")
    os.chmod(path, 0o755)
    os.environ["PATH"] = folder + os.pathsep + os.environ["PATH"]


def load(folder, number):
    with open(os.path.join(folder, f"part{number}.json"), encoding="utf-8") as file:
        return json.load(file)


def check_figure(figure):
    name = figure["name"]
    assert list(figure) == FIGURE_KEYS, name
    assert figure["value"] is not None, f"{name} has no value"
    if figure["goal"] is None:
        assert figure["met"] is None, name
    elif figure["bound"] == "at least":
        assert figure["met"] == (figure["value"] >= figure["goal"]), name
    elif figure["bound"] == "at most":
        assert figure["met"] == (figure["value"] <= figure["goal"]), name


def check_part(answer, number, device):
    assert list(answer) == KEYS, list(answer)
    assert answer["part"] == number
    assert answer["errors"] == [], answer["errors"]
    assert answer["rehearsal"] is True
    assert answer["device"] == ("cpu:0" if number == 7 else device)
    assert answer["card"] is None and answer["driver"] is None
    names = [figure["name"] for figure in answer["figures"]]
    assert len(names) == len(set(names)), "two figures have one name"
    for wanted in WANTED[number]:
        assert wanted in names, f"part {number} has no {wanted}"
    for figure in answer["figures"]:
        check_figure(figure)
    for skipped in answer["skipped"]:
        assert skipped["what"] and skipped["why"], skipped


def check_page(folder, numbers):
    refused = gpu_check("--report", folder, status=1)
    assert "rehearsal" in refused, refused
    page = os.path.join(folder, "page.md")
    gpu_check("--report", folder, "--to", page)
    with open(page, encoding="utf-8") as file:
        text = file.read()
    for number in numbers:
        assert f"\n## {number}. " in text, f"no part {number}"
    assert text.count("A REHEARSAL on") == len(numbers)


def check_misuse(folder):
    assert "--part wants" in gpu_check("--part", "8", "--out", folder, status=2)
    assert "--out" in gpu_check("--part", "1", status=2)
    assert "either" in gpu_check(status=2)
    assert "no partN.json" in gpu_check("--report", folder, status=1)


def check_failure(folder):
    """A device that is not there: the part says so, and so does its file."""
    words = ["--part", "5", "--out", folder, "--device", "nowhere:0", "--tiny"]
    said = gpu_check(*words, status=1)
    answer = load(folder, 5)
    assert answer["errors"] and answer["figures"] == [], answer
    assert "part 5: failed: " in said and "nowhere" in said, said


def main():
    numbers = [int(n) for n in PARTS.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        check_misuse(folder)
        check_failure(folder)
    with tempfile.TemporaryDirectory() as folder:
        pretend_a_card(folder)
        gpu_check("--part", PARTS, "--out", folder, "--device", DEVICE, "--tiny")
        for number in numbers:
            check_part(load(folder, number), number, SHOWN)
        check_page(folder, numbers)


main()
