"""Part 4 of scripts/gpu-check: programs of PyTorch's that train the same net by
different allocators, making their steps by turns so that what disturbs one
disturbs the others (train.py)."""

import glob
import json
import os
import select
import statistics
import subprocess
import time

import check
from check import Failed

MODES = ("torch", "expandable", "tarn", "mempool")


class Program:
    """One of them, and the lines that it answers."""

    def __init__(self, part, mode, device, library):
        env = dict(os.environ)
        if mode == "expandable":
            env["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"
            env["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
        plugins = os.path.join(part.options.build, "plugins")
        env.setdefault("TARN_PLUGIN_DIR", plugins)
        self.mode = mode
        self.part = part
        self.errors = os.path.join(part.options.build, "gpu", f"train-{mode}.log")
        os.makedirs(os.path.dirname(self.errors), exist_ok=True)
        with open(self.errors, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [part.options.python, os.path.join(check.HERE, "train.py"), mode,
                 device, library, "tiny" if part.tiny else "small"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                text=True, env=env, start_new_session=True)
        try:
            self.version = self.read()["ready"]
        except Failed:
            self.end()
            raise

    def read(self):
        limit = max(1, min(90, self.part.left()))
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            with open(self.errors, encoding="utf-8", errors="replace") as log:
                why = check.last_line(log.read()) if ready else "no answer in time"
            raise Failed(f"training with {self.mode}: {why}")
        answer = json.loads(line)
        if "error" in answer:
            raise Failed(f"training with {self.mode}: {answer['error']}")
        return answer

    def ask(self, *command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # the answer says why
        return self.read()

    def end(self):
        status = None
        try:
            self.process.stdin.close()
            status = self.process.wait(timeout=10)
        except (OSError, subprocess.TimeoutExpired):
            pass
        check.end_group(self.process)
        if status != 0:
            self.part.note(f"training with {self.mode} ended with status {status}")
        self.process.stdout.close()


def library_of(part):
    found = glob.glob(os.path.join(part.options.build, "**", "libtarn_torch.so"),
                      recursive=True)
    if not found:
        part.lacks("libtarn_torch.so", "it was not built")
    return found[0] if found else ""


def start_all(part):
    on_card = not part.machine["rehearsal"]
    library = library_of(part)
    programs = {}
    for mode in MODES:
        if on_card and mode in ("tarn", "mempool") and not library:
            continue
        try:
            device = "cuda:0" if on_card else "cpu"
            programs[mode] = Program(part, mode, device, library)
        except Failed as error:
            part.lacks(f"training with {mode}", error)
    return programs


def measure(part):
    programs = start_all(part)
    try:
        if programs:
            train(part, programs)
    finally:
        for program in programs.values():
            program.end()


# --- steps -------------------------------------------------------------------


def take_turns(part, programs):
    """Ten rounds, or as many as there is time for; every other one backwards."""
    rounds, steps = (2, 1) if part.tiny else (10, 10)
    times = {mode: [] for mode in programs}
    losses = {mode: [] for mode in programs}
    for turn in range(rounds + 1):
        begin = time.monotonic()
        order = list(programs)[:: 1 if turn % 2 else -1]
        for mode in order:
            answer = programs[mode].ask("steps", steps)
            losses[mode] += answer["losses"]
            if turn > 0:  # the first one warms up
                times[mode].append(answer["ms"])
        if part.left() < 3 * (time.monotonic() - begin) + 20:
            break
    return times, losses


def over(times, mode, base):
    return statistics.median(a / b for a, b in zip(times[mode], times[base]))


def train(part, programs):
    part.note(f"PyTorch {next(iter(programs.values())).version}")
    for mode, program in list(programs.items()):
        warm = part.step(program.ask, "steps", 2)
        if warm is None:
            programs.pop(mode).end()
    times, losses = take_turns(part, programs)
    for mode in programs:
        part.figure(f"{mode}: step", statistics.median(times[mode]), "ms")
        if mode == "torch" or "torch" not in programs:
            continue
        of_torch = over(times, mode, "torch")
        goal = 1.01 if mode in ("tarn", "mempool") else None
        part.figure(f"{mode}: step over torch's", of_torch, "x", goal, False,
                    peer=of_torch)
        worst = max(abs(a - b) for a, b in zip(losses[mode], losses["torch"]))
        part.figure(f"{mode}: losses differ from torch's by", worst, "", 0, False)
    tell_memory(part, programs)
    if part.machine["rehearsal"]:
        part.skip("sleep, snapshot and empty_cache of libtarn_torch.so",
                  "a rehearsal: PyTorch has no card")
        return
    for mode in ("tarn", "mempool"):
        if mode in programs:
            part.step(tell_rest, part, programs[mode])


# --- memory ------------------------------------------------------------------


def tell_memory(part, programs):
    answers = {mode: p.ask("memory") for mode, p in programs.items()}
    best = answers.get("expandable", {}).get("torch_reserved") or None
    for mode, answer in answers.items():
        held = answer["torch_reserved"]
        if answer["tarn"]:
            # What a pool of PyTorch's has is Tarn's; the rest is PyTorch's.
            held = max(held, answer["tarn"]["reserved_peak"])
        goal = best if mode == "tarn" else None
        part.figure(f"{mode}: reserved", held, "bytes", goal, False,
                    peer=held / best if best else None)


def tell_sleep(part, program):
    asleep = program.ask("sleep")
    part.figure("tarn: weights the same after sleep", int(asleep["same"]),
                "yes or no", 1)
    part.figure("tarn: sleep gives back", asleep["given_back"], "bytes",
                peer=asleep["given_back"] / asleep["weights"])
    part.figure("tarn: sleep", asleep["sleep_ms"], "ms")
    part.figure("tarn: wake", asleep["wake_ms"], "ms")


def tell_rest(part, program):
    """Learned steps, sleep by tag, the snapshot, empty_cache."""
    mode = program.mode
    before = program.ask("memory")["tarn"]
    program.ask("steps", 3)
    after = program.ask("memory")["tarn"]
    part.figure(f"{mode}: calls of the driver in 3 steps",
                after["device_allocs"] - before["device_allocs"], "calls", 0, False)
    if mode == "tarn":  # a segment of PyTorch's has more in it than weights
        part.step(tell_sleep, part, program)
    path = os.path.join(part.options.build, "gpu", f"{mode}.tarn")
    program.ask("snapshot", path)
    status, out, err = part.run([part.options.tool, "why", path, "--pool", "none"], 60)
    if status != 0:
        raise Failed(f"tarn why: {check.last_line(err)}")
    part.figure(f"{mode}: tarn why answers its snapshot, with the weights",
                int("weights" in out), "yes or no", 1)
    cache = program.ask("empty")
    part.figure(f"{mode}: empty_cache leaves", cache["after"], "bytes",
                cache["before"], False)
